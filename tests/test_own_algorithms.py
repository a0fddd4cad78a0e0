"""Writing an algorithm: what has a default, and what is said where something is missing."""

from __future__ import annotations

import importlib
import math
import sys
from typing import NamedTuple

import gymnasium as gym
import numpy as np
import pytest

import kernelrl as krl
from kernelrl.agents.classes import AGENTS
from kernelrl.jit.compile import compiled, generic

SPACES = gym.spaces.Box(0.0, 1.0, (1,), np.float64), gym.spaces.Discrete(3)


class Least(NamedTuple):
    """A model with the two verbs that every model must have."""

    last: np.ndarray


@krl.verbs.choose.implement(Least)
def choose_least(model, state, h):
    return int(model.last[0])


@krl.verbs.observe.implement(Least)
def observe_least(model, state, action, reward, next_state, h, terminated):
    model.last[0] = (action + 1.0) % 3.0


class Cyclic(krl.Agent):
    """Takes one action after the other."""

    def new_model(self, spaces, stream):
        return Least(np.zeros(1))

    def deployed_actions(self, states, step):
        return np.full(len(states), step % self.spaces.actions)


@pytest.mark.parametrize("driver", ["compiled", "python"])
def test_two_verbs_will_do(driver, tmp_path):
    agent = Cyclic()
    history = agent.fit("kernelrl/TwinRooms-v0", 4, seed=0, driver=driver)
    assert len(history) == 4 and agent.model.last[0] == 80 % 3
    assert math.isnan(history.optimistic_values[0])
    assert np.isnan(agent.q_values([[0.5, 0.5]], 0)).all() and np.isnan(agent.values([[0.5, 0.5]], 0)).all()
    assert [agent.act([0.5, 0.5], h) for h in range(5)] == [0, 1, 2, 3, 0]
    agent.save(tmp_path / "agent.krl")
    assert krl.load(tmp_path / "agent.krl").model.last[0] == 80 % 3


def start(agent):
    agent.start(*SPACES, 5, seed=0)


def test_what_is_missing_is_named_when_the_agent_starts():
    class Silent(NamedTuple):
        last: np.ndarray

    class Mute(Cyclic):
        def new_model(self, spaces, stream):
            return Silent(np.zeros(1))

    with pytest.raises(TypeError, match=r"^Silent does not implement choose: .*@krl.verbs.choose.implement\(Silent\)"):
        start(Mute())
    krl.verbs.choose.implement(Silent)(choose_least)
    with pytest.raises(TypeError, match=r"^Silent does not implement observe:"):
        start(Mute())
    krl.verbs.observe.implement(Silent)(observe_least)
    krl.verbs.has_room.implement(Silent)(lambda model: False)
    with pytest.raises(TypeError, match=r"^Silent does not implement grow: .*grow.implement_plain\(Silent\)"):
        start(Mute())


def test_a_policy_to_deploy_is_needed():
    class Undecided(krl.Agent):
        def new_model(self, spaces, stream):
            return Least(np.zeros(1))

    with pytest.raises(TypeError, match=r"Least does not implement read_q, .* or Undecided.deployed_actions"):
        start(Undecided())


def test_a_model_is_a_named_tuple():
    class Listed(Cyclic):
        def new_model(self, spaces, stream):
            return [1, 2]

    with pytest.raises(TypeError, match=r"new_model must return a NamedTuple, .*got \[1, 2\]"):
        start(Listed())
    with pytest.raises(NotImplementedError, match=r"Nothing must have a method new_model\(spaces, stream\)"):
        start(type("Nothing", (krl.Agent,), {})())


def test_an_agent_that_could_not_be_started_is_as_it_was():
    agent = Cyclic(horizon=4)
    with pytest.raises(ValueError, match="horizon: the agent was made for 4 steps, got 5"):
        start(agent)
    agent.start(*SPACES, 4, seed=0)
    assert agent.spaces.horizon == 4 and agent.spaces.actions == 3 and agent.seed == 0


# ----------------------------------------------------------------------------------------------------- names of classes


def test_no_agent_takes_the_name_of_ours():
    before = AGENTS.get("OptQL")
    with pytest.raises(TypeError, match="has an agent OptQL already, and files name agents by their class"):
        type("OptQL", (krl.Agent,), {})
    assert AGENTS.get("OptQL") is before


def test_two_modules_cannot_have_agents_of_one_name(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("first_module", "second_module"):
        (tmp_path / f"{name}.py").write_text("import kernelrl as krl\n\n\nclass Twofold(krl.RandomAgent):\n    pass\n")
    first = importlib.import_module("first_module")
    with pytest.raises(TypeError, match="first_module has an agent Twofold already"):
        importlib.import_module("second_module")
    assert AGENTS["Twofold"] is first.Twofold
    importlib.reload(first)  # as a cell of a notebook that is run again
    assert AGENTS["Twofold"] is first.Twofold
    del sys.modules["first_module"], AGENTS["Twofold"]


def test_hyper_parameters_are_the_arguments():
    with pytest.raises(TypeError, match=r"Wrong.hyper_parameters must name the arguments of Wrong, \['bins'\], got"):

        class Wrong(krl.Agent):
            def __init__(self, bins):
                super().__init__()

    assert "Wrong" not in AGENTS


def test_abstract_classes_are_not_loaded():
    class Shared(krl.Agent, abstract=True):
        hyper_parameters = ("anything",)

    assert "Shared" not in AGENTS and "KernelAgent" not in AGENTS


# ---------------------------------------------------------------------------------------------------------------- verbs


class Left(NamedTuple):
    number: float


class Right(NamedTuple):
    number: float


@generic
def doubled(thing):
    """Twice the number."""
    return 2.0 * thing.number


@generic(required=True)
def halved(thing):
    """Half the number."""


@doubled.implement(Right)
def doubled_right(thing):
    return -2.0 * thing.number


@halved.implement(Right)
def halved_right(thing):
    return 0.5 * thing.number


@compiled(cache=False)
def call_doubled(thing):
    return doubled(thing)


def test_the_body_of_a_declaration_is_the_default():
    assert doubled(Left(3.0)) == call_doubled(Left(3.0)) == 6.0
    assert doubled(Right(3.0)) == call_doubled(Right(3.0)) == -6.0
    assert doubled.is_implemented(Right) and not doubled.is_implemented(Left)


def test_a_required_verb_has_no_default():
    assert halved(Right(3.0)) == 1.5
    with pytest.raises(TypeError, match=r"^Left does not implement halved: write a function of \(thing\)"):
        halved(Left(3.0))
