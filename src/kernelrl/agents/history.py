"""What a call of `fit` returns."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import polars

    from kernelrl.agents.certificates import Certificate
    from kernelrl.agents.monitor import Optimism

__all__ = ["History"]


@dataclass(frozen=True)
class History:
    """The episodes of one call of `fit`."""

    first_episode: int
    """Number of episodes that the agent had played before this call."""
    returns: npt.NDArray[np.float64]
    """(episodes,) sum of rewards of each episode, in the environment's own units."""
    lengths: npt.NDArray[np.int64]
    """(episodes,) number of steps of each episode."""
    optimistic_values: npt.NDArray[np.float64]
    """(episodes,) optimistic V_0 at each episode's first state, as planned when the episode began."""
    seconds: float
    """Wall-clock time of the call."""
    interrupted: bool = False
    """Whether Ctrl-C ended the call before all episodes were played."""
    stopped: bool = False
    """Whether a callback ended the call."""
    gap: float | None = None
    """With `until_gap`, the largest gap between certified bounds at start states, at the last check."""
    optimism: "Optimism | None" = None
    """With `monitor`, optimistic and optimal values at every visited state."""
    transitions: "polars.DataFrame | None" = None
    """With `transitions`, one row for each step; `learn_from` takes it (docs/logged_data.md)."""

    certificate: "Certificate | None" = None
    """With `until_gap` and `model`, the certificate of the last check; None if none was made."""

    def __len__(self) -> int:
        return len(self.returns)
