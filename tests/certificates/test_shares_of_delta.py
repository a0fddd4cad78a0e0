"""What `krl.certify` plans is what the proofs say, from a table to bounds: how many statements share δ, and how.

The plans alone are compared with plain loops in other files, where the test itself says how many statements there are.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import exogenous_envs
import kernelrl as krl
from kernelrl.certifying.node_rewards import function_nodes
from kernelrl.certifying.noisy_rewards import REACHES
from kernelrl.certifying.samples import WARM
from naive import displacement, exogenous, nodes

H, A, DELTA, SLOPE, N = 3, 2, 0.1, 1.0, 8
ROOM = [0.0], [1.0], (N,)
STATES = np.linspace(0.0, 1.0, 57)[:, None]


def reward(x, action=0):
    """In the range from 0 to 2."""
    return 1.0 - SLOPE * np.abs(x[:, 0] - 0.8)


def table(noisy=False):
    rng = np.random.default_rng(3)
    x, a = rng.uniform(0.3, 0.7, (500, 1)), rng.integers(A, size=500)
    y = np.clip(x + np.where(a == 1, 0.1, -0.1)[:, None] + 0.03 * rng.normal(size=x.shape), 0.0, 1.0)
    r = 2.0 * (rng.random(500) < 0.5 * reward(x)) if noisy else reward(x)
    return {"state": x, "action": a, "reward": r, "next_state": y, "terminated": 0}


def certified(data, reward, reward_range=(0, 2), slope=SLOPE, refine=False, **changes):
    model = krl.models.Displacement(rooms=[((0.0,), (1.0,))], reward=reward, reward_lipschitz=slope, **changes)
    return krl.certify(
        data, model, horizon=H, actions=A, reward_range=reward_range, delta=DELTA, cell=1 / N, refine=refine
    )


def planned(found, data, r_low, r_high, delta, low=0.0, width=2.0, **options):
    """The naive plan, and its bounds (2, H, N) in the environment's units."""
    rows = zip(data["state"].tolist(), data["action"], data["next_state"].tolist(), data["reward"], strict=True)
    samples = [displacement.Sample(0, tuple(x), int(a), tuple(y), (r - low) / width) for x, a, y, r in rows]
    L, U = displacement.plan(
        [ROOM], H, A, samples, found.plan.cells.slack.tolist(), lambda i, c, a: r_low(c), lambda i, c, a: r_high(c),
        delta, warm=WARM, **options,
    )  # fmt: skip
    left = np.arange(H, 0, -1)[:, None]
    return [np.array([[z[h, 0, (c,)] for c in range(N)] for h in range(H)]) * width + low * left for z in (L, U)]


def bounds_on_cells(found):
    centres = (np.arange(N)[:, None] + 0.5) / N
    return np.swapaxes([found.bounds(centres, h) for h in range(H)], 0, 1)


def of_function(sign):
    """The bound on `reward` over cells, mapped: boxes in which half of it changes by at most 0.0025 from the centre."""
    parts = math.ceil(SLOPE / 2 * 0.5 / N / 0.0025)
    places = (np.arange(N * parts)[:, None] + 0.5) / (N * parts)
    values = (sign * reward(places) + SLOPE * 0.5 / N / parts).reshape(N, parts).max(axis=1) / 2
    return lambda c: sign * values[c[0]]


@pytest.mark.parametrize("variation", [0.0, 0.3])
def test_a_known_reward(variation):
    """All of δ; with a law that changes, each radius is one more statement for all cells, steps and actions."""
    data = table()
    found = certified(data, reward, variation=variation)
    options = {"slope": SLOPE / 2.0} if variation == 0.0 else {"variation": variation, "each": 64}
    expected = planned(found, data, of_function(-1), of_function(1), DELTA, **options)
    np.testing.assert_allclose(bounds_on_cells(found), expected, rtol=0, atol=1e-6)
    assert (expected[1][0] < 5.5).all() and (
        expected[0][1] > 2.0 * np.array([of_function(-1)((c,)) for c in range(N)])
    ).any()


def test_noisy_rewards():
    """Half of δ for rewards, over two sides, cells and sizes of blocks, and half for displacements."""
    data = table(noisy=True)
    found = certified(data, "noisy")
    low, high = displacement.noisy(
        ROOM, data["state"].tolist(), (data["reward"] / 2).tolist(), SLOPE / 2, REACHES[1], 0.5 * DELTA
    )
    expected = planned(found, data, low.get, high.get, 0.5 * DELTA, slope=SLOPE / 2.0)
    np.testing.assert_allclose(bounds_on_cells(found), expected, rtol=0, atol=1e-6)
    assert 0.0 < expected[0][0].max() and expected[1][0].min() < 5.0


