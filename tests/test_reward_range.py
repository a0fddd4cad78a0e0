"""The range of rewards: taken from what is seen, widened between episodes, with all data kept."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TransformReward
from numpy.testing import assert_allclose

import kernelrl as krl
from kernelrl.agents.reward_range import RewardRange
from kernelrl.planning.interface import PLANS
from kernelrl.planning.passing import PLAN_ERROR
from naive import kernels, metrics
from naive.adamb import NaiveAdaMB, root
from naive.adaptive_ql import NaiveAdaptiveQL
from naive.greedy_kernel_ucbvi import NaiveGreedyKernelUCBVI
from naive.greedy_ucbvi import NaiveGreedyUCBVI
from naive.grid import Optimism, cell
from naive.opt_ql import NaiveOptQL
from naive.representatives import NaiveRepresentatives
from naive.tabular_ucbvi import NaiveUCBVI
from naive.units import Units
from plain import GREEDY
from problems import random_log
from test_interface import make_env

H, A = 3, 2
LOW, HIGH = np.zeros(2), np.ones(2)
BOX = gym.spaces.Box(LOW, HIGH, dtype=np.float64)
KERNEL = {**GREEDY, "bandwidth": 0.117, "regularization": 0.0137, "bonus_scale": 0.05}

PLANNING = {
    "KernelUCBVI": (krl.KernelUCBVI, {**KERNEL, "representatives": None}),
    "KernelUCBVI interpolated": (krl.KernelUCBVI, {**KERNEL, "representatives": None, "lipschitz": 3.0}),
    "KernelUCBVI merged": (krl.KernelUCBVI, {**KERNEL, "representatives": 0.0613}),
    "KernelUCBVI merged interpolated": (
        krl.KernelUCBVI,
        {**KERNEL, "representatives": 0.0613, "lipschitz": (2.0, 0.7), "replan": "doubling"},
    ),
    "UCBVI": (krl.UCBVI, {"bins": 3, "bonus_scale": 0.05}),
    "UCBVI doubling per step": (
        krl.UCBVI,
        {"bins": 3, "bonus_scale": 0.05, "replan": "doubling", "stationary": False},
    ),
}
pooled = {"stationary": True}
per_step = {"stationary": False}
FALLING = {
    "GreedyKernelUCBVI": (krl.GreedyKernelUCBVI, {**KERNEL, "representatives": None, "lipschitz": 3.0}),
    "GreedyKernelUCBVI per step": (
        krl.GreedyKernelUCBVI,
        {**KERNEL, "representatives": None, "lipschitz": (2.0, 0.7), **per_step},
    ),
    "GreedyKernelUCBVI merged": (krl.GreedyKernelUCBVI, {**KERNEL, "representatives": 0.0613}),
    "GreedyKernelUCBVI merged per step": (
        krl.GreedyKernelUCBVI,
        {**KERNEL, "representatives": 0.0613, "lipschitz": 3.0, **per_step},
    ),
    "UCBVI minimum": (krl.UCBVI, {"bins": 3, "bonus_scale": 0.05, "minimum": True}),
    "UCBVI minimum, untried above the cap": (krl.UCBVI, {"bins": 3, "bonus_scale": 0.6, "minimum": True}),
    "UCBVI minimum each step": (krl.UCBVI, {"bins": 3, "bonus_scale": 0.05, "minimum": True, "replan": "step"}),
    "UCBVI minimum doubling per step": (
        krl.UCBVI,
        {"bins": 3, "bonus_scale": 0.05, "minimum": True, "replan": "doubling", **per_step},
    ),
    "GreedyUCBVI": (krl.GreedyUCBVI, {"bins": 3, "bonus_scale": 0.05}),
    "OptQL": (krl.OptQL, {"bins": 3, "bonus_scale": 0.05}),
    "OptQL bonus after": (krl.OptQL, {"bins": 3, "bonus_scale": 0.05, "bonus_place": "after"}),
    "AdaptiveQL": (krl.AdaptiveQL, {"bonus_scale": 0.05}),
    "AdaMB": (krl.AdaMB, {"bonus_scale": 0.05}),
    "AdaMB with a Lipschitz constant": (krl.AdaMB, {"bonus_scale": 0.05, "lipschitz": 2.0}),
}
# How the rewards of episode k, which lie in [0, 1], are changed: (first, later, last) thirds.
SCALES = {
    "positive": lambda k, r: r * (0.5, 1.0, 3.0)[k],
    "negative": lambda k, r: -r * (0.5, 1.0, 3.0)[k],
    "zeros first": lambda k, r: (0.0, r, 4 * r)[k],
    "zeros, then costs": lambda k, r: (0.0, -r, 2 * r - 1)[k],
    "both ends": lambda k, r: (r, 2 * r - 1, 6 * r - 4)[k],
}


def episodes_of(scale, seed=0):
    """(x, a, r, y, h, terminated) of each episode."""
    log = random_log(np.random.default_rng(seed), H=H, A=A, d=2, transitions=150, sites=4, endings=0.3)
    n = len(log.episodes)
    for k, episode in enumerate(log.episodes):
        yield [(t.x, t.a, scale(3 * k // n, t.r), t.y, t.h, t.terminated) for t in episode]


def tell(agent, episode):
    agent.begin_episode()
    for x, a, r, y, h, terminated in episode:
        agent.observe(x, a, r, y, h, terminated=terminated)
    agent.end_episode()


def states_to_read(seed=0):
    rng = np.random.default_rng(seed)
    log = random_log(np.random.default_rng(seed), H=H, A=A, d=2, transitions=150, sites=4, endings=0.3)
    return np.concatenate([rng.permutation(np.unique(log.states(), axis=0))[:20], rng.random((8, 2))])


def started(kind, **changes):
    cls, options = kind
    agent = cls(**{**options, "horizon": H, **changes})
    agent.start(BOX, gym.spaces.Discrete(A), H, 0)
    return agent


# ------------------------------------------------------------------------------------------------ agents that plan


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", PLANNING)
def test_what_is_planned_is_as_if_the_range_had_been_known(kind, scale):
    episodes = list(episodes_of(SCALES[scale]))
    units = Units(H)
    for episode in episodes:
        units = units.with_rewards([t[2] for t in episode], any(t[5] for t in episode)) or units
    known = units.low, units.high
    auto, given = started(PLANNING[kind]), started(PLANNING[kind], reward_range=known)
    for episode in episodes:
        tell(auto, episode)
        tell(given, episode)
    assert auto.settings_used()["reward_range"] == known
    states = states_to_read()
    off = PLAN_ERROR * (known[1] - known[0]) if kind in ("KernelUCBVI", "KernelUCBVI interpolated") else 1e-9
    auto.begin_episode()
    if "doubling" not in PLANNING[kind][1].values():
        given.begin_episode()
    else:  # it plans when it must, and a widened one must
        given.model.plan.clock[PLANS] = 0
        given.begin_episode()
        auto.model.plan.clock[PLANS] = 0
        auto.begin_episode()
    for h in range(H):
        for name in ("counts", "bonuses", "q_values", "values"):
            one, other = (getattr(agent, name)(states, step=h) for agent in (auto, given))
            assert_allclose(one, other, rtol=1e-9, atol=off, err_msg=f"{name} at step {h}")
        assert [auto.act(x, h) for x in states] == [given.act(x, h) for x in states]


@pytest.mark.parametrize("kind", ["KernelUCBVI", "KernelUCBVI merged interpolated", "UCBVI doubling per step"])
def test_read_outs_are_in_the_new_units_at_once(kind):
    """Before the next episode has begun."""
    agent = started(PLANNING[kind])
    for episode in list(episodes_of(SCALES["both ends"]))[:4]:
        tell(agent, episode)
    agent.begin_episode()
    agent.observe([0.5, 0.5], 0, -50.0, [0.5, 0.5], H - 1)
    agent.end_episode()
    assert agent.settings_used()["reward_range"][0] == -50.0
    before = [agent.q_values(states_to_read(), step=h) for h in range(H)]
    agent.begin_episode()
    for h in range(H):
        assert_allclose(agent.q_values(states_to_read(), step=h), before[h], rtol=1e-9)


# ------------------------------------------------------------------------------------- agents whose values only fall


class Naive:
    """The naive counterpart of a kind, told of rewards in the environment's units; it widens as docs/units.md says."""

    def __init__(self, kind):
        cls, options = FALLING[kind]
        self.kind, self.units = cls.__name__, Units(H)
        self.grid = self.kind in ("UCBVI", "GreedyUCBVI", "OptQL")
        optimism = Optimism(H, "simplified", options["bonus_scale"])
        if cls is krl.GreedyKernelUCBVI:
            sigma, beta = KERNEL["bandwidth"], KERNEL["regularization"]
            self.lipschitz = options.get("lipschitz")
            self.naive = self.core = NaiveGreedyKernelUCBVI(
                H, A, sigma, beta, kernels.BY_NAME["gaussian"], metrics.euclidean, self.constants(),
                options.get("stationary", True), KERNEL["bonus_scale"],
            )  # fmt: skip
            if options["representatives"] is not None:
                self.naive = NaiveRepresentatives(options["representatives"], metrics.euclidean).before(self.core)
        elif cls is krl.UCBVI:
            changes = {name: options[name] for name in ("minimum", "replan", "stationary") if name in options}
            self.naive = self.core = NaiveUCBVI(H, A, optimism, **changes)
        elif cls is krl.GreedyUCBVI:
            self.naive = self.core = NaiveGreedyUCBVI(H, A, optimism)
        elif cls is krl.OptQL:
            self.naive = self.core = NaiveOptQL(H, A, optimism, options.get("bonus_place", "target"))
        elif cls is krl.AdaMB:
            optimism = root(H, options["bonus_scale"])
            self.naive = self.core = NaiveAdaMB(H, A, optimism, LOW, HIGH).begin(2, options.get("lipschitz"))
        else:
            self.naive = self.core = NaiveAdaptiveQL(H, A, optimism, LOW, HIGH)

    def constants(self):
        """L_h in mapped units."""
        if self.lipschitz is None:
            return None
        if isinstance(self.lipschitz, tuple):
            L, constants = 0.0, []
            for _ in range(H):
                L = self.lipschitz[0] + self.lipschitz[1] * L
                constants.insert(0, L)
        else:
            constants = [self.lipschitz] * H
        return np.array(constants) / self.units.width

    def place(self, x):
        if self.grid:
            return cell(x, LOW, HIGH, (3, 3))
        return tuple(x) if self.kind in ("AdaptiveQL", "AdaMB") else x

    def tell(self, episode):
        self.naive.begin_episode()
        for x, a, r, y, h, terminated in episode:
            taken = self.units.learnt if self.kind in ("OptQL", "AdaptiveQL") else self.units.mapped
            self.naive.observe(self.place(x), a, taken(r), self.place(y), h, terminated)
        if self.kind == "AdaMB":
            self.naive.end_episode()
        widened = self.units.with_rewards([t[2] for t in episode], any(t[5] for t in episode))
        if widened is not None:
            self.core.rescale(self.units, widened)
            self.units = widened
            if self.kind == "GreedyKernelUCBVI":
                self.core.L = self.constants()

    def read(self, name, states, h):
        if self.kind == "GreedyKernelUCBVI":
            found = getattr(self.naive, name)(states, h)
        else:
            method = getattr(self.naive, "value" if name == "values" else name)
            found = np.array([method(self.place(x), h) for x in states])
        if name == "counts":
            return found
        return found * self.units.width + (self.units.low * (H - h) if name != "bonuses" else 0.0)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", FALLING)
