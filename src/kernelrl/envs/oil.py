"""Oil: where to drill, when moving costs and oil is around one place (Sinclair, Banerjee and Yu 2019; ORSuite).

State x and action a are numbers from 0 to 1, and the action says where to go:

    y = clip(a + noise),   r = clip(f - |x - a|, 0, 1),   both clipped onto [0, 1]

    form         f                      noise
    laplace      exp(-λ·|x - 0.75|)     none
    quadratic    1 - λ·(x - 0.75)²      none
    noise        exp(-λ·|x·a - 0.7|)    N(0, 0.1·(x + a)²)

λ is `steepness`. An episode starts at 0.5 and takes 5 steps when made by `gymnasium.make("kernelrl/Oil-v0")`; nothing
else ends it.

V*_1 at the start with a continuum of actions (`kernelrl solve` and closed forms agree to 1e-3):

    λ            1          10         50
    laplace      4.52880    4          4          λ = 1: 4 + e^{-1/4} - 1/4, going to 0.75 at once
    quadratic    4.75       4.13125    4
    noise        3.1881     2.0236     1.9607

Lipschitz constants in |x - x'| + |a - a'|: rewards λ_r = ℓ + 1, ℓ being that of f: λ for laplace and noise,
min(1.5·λ, 2·√λ) for quadratic, where f is not clipped only within 1/√λ of 0.75. Transitions λ_p = 1, or 1.00014 for
noise. If the next state does not depend on x (laplace, quadratic), V_h is λ_r-Lipschitz at every step, and so Q_h is
(λ_r + 1)-Lipschitz: a unit for the reward's dependence on a, the rest for V_{h+1}(a).
"""
# Annotations of compiled functions are for readers; numba infers its own.
# mypy: allow-untyped-calls, allow-untyped-decorators

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from kernelrl.arguments import one_of, positive, within
from kernelrl.envs.interface import advance, reset
from kernelrl.envs.one_number import STRIP, OneNumberEnv, action_value, check_actions
from kernelrl.envs.outcomes import Outcomes
from kernelrl.jit.compile import compiled
from kernelrl.jit.stream import normal, seed_stream

__all__ = ["Oil", "OilDynamics"]

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
FORMS = ("laplace", "quadratic", "noise")
LAPLACE, QUADRATIC, NOISE = range(3)
BEST, BEST_PRODUCT, SPREAD = 0.75, 0.7, math.sqrt(0.1)


class OilDynamics(NamedTuple):
    """The parameters: `form` is an index into FORMS, `actions` is 0 for a continuum."""

    form: int
    steepness: float
    start: float
    actions: int


@reset.implement(OilDynamics)
def reset_oil(env: OilDynamics, seed: int, stream: Words, state: Floats) -> None:
    """Seed `stream` and write the start into `state` (1,)."""
    seed_stream(stream, seed)
    state[0] = env.start


@compiled
def oil_at(form: int, steepness: float, x: float, a: float) -> float:
    """f(x, a)."""
    if form == LAPLACE:
        return math.exp(-steepness * abs(x - BEST))
    if form == QUADRATIC:
        return 1.0 - steepness * (x - BEST) ** 2
    return math.exp(-steepness * abs(x * a - BEST_PRODUCT))


@advance.implement(OilDynamics)
def advance_oil(
    env: OilDynamics, stream: Words, state: Floats, action: Any, next_state: Floats
) -> tuple[float, bool, bool]:
    """Go to the action: write y into `next_state` (1,); return r and two False, since nothing ends the episode."""
    x, a = state[0], action_value(env.actions, action)
    y = a
    if env.form == NOISE:
        y += SPREAD * (x + a) * normal(stream)
    next_state[0] = min(max(y, 0.0), 1.0)
    return min(max(oil_at(env.form, env.steepness, x, a) - abs(x - a), 0.0), 1.0), False, False


class Oil(OneNumberEnv):
    """Where to drill for oil: states and actions are places from 0 to 1, and moving costs.

    Args:
        form: "laplace", "quadratic" or "noise".
        steepness: λ, how fast there is less oil away from the best place.
        actions: how many actions there are, 0, 1/(actions-1), …, 1; None: all numbers from 0 to 1, as a Box.
        start: where an episode starts.
        render_mode: `"rgb_array"`, or None for no pictures.
    """

    def __init__(
        self,
        *,
        form: str = "laplace",
        steepness: float = 1.0,
        actions: int | None = None,
        start: float = 0.5,
        render_mode: str | None = None,
    ) -> None:
        dynamics = OilDynamics(
            FORMS.index(one_of("form", form, FORMS)),
            positive("steepness", steepness),
            within("start", start, 0.0, 1.0),
            check_actions(actions),
        )
        super().__init__(dynamics, render_mode)

    @property
    def lipschitz_constants(self) -> tuple[float, float]:
        """(λ_r, λ_p) in |x - x'| + |a - a'|."""
        form, steepness = self.dynamics.form, self.dynamics.steepness
        slope = min(1.5 * steepness, 2.0 * math.sqrt(steepness)) if form == QUADRATIC else steepness
        # With the same draw t, next states differ by at most |a - a'|·|1 + s·t| + |x - x'|·s·|t|, s = √0.1.
        folded = SPREAD * math.sqrt(2.0 / math.pi) * math.exp(-0.5 / SPREAD**2) + 1.0 - 2.0 * float(ndtr(-1.0 / SPREAD))
        return slope + 1.0, folded if form == NOISE else 1.0

    def lipschitz(self, horizon: int) -> Floats:
        """(H,) L_h; at most λ_r + 1 where the next state does not depend on x."""
        usual = super().lipschitz(horizon)
        assert usual is not None
        return usual if self.dynamics.form == NOISE else np.minimum(usual, self.lipschitz_constants[0] + 1.0)

    def motion(self) -> Outcomes:
        """Its equations, those of `advance_oil`, for computing optimal values."""
        env = self.dynamics

        def next_states(x: Floats, a: Floats, h: int, count: int) -> tuple[Floats, Floats]:
            if env.form != NOISE:
                return a[:, None, None], np.ones((len(a), 1))
            t = ndtri((np.arange(count) + 0.5) / count)  # equally likely
            y = np.clip(a[:, None] + SPREAD * (x + a[:, None]) * t, 0.0, 1.0)
            return y[:, :, None], np.full((1, count), 1.0 / count)

        return Outcomes(
            low=np.zeros((1, 1)),
            high=np.ones((1, 1)),
            starts=np.array([[env.start]]),
            next_states=next_states,
            reward=lambda x, a, h: rewards(env, x[:, 0], a),
            action_values=self.action_list(),
        )

    def draw(self, state: Floats) -> NDArray[np.uint8]:
        """A strip from 0 to 1, with the reward of staying as colour, and the agent."""
        x, _ = STRIP.axes()
        return self.strip(rewards(self.dynamics, np.clip(x, 0.0, 1.0), np.clip(x, 0.0, 1.0)), state)


def rewards(env: OilDynamics, x: Floats, a: Floats) -> Floats:
    """The rewards of states and actions."""
    if env.form == LAPLACE:
        f = np.exp(-env.steepness * abs(x - BEST))
    elif env.form == QUADRATIC:
        f = 1.0 - env.steepness * (x - BEST) ** 2
    else:
        f = np.exp(-env.steepness * abs(x * a - BEST_PRODUCT))
    return np.clip(f - abs(x - a), 0.0, 1.0)
