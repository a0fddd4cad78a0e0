"""Plans for exogenous noise against plain loops, on random problems; which samples count; cells that boxes meet."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelrl.certifying import exogenous, recovered
from kernelrl.certifying.absorbing import absorbing_cells
from kernelrl.certifying.bernstein import Bonus
from kernelrl.certifying.cells import Room, divide
from kernelrl.certifying.exogenous import Counts, Known, Margins, backward
from kernelrl.certifying.exogenous_making import Net, margins_of
from kernelrl.certifying.images import Ranges
from kernelrl.models import Exogenous
from naive import exogenous as naive

H = 3
ROOMS = {1: Room(np.array([-0.5]), np.array([1.0]), (6,)), 2: Room(np.zeros(2), np.array([1.0, 0.7]), (3, 4))}


def moved(x, a, z):
    """F, for one state or for many."""
    return np.clip(0.9 * x + 0.3 * a + 0.7 * z, -0.5, 1.0)


def declared(d, **changes):
    reward = {
        "noise": lambda x, a, z: np.clip(0.6 - 0.3 * x[:, 0] + 0.2 * a[:, 0] * z[:, 0], 0.0, 1.0),
        "state-action": lambda x, a: np.clip(0.5 - 0.3 * x[:, 0] + 0.2 * a[:, 0], 0.0, 1.0),
    }[changes.get("reward_of", "noise")]
    return Exogenous(
        **{
            "function": moved, "recover": lambda x, a, y: (y - 0.9 * x - 0.3 * a) / 0.7, "reward": reward,
            "noise": ([-1.0] * d, [1.0] * d), "lipschitz": (0.9, 0.3, 0.7), "reward_lipschitz": (0.3, 0.2, 0.2),
            **changes,
        }
    )  # fmt: skip


def counted(rng, d, n, kinds):
    """Samples of an action: some bins, some of them often, some unknown."""
    centres = rng.uniform(-1.0, 1.0, (kinds, d))
    number = rng.integers(0, 4, size=kinds).astype(float) if n else np.zeros(kinds)
    return Counts(centres[number > 0], number[number > 0], float(rng.integers(0, 2) * n))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), d=st.sampled_from([1, 2]), n=st.sampled_from([0, 1, 3]),
    kinds=st.sampled_from([1, 5]), reward_of=st.sampled_from(["noise", "state-action"]),
    noise_of=st.sampled_from(["all", "action"]), w=st.sampled_from([0.0, 0.031, 0.3, 5.0]), at_once=st.integers(1, 60),
    ends=st.booleans(), keep=st.booleans(),
)  # fmt: skip
def test_plan(seed, d, n, kinds, reward_of, noise_of, w, at_once, ends, keep):
    rng, room = np.random.default_rng(seed), ROOMS[d]
    model = declared(d, reward_of=reward_of, noise_of=noise_of)
    actions = rng.uniform(-1.0, 1.0, (3, d))
    counts = [counted(rng, d, n, kinds) for _ in range(3 if noise_of == "action" else 1)]
    margins = Margins((w + 0.1, w), (0.05, 0.02))
    absorbing = absorbing_cells(room, (((0.2,) * d, (9.0,) * d),), np.full(d, 1e-9), 0.25) if ends else None
    bonus = Bonus.of(2.0 * H * len(actions) * room.number, 0.5)
    before = exogenous.AT_ONCE, exogenous.KEPT
    try:
        exogenous.AT_ONCE, exogenous.KEPT = at_once, before[1] * keep
        lower, upper = backward(Known(model, room, actions, 0.0, 1.0, margins, absorbing), counts, H, bonus, scale=0.05)
    finally:
        exogenous.AT_ONCE, exogenous.KEPT = before

    def ended(cell, left, low, high):
        corner = [a + s * c for a, s, c in zip(room.low, room.side, cell, strict=True)]
        value = 0.25 * left
        if all(a > 0.2 + 1e-6 for a in corner):
            return value, value
        if all(a + s >= 0.2 for a, s in zip(corner, room.side, strict=True)):
            return min(low, value), max(high, value)
        return low, high

    listed = [
        (k, b) for k, count in enumerate(counts)
        for b in [*itertools.chain(*([z.tolist()] * int(m) for z, m in zip(count.bins, count.number, strict=True))),
                  *[None] * int(count.unknown)]
    ]  # fmt: skip

    def reward(*given):
        return float(model.reward(*(np.array([one]) for one in given))[0])

    L, U = naive.plan(
        (room.low.tolist(), room.high.tolist(), room.counts), H, actions.tolist(), listed,
        lambda x, a, z: moved(np.array(x), np.array(a), np.array(z)), reward, 0.5, w_up=w + 0.1, w_down=w, r_up=0.05,
        r_down=0.02, noisy_reward=reward_of == "noise", by_action=noise_of == "action", ended=ended if ends else None,
        scale=0.05,
    )  # fmt: skip
    for h in range(H):
        for c in np.ndindex(*room.counts):
            assert lower[(h, *c)] == pytest.approx(L[h, c], abs=1e-9) and lower[(h, *c)] <= L[h, c] + 1e-15
            assert upper[(h, *c)] == pytest.approx(U[h, c], abs=1e-9) and upper[(h, *c)] >= U[h, c] - 1e-15


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), w=st.sampled_from([0.0, 1e-9, 0.05, 0.25, 0.5, 3.0]),
    far=st.sampled_from([0.3, 9.0]),
)  # fmt: skip
def test_cells_that_boxes_meet(seed, w, far):
    """Also boxes far outside, wider than the room, and on the borders of cells."""
    rng, room = np.random.default_rng(seed), ROOMS[2]
    values, ranges = rng.random(room.counts), Ranges(room, w)
    y = np.concatenate([rng.uniform(-far, 1.0 + far, (20, 2)), room.centres().reshape(-1, 2), [room.low, room.high]])
    found = ranges.table(values, np.maximum)[ranges.places(y)]
    for at, value in zip(y, found, strict=True):
        whole = (room.low.tolist(), room.high.tolist(), room.counts)
        cells = naive.met(whole, at, w * (1 + 1e-12))
        inside = bool(((at + w >= room.low) & (at - w <= room.high)).all())
        if w < 1.0:
            assert value == pytest.approx(max(values[c] for c in cells))
        elif inside:  # a box as wide as the room is as good as any
            assert value == values.max()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), n=st.sampled_from([0, 1, 2, 40]), warm=st.sampled_from([1, 3]),
    noise_of=st.sampled_from(["all", "action"]), d=st.sampled_from([1, 2]),
)  # fmt: skip
def test_which_samples_count(seed, n, warm, noise_of, d):
    rng = np.random.default_rng(seed)

    def recover(x, a, y):
        z = y - 0.2 * a[:, None] - x
        z[((y <= 0.0) | (y >= 1.0)).any(axis=1)] = np.nan
        return z

    def function(x, a, z):
        return np.clip(x + 0.2 * a[:, None] + z, 0.0, 1.0)

    model = declared(d, function=function, recover=recover, noise=([-0.2] * d, [0.25] * d), noise_of=noise_of)
    x, a, z = rng.random((n, d)), rng.integers(2, size=n), rng.choice([-0.1, 0.0, 0.1, 0.23, 0.3], size=(n, d))
    y = function(x, a, z)
    before = recovered.WARM
    try:
        recovered.WARM = warm
        found = recovered.recovered(model, x, a, a, np.zeros(n), y, np.zeros(n, np.int64), 1e-9)
    finally:
        recovered.WARM = before

    def plain(x, a, y):
        z = recover(*(np.array([one]) for one in (x, a, y)))[0]
        return None if np.isnan(z).any() else z.tolist()

    samples = [(p.tolist(), int(b), plain(p, b, q)) for p, b, q in zip(x, a, y, strict=True)]
    kept = naive.keep(
        samples, lambda *given: function(*(np.array([one]) for one in given))[0], plain, [-0.2] * d, [0.25] * d, warm,
        noise_of == "action",
    )  # fmt: skip
    assert found.kept.tolist() == kept
    assert found.censored.tolist() == [s[2] is None or max(s[2]) > 0.25 or min(s[2]) < -0.2 for s in samples]


@pytest.mark.parametrize(("share", "holds"), [(1.0, True), (0.9, False)])
def test_margins_cover_cells_actions_and_bins(share, holds):
    """F and rewards at any point of a cell, a box of actions and a bin; nine tenths of the margins are not enough."""
    rng, d = np.random.default_rng(0), 2
    model, room = declared(d), ROOMS[d]
    bins = divide((model.noise_box,), 0.2, np.zeros(d)).rooms[0]
    net = Net(rng.uniform(-1.0, 1.0, (4, d)), 0.15, 1e-9)
    up, down = margins_of(model, room, bins, net, 1e-12, 1e-12, 1.0).move
    r_up, r_down = margins_of(model, room, bins, net, 1e-12, 1e-12, 1.0).reward
    n, corners = 20_000, rng.choice([-1.0, 1.0], size=(3, 20_000, d))  # the worst is at corners
    x, z = (r.centres().reshape(-1, d)[rng.integers(r.number, size=n)] for r in (room, bins))
    a = net.points[rng.integers(4, size=n)]
    near = x + 0.5 * room.side * corners[0], a + net.half * corners[1], z + 0.5 * bins.side * corners[2]
    inside = (near[0], a, near[2])
    y, r = moved(x, a, z), model.reward(x, a, z)
    moves = [np.abs(moved(*at) - y).max() <= share * w for at, w in ((near, up), (inside, down))]
    rewards = [np.abs(model.reward(*at) - r).max() <= share * w for at, w in ((near, r_up), (inside, r_down))]
    assert all(moves) == holds and (all(rewards) or not holds)
