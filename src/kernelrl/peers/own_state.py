"""Random numbers of a peer, kept apart from everybody else's.

The library draws from the generators that Python, NumPy and PyTorch share among all code of a process. While a peer
works they are in the peer's own state; at other times as they were, so that neither disturbs the other. The peer uses
one thread: sums in several threads could be rounded differently.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelrl.peers.library import torch

__all__ = ["OwnState"]


class OwnState:
    """The state of the shared random generators as one peer left them."""

    def __init__(self) -> None:
        self._kept: tuple[Any, ...] | None = None

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Within this block the peer works."""
        before, threads = current(), torch().get_num_threads()
        if self._kept is not None:
            reinstate(self._kept)
        torch().set_num_threads(1)
        try:
            yield
        finally:
            self._kept = current()
            reinstate(before)
            torch().set_num_threads(threads)


def current() -> tuple[Any, ...]:
    """The states of the shared generators."""
    return random.getstate(), np.random.get_state(), torch().get_rng_state()


def reinstate(states: tuple[Any, ...]) -> None:
    """Set the shared generators to these states."""
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch().set_rng_state(states[2])
