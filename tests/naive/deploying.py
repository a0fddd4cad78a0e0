"""The policy to deploy of an agent that keeps its transitions (`kernelrl.agents.deploying`): the mean of three plans.

For each plan the representatives are made from the transitions in one order. Then a sample (x, a, r, y) counts for the
nearest representative v of x, and leads to all representatives around z, z_j = y_j + k_j·(v_j - x_j), by the shares by
which values are read there; to the representative of y if there are none around z. Bandwidths are those of
`naive.local`, from all samples. Q_h = r̂ + P̂V_{h+1} and V_h = max_a Q_h as in `naive.deployed`.

Where data are pooled and some coordinate of the states has k_j = 1, each representative u has its own steps: P̂V(u, a)
is the share of samples that did not terminate, Σ_s w_s/C over these, times the mean of V at
z_i = y_i + k·(u - x_i) + Bᵀ(u - x_i) over the 16 nearest of them with action a, and those as near as the last. Each
counts g(ρ(u, x_i)/σ(u, a)), and if none is above 0, the nearest count alone. If both x_i is farther than the merge
distance from u and z_i from all representatives, y_i takes the place of z_i. At a state without representatives around
it Q is that of the nearest one.

B (`slopes`) are the slopes of y - k·x by weighted least squares over these samples with a ridge, in coordinates that
are divided by their scales. A coordinate of y has slopes (`bending`) only if they predict it better: with less than 0.9
of the squared error over 1,000 samples, each from those around it without itself.

Where actions are related, samples of all actions take part. `places` (A, k) are the actions as coordinates: how near a
sample is, is measured in these and in states, and each counts K_A times as much. Where each representative has its own
steps, the samples of other pairs count without a limit.

The mean is taken at the representatives of the first plan, where the others are read between their own.

Where each representative has its own steps and rewards do not depend on the step, the mean and the three plans play 64
episodes (fewer where these have more than 500 steps) that are made of samples (`rehearsed`), all with the same random
numbers. If a plan collects more there than the mean, by at least half a standard error of the difference, the one that
collects most takes the place of the mean.
"""

from __future__ import annotations

import numpy as np

from naive.estimates import Pool, rewards_of_step, smoothed
from naive.local import NaiveLocal, Sigma
from naive.representatives import NaiveRepresentatives

PLANS, NEAREST = 3, 16
PROBES = 1000
EPISODES = 64


def slopes(u, x, t):
    """The mean of `t` (n, places) around the point `u`, that of `x` (n, wide), and the slopes B (wide, places)."""
    squares = ((x - u) ** 2).sum(axis=1)
    w = np.exp(-squares / (2 * squares.mean())) if squares.any() else np.ones(len(x))
    mean_x, mean_t = np.average(x, axis=0, weights=w), np.average(t, axis=0, weights=w)
    xi, tau = x - mean_x, t - mean_t
    G = (w[:, None] * xi).T @ xi
    ridge = 0.01 * (w @ squares) / len(G)
    if ridge == 0:
        return mean_t, mean_x, np.zeros((x.shape[1], t.shape[1]))
    return mean_t, mean_x, np.linalg.solve(G + ridge * np.eye(len(G)), (w[:, None] * xi).T @ tau)


def nearby(far):
    """Which of the distances `far` (n,) are among the smallest, or as small as the last of these."""
    return far <= np.sort(far)[: min(NEAREST, len(far))][-1] * (1 + 1e-9)


def bending(x, a, y, end, keeps, places):
    """(places,) whether each coordinate of y has slopes; `x` and `y` are divided by the scales."""
    wide = x if places is None else np.hstack([x, places[a]])
    errors = np.zeros((2, y.shape[1]))
    for i in np.random.default_rng(len(x)).permutation(len(x))[:PROBES]:
        alike = ~end if places is not None else ~end & (a == a[i])
        if end[i]:
            continue
        found = np.flatnonzero(alike)
        found = found[nearby(np.sqrt(((wide[found] - wide[i]) ** 2).sum(axis=1)))]
        found = found[found != i]
        if len(found):
            mean_t, mean_x, B = slopes(wide[i], wide[found], y[found] - keeps * x[found])
            error = y[i] - keeps * x[i] - mean_t
            errors += error**2, (error - (wide[i] - mean_x) @ B) ** 2
    return errors[1] < 0.9 * errors[0]


