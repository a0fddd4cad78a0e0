"""Making environments by name.

A name is Gymnasium's id ("kernelrl/TwinRooms-v0"), "module:id" for an id that importing the module registers, or
"module:name" for a class or function of the module that makes an environment.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, load_env_creator

from kernelrl.envs import ENVIRONMENTS
from kernelrl.imports import import_module, no_such, one_line

__all__ = ["make_environment"]

OF_MAKE = ("max_episode_steps", "disable_env_checker", "render_mode")  # arguments that gymnasium.make takes itself


def make_environment(name: str, options: Mapping[str, Any] | None = None) -> gym.Env[Any, Any]:
    """The environment of that name, made with `options`, or a one-line ValueError that says why it cannot be made."""
    options = options or {}
    what = named(name)
    try:
        return gym.make(what, **options)
    except gym.error.UnregisteredEnv as error:
        raise ValueError(
            f'there is no environment "{name}" ({one_line(error)}); ours are {", ".join(ENVIRONMENTS)}; one of your '
            'own is written "module:id" or "module:Class"'
        ) from error
    except (Exception, SystemExit) as error:  # constructors of all kinds
        if unknown := unknown_arguments(what, options):
            raise ValueError(f"{name}: {unknown}") from error
        given = f" with {dict(options)}" if options else ""
        raise ValueError(f"{name} cannot be made{given}: {one_line(error)}") from error


def named(name: str) -> str | EnvSpec:
    """The argument for `gymnasium.make`: the name itself, or a spec that calls a class or function of a module."""
    _, colon, rest = name.partition(":")
    if not colon:
        return name
    found = getattr(import_module(name), rest, None)
    return EnvSpec(rest, entry_point=found) if callable(found) else name


def unknown_arguments(what: str | EnvSpec, options: Mapping[str, Any]) -> str:
    """What is wrong with the names of `options`, according to the environment's constructor; empty if nothing is."""
    try:
        make: Any = (gym.spec(what.partition(":")[2] or what) if isinstance(what, str) else what).entry_point
        parameters = inspect.signature(load_env_creator(make) if isinstance(make, str) else make).parameters
    except (Exception, SystemExit):  # there is no constructor to look at
        return ""
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return ""
    return "; ".join(
        no_such("keyword argument", key, [*parameters, "max_episode_steps"])
        for key in options
        if key not in parameters and key not in OF_MAKE
    )
