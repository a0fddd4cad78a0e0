"""Random logs of episodes: Hypothesis strategies for small ones, a seeded generator for bigger ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st


class Transition(NamedTuple):
    x: np.ndarray  # (d,)
    a: int
    r: float
    y: np.ndarray  # (d,)
    h: int
    terminated: bool


class Log(NamedTuple):
    H: int
    A: int
    d: int
    episodes: tuple[tuple[Transition, ...], ...]

    @property
    def transitions(self) -> list[Transition]:
        return [t for episode in self.episodes for t in episode]

    def states(self) -> np.ndarray:
        """All states and next states, (n, d)."""
        states = [s for t in self.transitions for s in (t.x, t.y)]
        return np.array(states).reshape(len(states), self.d)


# Neither bandwidths nor β are commensurable with the lattices below, so that no distance falls on the edge of a compact
# kernel's support and no count on exactly twice another, where rounding alone would decide.
BANDWIDTHS = (0.0531, 0.117, 0.213, 0.487)
REGULARIZATIONS = (0.0137, 0.1173)
BONUS_SCALES = (0.01, 0.03, 0.1, 1.0)

LATTICE = tuple(k / 4 for k in range(5))
unit_floats = st.floats(0, 1).map(lambda x: round(x, 12))  # squares of distances are not to vanish in rounding


@st.composite
def logs(draw: Any, max_transitions: int = 40) -> Log:
    """Logs on few sites of the unit box, mostly of a coarse lattice: ties and duplicates abound."""
    H, A, d = draw(st.integers(1, 5)), draw(st.sampled_from([1, 2, 2, 3, 4])), draw(st.integers(1, 3))
    coordinate = draw(st.sampled_from([st.sampled_from(LATTICE), st.sampled_from(LATTICE), unit_floats]))
    site = st.lists(coordinate, min_size=d, max_size=d).map(np.array)
    sites = draw(st.lists(site, min_size=1, max_size=5))
    chained = draw(st.sampled_from([True, True, False]))  # False: an episode's next state need not start its next step
    target = draw(st.sampled_from([0, 1, max_transitions // 4, max_transitions // 2] + [max_transitions] * 6))
    where = st.integers(0, len(sites) - 1)
    reward = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), unit_floats)
    length = st.sampled_from([H, H, H, *range(H)])  # also shorter than H, also empty
    end = st.sampled_from([False] * 7 + [True])
    step = st.tuples(where, where, st.integers(0, A - 1), reward, end)

    episodes: list[tuple[Transition, ...]] = []
    total = 0
    while total < target:
        episode: list[Transition] = []
        here = draw(where)
        for h in range(min(draw(length), target - total)):
            start, there, a, r, terminated = draw(step)
            x = sites[here if chained else start]
            episode.append(Transition(x, a, r, sites[there], h, terminated))
            here = there
            if terminated:
                break
        episodes.append(tuple(episode))
        total += max(len(episode), 1)  # an empty episode counts, or a shrunk log would never end
    return Log(H, A, d, tuple(episodes))


def lipschitz_options(H: int) -> st.SearchStrategy:
    """A number, a list, an array or (λ_r, λ_p); never None."""
    constant = st.sampled_from([0.0, 0.3, 1.0, 2.5, 7.0])
    listed = st.lists(constant, min_size=H, max_size=H)
    return st.one_of(
        constant,
        listed,
        listed.map(np.array),
        st.tuples(st.sampled_from([0.2, 1.0, 4.0]), st.sampled_from([0.0, 0.5, 1.3])),
    )


@st.composite
def states_for(draw: Any, log: Log, at_most: int = 6) -> np.ndarray:
    """A few random states besides those of the log, (n, d)."""
    state = st.lists(st.one_of(st.sampled_from(LATTICE), unit_floats), min_size=log.d, max_size=log.d)
    extra = np.array(draw(st.lists(state, min_size=1, max_size=at_most)))
    return np.concatenate([np.unique(log.states(), axis=0), extra]) if log.transitions else extra


def random_log(
    rng: np.random.Generator,
    *,
    H: int = 3,
    A: int = 3,
    d: int = 2,
    transitions: int = 200,
    sites: int = 5,
    noise: float = 0.02,
    endings: float = 0.2,
    shortened: float = 0.05,
) -> Log:
    """A log of at least `transitions` transitions around a few sites of the unit box, half of them exactly on one.

    Every site and action has its own mean reward and favourite next site, and a share `endings` of them ends every
    other episode, so that values differ from place to place and the best action from step to step.
    """
    places = rng.random((sites, d))
    mean = rng.random((sites, A))
    goes = rng.integers(sites, size=(sites, A))
    ends = rng.random((sites, A)) < endings

    def near(site: int) -> np.ndarray:
        if rng.random() < 0.5:
            return places[site].copy()
        return np.clip(places[site] + noise * rng.standard_normal(d), 0, 1)

    episodes: list[tuple[Transition, ...]] = []
    total = 0
    while total < transitions:
        episode = []
        site = int(rng.integers(sites))
        x = near(site)
        for h in range(H):
            a = int(rng.integers(A))
            terminated = bool(ends[site, a] and rng.random() < 0.5)
            r = float(np.clip(mean[site, a] + 0.1 * rng.standard_normal(), 0, 1))
            site = int(goes[site, a]) if rng.random() < 0.8 else int(rng.integers(sites))
            y = near(site)
            episode.append(Transition(x, a, r, y, h, terminated))
            x = y
            if terminated or rng.random() < shortened:
                break
        episodes.append(tuple(episode))
        total += len(episode)
    return Log(H, A, d, tuple(episodes))
