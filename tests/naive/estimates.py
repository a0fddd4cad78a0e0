"""Weights w, generalized counts C, r̂, P̂V and the simplified bonus: Section "Kernel Estimators and Optimism".

Steps run from 0 to H-1, so that R_h = H - h is the largest value left at step h.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Pool(NamedTuple):
    """The samples that one step's estimates are made of."""

    x: np.ndarray  # (m, d) states
    a: np.ndarray  # (m,) actions
    r: np.ndarray  # (m,) rewards in [0, 1]
    y: list[np.ndarray]  # (k, d) each: the states where a sample leads
    share: list[np.ndarray]  # (k,) each: with what weights
    terminated: np.ndarray  # (m,) True: the episode ended with this sample
    step: np.ndarray  # (m,)


class Data:
    """Samples by step; `stationary` pools them over the steps."""

    def __init__(self, H: int, stationary: bool):
        self.stationary = stationary
        self.samples: list[list[tuple]] = [[] for _ in range(H)]

    def add(self, x, a, r, y, h, terminated, share=(1.0,)) -> None:
        """`y` is one next state, (d,), or several, (k, d), with their shares, (k,)."""
        x, y, share = np.array(x, dtype=float), np.atleast_2d(np.array(y, dtype=float)), np.array(share)
        self.samples[h].append((x, int(a), float(r), y, share, bool(terminated)))

    def rescale(self, old, new) -> None:
        """Rewards in other units."""
        self.samples = [[(x, a, old.reward(r, new), *others) for x, a, r, *others in step] for step in self.samples]

    def pool(self, h: int) -> Pool:
        steps = range(len(self.samples)) if self.stationary else [h]
        samples = [s for step in steps for s in self.samples[step]]
        x, a, r, y, share, terminated = zip(*samples, strict=True) if samples else ([], [], [], [], [], [])
        step = np.repeat(steps, [len(self.samples[step]) for step in steps])
        end = np.array(terminated, dtype=bool)
        return Pool(np.array(x), np.array(a, dtype=int), np.array(r), list(y), list(share), end, step)


def next_values(pool: Pool, V) -> np.ndarray:
    """V(y) of each sample, or its mean over the states where the sample leads, (m,); `V` is a function of states."""
    if len(pool.a) == 0:
        return np.zeros(0)
    states, which = np.unique(np.concatenate(pool.y), axis=0, return_inverse=True)
    sample = np.repeat(np.arange(len(pool.a)), [len(y) for y in pool.y])
    return np.bincount(sample, np.concatenate(pool.share) * V(states)[which.reshape(-1)], minlength=len(pool.a))


def distances(states, x, rho) -> np.ndarray:
    """ρ_X from every state to every x: (n, m)."""
    if len(states) == 0 or len(x) == 0:
        return np.zeros((len(states), len(x)))
    return rho(np.asarray(states, dtype=float), x)


CUT = 3.0  # with bandwidths of their own, kernels end at this multiple of them


def weights(states, pool: Pool, sigma, g, rho) -> np.ndarray:
    """g(ρ_X(x, x_s)/σ), (n, m): the weight w_s(x, a_s) of each sample for its own action.

    `sigma` is one bandwidth, or a function of the states that gives σ(x, a) of each state and action, (n, A); it may
    have a method `left_out` that says which samples weigh nothing all the same, (n, m).
    """
    if not callable(sigma):
        return g(distances(states, pool.x, rho) / sigma)
    z = distances(states, pool.x, rho) / sigma(states)[:, pool.a]
    w = np.where(z <= CUT, g(z), 0.0)
    return np.where(sigma.left_out(states, pool.x), 0.0, w) if hasattr(sigma, "left_out") else w


def tried(A: int, pool: Pool) -> np.ndarray:
    """1 where a_s = a, else 0, (m, A): samples of another action are infinitely far away and weigh nothing."""
    return (pool.a[:, None] == np.arange(A)).astype(float)


class Related(NamedTuple):
    """Weights between actions: samples of one action count for others, too."""

    K: np.ndarray  # (A, A) K_A = g(ρ_A/σ_A), at least 0.03·g(ρ_A/tail) if there is one; weights below 1e-12 are 0
    rho: np.ndarray  # (A, A) ρ_A
    most: float = np.inf  # what all samples that are not of the pair itself count at most

    @classmethod
    def of(cls, rho: np.ndarray, sigma: float, most: float = np.inf, tail: float | None = None) -> Related:
        K = np.exp(-0.5 * (rho / sigma) ** 2)
        if tail is not None:
            K = np.maximum(K, 0.03 * np.exp(-0.5 * (rho / tail) ** 2))
        return cls(np.where(K < 1e-12, 0.0, K), rho, most)


