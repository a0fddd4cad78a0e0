"""Ambulance: where to wait for the next call (Brotcorne et al. 2003; Sinclair, Banerjee and Yu 2019; ORSuite).

State x, action a and the place y of the next call are numbers from 0 to 1. The ambulance goes to a, waits for the call,
and goes there:

    y ~ arrivals of the step, whatever x and a are,   r = 1 - (α·|x - a| + (1-α)·|a - y|)

An episode starts at 0.5 and takes 5 steps when made by `gymnasium.make("kernelrl/Ambulance-v0")`; nothing else ends it.
`arrivals` is "beta" (beta(5, 2)), "uniform" (on [0, 1]), or "shifting": uniform on [0, 0.25), [0.25, 0.3), [0.3, 0.5),
[0.5, 0.6) and [0.6, 0.65), one after the other, the last also in all later steps. These intervals do not overlap, so
the state tells which of them is next; only the start, a single point, must be told apart from a call at the same place,
which has probability 0. Set `state` of a shifting environment only to states of its episodes.

V*_1 at the start with a continuum of actions:

    α            0          0.25       1
    beta         4.35469    4.36976    5
    uniform      3.75       3.88657    5
    shifting     4.8375     4.67292    5

In |x - x'| + |a - a'| rewards are 1-Lipschitz and at each step transitions 0-Lipschitz, so that L_h = 1. (Data of a
shifting environment must not be pooled over steps.)
"""
# Annotations of compiled functions are for readers; numba infers its own.
# mypy: allow-untyped-calls, allow-untyped-decorators

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv

from kernelrl.arguments import one_of, within
from kernelrl.envs.interface import advance, reset
from kernelrl.envs.one_number import STRIP, OneNumberEnv, action_value, check_actions
from kernelrl.envs.outcomes import Outcomes
from kernelrl.jit.compile import compiled
from kernelrl.jit.stream import seed_stream, uniform

__all__ = ["Ambulance", "AmbulanceDynamics"]

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
ARRIVALS = ("beta", "uniform", "shifting")
BETA, UNIFORM, SHIFTING = range(3)
SHAPE = (5.0, 2.0)
EDGES = (0.0, 0.25, 0.3, 0.5, 0.6, 0.65)  # of the shifting arrivals: the last interval is that of all later steps, too
CALLS = 1024  # next states where `solve` asks for fewer: they are the same for all states and actions


class AmbulanceDynamics(NamedTuple):
    """The parameters: `arrivals` is an index into ARRIVALS, `actions` is 0 for a continuum."""

    arrivals: int
    alpha: float
    start: float
    actions: int


@reset.implement(AmbulanceDynamics)
def reset_ambulance(env: AmbulanceDynamics, seed: int, stream: Words, state: Floats) -> None:
    """Seed `stream` and write the start into `state` (1,)."""
    seed_stream(stream, seed)
    state[0] = env.start


@compiled
def draw_beta(stream: Words) -> float:
    """A beta(5, 2) number: the second largest of six uniform ones."""
    first, second = 0.0, 0.0
    for _ in range(6):
        u = uniform(stream)
        if u > first:
            first, second = u, first
        elif u > second:
            second = u
    return second


@compiled
def next_interval(start: float, x: float) -> int:
    """Which interval of the shifting arrivals is next, seen from the state."""
    if x == start:
        return 0
    if x < EDGES[1]:
        return 1
    if x < EDGES[2]:
        return 2
    return 3 if x < EDGES[3] else 4


@compiled
def draw_call(env: AmbulanceDynamics, stream: Words, x: float) -> float:
    """The place of the next call, when the last one was at x."""
    if env.arrivals == BETA:
        return draw_beta(stream)
    u = uniform(stream)
    if env.arrivals == UNIFORM:
        return u
    i = next_interval(env.start, x)
    low, high = EDGES[i], EDGES[i + 1]
    y = low + (high - low) * u
    return y if y < high else low  # rounding must not lead into the next interval


