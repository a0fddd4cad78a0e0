"""Kernel-UCBVI and Greedy-Kernel-UCBVI against the paper's equations in plain NumPy, every sample kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

import kernelrl as krl
from naive import metrics
from naive.estimates import argmax_set
from pairs import (
    KERNELS,
    LIPSCHITZ,
    METRICS,
    READ_OUTS,
    TOLERANCE,
    Pair,
    compare,
    hyper_parameters,
    some_states,
)
from problems import Log, logs, random_log, states_for

# ---------------------------------------------------------------------------------------------- any small log


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_kernel_ucbvi_on_any_log(data):
    log = data.draw(logs())
    pair = Pair(False, log, **data.draw(hyper_parameters(log, greedy=False)))
    pair.play(data.draw(states_for(log)), np.random.default_rng(0))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_greedy_kernel_ucbvi_on_any_log(data):
    log = data.draw(logs())
    pair = Pair(True, log, **data.draw(hyper_parameters(log, greedy=True)))
    pair.play(data.draw(states_for(log)), np.random.default_rng(0))


# ---------------------------------------------------------------------------------------------- every option


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("replan", ["episode", "step", "doubling"])
@pytest.mark.parametrize("lipschitz", ["none", "number", "array", "tuple"])
def test_kernel_ucbvi_options(lipschitz, replan, stationary):
    pair = compare(False, sigma=0.0531, lipschitz=LIPSCHITZ.get(lipschitz), replan=replan, stationary=stationary)
    if lipschitz != "none":
        binds = [
            (pair.naive.q_values(x, h) < pair.naive.targets(x, h) - 1e-3).any()
            for h, x in ((h, pair.log.states()) for h in range(pair.log.H))
        ]
        assert all(binds), "no neighbour's target is the smaller one: interpolation was not put to the test"


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("lipschitz", sorted(LIPSCHITZ))
def test_greedy_kernel_ucbvi_options(lipschitz, stationary):
    compare(True, lipschitz=LIPSCHITZ[lipschitz], stationary=stationary)


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_kernels(kernel, greedy):
    compare(greedy, kernel=KERNELS[kernel], sigma=0.213, lipschitz=(1.0, 0.6) if greedy else None, transitions=80)


@pytest.mark.parametrize(("d", "greedy"), [(1, True), (2, False), (3, True)])
@pytest.mark.parametrize("metric", sorted(METRICS))
def test_metrics(metric, d, greedy):
    compare(greedy, metric=METRICS[metric](d), d=d, lipschitz=1.5, transitions=80)


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize(
    ("sigma", "beta", "bonus_scale"), [(0.0531, 0.0137, 0.01), (0.213, 0.1173, 0.3), (5.0, 1.0, 1)]
)
def test_bandwidth_regularization_and_bonus_scale(sigma, beta, bonus_scale, greedy):
    # the last: everything weighs on everything, and β is no longer small
    compare(greedy, sigma=sigma, beta=beta, bonus_scale=bonus_scale, lipschitz=0.5 if greedy else None)


@pytest.mark.parametrize("greedy", [False, True])
def test_bigger_log(greedy):
    compare(greedy, rng_seed=1, transitions=600, checks=2, lipschitz=1.5, stationary=False)


@pytest.mark.parametrize("greedy", [False, True])
def test_rewards_are_mapped_to_the_unit_interval(greedy):
    compare(greedy, reward_range=(-2.0, 3.0), lipschitz=1.5)


@pytest.mark.parametrize("greedy", [False, True])
def test_unbounded_states(greedy):
    bounds = np.array([-np.inf, 0.0]), np.array([np.inf, np.inf])
    compare(greedy, bounds=bounds, lipschitz=1.5)


@pytest.mark.parametrize("stationary", [True, False])
def test_greedy_needs_interpolation_when_every_sample_is_kept(stationary):
    with pytest.raises(ValueError, match="lipschitz"):
        Pair(True, Log(2, 2, 1, ()), lipschitz=None, stationary=stationary)


# ---------------------------------------------------------------------------------------------- metrics of one's own


@njit
def fold(state, out):
    out[0] = state[0] % 0.5
    out[1] = state[1]


@njit
def around(x, y):
    across = abs(x[0] - y[0])
    return min(across, 1 - across) + 0.5 * abs(x[1] - y[1])


# Everything is compiled anew for a function of the user's, so each has one algorithm only.


def test_folded_metric():
    naive = metrics.folded(lambda x: np.array([x[0] % 0.5, x[1]]), metrics.euclidean)
    compare(True, metric=(krl.metrics.Folded(fold, "euclidean"), naive), lipschitz=1.5, transitions=60)


def test_custom_metric():
    def distance(x, y):
        across = abs(x[0] - y[0])
        return min(across, 1 - across) + 0.5 * abs(x[1] - y[1])

    unit = np.zeros(2), np.ones(2)  # where it is a metric
    metric = krl.metrics.Custom(around), metrics.custom(distance)
    compare(False, metric=metric, lipschitz=1.5, transitions=60, bounds=unit)


# ---------------------------------------------------------------------------------------------- choosing and acting

PLACE = np.array([0.5, 0.5])


def chosen(greedy: bool, samples, lipschitz, seeds: int = 60) -> set[int]:
    """The actions chosen at one place over many seeds, after the same (action, reward) samples there; H = 1, A = 4."""
    actions = set()
    for seed in range(seeds):
        pair = Pair(greedy, Log(1, 4, 2, ()), lipschitz=lipschitz, seed=seed)
        for a, r in samples:
            pair.agent.begin_episode()
            pair.agent.observe(PLACE, a, r, PLACE, 0, terminated=False)
            pair.agent.end_episode()
        pair.agent.begin_episode()
        actions.add(pair.agent.choose(PLACE, 0))
    return actions


@pytest.mark.parametrize(("greedy", "lipschitz"), [(False, None), (False, 1.0), (True, 1.0)])
@pytest.mark.parametrize(
    ("samples", "tied"),
    [
        ([], {0, 1, 2, 3}),  # nothing is known
        ([(1, 1.0), (3, 1.0)], {0, 2}),  # the untried ones: infinite with interpolation, a large bonus without
        ([(0, 0.2), (1, 0.9), (2, 0.9), (3, 0.0)], {1, 2}),  # all tried, two equally good
        ([(0, 0.2), (1, 0.9), (2, 0.8), (3, 0.0)], {1}),
    ],
)
def test_ties_are_broken_at_random(greedy, lipschitz, samples, tied):
    assert chosen(greedy, samples, lipschitz) == tied


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("greedy", [False, True])
def test_deployed_policy(greedy, stationary):
    rng = np.random.default_rng(5)
    log = random_log(rng, H=4, A=4, d=2, transitions=400, sites=6, endings=0.4)
    pair = Pair(greedy, log, lipschitz=1.0, stationary=stationary, bonus_scale=0.3, reward_range=(-1, 1))
    states = some_states(log, rng, n=60)
    for episode in log.episodes:
        pair.begin_episode()
        for t in episode:
            pair.observe(t)
        pair.agent.end_episode()
    actions = np.empty((len(states), log.H), dtype=int)
    for h in range(log.H):
        q = pair.deployed.q_values(states, h)
        for i, x in enumerate(states):
            actions[i, h] = pair.agent.act(x, step=h)
            assert actions[i, h] in argmax_set(q[i], TOLERANCE)
    # or the test would not see a step or a bonus confused
    assert (actions[:, 0] != actions[:, -1]).any()
    assert (actions[:, 0] != pair.naive.q_values(states, 0).argmax(axis=1)).any()


@pytest.mark.parametrize("greedy", [False, True])
def test_deployed_policy_takes_the_lowest_index_among_ties(greedy):
    for seed in range(5):
        pair = Pair(greedy, Log(1, 4, 2, ()), lipschitz=1.0, seed=seed)
        assert pair.agent.act(PLACE, step=0) == 0
        for a, r in [(0, 0.2), (1, 0.9), (3, 0.9)]:
            pair.agent.begin_episode()
            pair.agent.observe(PLACE, a, r, PLACE, 0, terminated=False)
            assert pair.agent.act(PLACE, step=0) == (0 if a == 0 else 1)  # at once, from all data
            pair.agent.end_episode()


@pytest.mark.parametrize("greedy", [False, True])
def test_acting_and_reading_change_nothing(greedy):
    log = random_log(np.random.default_rng(2), H=3, A=4, d=2, transitions=60)
    states = log.states()[:10]

    def choices(disturb: bool) -> list[int]:
        agent = Pair(greedy, log, lipschitz=1.0).agent
        made = []
        for episode in log.episodes:
            agent.begin_episode()
            for t in episode:
                if disturb:
                    for h in range(log.H):
                        agent.act(states[0], step=h)
                        for name in READ_OUTS:
                            getattr(agent, name)(states, step=h)
                made.append(agent.choose(t.x, t.h))
                agent.observe(t.x, t.a, t.r, t.y, t.h, terminated=t.terminated)
            agent.end_episode()
        return made

    assert choices(disturb=True) == choices(disturb=False)


@pytest.mark.parametrize("greedy", [False, True])
def test_a_chosen_action_can_be_followed(greedy):
    """Closed loop: the log depends on the choices, as in learning."""
    rng = np.random.default_rng(4)
    H, A, goal = 4, 3, 0.75
    pair = Pair(greedy, Log(H, A, 1, ()), lipschitz=1.0, bonus_scale=0.02, sigma=0.0531)
    states = np.linspace(0, 1, 21)[:, None]
    for _ in range(40):
        pair.begin_episode()
        x = np.array([0.25])
        for h in range(H):
            a = pair.agent.choose(x, h)
            assert a in argmax_set(pair.naive.q_values([x], h)[0], 2 * pair.tolerance)
            y = np.clip(x + 0.25 * (a - 1) + 0.01 * rng.standard_normal(1), 0, 1)
            r = max(0.0, 1 - 4 * abs(x[0] - goal))
            for told in (pair.agent, pair.naive, pair.deployed):
                told.observe(x, a, r, y, h, terminated=False)
            x = y
        pair.agent.end_episode()
    pair.begin_episode()
    pair.check(states)
    pair.check_policies(states)
    pair.check_moved(states)
