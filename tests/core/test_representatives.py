"""Representatives, transitions between them and sums of rows against brute force."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from from_python import callable_from_python
from kernelrl.geometry import groups as groups_module
from kernelrl.geometry import places as places_module
from kernelrl.geometry import representatives as reps_module
from kernelrl.geometry.groups import MEMBERS, MORE, TIMES, WORDS, grow_groups, new_groups
from kernelrl.geometry.places import places_of
from kernelrl.geometry.representatives import (
    CUT,
    LONGEST,
    NEIGHBOURS,
    TAKEN,
    grow_representatives,
    new_representatives,
    representative_room,
    reweigh,
)
from kernelrl.jit.compile import compiled
from kernelrl.jit.group_rows import best_rows_of_all
from kernelrl.jit.rows import add_own_rows, add_rows, padded
from kernelrl.jit.scatter import list_moved
from kernelrl.stores import transitions as transitions_module
from kernelrl.stores.transitions import grow_transitions, new_transitions
from naive.representatives import NaiveRepresentatives
from pools import BETA, SIGMA, make_settings

find_or_add = callable_from_python(reps_module.find_or_add)
find = callable_from_python(reps_module.find)
find_within = callable_from_python(reps_module.find_within)
nearest = callable_from_python(reps_module.nearest)
cells_around = callable_from_python(places_module.cells_around)
count_transition = callable_from_python(transitions_module.count_transition)
pass_back = callable_from_python(transitions_module.pass_back)
pass_changes_back = callable_from_python(transitions_module.pass_changes_back)
group_room = callable_from_python(groups_module.group_room)
renew_groups = callable_from_python(groups_module.renew_groups)
list_marked = callable_from_python(groups_module.list_marked)
smooth = callable_from_python(groups_module.smooth)
smooth_to_values = callable_from_python(groups_module.smooth_to_values)

METRICS = ("euclidean", "manhattan", "chebyshev")
ORDERS = {"euclidean": 2, "manhattan": 1, "chebyshev": np.inf}


def rho(metric):
    return lambda x, y: np.linalg.norm(x[:, None] - y[None], ord=ORDERS[metric], axis=2)


def one_scale(settings):
    """What the lists have of one bandwidth."""
    return np.array([[settings.inverse_sigma2], [settings.reach]])


def fill(settings, states, merge, limit=10**9, cone_reach=0.0, bounded=True, columns=0):
    """A set made of `states` in turn, and the representative of each; `columns` of local weights."""
    low, high = np.zeros(states.shape[1]), np.ones(states.shape[1])
    scales = one_scale(settings)  # and the set will grow
    reps = new_representatives(low, high, merge, limit, cone_reach, bounded, scales, columns, capacity=2)
    found = []
    for x in states:
        if not representative_room(reps, 1):
            reps = grow_representatives(reps, 1)
        found.append(find_or_add(reps, settings, x))
    return reps, found


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("merge", [0.0, 0.0713, 0.31])
def test_finding(merge, metric, d, bounded):
    settings = make_settings("gaussian", metric, d)
    rng = np.random.default_rng(1)
    states = np.concatenate([rng.random((60, d)), np.zeros((1, d)), np.ones((1, d))])
    states = np.concatenate([states, states[::7]])  # some come again
    naive = NaiveRepresentatives(merge, rho(metric))
    expected = [naive.visit(x) for x in states]
    reps, found = fill(settings, states, merge, bounded=bounded)
    number = reps.number[0]
    assert number == len(naive.states)
    assert_allclose(reps.points[:number, :, 0], naive.states)
    assert_allclose(reps.points[found, :, 0], expected)
    for x in rng.random((40, d)):
        u = find(reps, settings.space, x)
        assert_allclose(reps.points[u, :, 0] if u >= 0 else x, naive.read(x))
        distances = rho(metric)(x[None], np.array(naive.states))[0]
        assert nearest(reps, settings.space, x) == distances.argmin()


@pytest.mark.parametrize("kernel", ["gaussian", "compact", "tricube"])
def test_neighbours(kernel):
    settings = make_settings(kernel, "euclidean", 2)
    states = np.random.default_rng(2).random((80, 2))
    reps, _ = fill(settings, states, 0.05, cone_reach=0.3)
    check_neighbours(reps, settings, kernel)
    wider = settings._replace(inverse_sigma2=settings.inverse_sigma2 / 4, reach=2 * settings.reach)
    check_neighbours(reweigh(reps, wider, 3), wider, kernel)


def test_long_lists():
    """Of a new representative, and when lists are made again, the nearest; those that come later until it is full."""
    settings = make_settings("gaussian", "euclidean", 2)
    settings = settings._replace(inverse_sigma2=1.0, reach=CUT)  # all are within reach of all
    states = np.random.default_rng(3).random((320, 2))
    reps, _ = fill(settings, states, 0.0, columns=padded(settings.actions))
    distances = rho("euclidean")(states, states)
    for u in range(len(states)):
        earlier = np.argsort(distances[u, : u + 1])[:NEIGHBOURS]
        expected = [*np.sort(earlier), *range(u + 1, len(states))][:LONGEST]
        assert list(neighbours(reps.weights, u)) == expected
    assert reps.weights.used[TAKEN] < 2 * LONGEST * len(states)
    again = reweigh(reps, settings, 40)
    for u in range(len(states)):
        assert list(neighbours(again.weights, u)) == list(np.sort(np.argsort(distances[u])[:NEIGHBOURS]))
    assert again.weights.index.size <= 2 * LONGEST * (len(states) + 40) * 2


def neighbours(near, u):
    """The list of `u`."""
    start, n = near.span[:2, u]
    return near.index[start : start + n]


def check_neighbours(reps, settings, kernel):
    from naive.kernels import BY_NAME

    number = reps.number[0]
    points = reps.points[:number, :, 0]
    distances = rho("euclidean")(points, points)
    expected = BY_NAME[kernel](distances * math.sqrt(settings.inverse_sigma2))
    for near, dense in (
        (reps.weights, np.where(distances <= settings.reach, expected, 0.0)),
        (reps.cones, np.where(distances <= 0.3, distances, 0.0)),
    ):
        actual = np.zeros((number, number))
        for u in range(number):
            start, n, space = near.span[:, u]
            index, amount = near.index[start : start + space], near.amount[start : start + space, 0]
            assert len(set(index[:n])) == n
            actual[u, index[:n]] = amount[:n]
            assert not amount[n:].any() and not index[n:].any()
        assert_allclose(actual, dense, rtol=1e-12, atol=1e-15)
        assert near.used[1] == near.span[2].sum() <= near.used[0] <= near.index.size


def test_a_limit_on_their_number():
    settings = make_settings("gaussian", "euclidean", 2)
    states = np.random.default_rng(3).random((50, 2))
    reps, found = fill(settings, states, 0.05, limit=7)
    assert reps.number[0] == 7 and reps.number[1] > 0
    for x, u in zip(states[20:], found[20:], strict=True):
        assert u == rho("euclidean")(x[None], reps.points[:7, :, 0])[0].argmin()


@pytest.mark.parametrize("columns", [4, 8])
def test_transitions(columns):
    rng = np.random.default_rng(4)
    U, pools = 12, 2
    transitions = new_transitions(pools, U, blocks=1)
    dense = np.zeros((pools, U * columns, U))
    for _ in range(900):
        p, pair, y, amount = rng.integers(pools), rng.integers(U * columns), rng.integers(U), rng.random()
        transitions = grow_transitions(transitions, 1)
        count_transition(transitions, p, pair, y, amount)
        dense[p, pair, y] += amount
    V = rng.random(U)
    for p in range(pools):
        W = np.zeros(U * columns)
        for y in range(U):
            pass_back(transitions, p, y, V[y], W)
        assert_allclose(W, dense[p] @ V)
        again = np.zeros(U * columns)
        pass_changes_back(transitions, p, np.arange(U, dtype=np.uint32), V, again)
        assert np.array_equal(again, W)
        some = np.array([7, 3], np.uint32)
        pass_changes_back(transitions, p, some, np.array([0.5, -1.0]), again)
        V[some] += [0.5, -1.0]
        assert_allclose(again, dense[p] @ V)
        V[some] -= [0.5, -1.0]


@compiled(cache=False)
def moved(values, before, least, count, out):
    return list_moved(values, before, least, count, out)


@given(
    st.lists(st.sampled_from([-1.0, -0.5, -0.1, 0.0, 0.1, 0.5, 1.0]), max_size=23),
    st.integers(0, 3),
    st.sampled_from([0.0, 0.1, 0.5]),
)
def test_which_values_have_moved(changes, more, least):
    """A change as large as the least one is none; entries behind the count are not looked at."""
    before = np.linspace(3.0, 4.0, len(changes) + more)
    values = before + np.array([*changes, *[7.0] * more])
    out = np.full(len(values), 99, np.uint32)
    n = moved(values, before, least, len(changes), out)
    expected = [i for i in range(len(changes)) if abs(values[i] - before[i]) > least]
    assert out[:n].tolist() == expected


def bits(words):
    """Which bits are set."""
    return np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)


@pytest.mark.parametrize("columns", [4, 8])
@pytest.mark.parametrize("case", ["many", "one", "apart", "none"])
def test_groups(case, columns):
    """Sums over neighbours by groups are sums over neighbours, whatever the groups; each is in one group."""
    settings = make_settings("gaussian", "euclidean", 2)
    rng = np.random.default_rng(6)
    states = rng.random((200, 2)) * (1.0 if case == "many" else 1e3)
    states = states[: {"many": 200, "apart": 30, "one": 1, "none": 0}[case]]
    reps, _ = fill(settings, states, 0.04)
    U, near = int(reps.number[0]), reps.weights
    dense = np.zeros((U, U))
    for u in range(U):
        start, n, _ = near.span[:, u]
        dense[u, near.index[start : start + n]] = near.amount[start : start + n, 0]
    capacity = reps.points.shape[0]
    groups = new_groups(capacity, 1, 2, columns)
    assert not group_room(groups, near, U, 1, 1)
    groups = grow_groups(groups, capacity, near, U, 1, 1)
    assert group_room(groups, near, U, 1, 1)
    n = rng.integers(0, 1000, (2, capacity, columns))
    limits = TIMES * n + MORE
    W, every = rng.random((capacity, columns)), np.zeros(WORDS, np.uint64) - np.uint64(1)
    lengths = []
    for share in (0.0, 1e-9, 1e-3):
        renew_groups(groups, near, U, 1, limits, BETA, share)
        number = groups.number[0]
        members = groups.member[:number]
        assert sorted(members[members >= 0]) == list(range(U))
        which, T = np.zeros(capacity, np.uint32), np.zeros((capacity, columns))
        assert list_marked(groups, every, which) == number and np.array_equal(which[:number], np.arange(number))
        smooth(groups, which[:number], W, T)
        # what is left out of a sum is at most this share of each pool's count, up to the limits
        C = BETA + np.einsum("uv,pvc->puc", dense, n[:, :U])
        assert ((dense @ W[:U] - T[:U])[None] <= share * C * W.max() + 1e-12 * C).all()
        if share == 0.0:
            assert_allclose(T[:U], dense @ W[:U], rtol=1e-12)
        assert not T[U:].any()
        for v in range(U):
            of_v = [g for g in range(number) if v in groups.index[groups.start[g] : groups.start[g + 1]]]
            assert np.flatnonzero(bits(groups.reads[v])).tolist() == of_v
        lengths.append(int(groups.start[number]))
    if case == "many":
        assert number < 0.4 * U and lengths[0] * MEMBERS < 2 * near.span[1].sum()
        assert lengths[2] < lengths[1] < lengths[0]


@pytest.mark.parametrize("actions", [1, 3, 4, 6, 8])
def test_values_in_one_go(actions):
    """Smoothing, bonus and maximum at once: as the plain version says, and only for the groups that were asked for."""
    rng, columns = np.random.default_rng(actions), -(-actions // 4) * 4
    reps, _ = fill(make_settings("gaussian", "euclidean", 2), rng.random((90, 2)), 0.05)
    U, near, capacity = int(reps.number[0]), reps.weights, reps.points.shape[0]
    groups = grow_groups(new_groups(capacity, 1, 1, actions), capacity, near, U, 1, 1)
    renew_groups(groups, near, U, 1, np.zeros((1, capacity, columns)), BETA, 0.0)
    W, inverse = rng.random((capacity, columns)), rng.random((2, capacity, columns))
    which, scaling = np.arange(0, groups.number[0], 2, dtype=np.uint32), (0.3, 0.2, 1.5)
    found, expected = [(np.full((capacity, columns), 7.0), np.full(capacity, 7.0)) for _ in range(2)]
    smooth_to_values(groups, which, W, scaling, actions, inverse, *found)
    parts = (groups.weight, groups.index, groups.start, W, groups.member)
    best_rows_of_all(*parts, which, scaling, actions, inverse, *expected)
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, rtol=1e-12)
    planned = groups.member[which]
    planned = planned[planned >= 0]
    assert (found[1][planned] <= 1.5).all() and (np.delete(found[1], planned) == 7.0).all()


def test_groups_that_share_a_bit():
    """With more groups than bits, several share one; each is still found where its bit is set."""
    settings = make_settings("gaussian", "euclidean", 2)
    states = 100.0 * np.stack(np.meshgrid(np.arange(40.0), np.arange(30.0)), -1).reshape(-1, 2)  # no neighbours
    reps, _ = fill(settings, states, 0.04, bounded=False)
    U, near = int(reps.number[0]), reps.weights
    groups = grow_groups(new_groups(reps.points.shape[0], 1, 1, 4), reps.points.shape[0], near, U, 1, 1)
    renew_groups(groups, near, U, 1, np.zeros((1, U, 4)), BETA, 0.0)
    assert groups.number[0] == U > 64 * WORDS
    out = np.zeros(U, np.uint32)
    for v in range(0, U, 97):
        n = list_marked(groups, groups.reads[v], out)
        assert groups.place[0, v] in out[:n] and n <= 2


@compiled(cache=False)
def all_rows(weights, index, degree, rows, out):
    for u in range(degree.size):
        for first in range(0, rows.shape[1], 4):
            add_rows(weights, index, u * weights.shape[1], degree[u], rows, first, out, u)


@compiled(cache=False)
def all_own_rows(weights, index, degree, rows, out):
    for u in range(degree.size):
        for first in range(0, rows.shape[1], 4):
            add_own_rows(weights, index, u * index.shape[1], degree[u], rows, first, out, u)


@pytest.mark.parametrize("actions", [1, 3, 4, 5])
def test_own_rows(actions):
    """Each column has its own weights; entries behind a list's end are 0."""
    rng = np.random.default_rng(6)
    U, width, columns = 9, 12, padded(actions)
    degree = np.array([0, 1, 2, 3, 4, 5, 8, 11, 12])
    inside = np.arange(width) < degree[:, None]
    weights = np.where(inside[:, :, None], rng.random((U, width, columns)), 0.0)
    index = np.where(inside, rng.integers(0, U, (U, width)), 0).astype(np.uint32)
    rows, out = rng.random((U, columns)), np.full((U, columns), np.nan)
    all_own_rows(weights.reshape(U * width, columns), index, degree, rows, out)
    assert_allclose(out, np.einsum("ujc,ujc->uc", weights, rows[index]), rtol=1e-13)


