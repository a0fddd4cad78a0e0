"""UCBVI, Greedy-UCBVI, OptQL and AdaptiveQL against plain NumPy, driven by hand over the same logs."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import kernelrl as krl
from kernelrl.stores.counts import LENGTH, START
from naive.adaptive_ql import NaiveAdaptiveQL
from naive.estimates import argmax_set
from naive.greedy_ucbvi import NaiveGreedyUCBVI
from naive.grid import Optimism, cell
from naive.opt_ql import NaiveOptQL
from naive.tabular_ucbvi import NaiveUCBVI
from problems import Log, logs, random_log, states_for
from small_envs import Chain

TOLERANCE = 1e-9
KINDS = ("UCBVI", "GreedyUCBVI", "OptQL", "AdaptiveQL")
EPISODES = 37  # that the Hoeffding bonus is told of
each_kind = pytest.mark.parametrize("kind", KINDS)


def hoeffding_width(kind, H, X, A, delta, lipschitz):
    """The factor of 1/√N, from the papers."""
    T = EPISODES * H
    if kind == "OptQL":
        return math.sqrt(H**3 * math.log(X * A * T / delta))
    if kind == "AdaptiveQL":
        return 2 * math.sqrt(H**3 * math.log(4 * H * EPISODES / delta)) + 4 * lipschitz
    return 7 * H * math.log(5 * X * A * T / delta)


class Pair:
    """A public agent and its naive counterpart, told the same things. `bins=None` means a Discrete space."""

    def __init__(
        self, kind, H, A, *, bins=3, d=1, low=0.0, high=1.0, n=None, first=0, bonus="simplified", bonus_scale=0.05,
        delta=0.1, lipschitz=1.5, seed=0, reward_range=(0, 1), **options,
    ):  # fmt: skip
        self.H, self.A, self.kind, self.bins = H, A, kind, bins
        self.low, self.high = np.full(d, low), np.full(d, high)
        self.base, self.width = reward_range[0], reward_range[1] - reward_range[0]
        nothing = -self.base / self.width
        each = (bins,) * d if isinstance(bins, int) else bins
        self.each = each
        X = n if each is None else math.prod(each)
        optimism = Optimism(H, bonus, bonus_scale, hoeffding_width(kind, H, X, A, delta, lipschitz))
        naive = {"UCBVI": NaiveUCBVI, "GreedyUCBVI": NaiveGreedyUCBVI, "OptQL": NaiveOptQL}
        shared = {"horizon": H, "bonus": bonus, "bonus_scale": bonus_scale, "delta": delta}
        shared |= {"total_episodes": EPISODES, "reward_range": reward_range}
        if kind == "AdaptiveQL":
            self.agent = krl.AdaptiveQL(**shared, **options, lipschitz=lipschitz)
            self.naive = NaiveAdaptiveQL(H, A, optimism, self.low, self.high, **options, nothing=nothing)
        else:
            self.agent = getattr(krl, kind)(**shared, **options, bins=bins)
            self.naive = naive[kind](H, A, optimism, **options, nothing=nothing)
        space = gym.spaces.Box(self.low, self.high, dtype=np.float64)
        if bins is None:
            space = gym.spaces.Discrete(n, start=first)
        self.agent.start(space, gym.spaces.Discrete(A), H, seed)

    def place(self, x):
        """What the naive agent takes for a state: a cell, a point, or a state of a Discrete space."""
        if self.kind == "AdaptiveQL":
            return tuple(x)
        return int(x) if self.bins is None else cell(x, self.low, self.high, self.each)

    def begin_episode(self):
        self.agent.begin_episode()
        self.naive.begin_episode()

    def observe(self, x, a, r, y, h, terminated):
        self.agent.observe(x, a, self.base + self.width * r, y, h, terminated=terminated)
        self.naive.observe(self.place(x), a, r, self.place(y), h, terminated)

    def check(self, states):
        """All read-outs at all steps, and both policies, ties aside."""
        places = [self.place(x) for x in states]
        for h in range(self.H):
            for name in ("counts", "bonuses", "q_values"):
                expected = np.array([getattr(self.naive, name)(x, h) for x in places])
                if name != "counts":
                    expected = expected * self.width
                if name == "q_values":
                    expected = expected + self.base * (self.H - h)
                actual = getattr(self.agent, name)(states, step=h)
                assert_allclose(actual, expected, rtol=TOLERANCE, atol=TOLERANCE, err_msg=f"{name} at step {h}")
            expected = [self.naive.value(x, h) * self.width + self.base * (self.H - h) for x in places]
            actual = self.agent.values(states, step=h)
            assert_allclose(actual, expected, rtol=TOLERANCE, atol=TOLERANCE, err_msg=f"values at step {h}")
        for i, x in enumerate(states[:4]):
            h = i % self.H
            assert self.agent.choose(x, h) in argmax_set(self.naive.q_values(places[i], h), TOLERANCE)
            assert self.agent.act(x, step=h) in argmax_set(self.naive.deployed(places[i], h), TOLERANCE)

    def play(self, log: Log, states, rng, checks=2):
        moments = set(rng.integers(len(log.transitions) + 1, size=checks).tolist())
        seen = 0
        for episode in log.episodes:
            self.begin_episode()
            for t in episode:
                if rng.random() < 0.5:  # one need not ask before observing, nor about this state
                    self.agent.choose(t.x if rng.random() < 0.5 else states[0], t.h)
                self.observe(*t)
                seen += 1
                if seen in moments:
                    self.check(states)
            self.agent.end_episode()
        self.begin_episode()
        self.check(states)

    def check_moved(self, states):
        for h in range(self.H):
            cap = self.naive.optimism.cap(h) * self.width + self.base * (self.H - h)
            assert (self.agent.values(states, step=h) < cap - 1e-3).any(), f"no value moved at step {h}"


@st.composite
def options_of(draw, kind, d):
    chosen = {
        "bonus": draw(st.sampled_from(["simplified", "simplified", "hoeffding"])),
        "bonus_scale": draw(st.sampled_from([0.0, 0.01, 0.3, 1.0])),
        "reward_range": draw(st.sampled_from([(0, 1), (-1, 0), (-1, 1), (-2, 0)])),
    }
    if kind in ("UCBVI", "GreedyUCBVI"):
        chosen["stationary"] = draw(st.booleans())
    if kind == "UCBVI":
        chosen["replan"] = draw(st.sampled_from(["episode", "step", "doubling", 1.6]))
        chosen["minimum"] = draw(st.booleans())
    if kind == "OptQL":
        chosen["bonus_place"] = draw(st.sampled_from(["target", "after"]))
    if kind != "AdaptiveQL":
        chosen["bins"] = draw(st.one_of(st.integers(1, 4), st.tuples(*[st.integers(1, 4)] * d)))
    return chosen


@each_kind
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_on_any_log(kind, data):
    log = data.draw(logs(max_transitions=30))
    pair = Pair(kind, log.H, log.A, d=log.d, **data.draw(options_of(kind, log.d)))
    pair.play(log, data.draw(states_for(log)), np.random.default_rng(0), checks=1)


def compare(kind, transitions=120, seed=0, d=2, endings=0.2, **options):
    rng = np.random.default_rng(seed)
    log = random_log(rng, H=3, A=2, d=d, transitions=transitions, sites=4, endings=endings)
    states = np.concatenate([rng.permutation(np.unique(log.states(), axis=0))[:15], rng.random((6, d))])
    pair = Pair(kind, 3, 2, d=d, **options)
    pair.play(log, states, rng)
    pair.check_moved(states)
    return pair


VARIANTS = [
    *(
        ("UCBVI", {"stationary": s, "replan": r, "minimum": m})
        for s in (True, False)
        for r in ("episode", "step", "doubling", 1.4)
        for m in (False, True)
    ),
    *(("GreedyUCBVI", {"stationary": s}) for s in (True, False)),
    *(("OptQL", {"bonus_place": place}) for place in ("target", "after")),
    ("AdaptiveQL", {}),
]


@pytest.mark.parametrize(("kind", "options"), VARIANTS)
def test_options(kind, options):
    compare(kind, **options)


def in_cells(rng, agent, episodes, H=4, A=2):
    """Tell the agent of episodes between five cells, as if it had chosen at random; yields after each plan."""
    for _ in range(episodes):
        agent.begin_episode()
        yield agent.model
        x = int(rng.integers(5))
        for h in range(H):
            a, y = int(rng.integers(A)), int(rng.integers(5))
            agent.observe(x, a, float(rng.random() < (0.3 + 0.1 * x) / (1 + a)), y, h, terminated=rng.random() < 0.1)
            x = y
        agent.end_episode()


def tabular_ucbvi(**options):
    agent = krl.UCBVI(bonus_scale=0.1, reward_range=(0, 1), **options)
    agent.start(gym.spaces.Discrete(5), gym.spaces.Discrete(2), 4, seed=0)
    return agent


@pytest.mark.parametrize("stationary", [True, False])
def test_the_minimum_lets_no_q_rise(stationary):
    risen = {}
    for minimum in (True, False):
        before, risen[minimum] = np.inf, 0
        agent = tabular_ucbvi(stationary=stationary, minimum=minimum)
        for model in in_cells(np.random.default_rng(0), agent, 60):
            risen[minimum] += int((before < model.plan.Q).sum())
            before = model.plan.Q.copy()
    assert risen[True] == 0 < risen[False]


@pytest.mark.parametrize("minimum", [True, False])
@pytest.mark.parametrize("stationary", [True, False])
def test_preparing_only_what_is_new_is_a_plan_from_scratch(stationary, minimum):
    """To the last bit, and planning again on the same data changes nothing."""
    options = {"stationary": stationary, "minimum": minimum}
    agent, full = tabular_ucbvi(**options), tabular_ucbvi(**options)
    both = (in_cells(np.random.default_rng(0), which, 60) for which in (agent, full))
    for one, other in zip(*both, strict=True):
        for _ in range(2):
            for name in ("constants", "spans", "ready"):
                getattr(other.plan, name)[:] = 0
            full.begin_episode()
            for name in ("Q", "V", "N"):
                assert np.array_equal(getattr(one.plan, name), getattr(other.plan, name)), name
    assert one.plan.N.sum() > 150


def successors(counts, i, lane):
    """How often each cell followed, from the windows of a lane."""
    start, found = int(counts.lists[START, i]), {}
    for k in range(start, start + int(counts.windows[i, lane])):
        assert counts.times[k, lane, 0] > 0  # a window begins at a successor
        for j in np.flatnonzero(counts.times[k, lane]):
            y = int(counts.window[k, lane]) + int(j)
            assert y not in found
            found[y] = int(counts.times[k, lane, j])
    return found


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 5), st.integers(0, 13)), min_size=1, max_size=80),
    ends=st.sets(st.integers(0, 79)),
)
def test_windows_count_every_successor(steps, ends):
    """Six actions are two groups; a termination is cell X. Room is made as `fit` makes it, before each episode."""
    agent = krl.UCBVI(reward_range=(0, 1))
    agent.start(gym.spaces.Discrete(14), gym.spaces.Discrete(6), 1, seed=0)
    expected: dict = {}
    for number, (x, a, y) in enumerate(steps):
        agent.begin_episode()
        agent.observe(x, a, 0.5, y, 0, terminated=number in ends)
        agent.end_episode()
        of_pair = expected.setdefault((x, a), {})
        y = 14 if number in ends else y
        of_pair[y] = of_pair.get(y, 0) + 1
    counts = agent.model.store
    for x in range(2):
        for a in range(6):
            assert successors(counts, 2 * x + a // 4, a % 4) == expected.get((x, a), {})


@pytest.mark.parametrize("actions", [1, 3, 4, 5, 9])
@pytest.mark.parametrize("kind", KINDS[:2])
def test_any_number_of_actions(kind, actions):
    """Actions are planned four at a time."""
    rng = np.random.default_rng(actions)
    log = random_log(rng, H=2, A=actions, d=1, transitions=150, sites=4, endings=0.2)
    pair = Pair(kind, 2, actions, bins=3, bonus_scale=0.01)
    pair.play(log, rng.random((9, 1)), rng)


@each_kind
@pytest.mark.parametrize(("bonus", "scale"), [("simplified", 1.0), ("hoeffding", 0.002)])
def test_bonuses(kind, bonus, scale):
    if scale == 1.0:
        pair = Pair(kind, 3, 2, d=2, bonus=bonus, bonus_scale=scale)
        log = random_log(np.random.default_rng(1), H=3, A=2, d=2, transitions=60)
        pair.play(log, log.states()[:8], np.random.default_rng(0))
    else:
        compare(kind, bonus=bonus, bonus_scale=scale)


@each_kind
def test_rewards_are_mapped_to_the_unit_interval(kind):
    compare(kind, reward_range=(-2.0, 3.0))


@pytest.mark.parametrize("kind", KINDS[:2])
def test_more_successors_than_a_new_list_holds(kind):
    """Lists that move, and room that grows."""
    rng = np.random.default_rng(0)
    pair = Pair(kind, 2, 1, bins=40, bonus_scale=0.01)
    before = len(pair.agent.model.store.window)
    for _ in range(150):
        pair.begin_episode()
        x, y, z = rng.integers(2) / 2, rng.random(), rng.random()
        pair.observe([x], 0, rng.random(), [y], 0, False)
        pair.observe([y], 0, rng.random(), [z], 1, False)
    pair.begin_episode()
    pair.check(np.linspace(0, 1, 21)[:, None])
    counts = pair.agent.model.store
    assert counts.lists[LENGTH].max() > 7 and len(counts.window) > before


# ------------------------------------------------------------------------------------------------------ Discrete spaces


@pytest.mark.parametrize("kind", KINDS[:3])
@pytest.mark.parametrize("first", [0, 7])
def test_discrete_states(kind, first):
    rng = np.random.default_rng(3)
    pair = Pair(kind, 4, 3, bins=None, n=5, first=first, bonus_scale=0.1)
    P, r = rng.dirichlet(np.full(5, 0.3), size=(5, 3)), rng.random((5, 3))
    for _ in range(40):
        pair.begin_episode()
        x = 0
        for h in range(4):
            a = pair.agent.choose(first + x, h)
            y = int(rng.choice(5, p=P[x, a]))
            pair.observe(first + x, a, r[x, a], first + y, h, bool(rng.random() < 0.1))
            x = y
        pair.agent.end_episode()
    pair.begin_episode()
    states = np.arange(first, first + 5)
    pair.check(states)
    pair.check_moved(states)


@pytest.mark.parametrize("kind", KINDS[:3])
def test_frozen_lake(kind, tmp_path):
    """`fit` on a tabular environment of Gymnasium's, with its time limit as horizon, also across saving."""
    seen = []

    class Recording(gym.Wrapper):
        def reset(self, **options):
            self.x, info = self.env.reset(**options)
            seen.append([])
            return self.x, info

        def step(self, action):
            y, r, terminated, truncated, info = self.env.step(action)
            seen[-1].append((int(self.x), int(action), float(r), int(y), len(seen[-1]), terminated))
            self.x = y
            return y, r, terminated, truncated, info

    env = Recording(gym.make("FrozenLake-v1", desc=None, map_name="4x4", max_episode_steps=6))
    agent = getattr(krl, kind)(bonus_scale=0.05, reward_range=(0, 1))
    agent.fit(env, 30, seed=1)
    agent.save(tmp_path / "agent.krl")
    agent = krl.load(tmp_path / "agent.krl")
    agent.fit(env, 30)
    pair = Pair(kind, 6, 4, bins=None, n=16, bonus_scale=0.05)
    for episode in seen:
        pair.naive.begin_episode()
        for t in episode:
            assert t[1] in argmax_set(pair.naive.q_values(t[0], t[4]), TOLERANCE)
            pair.naive.observe(*t)
    assert len(seen) == 60
    pair.agent = agent
    agent.begin_episode()
    pair.naive.begin_episode()
    pair.check(np.arange(16))
    pair.check_moved(np.arange(16))


