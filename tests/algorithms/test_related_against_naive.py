"""Weights between actions, in both kernel agents, against the same equations in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kernelrl.agents.action_kernel import OTHERS
from pairs import KERNELS, LIPSCHITZ, Pair, hyper_parameters, some_states
from problems import logs, random_log, states_for

MERGES = (None, 0.0, 0.0613, 0.1871)
SIGMAS = (0.31, 0.87, 3.3)  # σ_A, where neighbouring numbers are at distance 1

both = pytest.mark.parametrize("greedy", [False, True])
pooled_or_not = pytest.mark.parametrize("stationary", [True, False])


@settings(max_examples=50, deadline=None)
@given(st.data())
@both
def test_any_log(greedy, data):
    log = data.draw(logs().filter(lambda log: log.A > 1))
    options = data.draw(hyper_parameters(log, greedy))
    options["kernel"] = KERNELS["gaussian"]
    options["merge"] = data.draw(st.sampled_from(MERGES))
    options["lipschitz"] = data.draw(st.sampled_from([None, options["lipschitz"]]))
    if greedy and options["merge"] is None and options["lipschitz"] is None:
        options["merge"] = 0.0
    if options["lipschitz"] is None and options["merge"]:
        options["reading"] = data.draw(st.sampled_from(["nearest", "blend"]))
    if options["merge"] is not None and data.draw(st.booleans()):
        options["local"] = 0.3 * options["sigma"], 0.25, data.draw(st.sampled_from(["action", "state"]))
    options["continuous"] = data.draw(st.booleans())
    options["measured"] = data.draw(st.booleans())
    sigma = data.draw(st.sampled_from(SIGMAS)) / (log.A if options["continuous"] else 1)
    pair = Pair(greedy, log, related=sigma, **options)
    pair.play(data.draw(states_for(log)), np.random.default_rng(0))


def related_log(greedy, actions=5, transitions=130, **options):
    """A longer log with more actions."""
    rng = np.random.default_rng(1)
    log = random_log(rng, H=3, A=actions, d=2, transitions=transitions, sites=4)
    states = some_states(log, rng)
    pair = Pair(greedy, log, **{"merge": 0.0613, "related": 0.87, **options})
    pair.play(states, rng)
    pair.check_moved(states)
    return pair


@both
@pooled_or_not
@pytest.mark.parametrize("local", [None, (0.0213, 0.25, "action")])
@pytest.mark.parametrize("reading", ["nearest", "blend"])
def test_options(reading, local, stationary, greedy):
    related_log(greedy, reading=reading, local=local, stationary=stationary, sigma=0.213)


@both
@pytest.mark.parametrize("several", [(0.31, 0.117), (0.4, 0.2, 0.1)])
def test_several_bandwidths(several, greedy):
    related_log(greedy, several=several)


@pooled_or_not
@pytest.mark.parametrize("replan", ["episode", "step", "doubling", 1.3, "auto"])
def test_plans(replan, stationary):
    related_log(False, replan=replan, stationary=stationary)


@pooled_or_not
@both
def test_interpolation(greedy, stationary):
    """Cones reach from action to action."""
    related_log(greedy, lipschitz=LIPSCHITZ["tuple"], stationary=stationary)


@pooled_or_not
@both
@pytest.mark.parametrize("related", [0.41, None])
@pytest.mark.parametrize("lipschitz", [0.1, 0.9, LIPSCHITZ["tuple"]])
def test_the_largest_value_of_an_interval(lipschitz, related, greedy, stationary):
    """V_h is that of all actions between those of the net, also where weights relate none of them."""
    related_log(greedy, related=related, lipschitz=lipschitz, stationary=stationary, continuous=True, measured=True)


@both
def test_without_a_distance_cones_are_those_of_the_same_action(greedy):
    related_log(greedy, related=0.21, lipschitz=0.5, continuous=True)


@pytest.mark.parametrize("lipschitz", [None, 0.5])
def test_every_sample(lipschitz):
    related_log(False, merge=None, lipschitz=lipschitz, transitions=80)


@both
def test_a_net(greedy):
    related_log(greedy, continuous=True, related=0.21)


@both
def test_narrow_weights_relate_nothing(greedy):
    """K_A is the identity, so everything is as without it."""
    rng = np.random.default_rng(0)
    log = random_log(rng, H=3, A=3, d=2, transitions=120, sites=4)
    states = some_states(log, rng)
    one, other = (Pair(greedy, log, merge=0.0613, related=sigma) for sigma in (0.01, None))
    for pair in (one, other):
        pair.play(states, np.random.default_rng(0))
    for h in range(3):
        assert_allclose(one.agent.q_values(states, h), other.agent.q_values(states, h), rtol=1e-13)


@both
@pooled_or_not
@pytest.mark.parametrize("reading", ["nearest", "blend"])
@pytest.mark.parametrize("by", ["action", "state"])
def test_samples_of_other_pairs_are_limited(by, reading, stationary, greedy):
    """With local bandwidths and a net; the log is dense enough for the limit to be reached."""
    local = 0.0213, 0.25, by
    options = {"continuous": True, "related": 0.31, "local": local, "sigma": 0.713, "reading": reading}
    pair = related_log(greedy, stationary=stationary, transitions=300, **options)
    C = pair.agent.counts(pair.log.states(), step=0)
    assert (abs(C - OTHERS - 0.0137) < 1e-9).any()  # pairs that were never tried have as much as others may give
    assert (C > OTHERS + 1.0).any()
