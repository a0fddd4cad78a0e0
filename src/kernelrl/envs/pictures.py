"""Pictures of environments: `DrawnEnv`, and the painting that its subclasses need.

A picture is uint8 (height, width, 3), and its first row is its top. `View` says which part of the plane it shows; what
is the same in all pictures of an environment is painted once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from kernelrl.envs.compiled import CompiledEnv

__all__ = ["AGENT", "FLOOR", "PAPER", "REWARD", "RIM", "WALL", "DrawnEnv", "View", "cover", "lay"]

Floats = NDArray[np.float64]
Picture = NDArray[np.uint8]
Colour = tuple[int, int, int]

PAPER, FLOOR, WALL = (255, 255, 255), (244, 241, 234), (62, 68, 81)
REWARD, RIM, AGENT = (240, 160, 32), (200, 120, 16), (28, 100, 190)
MARGIN = 20  # pixels


class View(NamedTuple):
    """The part of the plane that a picture shows, inside a margin."""

    low: tuple[float, float]
    high: tuple[float, float]
    scale: float
    """Pixels per unit."""

    def axes(self) -> tuple[Floats, Floats]:
        """x (1, width) and y (height, 1) of the middle of each pixel."""
        width, height = (round(self.scale * (self.high[j] - self.low[j])) + 2 * MARGIN for j in range(2))
        x = self.low[0] + (np.arange(width) + 0.5 - MARGIN) / self.scale
        y = self.high[1] - (np.arange(height) + 0.5 - MARGIN) / self.scale
        return np.asarray(x[None, :], np.float64), np.asarray(y[:, None], np.float64)

    def outside(self) -> Floats:
        """(height, width) the signed distance of each pixel to the frame, negative inside."""
        x, y = self.axes()
        return np.maximum(np.maximum(self.low[0] - x, x - self.high[0]), np.maximum(self.low[1] - y, y - self.high[1]))

    def background(self, outside: Floats, deep: Floats, colour: Colour = REWARD) -> Picture:
        """A floor where `outside` (height, width) is negative, with a wall around; `deep` in [0, 1] is its colour."""
        x, y = self.axes()
        paint = np.empty((y.size, x.size, 3))
        paint[:] = PAPER
        lay(paint, WALL, cover(outside - 6.0 / self.scale, self.scale))
        floor = cover(outside, self.scale)
        lay(paint, FLOOR, floor)
        lay(paint, colour, floor * np.clip(deep, 0.0, 1.0))
        return np.rint(paint).astype(np.uint8)

    def with_agent(self, picture: Picture, place: Floats, radius: float) -> Picture:
        """A copy of the picture with the agent, a disc with a white rim, at `place` (2,)."""
        x, y = self.axes()
        near, copy = radius + 4.0 / self.scale, picture.copy()
        rows, columns = np.flatnonzero(abs(y[:, 0] - place[1]) < near), np.flatnonzero(abs(x[0] - place[0]) < near)
        part = copy[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]  # only this changes
        paint, z = part.astype(np.float64), np.hypot(x[:, columns] - place[0], y[rows] - place[1])
        lay(paint, PAPER, cover(z - radius - 2.0 / self.scale, self.scale))
        lay(paint, AGENT, cover(z - radius, self.scale))
        part[:] = np.rint(paint)
        return copy


def cover(distance: Floats, scale: float) -> Floats:
    """How much of each pixel a shape covers, from the pixel's signed distance to its edge (negative inside)."""
    return np.clip(0.5 - scale * distance, 0.0, 1.0)


def lay(paint: Floats, colour: Colour, opacity: Floats) -> None:
    """Blend `colour` into `paint` (height, width, 3) with the opacity (height, width)."""
    paint += opacity[:, :, None] * (np.array(colour) - paint)


class DrawnEnv(CompiledEnv):
    """A `CompiledEnv` with pictures: a subclass implements `draw`."""

    # Not a ClassVar, because Gymnasium's own class declares it without.
    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(
        self, dynamics: Any, *, observation_space: gym.Space[Any], action_space: Any, render_mode: str | None
    ) -> None:  # fmt: skip
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f'render_mode must be None or "rgb_array"; got {render_mode!r}.')
        super().__init__(dynamics, observation_space=observation_space, action_space=action_space)
        self.render_mode = render_mode

    def draw(self, state: Floats) -> Picture:
        """The picture of a state."""
        raise NotImplementedError

    def render(self) -> Any:
        """The picture of the present state, uint8 (height, width, 3), with `render_mode="rgb_array"`."""
        if self.render_mode is None:
            gym.logger.warn('render() draws nothing without a render_mode; make the environment with "rgb_array".')
            return None
        return self.draw(self.state)