def rehearsed(policy, log, H, A, nothing, keeps, bends, places, scale):
    """What `policy`, a function of a state and the step, collects in each simulated episode, (episodes,).

    At each step a sample near the state is drawn, by weights that fall with the distance. Its reward is collected, its
    end ends the episode, and otherwise its step, along the lines through the samples that did not end theirs, leads to
    the next state. After the end each step is worth `nothing`, after an action that was never tried 0.
    """
    x, a, r, y, step, end = (np.array(column) for column in zip(*log, strict=True))
    x, y, end, n = x / scale, y / scale, end.astype(bool), len(a)
    wide = x if places is None else np.hstack([x, places[a]])
    low, high = np.concatenate([x, y]).min(axis=0), np.concatenate([x, y]).max(axis=0)
    rng, episodes = np.random.default_rng((n, H)), max(8, min(EPISODES, 32_000 // H))
    first = np.flatnonzero(step == 0) if (step == 0).any() else np.arange(n)
    starts, coins = x[rng.choice(first, episodes)], rng.random((H, episodes))
    returns = np.zeros(episodes)
    for i, u in enumerate(starts):
        for h in range(H):
            b = policy(u * scale, h)
            mine = np.arange(n) if places is not None else np.flatnonzero(a == b)
            if not len(mine):
                break
            here = u if places is None else np.append(u, places[b])
            squares = ((wide[mine] - here) ** 2).sum(axis=1)
            near = nearby(np.sqrt(squares))
            mine, squares = mine[near], squares[near]
            w = np.exp(-squares / (2 * squares.mean())) if squares.any() else np.ones(len(mine))
            t = mine[min(np.searchsorted(np.cumsum(w), coins[h, i] * w.sum(), side="right"), len(mine) - 1)]
            returns[i] += r[t]
            if end[t]:
                returns[i] += nothing * (H - h - 1)
                break
            going = mine[~end[mine]]
            B = slopes(here, wide[going], y[going] - keeps * x[going])[2]
            z = y[t] + keeps * (u - x[t]) + np.where(bends, (here - wide[t]) @ B, 0.0)
            u = np.clip(z, low, high)
    return returns


def first_best(q):
    """The first of the best actions, up to rounding."""
    return int(np.flatnonzero(q >= q.max() - 1e-9)[0])


class NaiveLanded:
    """One plan of transitions (x, a, r, y, h, terminated); `keeps` (d,) are the k_j."""

    def __init__(
        self, log, order, H, A, merge, rho, g, beta, local, keeps, d, stationary, nothing, by_step, related=None,
        places=None, scale=None,
    ):  # fmt: skip
        self.H, self.A, self.nothing, self.stationary, self.by_step = H, A, nothing, stationary, by_step
        self.own, self.keeps, self.places = stationary and keeps[:d].any(), keeps, places
        if related is not None and self.own:
            related = related._replace(most=np.inf)
        self.reps = NaiveRepresentatives(merge, rho)
        for i in order:
            self.reps.visit(log[i][0])
            self.reps.visit(log[i][3])
        x, a, r, y, step, end = (np.array(column) for column in zip(*log, strict=True))
        v = np.array([self.reps.read(state) for state in x])
        self.pool = Pool(v, a, r, y[:, None], np.ones((len(log), 1)), end.astype(bool), step)
        self.leads = self.reps.leads(y + keeps * (v - x), y)
        start, least, exponent = local
        self.local = NaiveLocal(A, start, least, exponent, "action", g, rho, self.reps)
        self.local.related = related
        self.pools = [self.pool_of(h) for h in range(1 if stationary else H)]
        self.local.renew(self.pools)
        U = len(self.reps.states)
        sigma = Sigma(lambda states: self.local.at(states, self.pools, U), lambda s, x: self.local.left_out(s, x, U))
        self.kernel = {"sigma": sigma, "beta": beta, "g": g, "rho": rho, "related": related}
        if self.own:
            there, alive, self.scale = np.array(self.reps.states), ~self.pool.terminated, scale
            self.bends = bending(x / scale, a, y / scale, self.pool.terminated, keeps, places)
            sigma_there = self.local.at(there, self.pools, U)
            self.steps = np.array(
                [
                    [self._own_steps(u, width[b], x, y, *self._alike(a, b, alive, places), keeps) for b in range(A)]
                    for u, width in zip(there, sigma_there, strict=True)
                ]
            )  # (U, A, U)
        self.V = [np.zeros(U)] * (H + 1)
        self.Q = [np.zeros((U, A))] * H
        for h in reversed(range(H)):
            self.Q[h] = self.estimates(np.array(self.reps.states), h)
            self.V[h] = self.Q[h].max(axis=1)

    def _alike(self, a, b, alive, places):
        """The samples that count for action `b` (n,), their actions as seen from it (n, k), and their weights (n,)."""
        if places is None:
            return alive & (a == b), np.zeros((len(a), 0)), np.ones(len(a))
        return alive, places[a] - places[b], self.kernel["related"].K[a, b]

    def _own_steps(self, u, sigma, x, y, chosen, apart, weight, keeps) -> np.ndarray:
        """Where an action leads from the representative `u`, by the samples `chosen`, (U,)."""
        x, y, apart, weight = x[chosen], y[chosen], apart[chosen], weight[chosen]
        if len(x) == 0:
            return np.zeros(len(self.reps.states))
        rho = self.kernel["rho"](u[None], x)[0]
        near = nearby(np.sqrt(rho**2 + (apart**2).sum(axis=1)))
        widths = rho[near] / sigma
        share = np.where(widths <= 3, self.kernel["g"](widths), 0.0) * weight[near]
        if share.sum() == 0:
            share = (widths <= widths.min() * (1 + 1e-9)).astype(float)
        x, y, apart = x[near], y[near], apart[near]
        wide = np.hstack([(x - u) / self.scale, apart])
        B = slopes(np.zeros(wide.shape[1]), wide, (y - keeps * x) / self.scale)[2]
        z = y + keeps * (u - x) + np.where(self.bends, -wide @ B * self.scale, 0.0)
        unseen = self.kernel["rho"](z, np.array(self.reps.states)).min(axis=1) > self.reps.merge
        z = np.where((unseen & (rho[near] > self.reps.merge))[:, None], y, z)
        return share @ self.reps.leads(z, y) / share.sum()

    def chosen(self, h) -> np.ndarray:
        """The samples that step `h` uses."""
        return np.full(len(self.pool.a), True) if self.stationary else self.pool.step == h

    def pool_of(self, h) -> Pool:
        return Pool(*(column[self.chosen(h)] for column in self.pool))

    def estimates(self, states, h) -> np.ndarray:
        """r̂ + P̂V_{h+1} at the states themselves, (n, A)."""
        pool = self.pool_of(h)
        if self.own:
            after = np.where(pool.terminated, self.nothing * (self.H - h - 1), 0.0)
            alive = smoothed(states, self.A, pool, (~pool.terminated).astype(float), **self.kernel)
            onward = alive * (self.steps @ self.V[h + 1])
            return self.rewards(states, h) + smoothed(states, self.A, pool, after, **self.kernel) + onward
        V_next = np.where(pool.terminated, self.nothing * (self.H - h - 1), self.leads[self.chosen(h)] @ self.V[h + 1])
        return self.rewards(states, h) + smoothed(states, self.A, pool, V_next, **self.kernel)

    def rewards(self, states, h) -> np.ndarray:
        """r̂_h, (n, A)."""
        pool = self.pool_of(h)
        if self.by_step:
            return rewards_of_step(states, self.A, pool, h, self.nothing, **self.kernel)
        return smoothed(states, self.A, pool, pool.r, **self.kernel)

    def between(self, state, Q) -> np.ndarray | None:
        """The mean of `Q` (U, A) around a state, (A,); None where no representative is around it."""
        share = self.reps.shares(state, len(self.reps.states))
        return share @ Q if share.any() else None


class NaiveDeploying:
    """The mean of the plans, or the best of them; the arguments are those of `NaiveLanded`."""

    def __init__(self, log, *others):
        n = len(log)
        orders = [np.arange(n), *(np.random.default_rng((n, i)).permutation(n) for i in range(1, PLANS))]
        plans = [NaiveLanded(log, order, *others) for order in orders]
        self.first, *rest = plans
        there = self.first.reps.states
        self.Q = [
            (Q + sum(np.array([plan.between(u, plan.Q[h]) for u in there]) for plan in rest)) / PLANS
            for h, Q in enumerate(self.first.Q)
        ]
        if self.first.own and not self.first.by_step:
            self._choose(log, plans)

    def _choose(self, log, plans) -> None:
        """Take the plan that does best in simulated episodes, unless it is the mean."""
        one, all_returns = self.first, []
        ways = (one.keeps, one.bends, one.places, one.scale)
        candidates = [(one, self.Q), *((plan, plan.Q) for plan in plans)]
        for self.first, self.Q in candidates:
            all_returns.append(rehearsed(self._best_action, log, one.H, one.A, one.nothing, *ways))
        gains = [returns - all_returns[0] for returns in all_returns[1:]]
        sure = [g.mean() > max(0.0, 0.5 * g.std(ddof=1) / np.sqrt(len(g))) for g in gains]
        best = max(range(PLANS), key=lambda i: gains[i].mean() if sure[i] else -np.inf)
        self.chosen = best if sure[best] else None
        self.first, self.Q = candidates[0 if self.chosen is None else 1 + self.chosen]

    def _best_action(self, x, h) -> int:
        return first_best(self.q_values([x], h)[0])

    def q_values(self, states, h) -> np.ndarray:
        """(n, A)."""
        found = [self.first.between(x, self.Q[h]) for x in states]
        return np.array([self._elsewhere(x, h) if q is None else q for x, q in zip(states, found, strict=True)])

    def _elsewhere(self, x, h) -> np.ndarray:
        """Where no representative is around."""
        if not self.first.own:
            return self.first.estimates(np.array([x]), h)[0]
        rho = self.first.kernel["rho"](np.array([x]), np.array(self.first.reps.states))[0]
        return self.Q[h][rho.argmin()]