@pytest.mark.parametrize("actions", [1, 3, 4, 5])
def test_rows(actions):
    rng = np.random.default_rng(6)
    U, width, columns = 9, 12, padded(actions)
    assert columns % 4 == 0 and actions <= columns < actions + 4
    degree = np.array([0, 1, 2, 3, 4, 5, 8, 11, 12])
    weights = np.where(np.arange(width) < degree[:, None], rng.random((U, width)), 0.0)
    index = np.where(np.arange(width) < degree[:, None], rng.integers(0, U, (U, width)), 0).astype(np.uint32)
    rows, out = rng.random((U, columns)), np.full((U, columns), np.nan)
    all_rows(weights, index, degree, rows, out)
    assert_allclose(out, np.einsum("uj,ujc->uc", weights, rows[index]), rtol=1e-13)


def test_these_tests_see_several_neighbours():
    assert SIGMA > 0 and BETA > 0
    settings = make_settings("gaussian", "euclidean", 2)
    reps, _ = fill(settings, np.random.default_rng(2).random((80, 2)), 0.05, cone_reach=0.3)
    number = reps.number[0]
    assert 1 < reps.cones.span[1, :number].mean() < number


@pytest.mark.parametrize("number", [300] if numba.config.DISABLE_JIT else [300, 3000])
@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("d", [1, 2, 4, 7])
@pytest.mark.parametrize("metric", METRICS)
def test_those_within_a_distance(metric, d, bounded, number):
    """Also at a distance that is met exactly, outside the box, and of the first ones only."""
    rng, settings = np.random.default_rng(d), make_settings("gaussian", metric, d)
    states = rng.random((number, d))
    reps, _ = fill(settings, states, 0.05 if number > 300 else 0.05 * d, bounded=bounded)
    points = reps.points[: reps.number[0], :, 0]
    for number in (len(points), len(points) // 2):
        for radius in (0.0, 0.1, 0.4, 3.0):
            x = points[3] if radius == 0.0 else 1.4 * rng.random(d) - 0.2
            distances = rho(metric)(x[None], points[:number])[0]
            bound = radius * radius if radius else distances[3] ** 2
            n = find_within(reps, settings.space, x, bound, number)
            assert sorted(reps.around[:n]) == np.flatnonzero(distances**2 <= bound).tolist()
            assert_allclose(reps.share[:n], distances[reps.around[:n]] ** 2, rtol=1e-12)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="takes minutes without machine code")