def test_values_that_only_fall_rise_with_the_upper_end(kind, scale):
    """All data are kept, and (H-h)·(rise of the upper end) is added to what is held."""
    agent, naive, states = started(FALLING[kind]), Naive(kind), states_to_read()
    moved = 0
    for k, episode in enumerate(episodes_of(SCALES[scale])):
        tell(agent, episode)
        naive.tell(episode)
        if k % 9 == 8:
            for h in range(H):
                for name in ("counts", "bonuses", "q_values", "values"):
                    actual, expected = getattr(agent, name)(states, step=h), naive.read(name, states, h)
                    assert_allclose(actual, expected, rtol=1e-9, atol=1e-9, err_msg=f"{name} at step {h}, episode {k}")
                cap = agent.settings_used()["reward_range"][1] * (H - h)
                moved += (agent.values(states, step=h) < cap - 1e-3).any()
    assert moved > 3, "no value moved: nothing was put to the test"


@pytest.mark.parametrize("replan", ["episode", "step", "doubling"])
def test_the_minimum_is_optimistic_after_the_first_rewards(replan):
    """Plans within the first episode take its rewards, of 0.01 at each step, for those of [0, 1]."""
    agent = krl.UCBVI(minimum=True, replan=replan, bonus_scale=0.0)
    agent.start(gym.spaces.Discrete(2), gym.spaces.Discrete(1), H, 0)
    for _ in range(3):
        tell(agent, [(0, 0, 0.01, 0, h, False) for h in range(H)])
    agent.begin_episode()
    assert agent.settings_used()["reward_range"] == (0.0, 0.01)
    for h in range(H):
        assert_allclose(agent.values([0], step=h), 0.01 * (H - h), rtol=1e-12)


