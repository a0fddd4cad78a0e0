"""`Peer`: an agent of Stable-Baselines3 with what experiments and reports need: it is made, evaluated, saved.

Its file has the form of this package's agents' (see `kernelrl.agents.archive`): the hyper-parameters, and the
parameters of the library's policy as plain arrays. Nothing in it is code.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from kernelrl.agents.archive import Refused, open_archive, write_file
from kernelrl.agents.checks import as_environment
from kernelrl.agents.evaluation import FIRST, Evaluation, check_delta, t_interval
from kernelrl.arguments import flag, whole_number
from kernelrl.envs.wrapping import is_shipped, time_limit
from kernelrl.jit.stream import episode_seed
from kernelrl.peers import library, options
from kernelrl.peers.own_state import OwnState
from kernelrl.peers.world import Seen, check_actions

__all__ = ["Peer", "load"]

SIDE_BY_SIDE = 32  # episodes of an evaluation at the same time: the network takes about as long for all as for one
WEIGHTS = "policy."  # how the names of arrays begin


class Peer:
    """The agent "sb3:PPO" and the like, with hyper-parameters as an experiment's file gives them (see `options`)."""

    def __init__(
        self, agent: str, given: Mapping[str, Any] | None = None, weights: dict[str, npt.NDArray[Any]] | None = None
    ) -> None:
        self.agent = agent
        self._class = library.algorithm(agent)
        self._given = dict(given or {})
        options.check_names(self._class, self._given)
        self.settings: dict[str, Any] = options.settings(self._class, self._given)
        """All hyper-parameters as JSON, defaults included."""
        horizon = self.settings["horizon"]
        self._horizon = None if horizon == "none" else whole_number("horizon", horizon, 1)
        self._time_aware = flag("time_aware", self.settings["time_aware"])
        self._weights = weights  # of a file, until there is a model
        self.own_state = OwnState()
        self.model: Any = None
        """The library's own object, once there is one."""
        self.horizon = 0
        """H, once there is a model."""
        self.episodes = 0
        self.seed = 0

    def __repr__(self) -> str:
        return f"Peer({self.agent!r}, {self._given!r})"

    # ------------------------------------------------------------------------------------------------------ the model

    def see(self, env: gym.Env[Any, Any]) -> Seen:
        """`env` as the library sees it."""
        self.horizon = self._horizon or time_limit(env) or 0
        if not self.horizon:
            raise ValueError(
                "horizon: the environment has no time limit, so the number of steps must be given: horizon = …"
            )
        check_actions(self._class.__name__, env.action_space)
        return Seen(env, self.horizon, self._time_aware)

    def make_model(self, world: gym.Env[Any, Any], seed: int) -> None:
        """Make the library's object for the environment `world`, which was seen by `see`."""
        given = {"policy": options.OTHER_DEFAULTS["policy"], "device": options.OTHER_DEFAULTS["device"]}
        arguments = given | options.arguments(self._given)
        # What it says when asked to be verbose is not the output of a command.
        with self.own_state.active(), contextlib.redirect_stdout(sys.stderr):
            try:
                self.model = self._class(env=world, seed=seed % 2**32, **arguments)
            except Exception as error:  # the library asserts, raises KeyError, …
                raise ValueError(f"Stable-Baselines3 rejects these hyper-parameters: {error or repr(error)}") from error
        self.seed = seed

    def get_ready(self, env: gym.Env[Any, Any], seed: int = 0) -> None:
        """Make a model for `env`, to see whether that works; with the parameters of the file if it comes from one."""
        if self.model is None:
            self.make_model(self.see(env), seed)
        if self._weights is not None:
            states = {name: library.torch().from_numpy(array) for name, array in self._weights.items()}
            try:
                self.model.policy.load_state_dict(states)
            except RuntimeError as error:
                raise ValueError(f"its parameters do not fit this environment and these settings: {error}") from error
            self._weights = None

    def settings_used(self) -> dict[str, Any]:
        """What was determined when the agent was made for its environment."""
        return {"horizon": self.horizon}

    # ------------------------------------------------------------------------------------------------------ evaluating

    def evaluate(
        self, env: gym.Env[Any, Any] | str, episodes: int = 1000, seed: int = 0, *, delta: float = 0.05
    ) -> Evaluation:
        """The value of the deterministic policy, from the same episodes as for this package's agents."""
        check_delta(delta)
        episodes = whole_number("episodes", episodes, 1)
        env = as_environment(env)
        self.get_ready(env, self.seed)
        worlds = [self.see(one) for one in (env, *copies_of(env, min(episodes, SIDE_BY_SIDE) - 1))]
        with self.own_state.active():
            returns = self._play(worlds, episodes, seed)
        for world in worlds[1:]:
            world.close()
        return Evaluation(float(returns.mean()), None, t_interval(returns, delta), returns)

    def _play(self, worlds: list[Seen], episodes: int, seed: int) -> npt.NDArray[np.float64]:
        returns = np.zeros(episodes)
        waiting = iter(range(episodes))
        playing = [(world, k) for world, k in zip(worlds, waiting, strict=False)]
        seen = [world.reset(seed=int(episode_seed(seed, FIRST + k)))[0] for world, k in playing]
        while playing:
            actions = self._actions(seen)
            going, seen = [], []
            for (world, k), action in zip(playing, actions, strict=True):
                observation, reward, terminated, truncated, _ = world.step(action)
                returns[k] += float(reward)
                if terminated or truncated:
                    k = next(waiting, -1)
                    if k < 0:
                        continue
                    observation, _ = world.reset(seed=int(episode_seed(seed, FIRST + k)))
                going.append((world, k))
                seen.append(observation)
            playing = going
        return returns

    def _actions(self, seen: list[Any]) -> Any:
        """The policy's actions at these observations."""
        if len(seen) == 1:  # also observations that cannot be stacked, since those are played one at a time
            return [self.model.predict(seen[0], deterministic=True)[0]]
        return self.model.predict(np.stack(seen), deterministic=True)[0]

    # ---------------------------------------------------------------------------------------------------------- saving

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the deterministic policy and all settings to one file; what learning needs besides is not kept."""
        from kernelrl import __version__

        header = {
            "version": __version__,
            "agent": self.agent,
            "hyper_parameters": self._given,
            "started": {"episodes": self.episodes, "seed": self.seed, "horizon": self.horizon},
        }
        states = self.model.policy.state_dict()
        write_file(
            path, header, {WEIGHTS + name: np.array(value.cpu().numpy(), order="C") for name, value in states.items()}
        )


def copies_of(env: gym.Env[Any, Any], number: int) -> list[gym.Env[Any, Any]]:
    """More environments like `env`; none of a user's own, which may have effects or exist only once."""
    known = env.spec is not None and str(env.spec.entry_point).startswith("gymnasium.")
    one_array = isinstance(env.observation_space, gym.spaces.Box | gym.spaces.Discrete)
    if env.spec is None or env.spec.additional_wrappers or not one_array or not (known or is_shipped(env)):
        return []
    return [gym.make(env.spec) for _ in range(number)]


def load(path: str | os.PathLike[str], *, trust: bool = False) -> Peer:
    """The agent that `Peer.save` wrote; `trust` allows importing the classes that its hyper-parameters name.

    The policy's parameters are used as soon as there is an environment.
    """
    with open_archive(path) as archive:
        name, given = archive.header.get("agent"), archive.header.get("hyper_parameters")
        if not isinstance(name, str) or not library.is_peer(name) or not isinstance(given, dict):
            raise Refused(f"holds an agent of class {name!r}, which is not one of Stable-Baselines3")
    library.algorithm(name)  # says what to install; this is no fault of the file
    with open_archive(path) as archive:
        for needed in options.imports("", given):
            if not trust:
                raise Refused(
                    f"names {needed}, and importing it would run code; if you trust the file: load(path, trust=True)"
                )
        archive.outlines()  # checks the sizes
        peer = Peer(name, given, {item.removeprefix(WEIGHTS): archive.read(item) for item in archive.names()})
        started = archive.header["started"]
        peer.episodes, peer.seed = (whole_number(key, started[key], 0) for key in ("episodes", "seed"))
        return peer
