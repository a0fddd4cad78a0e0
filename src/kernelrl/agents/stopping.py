"""When `fit(…, until_gap=…)` ends: what the gap is, and after which numbers of episodes it is computed.

The gap is that of the agent's own certificate (`OwnGap`), or of the certificate of a declared model (`DeclaredGap`).
Either way all bounds of a run hold together, for all numbers of episodes at once, so that looking often costs nothing
of δ. The numbers of episodes are those of the agent, whatever the calls of `fit`; a declared model is also looked at
when a call ends, since a plan of it takes seconds and the numbers are far apart.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelrl.agents.checks import flag, positive
from kernelrl.agents.transitions import Tape

if TYPE_CHECKING:
    from kernelrl.agents.base import Agent
    from kernelrl.agents.certificates import Certificate

__all__ = ["CELL", "DELTA", "DeclaredGap", "OwnGap", "gap_of"]

Whole = npt.NDArray[np.int64]
DELTA, CELL = 0.05, 0.005  # of certificates, where none are given


class OwnGap:
    """The gap of the certificate that comes from the agent's bonus."""

    first, part = 16, 8  # looked at after 16 episodes, then each time when there are an eighth more
    certificate: Certificate | None = None

    def __init__(self, most: float) -> None:
        self.most, self.gap = most, math.inf

    @property
    def reached(self) -> bool:
        """Whether the bounds are tight enough."""
        return self.gap <= self.most

    def left(self, episodes: int) -> int:
        """How many episodes to play until the gap is computed next."""
        k = self.first
        while k <= episodes:
            k += k // self.part
        return k - episodes

    def get_ready(self, agent: Agent) -> Tape | None:
        """Look at a started agent before episodes are played; return what must record its transitions."""
        return None

    def look(self, agent: Agent, lengths: Whole) -> None:
        """Compute the gap; `lengths` are those of the call's episodes."""
        self.gap = agent.gap()

    def look_at_end(self, agent: Agent, lengths: Whole) -> None:
        """The same when the call ends, if there is anything new to see."""


class DeclaredGap(OwnGap):
    """The gap of the certificate of a declared model.

    It is from all transitions that the agent keeps, or, if it keeps none, from those of this call, which are recorded.
    """

    first, part = 64, 4

    def __init__(self, most: float, model: Any, delta: float | None, cell: float | None, refine: bool = False) -> None:
        super().__init__(most)
        self._model, self._refine = model, refine
        self._delta, self._cell = DELTA if delta is None else delta, CELL if cell is None else cell
        self._seen = 0  # episodes of the call at the last look
        self._tape: Tape | None = None
        self._reward_range: tuple[float, float] | None = None

    def get_ready(self, agent: Agent) -> Tape | None:
        """Refuse what cannot be certified before anything is played."""
        from kernelrl.agents.certificates import check_no_mask, check_possible

        own = agent.reward_range
        self._reward_range = None if isinstance(own, str) else own
        check_no_mask(agent)
        check_possible(self._model, agent.spaces, self._reward_range, self._delta, self._cell, self._refine)
        self._tape = Tape(agent.spaces) if agent.kept_transitions() is None else None
        return self._tape

    def look(self, agent: Agent, lengths: Whole) -> None:
        """Make the certificate and take its gap."""
        from kernelrl.agents.certificates import of_rows

        rows = agent.kept_transitions() if self._tape is None else self._tape.rows(lengths)
        assert rows is not None
        self.certificate = of_rows(
            rows, self._model, agent.spaces, self._reward_range, self._delta, self._cell, progress=False,
            refine=self._refine,
        )  # fmt: skip
        self.gap, self._seen = self.certificate.gap, len(lengths)

    def look_at_end(self, agent: Agent, lengths: Whole) -> None:
        """The same when the call ends, if there is anything new to see."""
        if len(lengths) > self._seen:
            self.look(agent, lengths)


def gap_of(agent: Agent, until_gap: Any, model: Any, delta: Any, cell: Any, refine: Any = False) -> OwnGap | None:
    """What the arguments of `fit` ask for, or an error that names the one that is wrong."""
    refine = flag("refine", refine)
    if model is None:
        for name, given in (("delta", delta), ("cell", cell), ("refine", refine or None)):
            if given is not None:
                raise TypeError(f"{name} is that of the certificate of a declared model; give model=…, or leave it out")
        if until_gap is None:
            return None
        agent.check_gap(until_gap)
        return OwnGap(until_gap)
    if until_gap is None:
        raise TypeError(
            "model: it says what until_gap=… is computed from; give until_gap, or leave model out and call "
            "agent.certify(model) afterwards"
        )
    from kernelrl.agents.certificates import check_model

    check_model(model)
    return DeclaredGap(positive("until_gap", until_gap), model, delta, cell, refine)
