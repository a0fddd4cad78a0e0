"""The lowest cone at each of many points, kept up to date while cones fall and rise.

A target at u of height q is a cone q + L·ρ(·, u) (see `interpolation`). Each point y stores M(y) = min(R, lowest cone
at y) and which cone that is, its owner; each cone stores its points as a linked list. When a cone falls, M falls with
it at its own points. It can take points from other cones only after it has fallen by more than its slack, a lower bound
on how far it lies above M at the points of others; only then are points searched for. Slack is computed up to MARGIN·R,
and is reduced when another cone takes a point or a new point appears. When a cone rises, its points look for a new
owner; all slack is then invalid, since M rose.
"""

import math
from typing import NamedTuple

import numpy as np

from kernelrl.geometry.buckets import WIDTH, all_chunks, distances_in, found, near, size_of
from kernelrl.geometry.interpolation import cone_radius, is_below
from kernelrl.jit.compile import inner
from kernelrl.jit.fields import check_lists, require

__all__ = [
    "VOID",
    "Claims",
    "check_claims",
    "claim",
    "forget_slack",
    "lowest_cone",
    "rise",
    "search",
    "settle",
    "sink",
]

AFTER, BEFORE = range(2)
MARGIN = 0.05
VOID = -1.0  # the slack of a cone when it is not known


class Claims(NamedTuple):
    """Cones with tips in buckets S, and points in buckets Y, of one step and action."""

    height: np.ndarray  # (chunks of S, WIDTH)
    slack: np.ndarray  # (chunks of S, WIDTH) height + L·ρ(u, y) ≥ M(y) + slack at all points y of others, if positive
    first: np.ndarray  # (chunks of S, WIDTH) slot in Y of the first point that the cone owns, or -1
    M: np.ndarray  # (chunks of Y, width)
    owner: np.ndarray  # (chunks of Y, width) slot in S, or -1
    links: np.ndarray  # (2, chunks of Y, width) AFTER and BEFORE: neighbours in the owner's list, slots in Y or -1


