"""The theory's bonuses in both exact algorithms against the formulas in plain NumPy, with values below the cap."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_allclose

import kernelrl as krl
from kernelrl.theory.bonuses import Problem
from naive import kernels, metrics
from naive.between_actions import Between
from naive.bonuses import TheoryBonus
from naive.estimates import Related, lipschitz_constants
from naive.greedy_kernel_ucbvi import NaiveGreedyKernelUCBVI
from naive.kernel_ucbvi import NaiveKernelUCBVI
from naive.representatives import NaiveRepresentatives
from pairs import PLAN_ERROR, TOLERANCE, some_states
from problems import random_log

BONUSES = {
    "full, corrected": (krl.bonuses.Full(0.1, 400), "corrected"),
    "full, printed": (krl.bonuses.Full(0.1, 400, reward_term="printed"), "printed"),
    "full, anytime": (krl.bonuses.Full(0.1), "corrected"),
    "joint": (krl.bonuses.Joint(0.1, 400, self_normalised=False), "joint"),
    "joint, anytime": (krl.bonuses.Joint(0.1, self_normalised=False), "joint"),
    "self-normalised": (krl.bonuses.Joint(0.1, 400), "self-normalised"),
    "self-normalised, anytime": (krl.bonuses.Joint(0.1), "self-normalised"),
}
LIPSCHITZ = (0.3, 0.7)
LOW, HIGH = np.array([-0.5, -1.0]), np.array([1.0, 1.0])


class ReadByGreedy:
    """A state that reads as a representative u is worth at most L_h·ρ(x, u) more than u."""

    def __init__(self, naive, rho, L, H):
        self.naive, self.rho, self.L, self.H = naive, rho, L, H

    def __getattr__(self, name):
        return getattr(self.naive, name)

    def bias(self, states, h):
        read = [self.naive.representatives.read(x) for x in states]
        return self.L[h] * np.array([self.rho(x[None], u[None])[0, 0] for x, u in zip(states, read, strict=True)])

    def q_values(self, states, h):
        return self.naive.q_values(states, h) + self.bias(states, h)[:, None]

    def values(self, states, h):
        return np.minimum(self.H - h, self.naive.values(states, h) + self.bias(states, h))


def compare(
    greedy, name, transitions=250, kernel="gaussian", metric="euclidean", stationary=True, scale=0.2, merge=None,
    related=None, **options,
):  # fmt: skip
    rng = np.random.default_rng(3)
    H, A, sigma, beta = 3, 2 if related is None else 4, 0.487, 0.7
    log = random_log(rng, H=H, A=A, d=2, transitions=transitions, sites=4)
    states = some_states(log, rng, n=12)
    bonus, kind = BONUSES[name]
    g, L = krl.kernels.resolve_kernel(kernel), lipschitz_constants(LIPSCHITZ, H)
    p = {"euclidean": 2.0, "manhattan": 1.0}[metric]
    problem = Problem(H, A, (1.5, 2.0), sigma, beta, g.C1, g.C2, tuple(L), LIPSCHITZ, stationary, merge or 0.0, p)
    theory = TheoryBonus(problem, 0.1, bonus.episodes, kind)
    public = {
        "bandwidth": sigma, "regularization": beta, "kernel": kernel, "metric": metric, "bonus": bonus,
        "bonus_scale": scale, "lipschitz": LIPSCHITZ, "stationary": stationary, "representatives": merge,
        "reward_range": (0, 1), **options,
    }  # fmt: skip
    if related is not None:
        public |= {"action_bandwidth": related, "action_metric": "euclidean"}
    shared = (H, A, sigma, beta, kernels.BY_NAME[kernel], getattr(metrics, metric), L)
    if greedy:
        agent = krl.GreedyKernelUCBVI(**public)
        naive = NaiveGreedyKernelUCBVI(*shared, stationary, scale, theory)
    else:
        agent = krl.KernelUCBVI(**public)
        naive = NaiveKernelUCBVI(*shared, stationary, options.get("replan", "episode"), scale, theory)
    if related is not None:
        naive.kernel["related"] = Related.of(abs(np.subtract.outer(np.arange(A), np.arange(A))).astype(float), related)
        naive.between = Between(np.arange(A)[:, None])
    if merge is not None:
        naive = NaiveRepresentatives(merge, shared[5]).before(naive, () if greedy else ("q_values", "values"))
        naive = ReadByGreedy(naive, shared[5], L, H) if greedy else naive
    agent.start(gym.spaces.Box(LOW, HIGH, dtype=np.float64), gym.spaces.Discrete(A), H, 0)
    check_at = {0, 1, 2, 7, len(log.episodes) // 2, len(log.episodes) - 1}
    for k, episode in enumerate(log.episodes):
        agent.begin_episode()
        naive.begin_episode()
        if k in check_at:
            check(agent, naive, states, H)
        for t in episode:
            agent.observe(t.x, t.a, t.r, t.y, t.h, terminated=t.terminated)
            naive.observe(*t)
        agent.end_episode()
    agent.begin_episode()
    naive.begin_episode()
    check(agent, naive, states, H)
    return agent, [(naive.values(states, h) < H - h - 1e-3).any() for h in range(H)]


def check(agent, naive, states, H):
    for h in range(H):
        for name in ("counts", "bonuses", "q_values", "values"):
            actual, expected = getattr(agent, name)(states, step=h), getattr(naive, name)(states, h)
            exact = isinstance(agent, krl.KernelUCBVI) and agent.representatives is None
            off = PLAN_ERROR if exact and name in ("q_values", "values") else TOLERANCE
            assert_allclose(actual, expected, rtol=TOLERANCE, atol=off, err_msg=f"{name} at step {h}")


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("name", sorted(BONUSES))
def test_bonuses(name, greedy, stationary):
    # the full bonus is so large that values move only with a tiny scale
    scale = 0.005 if name.startswith("full") else 0.1
    _, moved = compare(greedy, name, stationary=stationary, scale=scale)
    assert all(moved)


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("name", ["joint", "self-normalised, anytime"])
def test_related_actions(name, greedy, stationary):
    _, moved = compare(greedy, name, stationary=stationary, scale=0.05, merge=0.0613, related=0.71)
    assert all(moved)


@pytest.mark.parametrize(("kernel", "metric"), [("compact", "euclidean"), ("gaussian", "manhattan")])
@pytest.mark.parametrize("greedy", [False, True])
def test_kernels_and_metrics(greedy, kernel, metric):
    compare(greedy, "self-normalised", kernel=kernel, metric=metric, transitions=100)


@pytest.mark.parametrize("replan", ["step", "doubling"])
def test_replanning(replan):
    compare(False, "self-normalised, anytime", replan=replan, transitions=120)


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("name", ["full, corrected", "joint", "self-normalised, anytime"])
def test_representatives(name, greedy, stationary):
    scale = 0.005 if name.startswith("full") else 0.1
    _, moved = compare(greedy, name, stationary=stationary, scale=scale, merge=0.03)
    assert all(moved)


@pytest.mark.parametrize("greedy", [False, True])
def test_merging_nothing_is_exact(greedy):
    merged, exact = (compare(greedy, "self-normalised", transitions=100, merge=m)[0] for m in (0.0, None))
    states = np.random.default_rng(0).random((5, 2))
    for h in range(3):
        off = TOLERANCE if greedy else PLAN_ERROR
        assert_allclose(merged.q_values(states, step=h), exact.q_values(states, step=h), rtol=TOLERANCE, atol=off)


def test_without_shrinking():
    """At scale 1, with many samples, the joint bonus lets values move, as the full one never will."""
    _, moved = compare(True, "self-normalised", transitions=700, scale=1.0)
    assert any(moved)


@pytest.mark.parametrize("merge", [None, 0.03])
@pytest.mark.parametrize("greedy", [False, True])
def test_save_and_continue(greedy, merge, tmp_path):
    agent, _ = compare(greedy, "self-normalised, anytime", transitions=40, merge=merge)
    agent.save(tmp_path / "agent.krl")
    again = krl.load(tmp_path / "agent.krl")
    assert again.bonus == agent.bonus
    states = np.random.default_rng(0).random((5, 2))
    for _ in range(2):
        for name in ("counts", "bonuses", "q_values", "values"):
            assert np.array_equal(getattr(agent, name)(states, step=1), getattr(again, name)(states, step=1))
        for told in (agent, again):  # across the end of an epoch
            for _ in range(12):
                told.begin_episode()
                for h in range(3):
                    told.observe(states[h], 0, 0.5, states[h + 1], h)
                told.end_episode()
            told.begin_episode()
    assert again.model.settings.bonus.progress.tolist() == agent.model.settings.bonus.progress.tolist()