@pytest.mark.parametrize("zeros", [0, 5])
@pytest.mark.parametrize("kind", FALLING)
def test_optimistic_after_the_first_rewards(kind, zeros):
    """The first rewards, of 0.01 at each step, are not taken for small ones of [0, 1]."""
    agent, x = started(FALLING[kind], bonus_scale=0.0), [0.5, 0.5]
    for k in range(3 + zeros):
        tell(agent, [(x, 0, 0.0 if k < zeros else 0.01, x, h, False) for h in range(H)])
    agent.begin_episode()
    assert agent.settings_used()["reward_range"] == (0.0, 0.01)
    for h in range(H):
        # What the zeros say, and β, is all that may lower it.
        assert agent.values([x], step=h)[0] >= 0.01 * (H - h) * 0.97 / (1 + zeros)


# ------------------------------------------------------------------------------------------------------------ rules


def test_a_range_that_was_given_widens_with_one_word():
    with pytest.warns(UserWarning, match=r"reward_range: the reward .* is outside \(0.0, 0.3\)") as caught:
        agent = krl.UCBVI(bins=4, bonus_scale=0.1, reward_range=(0, 0.3))
        history = agent.fit(make_env(), 60, seed=1)
    assert len(caught) == 1 and len(history) == 60
    low, high = agent.settings_used()["reward_range"]
    assert low == 0.0 and 0.3 < high <= 1.0 and agent.reward_range == (0.0, 0.3)


