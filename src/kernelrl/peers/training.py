"""One run of the library's own loop, in pieces.

The library counts steps, and its schedules (of the exploration of DQN, of learning rates) need to know of how many.
A run here has a number of episodes, and the library is told the largest possible number of steps, episodes·H; or a run
ends with the episode in which a number of steps is reached, and the library is told H more. The loop ends when the last
episode has ended and the library has done what it does after a step; an on-policy algorithm then drops a rollout that
is not full, as it always does.
"""

from __future__ import annotations

import time
from typing import Any

import gymnasium as gym
import numpy as np

from kernelrl.agents.history import History
from kernelrl.peers import library
from kernelrl.peers.peer import Peer
from kernelrl.peers.turns import Turns
from kernelrl.peers.world import Episodes

__all__ = ["Training"]


class Training:
    """`episodes` episodes of a new agent in `env`, or those until `steps` steps; `play` gives them piece by piece."""

    def __init__(
        self, peer: Peer, env: gym.Env[Any, Any], seed: int, episodes: int | None, steps: int | None = None
    ) -> None:
        self._peer = peer
        self._world = Episodes(peer.see(env), seed, self._between, episodes, steps)
        self._most = (episodes or 0) * peer.horizon if steps is None else steps + peer.horizon
        self._until = 0.0
        peer.make_model(self._world, seed)
        self._turns = Turns(self._learn)

    def _learn(self) -> None:
        library.torch().set_num_threads(1)  # also a setting of each thread
        self._peer.model.learn(self._most)

    def _between(self) -> None:
        if self._world.returns and time.perf_counter() >= self._until:
            self._turns.pause()

    def play(self, seconds: float) -> History:
        """Go on learning until the first episode that ends after so many seconds, or the last one."""
        first, began = len(self._world.returns), time.perf_counter()
        self._until = began + seconds
        with self._peer.own_state.active():
            self._turns.resume()
        returns, lengths = np.array(self._world.returns[first:]), np.array(self._world.lengths[first:], np.int64)
        self._peer.episodes = len(self._world.returns)
        return History(first, returns, lengths, np.full(len(returns), np.nan), time.perf_counter() - began)

    def close(self) -> None:
        """End the library's loop, wherever it is."""
        self._world.stopping = True
        self._turns.close()
