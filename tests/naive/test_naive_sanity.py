"""The naive code itself, on examples worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from naive import kernels, metrics
from naive.deployed import NaiveDeployed
from naive.estimates import argmax_set, lipschitz_constants, simplified_bonus
from naive.greedy_kernel_ucbvi import NaiveGreedyKernelUCBVI
from naive.kernel_ucbvi import NaiveKernelUCBVI
from problems import random_log

INF = np.inf
UNIFORM = {"sigma": 0.1, "beta": 1.0, "g": kernels.uniform, "rho": metrics.euclidean}  # weights are 0 or 1


@pytest.mark.parametrize(
    ("name", "at_half"),
    [
        ("gaussian", math.exp(-1 / 8)),
        ("compact", 0.99**3),
        ("uniform", 1.0),
        ("triangular", 0.5),
        ("epanechnikov", 0.75),
        ("quartic", 0.5625),
        ("triweight", 0.421875),
        ("tricube", 0.875**3),
        ("cosine", math.sqrt(0.5)),
    ],
)
def test_kernels(name, at_half):
    g = kernels.BY_NAME[name]
    assert_allclose(g(np.array([0.0, 0.5])), [1.0, at_half], rtol=1e-14)
    beyond = g(np.array([1.0 + 1e-12, 4.0, 5.0 + 1e-12, 50.0]))
    if name == "gaussian":
        assert_allclose(beyond[:2], [math.exp(-0.5), math.exp(-8)])
    elif name == "compact":
        assert_allclose(beyond, [0.96**3, 0.36**3, 0, 0], atol=1e-11)
    else:
        assert_allclose(beyond, 0)


def test_exponential_power():
    assert_allclose(kernels.exponential_power(3)(np.array([0, 1, 2])), [1, math.exp(-0.5), math.exp(-4)])


def test_metrics():
    x, y = np.array([[0.0, 0.0]]), np.array([[3.0, -4.0], [0.0, 1.0]])
    assert_allclose(metrics.euclidean(x, y), [[5, 1]])
    assert_allclose(metrics.manhattan(x, y), [[7, 1]])
    assert_allclose(metrics.chebyshev(x, y), [[4, 1]])
    assert_allclose(metrics.lp(3)(x, y), [[91 ** (1 / 3), 1]])
    assert_allclose(metrics.lp(2, scale=[3, 2])(x, y), [[math.sqrt(5), 0.5]])
    assert_allclose(metrics.folded(np.abs, metrics.manhattan)(y, -y), [[0, 6], [6, 0]])
    assert_allclose(metrics.custom(lambda u, v: abs(u[0] - v[0]))(x, y), [[3, 0]])


def test_lipschitz_constants():
    assert lipschitz_constants(None, 3) is None
    assert_allclose(lipschitz_constants(2, 3), [2, 2, 2])
    assert_allclose(lipschitz_constants([3, 2, 1], 3), [3, 2, 1])
    assert_allclose(lipschitz_constants((10, 0.5), 3), [17.5, 15, 10])


def test_bonus_and_argmax():
    assert_allclose(simplified_bonus(np.array([4.0]), 3, 0.5), [0.5 * (0.5 + 0.75)])
    assert argmax_set(np.array([INF, 1, INF])) == [0, 2]
    assert argmax_set(np.array([1, 2, 2 - 1e-12, 1.9])) == [1, 2]


def test_no_samples():
    agent = NaiveKernelUCBVI(H=2, A=2, **UNIFORM)
    agent.begin_episode()
    assert_allclose(agent.counts([[0.3]], 0), [[1, 1]])
    assert_allclose(agent.q_values([[0.3]], 0), [[3, 3]])  # 1/√1 + 2/1
    assert_allclose(agent.q_values([[0.3]], 1), [[2, 2]])  # 1/√1 + 1/1
    assert_allclose(agent.values([[0.3]], 0), [2])
    assert_allclose(agent.values([[0.3]], 1), [1])
    interpolating = NaiveKernelUCBVI(H=2, A=2, **UNIFORM, L=[1, 1])
    assert_allclose(interpolating.q_values([[0.3]], 0), [[INF, INF]])
    assert_allclose(interpolating.values([[0.3]], 1), [1])


def test_one_sample_gaussian():
    agent = NaiveKernelUCBVI(H=1, A=2, sigma=0.5, beta=1.0, g=kernels.gaussian, rho=metrics.euclidean)
    agent.begin_episode()
    agent.observe([0.0], 0, 1.0, [1.0], 0)
    agent.begin_episode()
    w = math.exp(-0.5)  # at one bandwidth
    assert_allclose(agent.counts([[0.0], [0.5]], 0), [[2, 1], [1 + w, 1]])
    B = 1 / math.sqrt(1 + w) + 1 / (1 + w)
    assert_allclose(agent.bonuses([[0.5]], 0), [[B, 2]])
    assert_allclose(agent.q_values([[0.5]], 0), [[w / (1 + w) + B, 2]])


def test_two_samples_at_one_place():
    agent = NaiveKernelUCBVI(H=1, A=1, **UNIFORM, bonus_scale=0.0)
    agent.begin_episode()
    agent.observe([0.0], 0, 1.0, [1.0], 0)
    agent.observe([0.05], 0, 0.5, [1.0], 0)
    assert_allclose(agent.q_values([[0.0]], 0), [[0]])  # the last plan knew nothing
    agent.begin_episode()
    assert_allclose(agent.q_values([[0.0]], 0), [[0.5]])  # 1.5/(1 + 2)
    assert_allclose(agent.q_values([[0.12]], 0), [[0.25]])  # only the second: 0.5/(1 + 1)


def test_interpolation():
    def read(L):
        agent = NaiveKernelUCBVI(H=1, A=1, **UNIFORM, bonus_scale=0.0, L=[L])
        agent.observe([0.0], 0, 0.0, [1.0], 0)
        agent.observe([0.5], 0, 1.0, [1.0], 0)
        agent.begin_episode()  # Q̃(0) = 0, Q̃(0.5) = 0.5
        states = [[0.0], [0.5], [1.0]]
        return agent.q_values(states, 0)[:, 0], agent.values(states, 0)

    q, v = read(0.4)
    assert_allclose(q, [0, 0.2, 0.4])
    assert_allclose(v, [0, 0.2, 0.4])
    q, v = read(2.0)
    assert_allclose(q, [0, 0.5, 1.5])
    assert_allclose(v, [0, 0.5, 1.0])


@pytest.mark.parametrize(("terminated", "first"), [(False, 0.75), (True, 0.5)])
def test_termination_in_one_pool(terminated, first):
    for L in (None, [1, 1]):
        agent = NaiveKernelUCBVI(H=2, A=1, **UNIFORM, bonus_scale=0.0, L=L)
        agent.observe([0.0], 0, 1.0, [0.0], 1, terminated)
        agent.begin_episode()
        assert_allclose(agent.q_values([[0.0]], 1), [[0.5]])  # 1/2, nothing after the last step
        assert_allclose(agent.q_values([[0.0]], 0), [[first]])  # (1 + V_1(0))/2


def test_pools_by_step():
    read = {}
    for L in (None, (1, 1)):
        agent = NaiveKernelUCBVI(H=2, A=1, **UNIFORM, bonus_scale=0.0, stationary=False, L=L)
        agent.observe([0.0], 0, 1.0, [0.0], 0)
        agent.begin_episode()
        read[L] = agent.q_values([[0.0]], 0)[0, 0], agent.q_values([[0.0]], 1)[0, 0]
    assert read[None] == (0.5, 0.0)
    assert read[1, 1] == (1.0, INF)  # step 1 has no sample: V_1 = R_1 = 1


def test_replanning():
    seen = {}
    for replan in ("episode", "step", "doubling"):
        agent = NaiveKernelUCBVI(H=1, A=1, **UNIFORM, replan=replan)
        seen[replan] = []
        for _ in range(5):
            agent.begin_episode()
            agent.observe([0.0], 0, 1.0, [0.0], 0)
            seen[replan].append(agent.counts([[0.0]], 0)[0, 0])
    assert seen == {"episode": [1, 2, 3, 4, 5], "step": [2, 3, 4, 5, 6], "doubling": [2, 2, 4, 4, 4]}


def test_doubling_looks_at_the_observed_pair():
    agent = NaiveKernelUCBVI(H=1, A=2, **UNIFORM, replan="doubling")
    agent.begin_episode()
    for _ in range(3):
        agent.observe([0.0], 0, 1.0, [0.0], 0)  # C: 2 (plan), 3, 4 (plan)
    agent.observe([0.0], 0, 1.0, [0.0], 0)
    assert agent.counts([[0.0]], 0)[0, 0] == 4
    agent.observe([0.0], 1, 1.0, [0.0], 0)  # another action, from 1 to 2: plan
    assert agent.counts([[0.0]], 0).tolist() == [[5, 2]]


def test_greedy_by_hand():
    agent = NaiveGreedyKernelUCBVI(H=2, A=1, **UNIFORM, bonus_scale=0.1, L=[3.0, 2.0])
    assert_allclose(agent.values([[0.7]], 0), [2])
    assert_allclose(agent.q_values([[0.0]], 0), [[0.3]])  # 0.1·(1 + 2)
    agent.begin_episode()
    agent.observe([0.0], 0, 1.0, [0.2], 0)  # lowers V_0(0) to 0.3 with the data before it
    assert_allclose(agent.values([[0.0], [0.5], [0.9]], 0), [0.3, 1.8, 2.0])
    assert_allclose(agent.values([[0.0]], 1), [1])
    assert_allclose(agent.q_values([[0.0]], 0), [[(1 + 1) / 2 + 0.1 * (1 / math.sqrt(2) + 2 / 2)]])
    agent.observe([0.0], 0, 0.5, [0.1], 1, terminated=True)  # V_1(0): 1/2 + 0.1·(1/√2 + 1/2)
    V_1 = 0.5 + 0.1 * (1 / math.sqrt(2) + 0.5)
    assert_allclose(agent.values([[0.0], [0.1], [0.2]], 1), [V_1, V_1 + 0.2, 1.0])
    assert_allclose(agent.values([[0.0]], 0), [0.3])  # unchanged until visited again
    assert_allclose(agent.q_values([[0.0]], 0), [[(1.5 + 1 + 0) / 3 + 0.1 * (1 / math.sqrt(3) + 2 / 3)]])
    assert_allclose(agent.counts([[0.0], [0.4]], 0), [[3], [1]])


def test_greedy_by_step():
    agent = NaiveGreedyKernelUCBVI(H=2, A=2, **UNIFORM, bonus_scale=0.1, L=[0.0, 0.0], stationary=False)
    agent.observe([0.0], 1, 1.0, [0.0], 0)
    assert_allclose(agent.counts([[0.0]], 0), [[1, 2]])
    assert_allclose(agent.counts([[0.0]], 1), [[1, 1]])
    assert_allclose(agent.values([[0.9]], 0), [0.3])  # L = 0: one visit speaks for every state


def test_deployed_by_hand():
    agent = NaiveDeployed(H=2, A=3, **UNIFORM)
    assert agent.act([0.0], 0) == 0
    agent.observe([0.0], 1, 0.6, [0.5], 0)
    agent.observe([0.5], 2, 1.0, [0.0], 1)
    assert_allclose(agent.q_values([[0.5]], 1), [[0, 0, 0.5]])
    assert_allclose(agent.q_values([[0.0]], 0), [[0, (0.6 + 0.5) / 2, 0]])
    assert_allclose(agent.q_values([[0.5]], 0), [[0, 0, (1 + 0.3) / 2]])  # V_1(0) = 0.3
    assert agent.act([0.0], 0) == 1
    agent.observe([0.0], 0, 0.6, [0.5], 0)
    assert agent.act([0.0], 0) == 0  # a tie goes to the lowest index


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("L", [None, (2.0, 1.5, 1.0)])
def test_kernel_ucbvi_against_scalar_loops(stationary, L):
    log = random_log(np.random.default_rng(3), H=3, A=2, d=2, transitions=24, sites=2)
    sigma, beta, scale = 0.2, 0.3, 0.1
    agent = NaiveKernelUCBVI(3, 2, sigma, beta, kernels.gaussian, metrics.euclidean, L, stationary, "episode", scale)
    for t in log.transitions:
        agent.observe(*t)
    agent.begin_episode()

    def q_tilde(x, a, h):
        C, total = beta, 0.0
        for s in log.transitions:
            if s.a == a and (stationary or s.h == h):
                w = math.exp(-((math.dist(x, s.x) / sigma) ** 2) / 2)
                C += w
                total += w * (s.r + (0.0 if s.terminated else v(s.y, h + 1)))
        return total / C + scale * (1 / math.sqrt(C) + (3 - h) / C)

    def q(x, a, h):
        if L is None:
            return q_tilde(x, a, h)
        pairs = [s for s in log.transitions if s.a == a and (stationary or s.h == h)]
        return min((q_tilde(s.x, a, h) + L[h] * math.dist(x, s.x) for s in pairs), default=INF)

    memory: dict = {}

    def v(x, h):
        if h == 3:
            return 0.0
        key = (tuple(x), h)
        if key not in memory:
            memory[key] = min(3 - h, max(q(x, a, h) for a in range(2)))
        return memory[key]

    for h in range(3):
        states = np.concatenate([log.states()[:3], [[0.2, 0.9]]])
        assert_allclose(agent.q_values(states, h), [[q(x, a, h) for a in range(2)] for x in states], rtol=1e-12)
        assert_allclose(agent.values(states, h), [v(x, h) for x in states], rtol=1e-12)
        assert agent.values(states, h).min() < 3 - h - 1e-3
