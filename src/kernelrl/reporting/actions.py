"""How actions are shown in maps of policies: names, colours, and signs for readers who see no colours."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import matplotlib
import numpy as np
from matplotlib.colors import to_hex

from kernelrl.reporting.maps import LEVELS
from kernelrl.reporting.style import ACTION_COLOURS, ink_on
from kernelrl.reporting.summary import Summary

__all__ = ["action_colours", "action_names", "action_signs", "for_legend", "inks"]

ARROWS = {"left": "←", "right": "→", "up": "↑", "down": "↓", "stay": "•"}


def action_names(summary: Summary, actions: int) -> list[str]:
    """The actions' names, or their numbers; the levels of continuous ones."""
    space = summary.env.action_space if summary.env is not None else None
    if isinstance(space, gym.spaces.Box):
        return [f"{level:.3g}" for level in np.linspace(space.low.flat[0], space.high.flat[0], actions)]
    if summary.motion is not None:
        return list(summary.motion.actions)
    first = int(getattr(summary.env.action_space, "start", 0)) if summary.env is not None else 0
    return [f"action {first + a}" for a in range(actions)]


def action_signs(names: list[str]) -> list[str]:
    """A sign for each action: arrows for directions, else the numbers of the names, or letters; none for levels."""
    if len(names) >= LEVELS:
        return []
    if all(name in ARROWS for name in names):
        return [ARROWS[name] for name in names]
    numbers = [name.removeprefix("action ") for name in names]
    if all(number.isdigit() for number in numbers):
        return numbers
    letters = [name[:1].upper() for name in names]
    return letters if len(set(letters)) == len(letters) else [str(a) for a in range(len(names))]


def action_colours(actions: int) -> list[str]:
    """One colour per action; they repeat after eight. Levels of a continuous one go from dark blue to yellow."""
    if actions == LEVELS:
        return [to_hex(colour) for colour in matplotlib.colormaps["cividis"](np.linspace(0.0, 1.0, LEVELS))]
    return [ACTION_COLOURS[a % len(ACTION_COLOURS)] for a in range(actions)]


def inks(colours: list[str]) -> list[str]:
    """The colour of signs on each colour."""
    return [ink_on(colour) for colour in colours]


def for_legend(entries: list[Any]) -> list[Any]:
    """At most eight entries; of the levels of a continuous action nine, from the highest to the lowest."""
    return entries[:: -(LEVELS // 8)] if len(entries) == LEVELS else entries[:8]
