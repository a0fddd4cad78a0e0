"""Calls by hand in any order, with good and bad arguments, on random spaces, with the JIT disabled.

Without machine code an index out of bounds is an IndexError. Only the documented errors may come out of a call, one
that is refused leaves no trace, and afterwards the agent still works and can be saved and loaded.

    NUMBA_DISABLE_JIT=1 python -m soak_parts.hand 20     # sequences of each kind of agent
"""

from __future__ import annotations

import json
import math
import pickle
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import kernelrl as krl
from edited_files import by_hand
from soak_parts.outcome import Outcome
from test_interface import AGENTS, READ_OUTS

DOCUMENTED = (ValueError, TypeError, RuntimeError)
BOUNDED = ("UCBVI", "GreedyUCBVI", "OptQL", "AdaptiveQL", "AdaMB")  # agents that need a bounded box
BAD_STATES = (None, "x", math.nan, [], [[]], [None], np.zeros((2, 2, 2)), object(), 1e300, {"a": 1}, [math.inf] * 2)
BAD_STEPS = (-1, 10**6, 10**30, 1.5, None, "0", math.nan, math.inf, [0], np.zeros(2))
BAD_HORIZONS = (-1, 0, 1.5, None, "3", math.nan, [2])
BAD_ACTIONS = (-(10**6), 10**6, 10**30, 0.5, None, "left", math.nan, [1, 2])
BAD_REWARDS = (None, "one", math.nan, math.inf, 1e100, 1e308, 10**400, [1, 2], 1j, object())


class Player:
    """An agent, random spaces for it, and random calls."""

    def __init__(self, variant: str, seed: int, folder: Path) -> None:
        cls, options = AGENTS[variant]
        self.rng = np.random.default_rng([seed, *variant.encode()])
        self.path = folder / "hand.krl"
        self.horizon = int(self.rng.integers(1, 7))
        self.space = self.random_space(cls)
        self.actions = gym.spaces.Discrete(int(self.rng.integers(1, 5)), start=int(self.rng.integers(-2, 3)))
        if isinstance(self.space, gym.spaces.Discrete):
            options = {name: value for name, value in options.items() if name != "bins"}
        elif isinstance(options.get("bins"), tuple):
            options = {**options, "bins": 3}
        if self.rng.random() < 0.3:
            options = {**options, "reward_range": [(-1, 0), (0, 1), (-2, 3), (1, 2), (0, 1e-6)][self.rng.integers(5)]}
        self.agent = cls(**options)
        self.scale = 10.0 ** self.rng.uniform(-30, 30) if self.rng.random() < 0.3 else 1.0
        self.log: list[str] = []

    def random_space(self, cls: Any) -> Any:
        rng, discrete = self.rng, cls.takes_discrete
        if discrete and rng.random() < 0.3:
            return gym.spaces.Discrete(int(rng.integers(1, 8)), start=int(rng.integers(-3, 4)))
        shape = ((1,), (2,), (3,), (2, 1), (1, 2))[rng.integers(5)]
        width = 10.0 ** rng.uniform(-2, 1.5, shape) if rng.random() < 0.8 else 10.0 ** rng.uniform(-60, 60, shape)
        low = rng.normal(size=shape) * width
        high = low + width * (rng.random(shape) > 0.1)  # now and then an axis of a single point
        if cls.__name__ not in BOUNDED and rng.random() < 0.2:
            low, high = np.where(rng.random(shape) < 0.5, -np.inf, low), np.where(rng.random(shape) < 0.5, np.inf, high)
        return gym.spaces.Box(low, high, dtype=np.float64)

    def state(self) -> Any:
        if isinstance(self.space, gym.spaces.Discrete):
            return int(self.space.start + self.rng.integers(self.space.n))
        low, high = np.clip(self.space.low, -1e6, None), np.clip(self.space.high, None, 1e6)
        low, high = np.minimum(low, self.space.high), np.maximum(high, self.space.low)
        return np.clip(low + (high - low) * self.rng.random(low.shape), self.space.low, self.space.high)

    def one_of(self, good: Any, bad: tuple[Any, ...]) -> Any:
        return bad[self.rng.integers(len(bad))] if self.rng.random() < 0.08 else good

    def any_state(self) -> Any:
        return self.one_of(self.state(), BAD_STATES)

    def any_step(self) -> Any:
        return self.one_of(int(self.rng.integers(self.horizon)), BAD_STEPS)

    def reward(self) -> Any:
        good = float(self.rng.choice([0.0, 1.0, self.rng.random(), self.rng.normal()])) * self.scale
        kinds = (good, np.float32(np.clip(good, -1e30, 1e30)), np.array([good]), True, 1)
        return self.one_of(kinds[0 if self.rng.random() < 0.8 else self.rng.integers(len(kinds))], BAD_REWARDS)

    # ---------------------------------------------------------------------------------------------------------- calls

    def begin_episode(self) -> None:
        self.agent.begin_episode()

    def end_episode(self) -> None:
        self.agent.end_episode()

    def choose(self) -> None:
        action = self.agent.choose(self.any_state(), self.any_step())
        assert self.actions.contains(action), f"choose gave {action!r}"

    def act(self) -> None:
        action = self.agent.act(self.any_state(), self.any_step())
        assert self.actions.contains(action), f"act gave {action!r}"

    def observe(self) -> None:
        action = self.one_of(int(self.actions.start + self.rng.integers(self.actions.n)), BAD_ACTIONS)
        self.agent.observe(
            self.any_state(), action, self.reward(), self.any_state(), self.any_step(), self.rng.random() < 0.1
        )

    def episode(self) -> None:
        """A whole one, with good arguments."""
        self.agent.begin_episode()
        x = self.state()
        for h in range(self.horizon):
            y, ends = self.state(), bool(self.rng.random() < 0.1)
            self.agent.observe(x, self.agent.choose(x, h), float(self.rng.random()) * self.scale, y, h, ends)
            if ends:
                break
            x = y
        self.agent.end_episode()

    def read(self) -> None:
        name = READ_OUTS[self.rng.integers(len(READ_OUTS))]
        if hasattr(self.agent, name):
            states = self.one_of([self.state() for _ in range(self.rng.integers(4))], BAD_STATES)
            found = getattr(self.agent, name)(states if len(np.shape(states)) else [self.state()], self.any_step())
            assert not np.isnan(found).any(), f"{name} are {found}"

    def rest(self) -> None:
        self.agent.settings_used()
        repr(self.agent)
        if hasattr(self.agent, "partition"):
            self.agent.partition(self.any_step(), self.one_of(int(self.actions.start), BAD_ACTIONS))
        if hasattr(self.agent, "certificate"):
            self.agent.certificate(self.any_state())

    def set_range(self) -> None:
        try:
            self.agent.reward_range = (0, 2)
        except AttributeError:  # an attribute that cannot be set, once started
            assert self.agent.model is not None

    def start(self) -> None:
        self.agent.start(self.space, self.actions, self.one_of(self.horizon, BAD_HORIZONS), seed=1)

    def save_and_load(self) -> None:
        self.agent.save(self.path)
        self.agent = krl.load(self.path)

    def pickled(self) -> None:
        self.agent = pickle.loads(pickle.dumps(self.agent))

    # -------------------------------------------------------------------------------------------------------- playing

    def content(self) -> bytes:
        self.agent.save(self.path)
        return self.path.read_bytes()

    def play(self, calls: int) -> int:
        """Make so many calls; return how many were refused. An AssertionError or another error is a finding."""
        kinds = (
            [self.observe] * 6 + [self.choose] * 3 + [self.begin_episode, self.end_episode, self.act, self.read] * 2
            + [self.episode, self.rest, self.start, self.save_and_load, self.pickled, self.set_range]
        )  # fmt: skip
        refused = 0
        for i in range(calls):
            if i == calls // 8 and self.agent.model is None:
                self.agent.start(self.space, self.actions, self.horizon, seed=1)
            call = kinds[self.rng.integers(len(kinds))]
            self.log.append(call.__name__)
            single = call not in (self.episode, self.rest, self.read)
            before = self.content() if single and self.rng.random() < 0.1 else None
            try:
                call()
            except DOCUMENTED as error:
                assert not isinstance(error, NotImplementedError | RecursionError), repr(error)
                refused += 1
                if before is not None:
                    assert self.content() == before, f"{call.__name__} was refused ({error}) and has left a trace"
        return refused

    def finish(self) -> None:
        """The agent works as any other: two episodes, all read-outs, the same after loading."""
        for _ in range(2):
            by_hand(self.agent, self.rng)
        states = [self.state() for _ in range(3)]
        found = self.read_all(states)
        self.save_and_load()
        for name, values in self.read_all(states).items():
            assert np.array_equal(values, found[name]), f"{name} after loading: {values}, before: {found[name]}"

    def read_all(self, states: Any) -> dict[str, Any]:
        names = [name for name in READ_OUTS if hasattr(self.agent, name)]
        found = {name: getattr(self.agent, name)(states, self.horizon - 1) for name in names}
        for name, values in found.items():
            assert not np.isnan(values).any(), f"{name} are {values}"
        return found | {"act": [self.agent.act(x, 0) for x in states]}


