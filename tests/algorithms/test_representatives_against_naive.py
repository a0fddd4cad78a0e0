"""Kernel-UCBVI and Greedy-Kernel-UCBVI on representative states against the same equations in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairs import LIPSCHITZ, METRICS, READ_OUTS, TOLERANCE, Pair, compare, hyper_parameters, some_states, tolerance
from problems import logs, random_log, states_for

MERGES = (0.0, 0.0613, 0.1871, 0.4443)  # incommensurable with the lattices: no distance is one of these

both = pytest.mark.parametrize("greedy", [False, True])
pooled_or_not = pytest.mark.parametrize("stationary", [True, False])


@settings(max_examples=60, deadline=None)
@given(st.data())
@both
def test_any_log(greedy, data):
    log = data.draw(logs())
    options = data.draw(hyper_parameters(log, greedy))
    options["lipschitz"] = data.draw(st.sampled_from([None, options["lipschitz"]]))
    pair = Pair(greedy, log, merge=data.draw(st.sampled_from(MERGES)), **options)
    pair.play(data.draw(states_for(log)), np.random.default_rng(0))


@pooled_or_not
@pytest.mark.parametrize("replan", ["episode", "step", "doubling"])
@pytest.mark.parametrize("lipschitz", ["none", "number", "tuple"])
def test_kernel_ucbvi_options(lipschitz, replan, stationary):
    pair = compare(
        False, merge=0.0613, lipschitz=LIPSCHITZ.get(lipschitz), replan=replan, stationary=stationary, transitions=250
    )
    number = pair.agent.number_of_representatives
    assert number == len(pair.naive.representatives.states) < len(np.unique(pair.log.states(), axis=0))


@pooled_or_not
@pytest.mark.parametrize("lipschitz", ["none", "number", "array"])
def test_greedy_kernel_ucbvi_options(lipschitz, stationary):
    compare(True, merge=0.0613, lipschitz=LIPSCHITZ.get(lipschitz), stationary=stationary, transitions=250)


@both
@pytest.mark.parametrize("metric", sorted(METRICS))
def test_metrics(metric, greedy):
    compare(greedy, merge=0.0613, metric=METRICS[metric](3), d=3, transitions=80)


@both
@pytest.mark.parametrize("merge", MERGES)
@pytest.mark.parametrize("sigma", [0.0531, 0.487])
def test_merge_distances(merge, sigma, greedy):
    compare(greedy, merge=merge, sigma=sigma, bonus_scale=0.01, transitions=300)


@both
@pooled_or_not
@pytest.mark.parametrize("lipschitz", [None, 0.8])
def test_merge_distance_zero_is_the_exact_algorithm(lipschitz, stationary, greedy):
    if greedy and lipschitz is None:
        pytest.skip("the exact Greedy needs interpolation")
    rng = np.random.default_rng(3)
    log = random_log(rng, H=3, A=2, d=2, transitions=200, sites=4)
    options = {"lipschitz": lipschitz, "stationary": stationary}
    merged, exact = (Pair(greedy, log, merge=merge, **options).agent for merge in (0.0, None))
    states = some_states(log, rng)
    for episode in log.episodes:
        for agent in (merged, exact):
            agent.begin_episode()
            for t in episode:
                agent.observe(t.x, t.a, t.r, t.y, t.h, terminated=t.terminated)
            agent.end_episode()
    for h in range(log.H):
        for name in READ_OUTS:
            off = tolerance(greedy, log, None)
            one, other = (getattr(agent, name)(states, step=h) for agent in (merged, exact))
            np.testing.assert_allclose(one, other, rtol=TOLERANCE, atol=off, err_msg=f"{name} at step {h}")
        assert [merged.act(x, step=h) for x in states] == [exact.act(x, step=h) for x in states]
    assert (merged.values(states, step=0) < log.H - 1e-3).any()


@both
def test_rewards_are_mapped_to_the_unit_interval(greedy):
    compare(greedy, merge=0.0613, reward_range=(-2.0, 3.0))


@both
def test_unbounded_states(greedy):
    compare(greedy, merge=0.0613, bounds=(np.array([-np.inf, 0.0]), np.array([np.inf, np.inf])))


@both
@pooled_or_not
def test_a_limit_on_their_number(stationary, greedy):
    """Further states are merged into the nearest, and a warning says so once."""
    with pytest.warns(UserWarning, match="max_representatives: there are 3 representatives") as warned:
        pair = compare(greedy, merge=0.0613, most=3, stationary=stationary)
    assert pair.agent.number_of_representatives == len(pair.naive.representatives.states) == 3
    assert len(warned) == 1
    compare(greedy, merge=0.0613, most=1000, stationary=stationary)  # no warning
