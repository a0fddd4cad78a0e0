"""Bounds hold on a lattice with exact V*, however states and actions are chosen; with too small a bonus they do not.

benchmarks/certificates.py does the same in two dimensions and with more seeds.
"""

from __future__ import annotations

import numpy as np
import pytest

from kernelrl.certifying.bernstein import Bonus
from kernelrl.certifying.plan import RewardBounds, backward
from kernelrl.certifying.pools import Piece, Pool
from kernelrl.certifying.samples import counted
from kernelrl.certifying.sums import Offsets
from naive.lattice import draws, optimal_values

N, H, SEEDS = 20, 6, 200
MOVES = ((2,), (-2,))
REWARDS = np.maximum(0.0, 1.0 - 0.2 * np.abs(np.arange(N) - 15.0))
V = optimal_values(REWARDS, MOVES, H)


def pool_of(moves, lost=0):
    """A pool of known displacements (n, 1), in points, and so many censored ones."""
    places, counts = np.unique(moves, axis=0, return_counts=True)
    spread = float(((moves - moves.mean(axis=0)) ** 2).sum()) if len(moves) else 0.0
    offsets = Offsets(places, counts.astype(float)) if len(moves) else None
    return Pool(float(len(moves) + lost), float(lost), offsets, spread)


def violated(pools, scale=1.0):
    """Whether V* is outside the bounds somewhere."""
    piece = Piece(0, (0,), (N,), ((0,),), (tuple(pools),))
    rewards = RewardBounds((REWARDS[None],), (REWARDS[None],))
    bonus = Bonus.of(2.0 * H * len(MOVES) * N, 0.05)
    # Rewards change by 0.2 from point to point.
    values = backward((piece,), rewards, H, bonus, slope=0.2, span=1, scale=scale)
    return bool((values.upper[0] < V - 1e-9).any() or (values.lower[0] > V + 1e-9).any())


def test_at_any_of_several_numbers_of_samples():
    """No violation in 200 seeds at full size, in some at 0.3 of the bonus, and in every one at 0.1."""
    found = {scale: 0 for scale in (1.0, 0.3, 0.1)}
    for seed in range(SEEDS):
        D = draws(np.random.default_rng(seed), MOVES, 8000)
        for scale in found:
            found[scale] += any(violated([pool_of(d[:n]) for d in D], scale) for n in (8000, 4000, 1500, 400, 100))
    assert found[1.0] == 0
    assert 0 < found[0.3] < found[0.1] == SEEDS


def walk(rng, n, choose):
    """States, actions and next states of a walk that begins anywhere every 20 steps; `choose` sees all of the past."""
    x, xs, actions, ys = 0, [], [], []
    for t in range(n):
        if t % 20 == 0:
            x = int(rng.integers(N))
        a = choose(rng, x, actions, xs, ys)
        D = MOVES[a][0] + int(rng.choice([-1, 0, 1], p=[0.25, 0.5, 0.25]))
        y = min(max(x + D, 0), N - 1)
        xs.append(x)
        actions.append(a)
        ys.append(y)
        x = y
    return np.array(xs), np.array(actions), np.array(ys)


def greedy(rng, x, actions, xs, ys):
    """Towards the goal: states depend on all displacements before."""
    return int(rng.integers(2)) if rng.random() < 0.2 else int(x > 15)


def adversarial(rng, x, actions, xs, ys):
    """The action whose last displacement was the luckier one, away from walls: it stops sampling after bad luck."""
    last = [next((y - z - MOVES[a][0] for b, z, y in zip(actions[::-1], xs[::-1], ys[::-1], strict=True) if b == a), 1)
            for a in range(2)]  # fmt: skip
    return int(np.argmax(last))


def pools_of(runs):
    """What counts of several runs, one after the other, as `observed` says."""
    x, a, y = (np.concatenate(parts) for parts in zip(*runs, strict=True))
    censored = (y == 0) | (y == N - 1)
    low, high = np.zeros((len(x), 1)), np.full((len(x), 1), N - 1.0)
    moves = (y - x).astype(float)[:, None]
    kept = counted(x.astype(float)[:, None], a, moves, censored, low, high, len(MOVES))
    return [
        pool_of((y - x)[kept & ~censored & (a == b)][:, None], int((kept & censored & (a == b)).sum()))
        for b in range(2)
    ]


@pytest.mark.parametrize("kind", ["greedy", "adversarial", "pooled"])
def test_adaptive_data(kind):
    """However states and actions were chosen, and when it is looked at."""
    for seed in range(25):
        rng = np.random.default_rng([seed, 1])
        runs = [walk(rng, 600, greedy if kind != "adversarial" else adversarial)]
        if kind == "pooled":
            runs.append(walk(rng, 300, adversarial))
        for n in (60, 200, 600):
            assert not violated(pools_of([tuple(part[:n] for part in run) for run in runs]))
