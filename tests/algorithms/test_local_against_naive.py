"""Local bandwidths, in both kernel agents, against the same equations in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairs import KERNELS, LIPSCHITZ, METRICS, Pair, compare, hyper_parameters, some_states
from problems import Log, Transition, logs, random_log, states_for

MERGES = (0.0, 0.0613, 0.1871, 0.4443)
SHARES = (1.0, 0.31, 0.07)  # of the start: the minimum
EXPONENTS = (0.0, 0.25, 1.1)
LOCAL = (0.0613, 0.25, "action")

both = pytest.mark.parametrize("greedy", [False, True])
pooled_or_not = pytest.mark.parametrize("stationary", [True, False])
ways = pytest.mark.parametrize("by", ["action", "state"])


@settings(max_examples=80, deadline=None)
@given(st.data())
@both
def test_any_log(greedy, data):
    log = data.draw(logs())
    options = data.draw(hyper_parameters(log, greedy))
    options["lipschitz"] = data.draw(st.sampled_from([None, None, options["lipschitz"]]))
    merge = data.draw(st.sampled_from(MERGES))
    reading = data.draw(st.sampled_from(["nearest", "blend"])) if options["lipschitz"] is None and merge else "nearest"
    minimum = options["sigma"] * data.draw(st.sampled_from(SHARES))
    local = minimum, data.draw(st.sampled_from(EXPONENTS)), data.draw(st.sampled_from(["action", "state"]))
    pair = Pair(greedy, log, merge=merge, reading=reading, local=local, **options)
    pair.play(data.draw(states_for(log)), np.random.default_rng(0))


@both
def test_a_choice_before_the_bandwidths_were_renewed(greedy):
    """Its targets say nothing of the next episode's, even if the state is the same and nothing was learnt between."""
    here = Transition(np.array([0.125]), 0, 0.0, np.array([0.125]), 0, False)
    there = here._replace(x=np.array([0.0]))
    log = Log(1, 2, 1, ((), (here,), (here,), (), (here,), (there,), (here,), (here,), (here,), (here,)))
    states = np.array([[0.0], [0.0625], [0.125]])
    local = 0.3 * 0.0531, 0.25, "action"
    pair = Pair(greedy, log, sigma=0.0531, merge=0.0, local=local, related=0.31, bonus_scale=0.01)
    pair.play(states, np.random.default_rng(0))


def check_narrowed(pair):
    """Bandwidths differ, or agreement would mean little; some are new since the last renewal."""
    table = np.array(list(pair.bandwidths.local.table.values()))
    assert len(np.unique(table.round(6))) > 3
    assert table.max() <= pair.bandwidths.local.start and table.min() >= pair.bandwidths.local.minimum


@both
@ways
@pooled_or_not
@pytest.mark.parametrize("reading", ["nearest", "blend"])
def test_options(reading, stationary, by, greedy):
    pair = compare(
        greedy, merge=0.0613, sigma=0.213, local=(0.0213, 0.25, by), stationary=stationary, reading=reading,
        transitions=250,
    )  # fmt: skip
    check_narrowed(pair)
    table = np.array(list(pair.bandwidths.local.table.values()))
    assert (table[:, 0] == table[:, 1]).all() == (by == "state")


@pooled_or_not
@pytest.mark.parametrize("lipschitz", sorted(LIPSCHITZ))
@both
def test_interpolation(greedy, lipschitz, stationary):
    compare(greedy, merge=0.0613, sigma=0.213, local=LOCAL, lipschitz=LIPSCHITZ[lipschitz], stationary=stationary)


@pooled_or_not
@pytest.mark.parametrize("replan", ["episode", "step", "doubling", 1.3, "auto"])
def test_plans(replan, stationary):
    pair = compare(False, merge=0.0613, sigma=0.213, local=LOCAL, replan=replan, stationary=stationary, transitions=250)
    check_narrowed(pair)


@both
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_kernels(kernel, greedy):
    compare(greedy, merge=0.0613, sigma=0.213, local=LOCAL, kernel=KERNELS[kernel], transitions=80)


@both
@pytest.mark.parametrize("metric", sorted(METRICS))
def test_metrics(metric, greedy):
    compare(greedy, merge=0.0613, sigma=0.213, local=LOCAL, metric=METRICS[metric](3), d=3, transitions=80)


@both
def test_many_actions(greedy):
    """More than one vector of them."""
    rng = np.random.default_rng(2)
    log = random_log(rng, H=3, A=7, d=2, transitions=250, sites=3)
    pair = Pair(greedy, log, merge=0.0613, sigma=0.213, local=LOCAL, reading="blend")
    states = some_states(log, rng)
    pair.play(states, rng)
    pair.check_moved(states)
    check_narrowed(pair)


@both
@pooled_or_not
def test_many_neighbours(stationary, greedy):
    """All are within reach of all, and 150 of them count."""
    rng = np.random.default_rng(4)
    log = random_log(rng, H=3, A=2, d=3, transitions=260, sites=400, noise=0.2, endings=0.0)
    pair = Pair(
        greedy, log, merge=0.0613, sigma=0.487, local=(0.2, 0.1, "action"), stationary=stationary, bonus_scale=0.01
    )
    pair.play(some_states(log, rng), rng, checks=2)
    assert pair.agent.number_of_representatives > 200
    assert pair.bandwidths.local.left_out(*[np.array(pair.naive.representatives.states)] * 2).any()


@both
def test_rewards_are_mapped_to_the_unit_interval(greedy):
    compare(greedy, merge=0.0613, sigma=0.213, local=LOCAL, reward_range=(-2.0, 3.0), reading="blend")


@both
def test_unbounded_states(greedy):
    bounds = np.array([-np.inf, 0.0]), np.array([np.inf, np.inf])
    compare(greedy, merge=0.0613, sigma=0.213, local=LOCAL, bounds=bounds)


@both
@pooled_or_not
def test_without_falling_it_is_one_bandwidth_that_is_cut(stationary, greedy):
    """With the exponent 0, and a kernel that ends before three bandwidths, nothing differs from one bandwidth."""
    rng = np.random.default_rng(3)
    log = random_log(rng, H=3, A=2, d=2, transitions=200, sites=4)
    states = some_states(log, rng)
    found = []
    for local in (None, (0.05, 0.0, "action")):
        pair = Pair(
            greedy, log, merge=0.0613, sigma=0.213, local=local, kernel=KERNELS["epanechnikov"], stationary=stationary
        )
        for episode in log.episodes:
            pair.agent.begin_episode()
            for t in episode:
                pair.agent.observe(t.x, t.a, t.r, t.y, t.h, terminated=t.terminated)
            pair.agent.end_episode()
        found.append([pair.agent.counts(states, h) for h in range(3)])
    np.testing.assert_allclose(*found, rtol=1e-12)