def test_refined():
    """Half of δ for cells, and half for nodes, over two sides, steps, actions and sub-cells."""
    data = table()
    found = certified(data, reward, refine=True)
    coarse = planned(found, data, of_function(-1), of_function(1), 0.5 * DELTA, slope=SLOPE / 2.0)
    samples, room = found.plan.samples, found.plan.cells.rooms[0]
    own = [samples.kept & (samples.actions == a) for a in range(A)]
    known = [samples.moves[mine & ~samples.censored] for mine in own]
    spread = [((D - D.mean(axis=0)) ** 2).sum() for D in known]
    lost = [int((mine & samples.censored).sum()) for mine in own]
    rewards = [np.stack([z] * A) for z in function_nodes(room, reward, None, SLOPE / 2, 0.0, 2.0, 0.0)]
    L, U = nodes.plan(
        (N,), [D * N for D in known], lost, rewards, H, 2 * H * A * N * 256, 0.5 * DELTA, 256, slope=SLOPE / 2,
        spread=spread,
    )  # fmt: skip
    better = 0
    for h in range(H):
        cell = np.minimum((STATES[:, 0] * N).astype(int), N - 1)
        low, high = ([2.0 * nodes.interpolated(z[h], x * N) for x in STATES] for z in (L, U))
        lower, upper = np.maximum(coarse[0][h][cell], low), np.minimum(coarse[1][h][cell], high)
        np.testing.assert_allclose(found.bounds(STATES, h), (lower, upper), rtol=0, atol=1e-6)
        better += (high < coarse[1][h][cell] - 1e-3).sum()
        better += 1000 * (low > coarse[0][h][cell] + 1e-3).any()
    assert better > 1000 and better % 1000 > 0  # both sides are refined somewhere


def test_a_range_that_was_not_given():
    """The share of δ that the range has in its family."""
    data = {**table(), "reward": np.full(500, 0.3)}
    found = certified(data, "deterministic", reward_range=None, slope=0.0)
    (low, high), width = found.reward_range, 2.0**-8
    i = math.floor(8 * 0.3 / width)
    assert (low, high) == (i * width / 8, i * width / 8 + width)
    share = 1 / (2 * 13 * 14) / (2 * (i + 1) * (i + 2))  # k = -16 is 12 away from the usual one
    level = (0.3 - low) / width
    expected = planned(found, data, lambda c: level, lambda c: level, share * DELTA, low, width, slope=0.0)
    np.testing.assert_allclose(bounds_on_cells(found), expected, rtol=0, atol=1e-9)
    assert (expected[1][0] - expected[0][0] > 1e-4).all()


def test_exogenous_noise():
    """All of δ, over two sides, steps, actions of the net and cells; margins are those of the text."""
    data, model = exogenous_envs.logged("kernelrl/Ambulance-v0", 40, 0), exogenous_envs.ambulance(action_cell=0.125)
    cell, steps = 0.125, 5
    found = krl.certify(data, model, env="kernelrl/Ambulance-v0", reward_range=(0, 1), delta=DELTA, cell=cell)
    samples, actions = found.plan.samples, [[0.125 * k] for k in range(9)]
    bins = np.minimum((samples.noise[:, 0] / cell).astype(int), 7)
    own = [(int(k), [cell * (b + 0.5)]) for k, b, kept in zip(samples.actions, bins, samples.kept, strict=True) if kept]
    assert len(own) == 180 and not samples.censored.any()
    x, a, z = (0.25 * cell / 2, 1.0 * 0.125 / 2, 0.75 * cell / 2)
    L, U = exogenous.plan(
        ([0.0], [1.0], (8,)), steps, actions, own, lambda x, a, z: z,
        lambda x, a, z: 1 - 0.25 * abs(x[0] - a[0]) - 0.75 * abs(a[0] - z[0]), DELTA,
        w_up=cell / 2 + 1e-9, w_down=cell / 2 + 1e-9, r_up=x + a + z, r_down=x + z, noisy_reward=True, by_action=False,
    )  # fmt: skip
    centres = (np.arange(8)[:, None] + 0.5) / 8
    for h, (bound, expected) in itertools.product(range(steps), enumerate((L, U))):
        np.testing.assert_allclose(found.bounds(centres, h)[bound], [expected[h, (c,)] for c in range(8)], atol=1e-5)
    assert min(U[4, (c,)] for c in range(8)) < 0.999 and L[0, (4,)] > 1.0