# ---------------------------------------------------------------------------------------------------- learning, at last


@pytest.mark.parametrize(("kind", "box"), [*((kind, False) for kind in KINDS[:3]), *((kind, True) for kind in KINDS)])
def test_the_deployed_policy_becomes_optimal(kind, box):
    """On a chain where the small reward at hand must be left for the large one at its end; V* by backward induction."""
    H = 6
    # AdaptiveQL is slow to tell apart places that it reaches once in a thousand episodes.
    env = Chain(box=box, slip=0.0 if kind == "AdaptiveQL" else 0.1)
    options = {"bonus_scale": 0.3} if kind == "AdaptiveQL" else {"bonus_scale": 0.1, "bins": 4 if box else None}
    agent = getattr(krl, kind)(horizon=H, reward_range=(0, 1), **options)
    history = agent.fit(env, 4000, seed=0)
    optimal, V = np.zeros(env.n), np.zeros(env.n)
    for h in reversed(range(H)):
        optimal = (env.R + env.P @ optimal).max(axis=1)
        a = [agent.act(env.observation(x), step=h) for x in range(env.n)]
        V = (env.R + env.P @ V)[np.arange(env.n), a]
    assert V[0] == pytest.approx(optimal[0], rel=1e-12)
    assert optimal[0] > 1.2 * H * env.R[0, 0]  # staying at the start is not it
    assert history.returns[-500:].mean() > 0.9 * optimal[0]