@advance.implement(AmbulanceDynamics)
def advance_ambulance(
    env: AmbulanceDynamics, stream: Words, state: Floats, action: Any, next_state: Floats
) -> tuple[float, bool, bool]:
    """Wait at the action: write the call into `next_state` (1,); return r and two False, since nothing ends it."""
    x, a = state[0], action_value(env.actions, action)
    y = draw_call(env, stream, x)
    next_state[0] = y
    return 1.0 - (env.alpha * abs(x - a) + (1.0 - env.alpha) * abs(a - y)), False, False


class Ambulance(OneNumberEnv):
    """Where to wait for the next call: states and actions are places from 0 to 1, and every way costs.

    Args:
        arrivals: "beta", "uniform" or "shifting", where calls come from.
        alpha: α, the weight of the way to the waiting place; that of the way to the call is 1 - α.
        actions: how many actions there are, 0, 1/(actions-1), …, 1; None: all numbers from 0 to 1, as a Box.
        start: where an episode starts.
        render_mode: `"rgb_array"`, or None for no pictures.
    """

    def __init__(
        self,
        *,
        arrivals: str = "beta",
        alpha: float = 0.25,
        actions: int | None = None,
        start: float = 0.5,
        render_mode: str | None = None,
    ) -> None:
        dynamics = AmbulanceDynamics(
            ARRIVALS.index(one_of("arrivals", arrivals, ARRIVALS)),
            within("alpha", alpha, 0.0, 1.0),
            within("start", start, 0.0, 1.0),
            check_actions(actions),
        )
        super().__init__(dynamics, render_mode)

    @property
    def lipschitz_constants(self) -> tuple[float, float]:
        """(λ_r, λ_p) in |x - x'| + |a - a'|."""
        return 1.0, 0.0

    def motion(self) -> Outcomes:
        """Its equations, those of `advance_ambulance`, for computing optimal values."""
        env = self.dynamics

        def next_states(x: Floats, a: Floats, h: int, count: int) -> tuple[Floats, Floats]:
            count = max(count, CALLS)
            u = (np.arange(count) + 0.5) / count  # equally likely
            low, high = bounds(env, h)
            y = betaincinv(*SHAPE, u) if env.arrivals == BETA else low + (high - low) * u
            return y[None, :, None], np.full((1, count), 1.0 / count)

        def reward(x: Floats, a: Floats, h: int) -> Floats:
            way: Floats = env.alpha * abs(x[:, 0] - a) + (1.0 - env.alpha) * mean_distance(env, a, h)
            return 1.0 - way

        return Outcomes(
            low=np.zeros((1, 1)),
            high=np.ones((1, 1)),
            starts=np.array([[env.start]]),
            next_states=next_states,
            reward=reward,
            action_values=self.action_list(),
        )

    def draw(self, state: Floats) -> NDArray[np.uint8]:
        """A strip from 0 to 1, with the density of the next call as colour, and the ambulance."""
        x, _ = STRIP.axes()
        env = self.dynamics
        if env.arrivals == BETA:
            x = np.clip(x, 0.0, 1.0)
            return self.strip(x**4 * (1.0 - x) / (0.8**4 * 0.2), state)  # 1 at the mode, 0.8
        low, high = bounds(env, next_interval(env.start, state[0]))
        return self.strip(((x >= low) & (x < high)).astype(np.float64), state)


def bounds(env: AmbulanceDynamics, h: int) -> tuple[float, float]:
    """The interval of uniform arrivals of step h."""
    i = min(h, len(EDGES) - 2)
    return (EDGES[i], EDGES[i + 1]) if env.arrivals == SHIFTING else (0.0, 1.0)


def mean_distance(env: AmbulanceDynamics, a: Floats, h: int) -> Floats:
    """E|a - y| of step h, with F the distribution function: a·(2F(a) - 1) + E[y] - 2·E[y; y ≤ a]."""
    if env.arrivals == BETA:
        p, q = SHAPE
        mean = p / (p + q)
        found: Floats = a * (2.0 * betainc(p, q, a) - 1.0) + mean * (1.0 - 2.0 * betainc(p + 1.0, q, a))
        return found
    low, high = bounds(env, h)
    inside = np.clip(a, low, high)
    within_it = ((inside - low) ** 2 + (high - inside) ** 2) / (2.0 * (high - low))
    return within_it + abs(a - inside)
