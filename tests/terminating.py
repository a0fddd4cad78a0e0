"""Small environments that terminate, and their absorbing twins.

In a twin nothing terminates: what ends an episode of the environment leads to a state in which every action stays, with
reward 0. Until then both use the same random numbers, so with the same seed and actions they do the same. V* is the
same in both: by `optimal_values` for the Discrete ones, by `Corridor.motion` for the other.

`REWARDS` has parameters for each of some reward ranges, to be given as keywords.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

import kernelrl as krl
from kernelrl.envs.interface import advance, reset
from kernelrl.envs.motion import Motion
from kernelrl.jit.stream import normal, seed_stream, uniform

REWARDS = {
    (-1.0, 0.0): {"corridor": {"step": -1.0, "arrival": 0.0}, "stop": {"stop": -1.0, "go": -1.0}},
    (-1.0, 1.0): {"corridor": {"step": -1.0, "arrival": 1.0}, "stop": {"stop": -0.5, "go": -1.0}},
    (-2.0, 0.0): {"corridor": {"step": -2.0, "arrival": -1.0}, "stop": {"stop": -2.0, "go": -2.0}},
    (0.0, 1.0): {"corridor": {"step": 0.0, "arrival": 1.0}, "stop": {"stop": 1.0, "go": 0.05}},
}


class CorridorDynamics(NamedTuple):
    move: float
    noise: float
    goal: float
    start: float
    step: float
    arrival: float
    twin: bool


class CellsDynamics(NamedTuple):
    last: int
    slip: float
    step: float
    arrival: float
    twin: bool


class StopDynamics(NamedTuple):
    stop: float
    go: float
    twin: bool


@reset.implement(CorridorDynamics)
def reset_corridor(env, seed, stream, state):
    seed_stream(stream, seed)
    state[0] = env.start


@advance.implement(CorridorDynamics)
def advance_corridor(env, stream, state, action, next_state):
    x = state[0]
    if x >= env.goal:  # only in the twin
        next_state[0] = x
        return 0.0, False, False
    y = x + (env.move if action == 1 else -env.move) + env.noise * normal(stream)
    next_state[0] = min(max(y, 0.0), 1.0)
    if next_state[0] >= env.goal:
        return env.arrival, not env.twin, False
    return env.step, False, False


@reset.implement(CellsDynamics)
def reset_cells(env, seed, stream, state):
    seed_stream(stream, seed)
    state[0] = 0.0


@advance.implement(CellsDynamics)
def advance_cells(env, stream, state, action, next_state):
    x = state[0]
    next_state[0] = x
    if x == env.last:  # only in the twin
        return 0.0, False, False
    if uniform(stream) >= env.slip:
        next_state[0] = x + 1.0 if action == 1 else max(x - 1.0, 0.0)
    if next_state[0] == env.last:
        return env.arrival, not env.twin, False
    return env.step, False, False


@reset.implement(StopDynamics)
def reset_stop(env, seed, stream, state):
    seed_stream(stream, seed)
    state[0] = 0.0


@advance.implement(StopDynamics)
def advance_stop(env, stream, state, action, next_state):
    next_state[0] = 2.0
    if state[0] == 2.0:  # only in the twin
        return 0.0, False, False
    if action == 0:
        return env.stop, not env.twin, False
    next_state[0] = 0.0 if uniform(stream) < 0.5 else 1.0
    return env.go, False, False


class Small(krl.envs.CompiledEnv):
    """The Gymnasium side of each: two actions, states a Box (1,) or Discrete, no time limit."""

    def __init__(self, dynamics: Any, observation_space: gym.Space) -> None:
        super().__init__(dynamics, observation_space=observation_space, action_space=gym.spaces.Discrete(2))


class Corridor(Small):
    """[0, 1]: left or right by `move` and noise, `step` a step, `arrival` for the one that reaches `goal` or beyond."""

    def __init__(
        self, move: float = 0.2, noise: float = 0.05, goal: float = 0.9, start: float = 0.1, step: float = -1.0,
        arrival: float = -1.0, twin: bool = False,
    ) -> None:  # fmt: skip
        assert 0 <= start < goal
        dynamics = CorridorDynamics(move, noise, goal, start, float(step), float(arrival), twin)
        super().__init__(dynamics, gym.spaces.Box(0.0, 1.0, (1,), np.float64))

    def motion(self) -> Motion:
        """Of the environment; a twin, which stays where it has arrived, does not move like this."""
        env = self.dynamics
        assert not env.twin
        return Motion(
            low=np.zeros((1, 1)),
            high=np.ones((1, 1)),
            noise=np.array([env.noise]),
            actions=("left", "right"),
            room=lambda x: np.zeros(len(x), np.int64),
            move=lambda x, a: x + (env.move if a == 1 else -env.move),
            reward=lambda x, a: np.full(len(x), env.step),
            starts=np.array([[env.start]]),
            ends=lambda y: y[:, 0] >= env.goal,
            reward_at_end=lambda y, a: np.full(len(y), env.arrival - env.step),
        )


class CorridorCells(Small):
    """`cells` places in a row, from 0 to the goal, the last: left or right by one, or with chance `slip` not at all."""

    def __init__(
        self, cells: int = 6, slip: float = 0.1, step: float = -1.0, arrival: float = -1.0, twin: bool = False
    ) -> None:
        dynamics = CellsDynamics(cells - 1, slip, float(step), float(arrival), twin)
        super().__init__(dynamics, gym.spaces.Discrete(cells))

    def model(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """P (A, X, X), r (X, A, X), terminal (X,)."""
        env = self.dynamics
        X = env.last + 1
        P, r = np.zeros((2, X, X)), np.full((X, 2, X), env.step)
        for x in range(X - 1):
            P[0, x, max(x - 1, 0)] = P[1, x, x + 1] = 1 - env.slip
            P[:, x, x] += env.slip
        P[:, -1, -1] = 1.0
        r[:, :, -1], r[-1] = env.arrival, 0.0
        return P, r, np.arange(X) == (X if env.twin else env.last)


class Stop(Small):
    """Action 0 ends it all for `stop`, action 1 goes on for `go` a step; live states are 0 and 1, by a coin.

    With a horizon of 10, as it stands: stopping at once costs 1, going on 10.
    """

    def __init__(self, stop: float = -1.0, go: float = -1.0, twin: bool = False) -> None:
        super().__init__(StopDynamics(float(stop), float(go), twin), gym.spaces.Discrete(3))

    def model(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """P (A, X, X), r (X, A), terminal (X,)."""
        env = self.dynamics
        P = np.array([[[0, 0, 1]] * 3, [[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]]], float)
        r = np.array([[env.stop, env.go], [env.stop, env.go], [0.0, 0.0]])
        return P, r, np.array([False, False, not env.twin])


def optimal_values(env: CorridorCells | Stop, horizon: int) -> krl.envs.FiniteValues:
    """V* and Q*."""
    return krl.envs.solve_finite(*env.model()[:2], horizon, env.model()[2])
