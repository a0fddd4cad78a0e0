"""Bounds between nodes against exact V*, and that these tests see a bonus or a correction that is too small.

Displacements are multiples of a quarter of a cell and walls are at nodes, so states of a lattice with four points to a
cell never leave it, and V* on it is exact. Rewards are piecewise multilinear, so that nothing is lost for them.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from certificates.test_between_nodes import shrunk
from kernelrl.certifying import nodes as fast
from kernelrl.certifying.bernstein import Bonus
from kernelrl.certifying.cells import Room
from kernelrl.certifying.refined import RefinedPlan
from naive.nodes import interpolated

H, DELTA, FINE = 6, 0.05, 4


@pytest.fixture
def no_slack(monkeypatch):
    """Without the slack of sub-cells, which would hide other things; the logarithm has them still."""
    monkeypatch.setattr(fast, "SUB", 1e12)


class Walk:
    """A room of cells of side 1, and displacements in quarters of a cell with their probabilities, for each action."""

    def __init__(self, counts, moves, goal, radius):
        self.room = Room(np.zeros(len(counts)), np.array(counts, float), counts)
        self.moves = [np.array(m) for m in moves]  # (k, d + 1), the last column is the probability
        shape = tuple(n + 1 for n in counts)
        places = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1)
        self.reward = np.maximum(0.0, 1.0 - np.linalg.norm(places - goal, axis=-1) / radius)
        fine = [np.arange(FINE * n + 1) for n in counts]
        self.points = np.stack(np.meshgrid(*fine, indexing="ij"), axis=-1)
        self.values = self.solved()

    def solved(self):
        """V* (H+1, fine lattice)."""
        shape, most = self.points.shape[:-1], np.array(self.points.shape[:-1]) - 1
        r = np.array([interpolated(self.reward, x / FINE) for x in self.points.reshape(-1, len(shape))]).reshape(shape)
        V = np.zeros((H + 1, *shape))
        for h in reversed(range(H)):
            q = [
                sum(p * V[h + 1][tuple(np.moveaxis(np.clip(self.points + D, 0, most), -1, 0))]
                    for *D, p in moves.tolist() for D in [np.array(D, int)])
                for moves in self.moves
            ]  # fmt: skip
            V[h] = r + np.max(q, axis=0)
        return V

    def drawn(self, n, seed):
        """n displacements of each action."""
        rng = np.random.default_rng(seed)
        return [m[rng.choice(len(m), n, p=m[:, -1]), :-1] / FINE for m in self.moves]

    def bounds(self, moves, scale):
        d = len(self.room.counts)
        bonus = Bonus.of(2.0 * H * len(self.moves) * self.room.number * 256.0**d, DELTA)
        own = [fast.moves_of(self.room, m, 0) for m in moves]
        rewards = self.reward[None], self.reward[None]
        return fast.plan_nodes(self.room, own, rewards, H, shrunk(bonus, scale), np.zeros(d))

    def excess(self, bounds):
        """By how much V* is outside of the bounds, at the worst point of the lattice; above 0 is a violation."""
        x, worst = self.points.reshape(-1, len(self.room.counts)) / FINE, -np.inf
        for h in range(H):
            V = self.values[h].ravel()
            lower, upper = (fast.interpolate(self.room, z[h], x) for z in (bounds.lower, bounds.upper))
            worst = max(worst, (lower - V).max(), (V - upper).max())
        return worst


def axis_walk(counts, goal, radius, quarters, noise):
    """One move to and fro along each axis, and noise on it."""
    moves = []
    for k, sign in itertools.product(range(len(counts)), (1, -1)):
        rows = []
        for shift, p in noise:
            D = np.zeros(len(counts) + 1)
            D[k], D[-1] = sign * quarters + shift, p
            rows.append(D)
        moves.append(rows)
    return Walk(counts, moves, goal, radius)


WHOLE = axis_walk((8, 7), (6, 5), 3.0, FINE, [(-FINE, 0.25), (0, 0.5), (FINE, 0.25)])  # whole cells: nothing is bent
BENT = [
    axis_walk((7,), (4.6,), 2.3, 6, [(0, 1.0)]),
    axis_walk((5, 4), (3.4, 2.3), 2.2, 3, [(0, 1.0)]),
    axis_walk((3, 3, 2), (1.6, 2.2, 0.8), 1.9, 5, [(0, 1.0)]),
]
RANDOM = axis_walk((7,), (4.6,), 2.3, 6, [(-3, 0.3), (1, 0.4), (2, 0.3)])


def violations(walk, scale, n, seeds):
    return sum(walk.excess(walk.bounds(walk.drawn(n, seed), scale)) > 1e-9 for seed in range(seeds))


@pytest.mark.usefixtures("no_slack")
def test_no_violation_at_full_size_and_some_when_the_bonus_is_smaller():
    """Nothing but the bonus is between the bounds and V* here, at 4,000 samples of each action."""
    assert violations(WHOLE, 1.0, 4000, 40) == 0
    assert violations(WHOLE, 0.15, 4000, 40) >= 5
    assert violations(WHOLE, 0.05, 4000, 40) == 40
    bounds = WHOLE.bounds(WHOLE.drawn(4000, 0), 1.0)
    assert (bounds.upper[0] - bounds.lower[0]).max() < 0.6 * H  # they say something


@pytest.mark.usefixtures("no_slack")
def test_no_violation_where_displacements_are_no_whole_cells():
    assert violations(RANDOM, 1.0, 4000, 40) == 0
    assert violations(RANDOM, 0.05, 4000, 40) >= 15


@pytest.mark.parametrize("walk", BENT, ids=["1d", "2d", "3d"])
@pytest.mark.usefixtures("no_slack")
def test_corrections_alone_make_bounds_valid_without_noise(walk):
    """Each action always moves by the same displacement, so without bonus and slack only the corrections are left."""
    assert walk.excess(walk.bounds(walk.drawn(1, 0), 0.0)) <= 1e-9


@pytest.mark.parametrize("walk", BENT, ids=["1d", "2d", "3d"])
@pytest.mark.parametrize("missing", ["bends", "half of bends", "choice of actions"])
@pytest.mark.usefixtures("no_slack")
def test_without_a_correction_bounds_are_wrong(walk, missing, monkeypatch):
    whole = fast.second_difference
    if missing == "bends":
        monkeypatch.setattr(fast, "second_difference", lambda z, k: 0.0 * whole(z, k))
    elif missing == "half of bends":
        monkeypatch.setattr(fast, "second_difference", lambda z, k: 0.5 * whole(z, k))
    else:  # the interpolation of the largest numbers at nodes is above the largest interpolation

        def largest(candidates):
            return np.max([z - fast.around(np.maximum, fall, -np.inf) for z, fall in candidates], axis=0)

        monkeypatch.setattr(fast, "highest_below", largest)
    assert walk.excess(walk.bounds(walk.drawn(1, 0), 0.0)) > 1e-4


def test_a_cut_at_the_cap_needs_care():
    """The smaller one of each number and the cap would be below V* between nodes."""
    nodes, rise = np.array([3.0, 0.0]), np.zeros(1)
    assert fast.lowest_above(nodes, rise, 1.0)[0] == 1.0  # the mean is above the cap, so the cap serves
    assert fast.lowest_above(nodes, rise, 2.0)[0] == 3.0
    assert interpolated(np.minimum(nodes, 2.0), [0.5]) < min(interpolated(nodes, [0.5]), 2.0)


def test_contradicting_bounds_are_an_error():
    """A lower bound above the upper one says that the declaration is wrong."""

    class Coarse:
        cells = type("Cells", (), {"room_of": staticmethod(lambda states: np.zeros(len(states), int))})

        def at(self, states, step):
            return np.zeros(len(states)), np.full(len(states), 0.5)

    nodes = fast.NodeBounds(WHOLE.room, np.full((2, 9, 8), 0.9), np.ones((2, 9, 8)))
    with pytest.raises(ValueError, match="contradict each other"):
        RefinedPlan(Coarse(), (nodes,)).at(np.array([[0.5, 0.5]]), 0)