# ----------------------------------------------------------------------------------------------------------- AdaptiveQL


def test_partition():
    """The balls tile the box, and each has what the naive one has."""
    pair = Pair("AdaptiveQL", 2, 2, d=2, low=-1.0, high=3.0)
    pair.agent.begin_episode()
    rng = np.random.default_rng(0)
    for _ in range(150):
        x, y = 4 * rng.beta(0.5, 2, size=(2, 2)) - 1
        for h in range(2):
            pair.observe(x, int(rng.integers(2)), rng.random(), y, h, False)
    for h in range(2):
        for a in range(2):
            found = pair.agent.partition(step=h, action=a)
            ours = sorted(zip(found.low.tolist(), found.high.tolist(), found.q_values, found.visits, strict=True))
            naive = sorted(
                ((4 * ball.corner - 1).tolist(), (4 * (ball.corner + ball.side) - 1).tolist(), ball.q, ball.n)
                for ball in pair.naive.balls[h, a]
            )
            assert len(ours) == len(naive) > 10
            for one, other in zip(ours, naive, strict=True):
                assert one[:2] == other[:2] and one[3] == other[3]
                assert one[2] == pytest.approx(other[2], rel=1e-12)
            assert np.prod(found.high - found.low, axis=1).sum() == pytest.approx(16.0)
            sides = found.high - found.low
            assert sides.min() < sides.max()
    with pytest.raises(ValueError, match="action must be one of 0 … 1"):
        pair.agent.partition(step=0, action=2)
    with pytest.raises(ValueError, match="step must be one of 0 … 1"):
        pair.agent.partition(step=2, action=0)


