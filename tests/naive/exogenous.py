"""Certificates from y = F(x, a, ξ) in plain loops over steps, cells, actions and samples (docs/exogenous.md).

The state space is (low, high, counts), a cell the tuple of its whole numbers. A sample is (action, bin), where the bin
is the centre of that of its noise, or None if it is unknown; only samples that count are given. Steps count from 0.
"""

from __future__ import annotations

import itertools
import math

from naive.displacement import J, bonus, side


def centre(room, cell):
    return [low + s * (c + 0.5) for low, s, c in zip(room[0], side(room), cell, strict=True)]


def met(room, place, w):
    """The cells that meet the box `place` ± w, clipped onto the state space."""
    axes = []
    for y, low, s, n in zip(place, room[0], side(room), room[2], strict=True):
        first, last = math.floor((y - w - low) / s), math.floor((y + w - low) / s)
        axes.append({min(max(i, 0), n - 1) for i in range(first, last + 1)})
    return list(itertools.product(*axes))


def keep(samples, function, recover, low, high, warm, by_action):
    """κ of samples (x, a, noise or None): from what was recovered before."""
    kept, seen = [], {}
    for x, a, noise in samples:
        earlier = seen.setdefault(a if by_action else None, [])
        fits = len(earlier) >= warm
        if fits:
            least = [min(z[j] for z in earlier) for j in range(len(low))]
            most = [max(z[j] for z in earlier) for j in range(len(low))]
            for corner in itertools.product((0, 1), repeat=len(low)):
                z = []
                for j, e in enumerate(corner):
                    half = 0.5 * (most[j] - least[j])
                    z.append(min(most[j] + half, high[j]) if e else max(least[j] - half, low[j]))
                fits &= recover(x, a, function(x, a, z)) is not None
        kept.append(bool(fits))
        if noise is not None and all(p <= z <= q for p, z, q in zip(low, noise, high, strict=True)):
            earlier.append(noise)
    return kept


def plan(
    room,
    H,
    actions,
    samples,
    F,
    r,
    delta,
    *,
    w_up,
    w_down,
    r_up,
    r_down,
    noisy_reward,
    by_action,
    ended=None,
    scale=1.0,
):
    """L and U, as dictionaries of (h, cell); w and r_up, r_down are the margins of F and of r.

    `ended(cell, steps left, lower, upper)` puts the bounds of absorbing cells right.
    """
    cells = list(itertools.product(*map(range, room[2])))
    statements = 2 * H * len(actions) * len(cells)
    L, U = {}, {}
    for h in range(H - 1, -1, -1):
        R = H - h if noisy_reward else H - 1 - h
        for cell in cells:
            x, low, high = centre(room, cell), [], []
            for k, a in enumerate(actions):
                own = [b for action, b in samples if action == k or not by_action]
                for upward, out in ((True, high), (False, low)):
                    w = w_up if upward else w_down
                    mean, B = 0.0, 0.0
                    if R and own:
                        args = (room, h, H, x, a, own, F, r, w, (r_up, r_down), R, U, L)
                        mean, B = one_side(*args, noisy_reward, upward, statements, delta)
                    elif R:
                        mean = float(R) if upward else 0.0
                    bound = min(R, mean + scale * B) if upward else max(0.0, mean - scale * B)
                    if not noisy_reward:
                        bound += min(1.0, r(x, a) + r_up) if upward else max(0.0, r(x, a) - r_down)
                    out.append(bound)
            L[h, cell], U[h, cell] = max(low), max(high)
            if ended is not None:
                L[h, cell], U[h, cell] = ended(cell, H - h, L[h, cell], U[h, cell])
    return L, U


def one_side(room, h, H, x, a, own, F, r, w, margins, R, U, L, noisy_reward, upward, statements, delta):
    """The mean of û (or l̂) and B."""
    u, v = [], []
    for b in own:
        if b is None:
            u.append(float(R))
            v.append(0.0)
            continue
        reward = 0.0
        if noisy_reward:
            reward = min(1.0, r(x, a, b) + margins[0]) if upward else max(0.0, r(x, a, b) - margins[1])
        above = below = 0.0
        if h + 1 < H:
            cells = met(room, F(x, a, b), w)
            above = (max if upward else min)(U[h + 1, c] for c in cells)
            below = (max if upward else min)(L[h + 1, c] for c in cells)
        u.append(min(R, reward + above))
        v.append(min(R, reward + below))
    n = len(own)
    m = [(p + q) / 2 for p, q in zip(u, v, strict=True)]
    mean = sum(m) / n
    squares = (
        math.sqrt(sum((value - mean) ** 2 for value in m) + n * (R / (2 * J)) ** 2)
        + math.sqrt(sum(((p - q) / 2) ** 2 for p, q in zip(u, v, strict=True)))
    ) ** 2
    return sum(u if upward else v) / n, bonus(squares, n, R, statements, delta)
