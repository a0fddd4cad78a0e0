"""Representative states: what a naive algorithm sees when states are merged.

A state that is visited is replaced by the nearest representative within the merge distance, or becomes one; a state
that is read is replaced by the nearest one within the distance, or stands for itself. When there are `limit` of them, a
state that is visited is replaced by the nearest one however far.
"""

from __future__ import annotations

import numpy as np


class NaiveRepresentatives:
    """One set for all steps."""

    def __init__(self, merge: float, rho, limit: float = np.inf):
        self.merge, self.rho, self.limit = merge, rho, limit
        self.states: list[np.ndarray] = []

    def read(self, x) -> np.ndarray:
        """What `x` is read as."""
        x = np.asarray(x, dtype=float)
        if self.states:
            distances = self.rho(x[None], np.array(self.states))[0]
            nearest = int(distances.argmin())  # the earliest of equals
            if distances[nearest] <= self.merge:
                return self.states[nearest]
        return x

    def visit(self, x) -> np.ndarray:
        """What `x` is replaced by, which may be a new representative."""
        seen = self.read(x)
        if any(seen is state for state in self.states):
            return seen
        if len(self.states) >= self.limit:
            return self.states[self.rho(seen[None], np.array(self.states))[0].argmin()]
        self.states.append(seen.copy())
        return seen

    def before(self, naive, itself=()) -> Before:
        """The naive algorithm behind these representatives; the read-outs named in `itself` take states as they are."""
        return Before(self, naive, itself)


class Before:
    """A naive algorithm that is told and asked about representatives only."""

    def __init__(self, representatives, naive, itself):
        self.representatives, self.naive, self.itself = representatives, naive, itself

    def observe(self, x, a, r, y, h, terminated=False) -> None:
        x = self.representatives.visit(x)
        y = self.representatives.visit(y)
        self.naive.observe(x, a, r, y, h, terminated)

    def __getattr__(self, name):
        attribute = getattr(self.naive, name)
        if name not in ("counts", "bonuses", "q_values", "values", "targets") or name in self.itself:
            return attribute
        return lambda states, h: attribute(np.array([self.representatives.read(x) for x in states]), h)
