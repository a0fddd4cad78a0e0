"""Checks of agents' arguments, besides those of `kernelrl.arguments`."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from kernelrl.arguments import as_whole, finite, flag, flag_or_none, is_auto, one_of, positive, whole_number
from kernelrl.envs.making import make_environment

__all__ = [
    "as_array",
    "as_environment",
    "as_whole",
    "check_lipschitz",
    "finite",
    "flag",
    "flag_or_none",
    "is_auto",
    "lipschitz_constants",
    "one_of",
    "positive",
    "whole_number",
]

Floats = npt.NDArray[np.float64]


def as_environment(env: gym.Env[Any, Any] | str) -> gym.Env[Any, Any]:
    """`env` itself, or the environment with that id."""
    if isinstance(env, str):
        try:
            return make_environment(env)
        except ValueError as error:
            raise ValueError(f"env: {error}") from error
    if isinstance(env, gym.vector.VectorEnv):
        raise TypeError(f"env: agents learn from one environment at a time; make it with gymnasium.make, got {env}")
    if not isinstance(env, gym.Env):
        raise TypeError(f"env must be a Gymnasium environment or the id of one, got {env!r}{instead_of(env)}")
    return env


def instead_of(given: Any) -> str:
    """What to do about a class, or about a simulator that is no Gymnasium environment."""
    if isinstance(given, type) and issubclass(given, gym.Env):
        return f"; this is the class: give an object of it, {given.__name__}()"
    if callable(getattr(given, "step", None)):
        return "; wrap the simulator in a class that inherits from gymnasium.Env (docs/own_problem.md shows how)"
    return ""


def as_array(name: str, given: Any, shape: tuple[int, ...]) -> Floats:
    """Numbers of that shape as float64, or an error that names the argument."""
    try:
        found = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be an array of numbers of shape {shape}, got {given!r}") from None
    if found.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got shape {found.shape}")
    return found


def check_lipschitz(lipschitz: Any) -> Any:
    """The argument as None, "log", a float, a tuple of two floats or a list, or an error that names it."""
    if lipschitz is None or (isinstance(lipschitz, str) and lipschitz == "log"):
        return lipschitz
    form = 'a number, an array of L_h of length H, a tuple (λ_r, λ_p), "log" or None; numbers finite and at least 0'
    try:
        numbers = np.asarray(lipschitz, float)
    except (TypeError, ValueError):
        raise ValueError(f"lipschitz must be {form}; got {lipschitz!r}") from None
    is_pair = isinstance(lipschitz, tuple)
    if numbers.ndim > 1 or (is_pair and numbers.size != 2) or not (np.isfinite(numbers).all() and (numbers >= 0).all()):
        raise ValueError(f"lipschitz must be {form}; got {lipschitz!r}")
    if numbers.ndim == 0:
        return float(numbers)
    return tuple(numbers.tolist()) if is_pair else numbers.tolist()


def lipschitz_constants(lipschitz: Any, H: int) -> Floats | None:
    """L_h (H,): L_{H+1} = 0 and L_h = λ_r + λ_p·L_{h+1} from a pair (λ_r, λ_p) (paper, lemma 1)."""
    if lipschitz is None:
        return None
    if isinstance(lipschitz, tuple):
        L = np.zeros(H)
        following = 0.0
        for h in range(H - 1, -1, -1):
            L[h] = following = lipschitz[0] + lipschitz[1] * following
        if not np.isfinite(L).all():
            raise ValueError(
                f"lipschitz: L_1 = Σ λ_r·λ_p^h overflows for {lipschitz} and {H} steps; give L_h as an array"
            )
        return L
    if isinstance(lipschitz, list):
        if len(lipschitz) != H:
            raise ValueError(
                f"lipschitz: an array of L_h must have length {H}, the horizon; got length {len(lipschitz)}"
            )
        return np.array(lipschitz)
    return np.full(H, lipschitz)
