"""Certificates on Ramp: the truth lies inside, the gap falls below half the cap, and what gives none says so."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_allclose

import kernelrl as krl
from kernelrl.agents.stopping import OwnGap
from kernelrl.planning.together import FINE
from kernelrl.theory.bonuses import Problem
from naive.bonuses import TheoryBonus
from naive.certified import Rules, naive_bounds
from naive.estimates import Data, lipschitz_constants
from naive.metrics import euclidean
from naive.ramp import RampValues
from naive.representatives import NaiveRepresentatives
from theory.test_guarantees import H, learner, ramp

START = [0.5]
CAP = float(H)
SMALL = {"reading": "nearest", "bandwidth": 0.1, "regularization": 5.0}


def test_a_hundred_seeds():
    """δ = 0.05 would allow five misses or so; the inequalities are not that tight, so there are none."""
    optimal = RampValues(H)
    truth = optimal.values([START], 0)[0]
    for seed in range(100):
        agent = learner(True, krl.bonuses.Joint(0.05, 1200), **SMALL)
        agent.fit(ramp(), 1200, seed=seed)
        lower, upper = agent.certificate(START)
        assert 0.0 < lower <= truth <= upper < CAP
        assert upper - lower < 0.5 * CAP
        for x in (0.0, 0.3, 0.9):
            low, high = agent.certificate([x])
            assert low <= optimal.values([[x]], 0)[0] <= high


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("greedy", [True, False])
def test_representatives(greedy, stationary):
    """With the bias of merging the truth is inside, and the gap still falls below half the cap."""
    optimal, merge = RampValues(H), 0.02
    for seed in range(3):
        agent = learner(greedy, krl.bonuses.Joint(0.05), stationary=stationary, representatives=merge, **SMALL)
        agent.fit(ramp(), 2500, seed=seed)
        assert 1 < agent.number_of_representatives < 60
        lower, upper = agent.certificate(START)
        assert upper - lower < 0.5 * CAP
        for x in (0.0, 0.3, 0.507, 0.9):
            low, high = agent.certificate([x])
            assert low <= optimal.values([[x]], 0)[0] <= high


def test_merging_costs_something():
    """The bias of merging is in the bounds: with every sample kept they are tighter."""
    merged, exact = (learner(True, krl.bonuses.Joint(0.05), representatives=m, **SMALL) for m in (0.02, None))
    for agent in (merged, exact):
        agent.fit(ramp(), 2000, seed=0)
    (low, high), (lower, upper) = merged.certificate(START), exact.certificate(START)
    assert 0.0 < low < lower and upper < high < CAP


@pytest.mark.parametrize("merge", [None, 0.02])
@pytest.mark.parametrize("greedy", [True, False])
def test_a_certificate_changes_nothing(greedy, merge):
    """Looking at it, also between plans, leaves values, counts and what comes next as they were."""
    looked, alone = (learner(greedy, krl.bonuses.Joint(0.05), representatives=merge, **SMALL) for _ in range(2))
    for episodes in (100, 37):
        for agent in (looked, alone):
            agent.fit(ramp(), episodes, seed=0)
        looked.certificate(START)
    for name in ("values", "counts", "bonuses", "q_values"):
        states = [[0.1], [0.5], [0.72]]
        assert np.array_equal(getattr(looked, name)(states, 0), getattr(alone, name)(states, 0))
    assert looked.certificate(START) == alone.certificate(START)


@pytest.mark.parametrize("merge", [None, 0.02])
@pytest.mark.parametrize("greedy", [True, False])
@pytest.mark.parametrize("stationary", [True, False])
def test_until_gap(greedy, stationary, merge):
    agent = learner(greedy, krl.bonuses.Joint(0.05), stationary=stationary, representatives=merge, **SMALL)
    history = agent.fit(ramp(), 5000, seed=0, until_gap=1.3, driver="python")
    assert len(history) < 5000 and not history.interrupted
    lower, upper = agent.certificate(START)
    assert upper - lower <= history.gap <= 1.3
    assert len(history) in {k + OwnGap(1.0).left(k) for k in range(5000)}
    # as if in pieces
    pieces = learner(greedy, krl.bonuses.Joint(0.05), stationary=stationary, representatives=merge, **SMALL)
    half = len(history) // 2
    assert len(pieces.fit(ramp(), half, seed=0, until_gap=1.3, driver="python")) == half
    pieces.fit(ramp(), 5000, until_gap=1.3, driver="python")
    assert pieces.episodes == len(history) and pieces.certificate(START) == (lower, upper)


def test_a_gap_that_is_not_reached():
    agent = learner(True, krl.bonuses.Joint(0.05), **SMALL)
    history = agent.fit(ramp(), 40, seed=0, until_gap=0.01, driver="python")
    assert len(history) == 40 and history.gap == CAP and not history.interrupted


def test_both_drivers_stop_at_the_same_place():
    ends = set()
    for driver in ("python", "compiled"):
        agent = learner(True, krl.bonuses.Joint(0.05, 3000), **SMALL)
        ends.add((len(agent.fit(ramp(), 3000, seed=4, until_gap=1.0, driver=driver)), *agent.certificate(START)))
    assert len(ends) == 1


def widths_in(agent):
    """(H,) the width of the interval with all r + V*_{h+1} that the bounds were made with, at most R_h."""
    H = agent.model.settings.horizon
    return agent.certified_bounds().lower.settings.bonus.ranges * np.arange(H, 0, -1)


def check_widths(agent, exact, L):
    """Those are at least the exact ones, and hardly more; `exact` (H,) are from a grid."""
    H, found = len(L), widths_in(agent)
    for h in range(H):
        off = 2 * FINE * (H - h - 1) + (L[h + 1] * 0.001 if h + 1 < H else 0.0)
        assert min(H - h, exact[h]) - 1e-9 <= found[h] <= min(H - h, exact[h] + off)


def compare_bounds(stationary, full, merge, episodes, scale, low=0.0, width=1.0):
    """Both bounds against the equations after random episodes; return the agent, states and the bounds there.

    Rewards lie in the range of that width from `low` on; some episodes terminate, for which L_h must be given, but the
    full bonus needs (λ_r, λ_p).
    """
    rng = np.random.default_rng(0)
    steps, sigma, beta, L = 3, 0.3, 1.0, lipschitz_constants((0.2, 0.8), 3)
    g = krl.kernels.Gaussian()
    problem = Problem(steps, 2, (1.0,), sigma, beta, g.C1, g.C2, tuple(L), (0.2, 0.8), stationary, merge or 0.0)
    agent = krl.KernelUCBVI(
        bandwidth=sigma, regularization=beta, bonus=krl.bonuses.Full(0.5) if full else krl.bonuses.Joint(0.5),
        bonus_scale=scale, lipschitz=(0.2 * width, 0.8) if full else width * L, representatives=merge,
        stationary=stationary, replan="doubling", reward_range=(low, low + width),
    )  # fmt: skip
    agent.start(gym.spaces.Box(0.0, 1.0, (1,), np.float64), gym.spaces.Discrete(2), steps, 0)
    data, starts = Data(steps, stationary), []
    move = (lambda x: x) if merge is None else NaiveRepresentatives(merge, euclidean).visit
    for k in range(episodes):
        agent.begin_episode()
        for h in range(steps):
            x, y = rng.random(1), np.round(rng.random(1), 1)
            transition = (x, int(rng.random() < 0.6), rng.uniform(0.4, 0.7), y, h)
            ends = bool(k % 7 == 0 and h == 1 and not full)
            agent.observe(*transition[:2], low + width * transition[2], *transition[3:], terminated=ends)
            starts += [x] if h == 0 else []
            data.add(move(x), *transition[1:3], move(y), h, ends)
            if ends:
                break
        agent.end_episode()
    states = np.linspace(0.0, 1.0, 9)[:, None]
    bonus = TheoryBonus(problem, 0.5, None, "corrected" if full else "self-normalised")
    rules = Rules({sigma: bonus}, L, beta, scale=scale, nothing=-low / width, ends=not full)
    expected = naive_bounds(data, rules, widths_in(agent))
    lower, upper = expected.lower(states), expected.upper(states)
    found = [agent.certified_bounds().at(x) for x in states]
    assert_allclose(found, np.stack([lower, upper], axis=1), rtol=1e-9)
    if not full:
        check_widths(agent, expected.widths, L)
    last = np.array(starts[-32:])
    assert_allclose(agent.gap(), width * (expected.upper(last) - expected.lower(last)).max(), rtol=1e-9)
    return agent, states, lower, upper


@pytest.mark.parametrize("merge", [None, 0.02])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("stationary", [True, False])
def test_against_the_equations(stationary, full, merge):
    """The full bonus is far too large to say anything, so it is made a thousand times smaller to be seen at all."""
    scale = 1e-3 if full else 1.0
    episodes = (200 if full else 600) if stationary else (500 if full else 1700)
    agent, states, lower, upper = compare_bounds(stationary, full, merge, episodes, scale)
    assert (lower > 0.0).all() and (upper < 3).all()
    if full:
        return
    own = agent.values(states, step=0)  # the agent's own plan bounds from above as well
    expected = np.stack([lower, np.minimum(upper, own)], axis=1)
    assert_allclose([agent.certificate(x) for x in states], expected, rtol=1e-9)


@pytest.mark.parametrize("merge", [None, 0.02])
@pytest.mark.parametrize(("low", "width"), [(-1.0, 1.0), (-1.0, 2.0), (-2.0, 2.0)])
def test_bounds_are_in_the_environments_units(low, width, merge):
    agent, states, lower, upper = compare_bounds(True, False, merge, 700, 1.0, low, width)
    own = agent.values(states, step=0)
    expected = np.stack([width * lower + 3 * low, np.minimum(width * upper + 3 * low, own)], axis=1)
    assert_allclose([agent.certificate(x) for x in states], expected, rtol=1e-9)
    assert (upper < 3).all() and (lower > 0).all()


def test_a_termination_refutes_constants_that_follow_from_a_recursion():
    """Q* jumps where episodes end, whatever λ_r and λ_p."""
    for merge in (None, 0.05):
        agent = learner(False, krl.bonuses.Joint(0.05), representatives=merge, **SMALL)
        agent.start(ramp().observation_space, ramp().action_space, H, 0)
        agent.begin_episode()
        agent.observe(START, 0, 0.25, START, 0)
        agent.certificate(START)
        agent.observe(START, 0, 0.25, START, 1, terminated=True)
        for _ in range(2):
            with pytest.raises(ValueError, match=r"^lipschitz: episodes have terminated.*make the agent with L_h"):
                agent.certificate(START)
            agent.end_episode()
            agent.begin_episode()


def test_bounds_that_cross_are_an_error():
    """Rewards 0 and 1 side by side refute L_h = 0.001."""
    for merge in (None, 0.01):
        agent = krl.KernelUCBVI(
            bandwidth=0.05, regularization=0.1, bonus=krl.bonuses.Joint(0.5), lipschitz=0.001, representatives=merge,
            reward_range=(0, 1), horizon=1,
        )  # fmt: skip
        agent.start(gym.spaces.Box(0.0, 1.0, (1,), np.float64), gym.spaces.Discrete(1), 1, 0)
        for _ in range(4000):
            agent.begin_episode()
            for x in (0.0, 1.0):
                agent.observe([x], 0, x, [x], 0)
            agent.end_episode()
        agent.begin_episode()
        with pytest.raises(ValueError, match=r"^lipschitz: the data contradict the constants"):
            agent.certificate([0.5])


def test_nothing_is_certified_before_there_are_data():
    agent = learner(True, krl.bonuses.Joint(0.05), **SMALL)
    with pytest.raises(RuntimeError, match="has not been started"):
        agent.certificate(START)
    agent.start(ramp().observation_space, ramp().action_space, H, 0)
    assert agent.certificate(START) == (0.0, CAP)


# ----------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bonus": "simplified"}, "gives no certificate; make the agent with bonus=krl.bonuses.Joint"),
        ({"bonus": krl.bonuses.Full(0.1, reward_term="printed")}, "gives no certificate"),
        ({"bonus_scale": 0.5}, "with bonus_scale=0.5 below 1 the bonus certifies nothing"),
        ({"bonus": "simplified", "representatives": 0.05}, "gives no certificate"),
    ],
)
def test_no_certificate(options, message):
    agent = learner(True, options.pop("bonus", krl.bonuses.Joint(0.1)), **options)
    with pytest.raises(ValueError, match="until_gap: .*" + message):
        agent.fit(ramp(), 5, until_gap=0.5)
    agent.fit(ramp(), 2, driver="python")
    with pytest.raises(ValueError, match="certificate: .*" + message):
        agent.certificate(START)


def test_the_full_bonus_certifies_next_to_nothing():
    agent = learner(True, krl.bonuses.Full(0.1))
    agent.fit(ramp(), 50, seed=0)
    assert agent.certificate(START) == (0.0, CAP)


def test_other_agents_have_no_gap():
    with pytest.raises(ValueError, match="until_gap: RandomAgent gives no certificates"):
        krl.RandomAgent().fit(ramp(), 5, until_gap=0.5)


@pytest.mark.parametrize("gap", [0.0, -1.0, np.nan, "small"])
def test_bad_gaps(gap):
    with pytest.raises(ValueError, match="until_gap must be a finite number above 0"):
        learner(True, "joint").fit(ramp(), 5, until_gap=gap)


def test_more_episodes_than_the_bonus_holds_for():
    agent = learner(True, krl.bonuses.Joint(0.1, 10))
    agent.fit(ramp(), 8, seed=0, driver="python")
    with pytest.raises(ValueError, match="holds for 10 episodes, and 8 have been played"):
        agent.fit(ramp(), 3, driver="python")
    agent.fit(ramp(), 2, driver="python")
    with pytest.raises(ValueError, match="episodes=None for any number"):
        agent.begin_episode()


@pytest.mark.parametrize("make", [krl.bonuses.Joint, krl.bonuses.Full])
@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2, np.nan, "likely", None])
def test_bad_confidence(make, delta):
    with pytest.raises(ValueError, match=f"{make.__name__}: delta must lie between 0 and 1"):
        make(delta)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: krl.bonuses.Joint(0.1, 0), "Joint: episodes must be a whole number of at least 1, or None, got 0"),
        (lambda: krl.bonuses.Full(0.1, 2.5), "Full: episodes must be a whole number"),
        (lambda: krl.bonuses.Full(0.1, 10, "new"), 'Full: reward_term must be "corrected" or "printed", got \'new\''),
        (lambda: krl.bonuses.Joint(0.1, self_normalised=2), "Joint: self_normalised must be True or False, got 2"),
        (lambda: krl.bonuses.Simplified(-1.0), "Simplified: root must be a finite number of at least 0, got -1.0"),
        (
            lambda: krl.bonuses.Simplified(1, np.inf),
            "Simplified: count must be a finite number of at least 0, got inf",
        ),
        (lambda: krl.bonuses.Simplified(scale=np.nan), "Simplified: scale must be a finite number of at least 0"),
        (lambda: krl.bonuses.Simplified(count="a"), "Simplified: count must be a finite number of at least 0, got 'a'"),
        (lambda: learner(True, "joint", kernel="tricube"), "tricube is none of them .*use gaussian, compact, krl.kern"),
        (
            lambda: learner(False, "joint", lipschitz=None),
            r"Joint needs Lipschitz constants; give .*\) or L_h",
        ),
        (lambda: learner(True, "full", lipschitz=1.0), "Full needs λ_r and λ_p themselves"),
        (
            lambda: learner(True, "joint", representatives=0.1, max_representatives=5),
            "max_representatives: the bonus joint holds with max_representatives=None only",
        ),
        (
            lambda: learner(False, "joint", bandwidth=krl.schedules.Power(0.2, 0.1, 0.5)),
            "bandwidth: the bonus joint holds for one bandwidth, not for a schedule",
        ),
        (lambda: learner(True, "jiont"), "bonus: 'jiont' is not known; use one of simplified, full, joint"),
    ],
)
def test_bad_bonuses(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_unbounded_states():
    agent = learner(True, "joint")
    with pytest.raises(ValueError, match="Joint needs the covering number of the state space, which must be bounded"):
        agent.start(gym.spaces.Box(-np.inf, np.inf, (1,), np.float64), gym.spaces.Discrete(2), 2)


# -------------------------------------------------------------------------------------------------------------- folds


def fold_agent(defect, **options):
    return krl.GreedyKernelUCBVI(
        bandwidth=0.5, regularization=1.0, lipschitz=(10.0, 1.0), bonus=krl.bonuses.Joint(0.1), representatives=None,
        metric=krl.metrics.Folded(krl.envs.twin_rooms_fold, defect=defect), **{"reward_range": (0, 1), **options},
    )  # fmt: skip


def test_a_fold_needs_its_defect():
    """The rooms are not quite alike, so laying one over the other is a further bias."""
    with pytest.raises(ValueError, match=r"^metric: the bonus Joint needs to know by how much Q\* may differ.*defect="):
        fold_agent(None)
    with pytest.raises(ValueError, match="Folded: defect must be a finite number of at least 0, got -1"):
        krl.metrics.Folded(krl.envs.twin_rooms_fold, defect=-1)
    x = [[0.5, 0.5]]
    for low, width in ((0.0, 1.0), (-3.0, 4.0)):
        bonuses = []
        for defect in (0.0, 0.25):
            agent = fold_agent(defect, reward_range=(low, low + width))
            agent.start(gym.make("kernelrl/TwinRooms-v0").observation_space, gym.spaces.Discrete(4), 20, 0)
            bonuses.append(agent.bonuses(x, step=3))
        assert_allclose(bonuses[1] - bonuses[0], 2 * 0.25, rtol=1e-9)


def test_a_defect_is_saved(tmp_path):
    agent = fold_agent(0.25)
    agent.save(tmp_path / "a.krl")
    assert krl.load(tmp_path / "a.krl").metric == agent.metric