def try_sequence(outcome: Outcome, variant: str, seed: int, calls: int, folder: Path) -> None:
    """Play one sequence and add to what was found."""
    player = None
    try:
        player = Player(variant, seed, folder)
        outcome.count("refused calls", player.play(calls))
        player.finish()
    except ValueError as error:
        if player is not None and player.agent.model is None and is_refused_start(error):
            outcome.count("spaces refused")
        else:
            outcome.attempt(f"{variant}, sequence {seed}", raise_again, error)
    except Exception as error:
        outcome.attempt(f"{variant}, sequence {seed}, after {(player.log if player else [])[-6:]}", raise_again, error)
    outcome.count("sequences")
    outcome.count("calls", calls)


def raise_again(error: Exception) -> None:
    raise error


def is_refused_start(error: ValueError) -> bool:
    """Whether an agent was not made for these spaces, which is said of one of them or of a hyper-parameter."""
    return str(error).startswith(("observation_space", "bins", "bandwidth", "metric", "lipschitz", "representatives"))


def run(scale: float, folder: Path, count: int, calls: int = 120) -> Outcome:
    """Play `count` sequences of every variant of every agent, scaled."""
    outcome = Outcome()
    warnings.simplefilter("ignore")  # of ranges that were widened, and of NumPy's scalars, which overflow on purpose
    for variant in AGENTS:
        began = time.monotonic()
        for seed in range(max(1, round(count * scale))):
            try_sequence(outcome, variant, seed, calls, folder)
        print(f"{variant:48}{time.monotonic() - began:6.1f} s, {len(outcome.failed + outcome.lost)} wrong", flush=True)
    return outcome


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        found = run(1.0, Path(name), int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 120)
    print(json.dumps([found.tried, found.failed, found.lost]))
    sys.exit(bool(found.failed or found.lost))