def test_cells_and_all_in_order_are_both_searched():
    """Small radii are searched through cells, large ones in order; the table grows, and chains are shared."""
    rng, settings = np.random.default_rng(1), make_settings("gaussian", "euclidean", 6)
    reps, _ = fill(settings, rng.random((3000, 6)), 0.05)
    number = int(reps.number[0])
    x = rng.random(6)
    assert 1 <= cells_around(reps.places, x, 0.05, number) <= 64
    assert cells_around(reps.places, x, 0.5, number) == -1
    keys = reps.places.key[:number]
    assert len(np.unique(keys)) == reps.places.occupied[0] > reps.places.head.size // 4
    again = places_of(reps.places, reps.points, number)
    for name, made, grown in zip(again._fields, again, reps.places, strict=True):
        assert name == "around" or np.array_equal(made, grown)


@pytest.mark.parametrize("far", [1e6, 1e20, 1e300])
def test_states_far_away(far):
    """Numbers of cells are limited, and the cells of such states are shared."""
    settings = make_settings("gaussian", "euclidean", 2)
    states = np.array([[far, 0.0], [0.0, 0.0], [-far, far], [far, 0.0], [0.01, 0.0], [2 * far, 0.0]])
    _, found = fill(settings, states, 0.05)
    assert found == [0, 1, 2, 0, 1, 3]
