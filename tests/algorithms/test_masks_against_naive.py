"""Agents that plan with a mask, a function of the state, against plain NumPy, on random problems."""

from __future__ import annotations

import gymnasium as gym
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import kernelrl as krl
from naive.adamb import NaiveAdaMB, root
from naive.adaptive_ql import NaiveAdaptiveQL
from naive.greedy_ucbvi import NaiveGreedyUCBVI
from naive.grid import Optimism, cell
from naive.masks import best
from naive.opt_ql import NaiveOptQL
from naive.tabular_ucbvi import NaiveUCBVI

H, A, N, BINS, SCALE = 3, 3, 5, 4, 0.05


@numba.njit
def of_states(state, action):
    """State 2 allows everything, state 4 only action 1."""
    x = int(state[0])
    return x == 2 or action == 1 or (action == 0 and x < 2) or (action == 2 and x == 3)


@numba.njit
def of_points(state, action):
    """Divides the second of four cells, whose centre is 0.375."""
    return action == 1 or (action == 0 and state[0] < 0.35) or (action == 2 and 0.3 < state[0] < 0.9)


class Located(tuple):
    """A cell that remembers the state in it."""

    state: np.ndarray


GRID = {"UCBVI": NaiveUCBVI, "GreedyUCBVI": NaiveGreedyUCBVI, "OptQL": NaiveOptQL}
UNIT = np.zeros(1), np.ones(1)


class Pair:
    """An agent and its naive version, told the same."""

    def __init__(self, kind, box, options, mask=None):
        self.kind, self.box, self.mask = kind, box, mask or (of_points if box else of_states)
        optimism = Optimism(H, "simplified", SCALE)
        bins = {"bins": BINS} if box and kind in GRID else {}
        self.agent = getattr(krl, kind)(mask=self.mask, bonus_scale=SCALE, reward_range=(0, 1), **bins, **options)
        states = gym.spaces.Box(0.0, 1.0, (1,), np.float64) if box else gym.spaces.Discrete(N)
        self.agent.start(states, gym.spaces.Discrete(A), H, seed=0)
        if kind in GRID:
            self.naive = GRID[kind](H, A, optimism, **options, mask=self.planning_mask)
        elif kind == "AdaptiveQL":
            self.naive = NaiveAdaptiveQL(H, A, optimism, *UNIT, mask=self.mask)
        else:
            self.naive = NaiveAdaMB(H, A, root(H, SCALE), *UNIT, mask=self.mask).begin(2, None)

    def planning_mask(self, x, a):
        if not self.box:
            return self.mask(np.array([float(x)]), a)
        return self.mask(x.state if self.kind == "OptQL" else (np.array(x) + 0.5) / BINS, a)

    def place(self, x):
        if not self.box:
            return int(x)
        if self.kind not in GRID:
            return tuple(x)
        located = Located(cell(x, *UNIT, (BINS,)))
        located.state = np.asarray(x)
        return located

    def episode(self, rng, sites):
        self.agent.begin_episode()
        self.naive.begin_episode()
        x = sites[rng.integers(len(sites))]
        for h in range(H):
            # Also actions that are not allowed, as in tables of data.
            a = int(rng.integers(A)) if rng.random() < 0.5 else self.agent.choose(x, h)
            y, r, end = sites[rng.integers(len(sites))], rng.random(), rng.random() < 0.15
            self.agent.observe(x, a, r, y, h, terminated=end)
            self.naive.observe(self.place(x), a, r, self.place(y), h, end)
            x = y
            if end:
                break
        self.agent.end_episode()
        if self.kind == "AdaMB":
            self.naive.end_episode()

    def check(self, sites):
        self.agent.begin_episode()
        self.naive.begin_episode()
        for h in range(H):
            q = self.agent.q_values(sites, h)
            expected = np.array([self.naive.q_values(self.place(x), h) for x in sites])
            assert_allclose(q, expected, rtol=1e-9, atol=1e-9)
            values = self.agent.values(sites, h)
            for i, x in enumerate(sites):
                raw = np.atleast_1d(np.asarray(x, float))
                if self.kind in ("UCBVI", "OptQL"):  # read with the mask of the state itself
                    value = min(float(H - h), best(expected[i], self.mask, raw))
                else:
                    value = self.naive.value(self.place(x), h)
                assert_allclose(values[i], value, rtol=1e-9, atol=1e-9)
                allowed = [a for a in range(A) if self.mask(raw, a)]
                a = self.agent.choose(x, h)
                assert a in allowed and q[i, a] == q[i, allowed].max()
                self.check_deployed(x, h, allowed)

    def check_deployed(self, x, h, allowed):
        a = self.agent.act(x, h)
        q = getattr(self.naive, "deployed", self.naive.q_values)(self.place(x), h)
        assert a in allowed and q[a] >= q[allowed].max() - 1e-9
        assert self.agent.policy()(x, h) == a
        assert self.agent.predict(x, h)[0] == a


VARIANTS = [
    ("UCBVI", {}), ("UCBVI", {"minimum": True, "stationary": False}), ("UCBVI", {"replan": "step"}),
    ("GreedyUCBVI", {}), ("GreedyUCBVI", {"stationary": False}), ("OptQL", {}), ("OptQL", {"bonus_place": "after"}),
    ("AdaptiveQL", {}), ("AdaMB", {}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options"), VARIANTS)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**6), box=st.booleans(), episodes=st.sampled_from([0, 1, 12]))
def test_values_are_maxima_over_allowed_actions(kind, options, seed, box, episodes):
    rng, box = np.random.default_rng(seed), box or kind not in GRID
    sites = list(np.append(rng.random((5, 1)), [[0.36], [0.34], [1.0]], axis=0)) if box else list(range(N))
    pair = Pair(kind, box, options)
    for _ in range(episodes):
        pair.episode(rng, sites)
    pair.check(sites)