def check_claims(where, first, owner, links, cones, points):
    """Require that each cone's list holds exactly the points that it owns.

    All arrays are as in `Claims`, with indices in range. The bools `cones` (chunks of S, WIDTH) and `points` select the
    entries that are checked.
    """

    def at(array, slot):
        return array[slot // WIDTH, slot % WIDTH]

    y = np.flatnonzero(np.pad(points, ((0, 0), (0, WIDTH - points.shape[1]))))  # slots
    y = y[at(owner, y) >= 0]
    s, after, before = (at(array, y).astype(np.int64) for array in (owner, links[AFTER], links[BEFORE]))
    require(at(cones, s).all(), where, "a point is owned by a cone of another step or action")
    started = np.flatnonzero(np.pad(cones, ((0, 0), (0, WIDTH - cones.shape[1]))))
    started = started[at(first, started) >= 0]
    heads = at(first, started).astype(np.int64)
    place = np.full(points.shape[0] * WIDTH, -1)  # in `y`
    place[y] = np.arange(y.size)
    listed = np.concatenate([heads, after[after >= 0], before[before >= 0]])
    require((place[listed] >= 0).all(), where, "a point is in the list of a cone that does not own it")
    agree = (at(owner, heads) == started).all() and (at(links[BEFORE], heads) < 0).all()
    agree = agree and (at(first, s[before < 0]) == y[before < 0]).all()
    for other, back in ((after, BEFORE), (before, AFTER)):
        known = other >= 0
        agree = agree and (at(links[back], other[known]) == y[known]).all()
        agree = agree and (at(owner, other[known]) == s[known]).all()
    require(agree, where, "the list of a cone is not the points that it owns")
    check_lists(where, place[heads], np.where(after >= 0, place[after], -1))


@inner
def claim(claims, y, s, value):
    """Make cone `s` (or -1, nobody) the owner of point `y`, where it has height `value`."""
    M, owner, links, first, slack = claims.M, claims.owner, claims.links, claims.first, claims.slack
    chunk, place = y // WIDTH, y % WIDTH
    before = np.int64(owner[chunk, place])
    if before >= 0:
        i, j = before // WIDTH, before % WIDTH
        slack[i, j] = min(slack[i, j], M[chunk, place] - value)
        after, previous = np.int64(links[AFTER, chunk, place]), np.int64(links[BEFORE, chunk, place])
        if previous >= 0:
            links[AFTER, previous // WIDTH, previous % WIDTH] = after
        else:
            first[i, j] = after
        if after >= 0:
            links[BEFORE, after // WIDTH, after % WIDTH] = previous
    if s >= 0:
        i, j = s // WIDTH, s % WIDTH
        after = np.int64(first[i, j])
        links[AFTER, chunk, place], links[BEFORE, chunk, place] = after, -1
        if after >= 0:
            links[BEFORE, after // WIDTH, after % WIDTH] = y
        first[i, j] = y
    owner[chunk, place] = s
    M[chunk, place] = value


@inner
def lowest_cone(S, space, which, u, height, L, R):
    """min(R, lowest cone of list `which` at `u`) and the slot of that cone (-1 where none is below R)."""
    best, slot = R, -1
    for i in range(near(S, space, which, u, cone_radius(R, 0.0, L))):
        chunk = found(S, i)
        distances_in(S, space, chunk, u)
        for place in range(size_of(S, chunk)):
            if is_below(height[chunk, place], L, S.buffer[place], best):
                value = height[chunk, place] + L * math.sqrt(S.buffer[place])
                if value < best:
                    best, slot = value, chunk * WIDTH + place
    return best, slot


@inner
def tighten(squares, height, slack, chunk, L, best, n):
    """Reduce the slack of a chunk's cones for a point with value `best` at these squared distances."""
    for i in range(n):
        slack[chunk, i] = min(slack[chunk, i], height[chunk, i] + L * math.sqrt(squares[i]) - best)


@inner
def settle(S, space, which, u, y, L, R, claims):
    """Find the owner of a new point, slot `y` at `u`."""
    claims.owner[y // WIDTH, y % WIDTH] = -1
    best, slot = lowest_cone(S, space, which, u, claims.height, L, R)
    own = claims.slack[slot // WIDTH, slot % WIDTH] if slot >= 0 else VOID
    for i in range(near(S, space, which, u, cone_radius(R + MARGIN * R, 0.0, L))):
        chunk = found(S, i)
        distances_in(S, space, chunk, u)
        tighten(S.buffer, claims.height, claims.slack, chunk, L, best, size_of(S, chunk))
    if slot >= 0:
        claims.slack[slot // WIDTH, slot % WIDTH] = own
    claim(claims, y, slot, best)


@inner
def sink(claims, s, height, fresh):
    """Lower cone `s` to `height`, with the points that it owns; `fresh` (chunks of Y,) is set where M changed."""
    by = claims.height[s // WIDTH, s % WIDTH] - height
    claims.height[s // WIDTH, s % WIDTH] = height
    claims.slack[s // WIDTH, s % WIDTH] -= by
    y = np.int64(claims.first[s // WIDTH, s % WIDTH])
    while y >= 0:
        claims.M[y // WIDTH, y % WIDTH] -= by
        fresh[y // WIDTH] = True
        y = np.int64(claims.links[AFTER, y // WIDTH, y % WIDTH])


@inner
def search(Y, space, which, u, s, L, R, claims, fresh):
    """Give cone `s` with its tip at `u` the points of list `which` where it is the lowest, and compute its slack.

    `fresh` (chunks of Y,) is set where M changed.
    """
    height, slack = claims.height[s // WIDTH, s % WIDTH], MARGIN * R
    for i in range(near(Y, space, which, u, cone_radius(R + slack, height, L))):
        chunk = found(Y, i)
        distances_in(Y, space, chunk, u)
        for place in range(size_of(Y, chunk)):
            if claims.owner[chunk, place] != s and is_below(height - slack, L, Y.buffer[place], claims.M[chunk, place]):
                value = height + L * math.sqrt(Y.buffer[place])
                above = value - claims.M[chunk, place]
                if above < 0.0:
                    claim(claims, chunk * WIDTH + place, s, value)
                    fresh[chunk] = True
                else:
                    slack = min(slack, above)
    claims.slack[s // WIDTH, s % WIDTH] = slack


@inner
def rise(claims, s, height, R, queue, count):
    """Raise cone `s` to `height`: M becomes R at the points that it owned, and their slots are appended to `queue`."""
    claims.height[s // WIDTH, s % WIDTH] = height
    y = np.int64(claims.first[s // WIDTH, s % WIDTH])
    while y >= 0:
        queue[count] = y
        count += 1
        claim(claims, y, -1, R)
        y = np.int64(claims.first[s // WIDTH, s % WIDTH])
    return count


@inner
def forget_slack(S, which, slack):
    """Make the slack of all cones of list `which` invalid, because M rose somewhere."""
    for i in range(all_chunks(S, which)):
        chunk = found(S, i)
        for place in range(size_of(S, chunk)):
            slack[chunk, place] = VOID