@pytest.mark.parametrize("driver", ["compiled", "python"])
def test_a_warning_that_is_made_an_error_comes_last(driver):
    """The range has been widened, and the episode counts."""
    agent = krl.OptQL(bins=4, reward_range=(0, 0.3))
    with pytest.raises(UserWarning, match="reward_range") as caught:
        agent.fit(make_env(), 60, seed=1, driver=driver)
    assert agent.episodes == len(caught.value.history) > 0
    assert agent.settings_used()["reward_range"][1] > 0.3
    agent.fit(make_env(), 60 - agent.episodes, driver=driver)
    with pytest.warns(UserWarning, match="reward_range"):
        other = krl.OptQL(bins=4, reward_range=(0, 0.3))
        other.fit(make_env(), 60, seed=1)
    assert np.array_equal(agent.q_values([[0.2, 0.2]], 0), other.q_values([[0.2, 0.2]], 0))


@pytest.mark.parametrize("driver", ["compiled", "python"])
def test_a_range_from_what_is_seen(driver):
    env = TransformReward(make_env(), lambda r: 1000 * r - 3) if driver == "python" else make_env()
    agent = krl.OptQL(bins=4)
    history = agent.fit(env, 40, seed=1, driver=driver)
    low, high = agent.settings_used()["reward_range"]
    assert history.returns.max() > 0
    assert (low, 0 < high <= 1.0) == (0.0, True) if driver == "compiled" else (low == -3.0 and 0 < high <= 997.0)
    assert history.optimistic_values[-1] <= 10 * high + 1e-9


