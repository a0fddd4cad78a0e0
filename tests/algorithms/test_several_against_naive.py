"""Several bandwidths at once, in both kernel agents, against the same equations in plain NumPy."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import kernelrl as krl
from algorithms.test_bonuses_against_naive import BONUSES, HIGH, LIPSCHITZ, LOW, ReadByGreedy, check
from kernelrl.planning.reading import read_q
from kernelrl.planning.sides import DEPLOYED
from kernelrl.theory.bonuses import Problem
from naive import kernels, metrics
from naive.bonuses import TheoryBonus
from naive.estimates import lipschitz_constants
from naive.representatives import NaiveRepresentatives
from naive.several import SeveralDeployed, SeveralGreedyKernelUCBVI, SeveralKernelUCBVI, estimates
from pairs import KERNELS, METRICS, Pair, compare, hyper_parameters, some_states
from pairs import LIPSCHITZ as CONSTANTS
from problems import logs, random_log, states_for

MERGES = (0.0, 0.0613, 0.1871, 0.4443)
SEVERAL = ((0.213, 0.0613), (0.4871, 0.117, 0.0291), (0.061, 0.0213, 0.487, 0.117))
WIDE_AND_NARROW = SEVERAL[0]

both = pytest.mark.parametrize("greedy", [False, True])
pooled_or_not = pytest.mark.parametrize("stationary", [True, False])


@settings(max_examples=50, deadline=None)
@given(st.data())
@both
def test_any_log(greedy, data):
    log = data.draw(logs())
    options = data.draw(hyper_parameters(log, greedy))
    options["lipschitz"] = data.draw(st.sampled_from([None, None, options["lipschitz"]]))
    merge = data.draw(st.sampled_from(MERGES))
    reading = data.draw(st.sampled_from(["nearest", "blend"])) if options["lipschitz"] is None and merge else "nearest"
    several = data.draw(st.sampled_from(SEVERAL))
    pair = Pair(greedy, log, merge=merge, reading=reading, several=several, **options)
    pair.play(data.draw(states_for(log)), np.random.default_rng(0))


def check_all_count(pair, states):
    """Each bandwidth gives the lowest bound somewhere, or agreement would mean little."""
    naive, found = pair.naive.naive, set()
    for h in range(pair.log.H):
        V_next = naive.next_values[h] if hasattr(naive, "next_values") else np.zeros(len(naive.current(h).a))
        means = [one.mean(states, naive.current(h), V_next) for one in naive.estimates]
        bounds = np.array(means) + np.array(naive.all_bonuses(states, h))
        found |= set(np.unique(bounds.argmin(axis=0)[np.ptp(bounds, axis=0) > 1e-6]))
    assert found == set(range(len(naive.estimates)))


@both
@pooled_or_not
@pytest.mark.parametrize("reading", ["nearest", "blend"])
@pytest.mark.parametrize("several", SEVERAL[:2])
def test_options(several, reading, stationary, greedy):
    pair = compare(
        greedy, merge=0.0613, several=several, stationary=stationary, reading=reading, transitions=250,
        factors=(0.05, 0.01, 1.0), bonus_scale=1.0,
    )  # fmt: skip
    if len(several) == 2 and stationary:
        check_all_count(pair, some_states(pair.log, np.random.default_rng(1)))


@pooled_or_not
@pytest.mark.parametrize("lipschitz", sorted(CONSTANTS))
@both
def test_interpolation(greedy, lipschitz, stationary):
    compare(greedy, merge=0.0613, several=WIDE_AND_NARROW, lipschitz=CONSTANTS[lipschitz], stationary=stationary)


@pooled_or_not
@pytest.mark.parametrize("replan", ["episode", "step", "doubling", 1.3, "auto"])
def test_plans(replan, stationary):
    compare(False, merge=0.0613, several=WIDE_AND_NARROW, replan=replan, stationary=stationary, transitions=250)


@both
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_kernels(kernel, greedy):
    compare(greedy, merge=0.0613, several=WIDE_AND_NARROW, kernel=KERNELS[kernel], transitions=80)


@both
@pytest.mark.parametrize("metric", sorted(METRICS))
def test_metrics(metric, greedy):
    compare(greedy, merge=0.0613, several=(0.3, 0.1), metric=METRICS[metric](3), d=3, transitions=80)


@both
def test_many_actions(greedy):
    """More than one vector of them."""
    rng = np.random.default_rng(2)
    log = random_log(rng, H=3, A=7, d=2, transitions=250, sites=3)
    pair = Pair(greedy, log, merge=0.0613, several=SEVERAL[1], reading="blend")
    states = some_states(log, rng)
    pair.play(states, rng)
    pair.check_moved(states)


@both
def test_many_representatives(greedy):
    """So many that every array grows, more than once."""
    rng = np.random.default_rng(4)
    log = random_log(rng, H=3, A=2, d=2, transitions=260, sites=400, noise=0.2, endings=0.0)
    pair = Pair(greedy, log, merge=0.0, several=(0.487, 0.0613), bonus_scale=0.01)
    pair.play(some_states(log, rng), rng, checks=2)
    assert pair.agent.number_of_representatives > 200


@both
def test_rewards_are_mapped_to_the_unit_interval(greedy):
    compare(greedy, merge=0.0613, several=WIDE_AND_NARROW, reward_range=(-2.0, 3.0), reading="blend")


@both
def test_unbounded_states(greedy):
    bounds = np.array([-np.inf, 0.0]), np.array([np.inf, np.inf])
    compare(greedy, merge=0.0613, several=WIDE_AND_NARROW, bounds=bounds)


@both
def test_few_representatives(greedy):
    compare(greedy, merge=0.0613, several=WIDE_AND_NARROW, most=12)


@pooled_or_not
@pytest.mark.parametrize("reading", ["nearest", "blend"])
@pytest.mark.parametrize("several", SEVERAL)
def test_values_of_the_deployed_policy(several, reading, stationary):
    """They are those of no single bandwidth, and of no estimate as it is."""
    rng = np.random.default_rng(5)
    log = random_log(rng, H=3, A=2, d=2, transitions=200, sites=4)
    pair = Pair(
        False, log, merge=0.0613, several=several, stationary=stationary, reading=reading, factors=(0.05, 0.01, 1.0),
        bonus_scale=1.0,
    )  # fmt: skip
    for episode in log.episodes:
        pair.begin_episode()
        for t in episode:
            pair.observe(t)
        pair.agent.end_episode()
    planned, states = pair.agent.planned(DEPLOYED, ""), some_states(log, rng)
    for h in range(3):
        assert_allclose(read_q(planned, DEPLOYED, states, h), pair.deployed.q_values(states, h), rtol=1e-9, atol=1e-9)
    naive, pool = pair.deployed.naive, pair.deployed.naive.data.pool(2)
    means = np.array([one.mean(states, pool, np.zeros(len(pool.a))) for one in naive.estimates])
    apart = np.abs(means - naive.q_values(states, 2)).min(axis=0)
    assert (apart > 1e-4).any()


# --------------------------------------------------------------------------------------------------- with a guarantee


def compare_bonuses(name, greedy, stationary, scale, rates=LIPSCHITZ):
    """Read-outs and what is deployed; return the naive deployed policy and the states where all was compared."""
    rng = np.random.default_rng(3)
    H, A, beta, merge, several = 3, 2, 0.7, 0.03, (0.487, 0.117)
    log = random_log(rng, H=H, A=A, d=2, transitions=250, sites=4)
    states = some_states(log, rng, n=12)
    bonus, kind = BONUSES[name]
    g, L = krl.kernels.Gaussian(), lipschitz_constants(rates, H)
    theory = [
        TheoryBonus(
            Problem(H, A, (1.5, 2.0), sigma, beta, g.C1, g.C2, tuple(L), rates, stationary, merge),
            0.1 / len(several), bonus.episodes, kind,
        )
        for sigma in several
    ]  # fmt: skip
    each = estimates(several, beta, kernels.gaussian, metrics.euclidean, A, scale, theory)
    options = {
        "bandwidth": krl.schedules.Bandwidths(several), "regularization": beta, "bonus": bonus, "bonus_scale": scale,
        "lipschitz": rates, "stationary": stationary, "representatives": merge, "reward_range": (0, 1),
    }  # fmt: skip
    if greedy:
        agent = krl.GreedyKernelUCBVI(**options)
        naive = SeveralGreedyKernelUCBVI(H, A, each, L, stationary, 0.0)
    else:
        agent = krl.KernelUCBVI(**options, replan="episode")
        naive = SeveralKernelUCBVI(H, A, each, L, stationary, "episode", 0.0)
    representatives = NaiveRepresentatives(merge, metrics.euclidean)
    naive = representatives.before(naive, () if greedy else ("q_values", "values"))
    deployed = representatives.before(SeveralDeployed(H, A, each, stationary, 0.0))
    naive.followers.append(deployed)
    naive = ReadByGreedy(naive, metrics.euclidean, L, H) if greedy else naive
    agent.start(gym.spaces.Box(LOW, HIGH, dtype=np.float64), gym.spaces.Discrete(A), H, 0)
    for k, episode in enumerate(log.episodes):
        agent.begin_episode()
        naive.begin_episode()
        if k in (0, 1, 7, len(log.episodes) // 2):
            check(agent, naive, states, H)
        for t in episode:
            agent.observe(t.x, t.a, t.r, t.y, t.h, terminated=t.terminated)
            naive.observe(*t)
        agent.end_episode()
    agent.begin_episode()
    naive.begin_episode()
    check(agent, naive, states, H)
    assert all((naive.values(states, h) < H - h - 1e-3).any() for h in range(H))
    planned = agent.planned(DEPLOYED, "")
    for h in range(H):
        assert_allclose(read_q(planned, DEPLOYED, states, h), deployed.q_values(states, h), rtol=1e-9, atol=1e-9)
    return deployed.naive, states


@pooled_or_not
@both
@pytest.mark.parametrize("name", sorted(BONUSES))
def test_bonuses(name, greedy, stationary):
    """Each bandwidth has its own coefficients, at its share of δ; also in what is deployed."""
    compare_bonuses(name, greedy, stationary, 0.005 if name.startswith("full") else 0.1)


@both
def test_what_has_the_smallest_bonus_is_deployed(greedy):
    """With a large Lipschitz constant it is the narrow bandwidth where there are samples, else the wide one."""
    naive, states = compare_bonuses("joint", greedy, True, 0.05, rates=(9.0, 0.1))
    bonuses = np.array(naive.all_bonuses(states, 0))
    assert set(np.unique(bonuses.argmin(axis=0))) == {0, 1}


@both
def test_the_bonus_holds_at_a_share_of_delta(greedy):
    """Before any data B is that of one bandwidth at δ/M, for the widest and for the narrowest."""
    make = krl.GreedyKernelUCBVI if greedy else krl.KernelUCBVI
    space, x = gym.spaces.Box(LOW, HIGH, dtype=np.float64), [[0.2, 0.3]]

    def bonus(bandwidth, delta):
        agent = make(
            bandwidth=bandwidth, regularization=2.0, bonus=krl.bonuses.Joint(delta), lipschitz=0.5, representatives=0.1,
            reward_range=(0, 1), horizon=2,
        )  # fmt: skip
        agent.start(space, gym.spaces.Discrete(2), 2, 0)
        return agent.bonuses(x, step=0)

    one = [bonus(sigma, 0.1 / 3) for sigma in (0.4, 0.2, 0.1)]
    assert_allclose(bonus(krl.schedules.Bandwidths([0.1, 0.4, 0.2]), 0.1), np.min(one, axis=0), rtol=1e-12)
    assert (bonus(krl.schedules.Bandwidths([0.1, 0.4, 0.2]), 0.1) > bonus(0.4, 0.1)).all()
