"""Plans on representatives that begin from the plan before: never farther from a full plan than the tolerance.

The naive version plans from scratch each time. Larger tolerances than the default make errors that tests can see.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelrl as krl
from kernelrl.agents import storage
from kernelrl.geometry.groups import NUMBER
from kernelrl.geometry.representatives import DEGREE, KNOWN
from kernelrl.planning.changes import NOW
from kernelrl.planning.interface import Planned
from kernelrl.planning.reading import plan_again
from kernelrl.planning.smoothed import KEPT
from pairs import LIPSCHITZ, Pair, hyper_parameters, some_states
from problems import logs, random_log, states_for

TOLERANCES = (1e-6, 1e-2)
ROOMS = "kernelrl/TwinRooms-v0"


def play(pair, states):
    """All episodes of the log; values are read before each of them and after the last."""
    for episode in pair.log.episodes:
        pair.begin_episode()
        pair.check(states)
        for transition in episode:
            pair.observe(transition)
        pair.agent.end_episode()
    pair.begin_episode()
    pair.check(states)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_log(data):
    log = data.draw(logs())
    options = data.draw(hyper_parameters(log, False))
    options["lipschitz"] = data.draw(st.sampled_from([None, options["lipschitz"]]))
    merge, tolerance = data.draw(st.sampled_from((0.0, 0.0613, 0.4443))), data.draw(st.sampled_from(TOLERANCES))
    play(Pair(False, log, merge=merge, plan_tolerance=tolerance, **options), data.draw(states_for(log)))


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("kind", ["one bandwidth", "local", "related", "local and related", "interpolated", "several"])
def test_options(kind, stationary, tolerance):
    rng = np.random.default_rng(5)
    options = {
        "one bandwidth": {},
        "local": {"local": (0.05, 0.2, "action"), "reading": "blend"},
        "related": {"related": 0.8},
        "local and related": {"local": (0.05, 0.2, "action"), "related": 0.8, "reading": "blend"},
        "interpolated": {"lipschitz": LIPSCHITZ["number"]},
        "several": {"several": (0.3, 0.1)},
    }[kind]
    log = random_log(rng, H=4, A=3, d=2, transitions=140, sites=25)
    pair = Pair(False, log, merge=0.0613, sigma=0.13, stationary=stationary, plan_tolerance=tolerance, **options)
    play(pair, some_states(log, rng))


def full_plan(agent):
    """Q of a plan from scratch, of the same data."""
    planned = Planned(*(storage.copied(getattr(agent.model, part)) for part in ("plan", "settings", "store")))
    plan_again(*planned)
    return planned.plan.Q


def bits_set(words, number):
    """Which of the first `number` bits are set."""
    return np.unpackbits(words.view(np.uint8), bitorder="little")[:number]


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("kind", ["text", "rooms alike", "default"])
def test_a_run(kind, stationary):
    options = {"stationary": stationary}
    if kind == "rooms alike":
        options["metric"] = krl.metrics.Folded(krl.envs.twin_rooms_fold)
    agent = krl.KernelUCBVI(**options) if kind == "default" else krl.KernelUCBVI.preset("text", **options)
    stale = []
    for _ in range(30):
        agent.fit(ROOMS, 10, seed=1, progress=False)
        agent.begin_episode()
        plan, U = agent.model.plan, int(agent.model.store.reps.number[KNOWN])
        assert plan.clock[KEPT] == 1
        np.testing.assert_allclose(plan.Q[:, :U], full_plan(agent)[:, :U], rtol=0, atol=1e-6)
        marked = bits_set(plan.changes.stale[NOW], plan.groups.number[NUMBER])  # at the first step, planned last
        stale.append(marked.mean())
        agent.end_episode()
    assert min(stale) < 0.9
    if kind != "default":
        groups, near = plan.groups, agent.model.store.reps.weights
        assert groups.start[groups.number[NUMBER]] < near.span[DEGREE, :U].sum() / 2


class OwnBonus(krl.bonuses.Simplified):
    """May be anything."""


def test_where_nothing_may_be_left_out():
    """A bonus with a guarantee, with large factors or of a user's own: each plan is a full one."""
    for options in (
        {"bonus": krl.bonuses.Simplified(root=1.5)},
        {"bonus": OwnBonus()},
        {"bonus": "joint", "lipschitz": (1.0, 1.0)},
    ):
        agent = krl.KernelUCBVI.preset("text", **options)
        agent.fit(ROOMS, 5, seed=1, progress=False)
        assert agent.model.settings.tolerance == 0.0 and agent.model.plan.clock[KEPT] == 0


@pytest.mark.filterwarnings("ignore:max_representatives")
@pytest.mark.parametrize("several", [False, True])
def test_logged_data_and_files(several, tmp_path):
    """Plans after logged data, and after loading, are those of an agent that did not pause, to the last bit."""
    options = {"bandwidth": krl.schedules.Bandwidths([0.1, 0.05])} if several else {"bandwidth": 0.03}
    recorder = krl.RandomAgent()
    table = recorder.fit(ROOMS, 20, seed=4, progress=False, transitions=True).transitions
    agents = []
    for pauses in (False, True):
        agent = krl.KernelUCBVI.preset("text", max_representatives=60, representatives=0.06, **options)
        for number, work in enumerate(("play", "play", "learn", "play", "play")):
            if work == "play":
                agent.fit(ROOMS, 40, seed=1, progress=False)
            else:
                agent.learn_from(table)
            if pauses:
                agent.save(tmp_path / f"{number}.krl")
                agent = krl.load(tmp_path / f"{number}.krl")
            agent.begin_episode()
            U = int(agent.model.store.reps.number[KNOWN])
            np.testing.assert_allclose(agent.model.plan.Q[:, :U], full_plan(agent)[:, :U], rtol=0, atol=1e-6)
            agent.end_episode()
        agents.append(agent)
    one, other = (agent.model.plan.Q for agent in agents)
    assert np.array_equal(one[:, :U], other[:, :U])