def test_a_ball_is_updated_before_it_splits():
    """The first visit splits the first ball: its children start from the update, not from the cap."""
    agent = krl.AdaptiveQL(horizon=1, bonus_scale=0.0, reward_range=(0, 1))
    agent.start(gym.spaces.Box(0.0, 1.0, (1,), np.float64), gym.spaces.Discrete(1), 1, seed=0)
    agent.begin_episode()
    agent.observe([0.2], 0, 0.5, [0.2], 0)
    assert agent.partition(0, 0).q_values.tolist() == [0.5, 0.5]
    assert agent.partition(0, 0).visits.tolist() == [1, 1]
    for _ in range(2):
        agent.observe([0.2], 0, 0.5, [0.2], 0)
    assert len(agent.partition(0, 0).visits) == 2  # 3 visits; the next makes 4
    agent.observe([0.2], 0, 0.5, [0.2], 0)
    assert sorted(agent.partition(0, 0).visits.tolist()) == [1, 4, 4]


def test_edges_of_the_box():
    agent = krl.AdaptiveQL(horizon=1)
    agent.start(gym.spaces.Box(0.1, 0.7, (2,), np.float64), gym.spaces.Discrete(1), 1, seed=0)
    agent.begin_episode()
    corners = [[0.1, 0.1], [0.1, 0.7], [0.7, 0.1], [0.7, 0.7], [np.float32(0.7), np.float32(0.1)]]
    for _ in range(40):
        for x in corners:
            agent.observe(x, 0, 0.5, x, 0)
    assert agent.counts(corners, step=0).min() >= 40
    with pytest.raises(ValueError, match="must lie in the box"):
        agent.choose([0.71, 0.1], 0)


def test_an_axis_without_width():
    space = gym.spaces.Box(np.array([0.0, 2.0]), np.array([1.0, 2.0]), dtype=np.float64)
    for agent in (krl.AdaptiveQL(), krl.UCBVI(bins=4)):
        agent.start(space, gym.spaces.Discrete(2), 2, seed=0)
        agent.begin_episode()
        agent.observe([0.3, 2.0], 0, 0.5, [0.9, 2.0], 0)
        agent.begin_episode()
        assert agent.counts([[0.3, 2.0]], step=0).tolist() == [[1, 0]]


# ------------------------------------------------------------------------------------------------------- random choices


@each_kind
def test_ties_are_broken_at_random(kind):
    firsts = set()
    for seed in range(40):
        pair = Pair(kind, 1, 4, seed=seed)
        pair.begin_episode()
        firsts.add(pair.agent.choose([0.5], 0))
        assert pair.agent.act([0.5], step=0) == 0
    assert firsts == {0, 1, 2, 3}