def test_it_cannot_be_changed_once_started():
    agent = krl.OptQL(bins=4)
    agent.reward_range = (-1, 1)
    assert agent.reward_range == (-1.0, 1.0)
    agent.fit(make_env(), 1, seed=0)
    with pytest.raises(AttributeError, match="reward_range cannot be changed once the agent has been started"):
        agent.reward_range = (0, 5)
    assert agent.settings_used()["reward_range"] == (-1.0, 1.0)


@pytest.mark.parametrize("value", [(-1e308, 1e308), (0, 1e-200), (1e200, 2e200)])
def test_ranges_that_cannot_be_mapped(value):
    with pytest.raises(ValueError, match="reward_range: its width must lie between"):
        krl.OptQL(bins=4, reward_range=value)


def test_guarantees_need_a_range():
    with pytest.raises(ValueError, match=r"reward_range: the bonus .* give reward_range=\(lowest, highest\)"):
        krl.KernelUCBVI(bandwidth=0.1, bonus="joint", lipschitz=1.0)


def test_across_saving(tmp_path):
    """Saved in the middle of an episode with a reward outside the range."""
    episodes = list(episodes_of(SCALES["both ends"]))
    whole, parts = started(FALLING["OptQL"]), started(FALLING["OptQL"])
    for k, episode in enumerate(episodes):
        tell(whole, episode)
        parts.begin_episode()
        for i, (x, a, r, y, h, terminated) in enumerate(episode):
            parts.observe(x, a, r, y, h, terminated=terminated)
            if k % 5 == 0 and i == 0:
                parts.save(tmp_path / "a.krl")
                parts = krl.load(tmp_path / "a.krl")
        parts.end_episode()
    assert parts.settings_used() == whole.settings_used()
    for h in range(H):
        assert np.array_equal(parts.q_values(states_to_read(), h), whole.q_values(states_to_read(), h))


def test_tiny_rewards_do_not_make_a_range():
    agent = krl.OptQL(bins=2, horizon=2)
    agent.start(BOX, gym.spaces.Discrete(A), 2, 0)
    agent.begin_episode()
    agent.observe([0.1, 0.1], 0, 1e-200, [0.1, 0.1], 0)
    agent.end_episode()
    assert np.isfinite(agent.q_values([[0.1, 0.1]], step=0)).all()


def test_factor_of_the_distance_from_the_cap():
    auto = RewardRange.of("auto")
    first, keep = auto.widened(0.0, 2.0)
    assert (first.low, first.high, keep) == (0.0, 2.0, 0.0)
    costs, keep = auto.widened(-2.0, 0.0)
    assert (costs.low, costs.high, keep) == (-2.0, 0.0, 0.0)
    both, keep = first.widened(-2.0, 6.0)
    assert (both.low, both.high, keep) == (-2.0, 6.0, 0.25)


@pytest.mark.parametrize("stationary", [True, False])
def test_exact_greedy_is_loaded_after_the_range_has_widened(stationary, tmp_path):
    """Also when later samples begin a new chunk of memory."""
    agent = krl.GreedyKernelUCBVI(representatives=None, stationary=stationary, bandwidth=0.1, lipschitz=2.0)
    agent.start(gym.spaces.Box(0.0, 1.0, (2,)), gym.spaces.Discrete(2), 3, seed=0)
    rng = np.random.default_rng(0)
    for episode in range(80):
        agent.begin_episode()
        for step in range(3):
            x, y = rng.random(2), rng.random(2)
            agent.observe(x, agent.choose(x, step), float(rng.random()) * (9.0 if episode == 5 else 1.0), y, step)
        agent.end_episode()
    agent.save(tmp_path / "agent.krl")
    assert krl.load(tmp_path / "agent.krl").episodes == 80
