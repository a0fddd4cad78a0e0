"""Representative states: what a naive algorithm sees when states are merged.

A state that is visited is replaced by the nearest representative within the merge distance, or becomes one; a state
that is read is replaced by the nearest one within the distance, or stands for itself. When there are `limit` of them, a
state that is visited is replaced by the nearest one however far.

With `blend`, values at a state are means of those of the representatives within 1.5 merge distances m, each counting
(1 - ρ/(1.5 m))²; where there is none the state is read as before.
"""

from __future__ import annotations

import numpy as np

from naive.deployed import NaiveDeployed
from naive.masks import best

READ_OUTS = ("counts", "bonuses", "q_values", "values", "targets")


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

    def shares(self, x, number: int) -> np.ndarray:
        """What each of the first `number` representatives counts in the mean at `x`, (number,); no one: zeros."""
        if number == 0:
            return np.zeros(0)
        return self.all_shares(np.asarray(x, dtype=float)[None], number)[0]

    def all_shares(self, x, number: int) -> np.ndarray:
        """`shares` at states (n, d), (n, number)."""
        rho = self.rho(x, np.array(self.states[:number]))
        share = np.maximum(0.0, 1.0 - rho / (1.5 * self.merge)) ** 2
        total = share.sum(axis=1, keepdims=True)
        return share / np.where(total > 0, total, 1.0)

    def leads(self, z, y) -> np.ndarray:
        """What each representative counts where steps lead to `z` (n, d), (n, U): that of y where none is around z."""
        share = self.all_shares(z, len(self.states))
        for i in np.flatnonzero(~share.any(axis=1)):
            share[i, self.rho(y[i : i + 1], np.array(self.states))[0].argmin()] = 1.0
        return share

    def before(self, naive, itself=(), blend=False) -> Before:
        """The naive algorithm behind these representatives; the read-outs named in `itself` take states as they are."""
        return Before(self, naive, itself, blend)


class Before:
    """A naive algorithm that is told and asked about representatives only."""

    def __init__(self, representatives, naive, itself, blend):
        self.representatives, self.naive, self.itself, self.blend = representatives, naive, itself, blend
        self.plans, self.number = 0, 0
        self.mask = None  # which actions are allowed in a state
        self.followers: list[Before] = []  # others on the same representatives, told what this one is told

    def begin_episode(self) -> None:
        self.naive.begin_episode()
        self._note_plan()

    def observe(self, x, a, r, y, h, terminated=False) -> None:
        x = self.representatives.visit(x)
        y = self.representatives.visit(y)
        for one in (self, *self.followers):
            one.naive.observe(x, a, r, y, h, terminated)
            one._note_plan()

    @property
    def planned(self) -> int:
        """How many representatives the last plan has; an algorithm without plans knows all."""
        return self.number if hasattr(self.naive, "plans") else len(self.representatives.states)

    def _note_plan(self) -> None:
        plans = getattr(self.naive, "plans", 0)
        if plans != self.plans:
            self.plans, self.number = plans, len(self.representatives.states)

    def __getattr__(self, name):
        attribute = getattr(self.naive, name)
        if name not in READ_OUTS or name in self.itself:
            return attribute
        return lambda states, h: attribute(np.array([self.representatives.read(x) for x in states]), h)

    def q_values(self, states, h) -> np.ndarray:
        return self._mean("q_values", states, h) if self.blend else self.__getattr__("q_values")(states, h)

    def values(self, states, h) -> np.ndarray:
        if self.mask is not None and hasattr(self.naive, "plans"):  # with the mask of the state itself
            q = self.q_values(states, h)
            return np.minimum(self.naive.H - h, [best(each, self.mask, x) for each, x in zip(q, states, strict=True)])
        if not self.blend:
            return self.__getattr__("values")(states, h)
        if hasattr(self.naive, "plans"):  # the values of a plan follow from Q
            return np.minimum(self.naive.H - h, self.q_values(states, h).max(axis=1))
        return self._mean("values", states, h)

    def _mean(self, name, states, h) -> np.ndarray:
        """The means of a read-out."""
        at = np.array(self.__getattr__(name)(states, h))
        if self.planned == 0:
            return at
        there = getattr(self.naive, name)(np.array(self.representatives.states[: self.planned]), h)
        for i, x in enumerate(states):
            share = self.representatives.shares(x, self.planned)
            if share.any():
                masked = self.mask is not None and name == "q_values"
                at[i] = self.of_allowed(x, h, share, there) if masked else share @ there
        return at

    def of_allowed(self, x, h, share, there) -> list[float]:
        """For each action the mean over the representatives that allow it.

        If none around does: the cap, or, for the policy to deploy, the nearest one that does, or 0.
        """
        states, found = np.array(self.representatives.states[: self.planned]), []
        for a in range(there.shape[1]):
            allowed = np.array([bool(self.mask(u, a)) for u in states])
            if (share * allowed).any():
                found.append((share * allowed) @ there[:, a] / (share * allowed).sum())
            elif not isinstance(self.naive, NaiveDeployed):
                found.append(float(self.naive.H - h))
            elif not allowed.any():
                found.append(0.0)
            else:
                rho = self.representatives.rho(np.asarray(x)[None], states)[0]
                found.append(there[np.where(allowed, rho, np.inf).argmin(), a])
        return found