def pair_weights(states, A: int, pool: Pool, sigma, g, rho, related: Related | None = None) -> np.ndarray:
    """w_s(x, a) = g(ρ_X(x, x_s)/σ(x, a))·K_A(a_s, a), (n, m, A); K_A is the identity if actions are not related.

    If Σ w_s over all samples with another state or action is more than `most`, each of them weighs most/Σ times that.
    """
    if related is None:
        return weights(states, pool, sigma, g, rho)[:, :, None] * tried(A, pool)
    w = []
    for a in range(A):  # as if all samples were of this action, which has a bandwidth of its own
        w.append(weights(states, pool._replace(a=np.full(len(pool.a), a)), sigma, g, rho) * related.K[pool.a, a])
    w = np.stack(w, axis=2)
    own = (distances(states, pool.x, rho) == 0.0)[:, :, None] & (tried(A, pool) > 0.0)
    others = np.where(own, 0.0, w).sum(axis=1, keepdims=True)
    factor = np.minimum(1.0, related.most / np.maximum(others, 1e-9))
    return np.where(own, w, factor * w)


def counts(states, A: int, pool: Pool, sigma, beta: float, g, rho, related=None) -> np.ndarray:
    """C(x, a) = β + Σ_s w_s(x, a), (n, A)."""
    return beta + pair_weights(states, A, pool, sigma, g, rho, related).sum(axis=1)


def smoothed(states, A: int, pool: Pool, f: np.ndarray, sigma, beta: float, g, rho, related=None) -> np.ndarray:
    """Σ_s w̃_s(x, a)·f_s with w̃ = w/C, (n, A): r̂ with f = r, P̂V with f_s = V(y_s)."""
    w = pair_weights(states, A, pool, sigma, g, rho, related)
    return np.einsum("nma,m->na", w, f) / (beta + w.sum(axis=1))


def rewards_of_step(
    states, A: int, pool: Pool, h: int, nothing: float, sigma, beta: float, g, rho, related=None
) -> np.ndarray:
    """r̂_h from the samples of step h, among which the mean of all of them counts as 0.1 of one, (n, A).

    If there are none, that is a reward of 0, `nothing`. It is multiplied by (C - β)/C, where C is of all steps, so that
    nothing is expected of actions that were not tried.
    """
    then = (pool.step == h).astype(float)
    w = pair_weights(states, A, pool, sigma, g, rho, related)
    usual = pool.r[pool.step == h].mean() if (pool.step == h).any() else nothing
    known = smoothed(states, A, pool, np.full(len(pool.r), usual), sigma, beta, g, rho, related)
    got, times = np.einsum("nma,m->na", w, then * pool.r), np.einsum("nma,m->na", w, then)
    return (0.1 * known + got) / (0.1 + times)


def simplified_bonus(C: np.ndarray, R_h: float, scale: float, root: float = 1.0, count: float = 1.0) -> np.ndarray:
    """B_h = scale·(root/√C + count·R_h/C)."""
    return scale * (root / np.sqrt(C) + count * R_h / C)


def spread(states, A: int, pool: Pool, sigma, g, rho, related=None) -> tuple[np.ndarray, np.ndarray]:
    """Σ_s w_s·ρ_s and Σ_s w_s², (n, A) each: what the joint bonus needs besides C; ρ_s = ρ_X + ρ_A."""
    w, between = pair_weights(states, A, pool, sigma, g, rho, related), distances(states, pool.x, rho)[:, :, None]
    if related is not None:
        between = between + related.rho[pool.a]
    return (w * between).sum(axis=1), (w**2).sum(axis=1)


def lipschitz_constants(lipschitz, H: int) -> np.ndarray | None:
    """L_h, (H,), from a number, from H numbers, or from (λ_r, λ_p): L_h = λ_r + λ_p·L_{h+1}, zero after the end."""
    if lipschitz is None:
        return None
    if isinstance(lipschitz, tuple):
        lambda_r, lambda_p = lipschitz
        L = np.zeros(H + 1)
        for h in reversed(range(H)):
            L[h] = lambda_r + lambda_p * L[h + 1]
        return L[:H]
    if np.ndim(lipschitz) == 0:
        return np.full(H, float(lipschitz))
    L = np.array(lipschitz, dtype=float)
    assert L.shape == (H,)
    return L


def argmax_set(q: np.ndarray, tolerance: float = 1e-9) -> list[int]:
    """The actions whose value is the largest one; q: (A,)."""
    best = q.max()
    return [a for a in range(len(q)) if q[a] == best or q[a] >= best - tolerance]
