"""Values read between representatives, in both kernel agents, against the same equations in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import metrics
from naive.representatives import NaiveRepresentatives
from pairs import METRICS, Pair, compare, hyper_parameters, some_states
from problems import logs, random_log, states_for

MERGES = (0.0613, 0.1871, 0.4443, 1.713)  # incommensurable with the lattices, also 1.5 times that

both = pytest.mark.parametrize("greedy", [False, True])
pooled_or_not = pytest.mark.parametrize("stationary", [True, False])


@settings(max_examples=60, deadline=None)
@given(st.data())
@both
def test_any_log(greedy, data):
    log = data.draw(logs())
    options = data.draw(hyper_parameters(log, greedy)) | {"lipschitz": None}
    pair = Pair(greedy, log, merge=data.draw(st.sampled_from(MERGES)), reading="blend", **options)
    pair.play(data.draw(states_for(log)), np.random.default_rng(0))


def has_blended(pair, states):
    """Some values are not those of the nearest representative, or agreement would mean little."""
    nearest = pair.naive.representatives.before(pair.naive.naive)
    return any(np.abs(pair.naive.q_values(states, h) - nearest.q_values(states, h)).max() > 1e-3 for h in range(3))


@both
@pooled_or_not
@pytest.mark.parametrize("merge", MERGES[:3])
def test_merge_distances(merge, stationary, greedy):
    pair = compare(greedy, merge=merge, stationary=stationary, reading="blend", transitions=250)
    assert has_blended(pair, some_states(pair.log, np.random.default_rng(1)))


@pooled_or_not
@pytest.mark.parametrize("replan", ["step", "doubling", 1.3, "auto"])
def test_plans(replan, stationary):
    pair = compare(False, merge=0.1871, replan=replan, stationary=stationary, reading="blend", transitions=250)
    assert has_blended(pair, some_states(pair.log, np.random.default_rng(1)))


@both
@pytest.mark.parametrize("metric", sorted(METRICS))
def test_metrics(metric, greedy):
    compare(greedy, merge=0.1871, metric=METRICS[metric](3), d=3, reading="blend", transitions=80)


@both
def test_rewards_are_mapped_to_the_unit_interval(greedy):
    compare(greedy, merge=0.1871, reward_range=(-2.0, 3.0), reading="blend")


@both
def test_unbounded_states(greedy):
    compare(greedy, merge=0.1871, bounds=(np.array([-np.inf, 0.0]), np.array([np.inf, np.inf])), reading="blend")


@both
def test_a_limit_on_their_number(greedy):
    with pytest.warns(UserWarning, match="max_representatives"):
        compare(greedy, merge=0.0613, most=3, reading="blend")


@both
def test_without_data(greedy):
    """Before the first sample there is nothing to blend; one sample makes one or two representatives."""
    log = random_log(np.random.default_rng(0), H=3, A=2, d=2, transitions=1)
    log = log._replace(episodes=(log.episodes[0][:1],))
    pair = Pair(greedy, log, merge=0.1871, reading="blend")
    states = some_states(log, np.random.default_rng(0))
    pair.check(states)
    pair.check_policies(states)
    pair.play(states, np.random.default_rng(0))


def test_shares():
    """By hand: 0.3 and 0.6 away of 1.5·0.4, and one just too far."""
    representatives = NaiveRepresentatives(0.4, metrics.euclidean)
    representatives.states = [np.array([0.3]), np.array([-0.45]), np.array([0.6])]
    expected = np.array([0.25, 0.0625, 0.0])
    np.testing.assert_allclose(representatives.shares([0.0], 3), expected / 0.3125, atol=1e-12)
    np.testing.assert_allclose(representatives.shares([0.0], 1), [1.0])
    assert not representatives.shares([2.0], 3).any()


@both
def test_between_two_representatives_values_are_continuous(greedy):
    """What the reading is for: nearest jumps half-way, blend does not."""
    jumps = {}
    for reading in ("nearest", "blend"):
        pair = Pair(greedy, random_log(np.random.default_rng(3), d=1), merge=0.1871, reading=reading)
        for episode in pair.log.episodes:
            pair.begin_episode()
            for t in episode:
                pair.observe(t)
            pair.agent.end_episode()
        pair.begin_episode()
        places = np.sort(np.array(pair.naive.representatives.states)[:, 0])
        line = np.linspace(places[0], places[-1], 20_001)[:, None]
        jumps[reading] = np.abs(np.diff(pair.agent.q_values(line, 0), axis=0)).max()
    assert jumps["blend"] < 0.05 * jumps["nearest"]
