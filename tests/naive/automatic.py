"""The rule by which kernel agents choose their settings (`kernelrl.agents.automatic`), on transitions in plain NumPy.

Before an episode, once 100 steps have been seen,

    s_j = √mean((y_j - x_j)²), at least 0.03 and at most 0.1 of the width of axis j

in a box of at most 1e5; wider ones are as wide as what was seen. States are divided by s. With u = √max(1, d/2) and the
grain g, states merge within 0.42·u·g, and bandwidths fall from 0.7·u·max(1, g) to at least 0.17·u·g with the fourth
root of the count. Each time the episodes have grown by a fifth: where an s_j has changed by more than 1.25, all are
taken; otherwise, with more than 6 steps for each representative and action (2 where actions are those of a net), g
becomes 0.8 times smaller, unless it is 0.25 or less, or 0.8^-d times as many representatives would be 0.8 of the limit.
With as many as the limit, before whichever episode, g becomes 1.15 times larger, and again until at most 0.9 of the
limit are left.
After each change everything is learnt again from the first transition on. Whenever bandwidths are renewed, all
transitions are counted again with the representatives there are: (x, a, r, y) for the nearest one, v, of x; it leads to
all that are around z, z_j = y_j + k_j·(v_j - x_j), by the shares by which values are read there (`naive.deploying`).
Those that arrive later lead to the representative of y until then.

The actions of a net (A, d_A) in [0, 1]^d_A are related by exp(-ρ²/(2·σ_A²)). σ_A is 0.06 at first and, whenever the
settings are looked at, 0.06·median/σ_0 of the bandwidths of visited pairs, at least 0.01. Then A/(mean sum of weights)
takes the place of A in the number of steps for each pair. All samples that are not of the pair itself count as at most
20 of them, unless rewards depend on the step, and for the policy to deploy unless representatives have their own steps.
The bonus has 0.02/√C in place of 0.05/√C.

With such a net and episodes of at most 15 steps, 20 and 0.02 are those of the first episodes. Whenever the settings are
looked at, `roughness` finds S and σ of r + V_2(y) over pairs (x, a), x divided by s and a by a tenth of its axes; then
min(0.04, 0.02·(S/0.15)²) takes the place of 0.02, and 5 + 15·min(1, σ/S) that of 20.

With such a net and episodes of at most 15 steps, 25 steps are enough for the first settings, no s_j falls, K_A is at
least 0.03 of what it was with σ_A = 0.06, and there is a plan before each of the first 4,000 episodes: factor 1.0005.

Where data are pooled, no metric is given and rewards depend on the step (`kernelrl.agents.dependence`), each step has
its own; where the motion does, states have the step, divided by max(1, 0.03·H), as another coordinate.
"""

from __future__ import annotations

import itertools

import numpy as np

from kernelrl.agents.deploying import displaces
from kernelrl.stores.log import Log
from naive.bonuses import SimplifiedBonus
from naive.deployed import NaiveDeployed
from naive.deploying import NaiveDeploying
from naive.estimates import Data, Related
from naive.greedy_kernel_ucbvi import NaiveGreedyKernelUCBVI
from naive.kernel_ucbvi import NaiveKernelUCBVI
from naive.kernels import BY_NAME
from naive.local import Bandwidths, NaiveLocal
from naive.metrics import lp
from naive.representatives import NaiveRepresentatives


def step_matters(z, h, a, target, least, places) -> bool:
    """Whether three neighbours of the same step predict better than three of any, in each set of coordinates.

    Neighbours have the same action, or are near in `places` (n, k), too.
    """
    action = a[:, None] == a
    same = action & (h[:, None] == h)
    probes = same.sum(axis=1) > 3
    if probes.sum() < 50:
        return False
    own, d = squared_errors(np.hstack([z, places]), same, target)[probes], z.shape[1]
    for size in {1, 2 if d <= 6 else 1, d - 1, d} - {0}:
        for some in itertools.combinations(range(d), size):
            error = squared_errors(np.hstack([z[:, list(some)], places]), action, target)[probes]
            sure = (error - own).mean() > 4 * (error - own).std() / np.sqrt(len(own))
            left = error.mean() > max(0.01 * target.var(), least**2)
            if not (sure and left and own.mean() < 0.85 * error.mean()):
                return False
    return True


def squared_errors(z, allowed, target):
    """(n,) of the mean of the three allowed points that are nearest, without the point itself."""
    square = ((z[:, None] - z) ** 2).sum(axis=2)
    square[~allowed | np.eye(len(z), dtype=bool)] = np.inf
    return (target[np.argsort(square, axis=1)[:, :3]].mean(axis=1) - target) ** 2


def roughness(z, G, rng):
    """S and σ: the root mean square of what three neighbours get wrong, and what is left of it at distance 0.

    For S, points that are equal count once. None if there are fewer than five.
    """
    first = sorted({tuple(np.round(point / 1e-6)): i for i, point in reversed(list(enumerate(z)))}.values())
    if len(first) < 5:
        return None
    z = z + 1e-6 * rng.standard_normal(z.shape)
    S = np.sqrt(squared_errors(z[first], np.ones((len(first), len(first)), bool), G[first]).mean())
    square = ((z[:, None] - z) ** 2).sum(axis=2)
    np.fill_diagonal(square, np.inf)
    x, y = [], []
    for i in range(len(z)):
        for j in np.argsort(square[i])[:3]:
            x.append(square[i, j])
            y.append((G[i] - G[j]) ** 2 / 2)
    slope = max(0.0, np.polyfit(x, y, 1)[0])
    return S, np.sqrt(max(0.0, np.mean(y) - slope * np.mean(x)))


class NaiveAutomatic:
    """A kernel agent that chooses its settings; before 100 steps, or 25 of short episodes, there is none."""

    def __init__(
        self, greedy, H, A, low, high, nothing=0.0, limit=3000, rho=None, merge=None, stationary=True,
        kernel="gaussian", net=None,
    ):  # fmt: skip
        self.action_net, self.action_sigma = net, 0.06  # an `ActionNet`, or None
        self.net = None if net is None else (net.points - net.low) / (net.high - net.low)
        self.greedy, self.H, self.A, self.low, self.high = greedy, H, A, low, high
        self.nothing, self.limit, self.rho, self.merge, self.stationary = nothing, limit, rho, merge, stationary
        self.kernel = BY_NAME[kernel]
        self.log: list[tuple] = []
        self.s: np.ndarray | None = None
        self.grain, self.due, self.episodes = 1.0, 0, 0
        self.root = 0.05 if net is None else 0.02
        self.short, self.most = net is not None and H <= 15, 20.0
        self.rebuilt: list[str] = []
        self.depends = "nothing"

    @property
    def states(self):
        """The representatives."""
        return self.representatives.states if self.s is not None else []

    def begin_episode(self) -> None:
        k, self.episodes = self.episodes, self.episodes + 1
        if len(self.log) < (25 if self.short else 100):
            return
        number, is_due = len(self.states), k >= self.due
        is_full = self.s is not None and self.merge is None and number >= self.limit
        if is_full:
            self.grain *= 1.15
            self._learn_again("coarser")
        if is_due:
            if self.net is not None and self.s is not None:
                self._narrow_actions()
            values = self._second_values() if self.short else None
            self._look(number, values)
            self.due = max(k + 1, k + k // 5)
        if is_due or is_full:
            self._land()
            self.bandwidths.local.due = 0
        self.bandwidths.episodes = k
        self.bandwidths.begin_episode()
        self.bandwidths.local.due = np.inf  # it is this rule that says when
        if not self.greedy:
            self.before.naive.episodes = k
        self.before.begin_episode()

    def observe(self, x, a, r, y, h, terminated=False) -> None:
        self.log.append((np.array(x, dtype=float), a, r, np.array(y, dtype=float), h, terminated))
        if self.s is not None:
            self.before.observe(*self.placed(self.log[-1]))

    def place(self, x, h):
        """The state as a point, which may have the step as a coordinate."""
        return np.append(x, h / max(1.0, 0.03 * self.H)) if self.depends == "motion" else np.asarray(x, dtype=float)

    def placed(self, t) -> tuple:
        """A transition between such points."""
        x, a, r, y, h, terminated = t
        return self.place(x, h), a, r, self.place(y, h + 1), h, terminated

    def _dependence(self, s) -> str:
        """What depends on the step."""
        n = len(self.log)
        if n < max(50, 10 * self.H):
            return "nothing"
        rng = np.random.default_rng(n)
        some = [self.log[i] for i in rng.permutation(n)[: 4000 if len(s) <= 8 else 4000 * 8 // len(s)]]
        x, a, r, y, h, _ = (np.array(column) for column in zip(*some, strict=True))
        z = (x - x.mean(axis=0)) / s + 1e-6 * rng.standard_normal(x.shape)
        columns = [(r, 3e-7 * abs(r).max())]
        columns += [((y - x)[:, j] / s[j], max(1e-3, 3e-7 * abs(x[:, j]).max() / s[j])) for j in range(len(s))]
        places = np.zeros((len(x), 0)) if self.net is None else self.net[a] / 0.1
        a = a if self.net is None else np.zeros_like(a)
        matters = [step_matters(z, h, a, column, least, places) for column, least in columns]
        return "motion" if any(matters[1:]) else "rewards" if matters[0] else "nothing"

    def scales(self) -> np.ndarray:
        """s_j (d,), or s (1,) of a metric that is given."""
        x, y = (np.array([t[i] for t in self.log]) for i in (0, 3))
        seen = np.concatenate([x, y]).max(axis=0) - np.concatenate([x, y]).min(axis=0)
        if self.rho is not None:
            steps = np.array([self.rho(a[None], b[None])[0, 0] for a, b in zip(x, y, strict=True)])
            d = x.shape[1]
            step, width = np.sqrt(np.array([(steps**2).mean() / d])), np.array([np.sqrt((seen**2).sum() / d)])
        else:
            step = np.sqrt(((y - x) ** 2).mean(axis=0))
            bounded = self.high - self.low < 1e5
            width = np.array([self.high[j] - self.low[j] if bounded[j] else seen[j] for j in range(len(seen))])
        width[width == 0] = 1.0
        return np.minimum(np.maximum(step, 0.03 * width), 0.1 * width)

    def _second_values(self) -> np.ndarray:
        """V_2(y) of each transition by the last plan, or what follows a termination; 0 before the first plan."""
        if self.s is None or self.H == 1:
            return np.zeros(len(self.log))
        V = self.before.values(np.array([self.place(t[3], 1) for t in self.log]), 1)
        return np.where([t[5] for t in self.log], self.nothing * (self.H - 1), V)

    def _explore(self, values) -> None:
        """Root and m; with a metric that is given they stay as they are."""
        if self.rho is not None:
            return
        rng = np.random.default_rng(len(self.log))
        some = rng.permutation(len(self.log))[:4000]
        x, a, r = (np.array([self.log[i][j] for i in some]) for j in (0, 1, 2))
        z = np.hstack([(x - x.mean(axis=0)) / self.s, self.net[a] / 0.1])
        found = roughness(z, r + values[some], np.random.default_rng(len(some)))
        self.root, self.most = 0.02, 20.0
        if found is not None:
            S, sigma = found
            self.root = min(0.04, 0.02 * (S / 0.15) ** 2)
            self.most = 5.0 + 15.0 * (min(1.0, sigma / S) if S > 0 else 0.0)

    def _look(self, number, values) -> None:
        s, d = self.scales(), len(self.low)
        if self.short and self.s is not None:
            s = np.maximum(s, self.s)
        if self.s is None or (np.maximum(s / self.s, self.s / s) > 1.25).any():
            self.s = s
            moved = "scale"
        else:
            moved = ""
        if self.stationary and self.rho is None and self.depends != "motion":
            found = self._dependence(s)
            if found not in ("nothing", self.depends):
                self.depends = moved = found
        if self.short:
            self._explore(values)
        if moved:
            self._learn_again(moved)
        elif self.merge is None and len(self.log) > self._refine(number) * number * self._number_of_actions():
            if self.grain > 0.25 and number / 0.8**d < 0.8 * self.limit:
                self.grain *= 0.8
                self._learn_again("finer")

    def _narrow_actions(self) -> None:
        """σ_A from the bandwidths that are in use, of pairs in the last plan."""
        local, N = self.bandwidths.local, np.zeros((len(self.states), self.A))
        for pool in self.bandwidths.all_pools() if self.greedy else self.before.naive.pools:
            for x, a in zip(pool.x, pool.a, strict=True):
                N[[u.tobytes() for u in self.states].index(x.tobytes()), a] += 1
        sigma = np.array([local.table.get(u.tobytes(), np.full(self.A, local.start)) for u in self.states])
        self.action_sigma = max(0.01, 0.06 * np.median(sigma[N > 0]) / local.start)

    def related(self) -> Related | None:
        """The weights between actions."""
        if self.net is None:
            return None
        rho = np.sqrt(((self.net[:, None] - self.net) ** 2).sum(axis=2))
        most = np.inf if self.depends == "rewards" else self.most
        return Related.of(rho, self.action_sigma, most, 0.06 if self.short else None)

    def _refine(self, number):
        """Steps for each representative and action that are enough for a finer grain."""
        return 2 if self.net is not None and number < 300 else 6

    def _number_of_actions(self) -> float:
        """A, or that of related actions with the σ_A before this look."""
        return self.A if self.net is None else self.A / self.in_use.K.sum(axis=1).mean()

    def _learn_again(self, why) -> None:
        self.rebuilt.append(why)
        self._make()
        while self.merge is None and len(self.states) > 0.9 * self.limit:
            self.grain *= 1.15
            self._make()

    def _land(self) -> None:
        """Count all transitions again."""
        reps, both, keeps = self.representatives, (self.before, self.deployed), self.keeps()
        self.in_use = self.bandwidths.local.related = self.related()
        self.before.naive.bonus = SimplifiedBonus(self.H, self.root, 0.01, 1.0)
        for one in both:
            one.naive.kernel["related"] = self.in_use
            one.naive.data = Data(self.H, self.stationary)
        states, log = np.array(reps.states), [self.placed(t) for t in self.log]
        x, y = (np.array([t[i] for t in log]) for i in (0, 3))
        v = np.array([reps.read(state) for state in x])
        shares = reps.leads(y + keeps * (v - x), y)
        for (_, a, r, _, h, terminated), there, share in zip(log, v, shares, strict=True):
            for one in both:
                one.naive.data.add(there, a, r, states[share > 0], h, terminated, share[share > 0])

    def keeps(self) -> np.ndarray:
        """The k_j."""
        keeps = np.zeros(len(self.low)) if self.rho is not None else displaces(self.columns(), self.s, self.action_net)
        return np.append(keeps, 1.0) if self.depends == "motion" else keeps

    def policy(self) -> NaiveDeploying:
        """The policy to deploy."""
        log, by_step = [self.placed(t) for t in self.log], self.depends == "rewards"
        places = None if self.net is None else self.net * (self.to_deploy[-1][1] / self.action_sigma)
        related = self.related(), places, np.append(self.s, 1.0) if self.depends == "motion" else self.s
        return NaiveDeploying(
            log, *self.to_deploy, self.keeps(), len(self.low), self.stationary, self.nothing, by_step, *related
        )  # fmt: skip

    def columns(self) -> Log:
        """The transitions as the package keeps them."""
        x, a, r, y, h, terminated = (np.array(column) for column in zip(*self.log, strict=True))
        return Log(np.array([x, y]), np.array([h, a, terminated]), r, np.array([len(a)]))

    def _make(self) -> None:
        """Everything from the first transition on."""
        s = np.append(self.s, 1.0) if self.depends == "motion" else self.s
        d = len(self.low) + (self.depends == "motion")
        u, g, H, A = np.sqrt(max(1.0, d / 2)), self.grain, self.H, self.A
        rho, length = (lp(2, s), 1.0) if self.rho is None else (self.rho, self.s[0])
        start, least = 0.7 * u * max(1.0, g) * length, 0.17 * u * g * length
        self.distance = 0.42 * u * g * length if self.merge is None else self.merge
        kernel, bonus = self.kernel, SimplifiedBonus(H, self.root, 0.01, 1.0)
        shared = (H, A, start, 0.01, kernel, rho)
        self.to_deploy = (H, A, self.distance, rho, kernel, 0.01, (start, min(least, start), 0.25))
        if self.greedy:
            naive = NaiveGreedyKernelUCBVI(*shared, None, self.stationary, 1.0, bonus, self.nothing)
        else:
            replan = 1.0005 if self.short else "auto"
            naive = NaiveKernelUCBVI(*shared, None, self.stationary, replan, 1.0, bonus, self.nothing)
        self.representatives = NaiveRepresentatives(self.distance, rho)
        self.before = self.representatives.before(naive, blend=True)
        self.deployed = self.representatives.before(NaiveDeployed(*shared, self.stationary, self.nothing), blend=True)
        self.before.followers.append(self.deployed)
        self.before.naive.by_step = self.deployed.naive.by_step = self.depends == "rewards"
        local = NaiveLocal(A, start, min(least, start), 0.25, "action", kernel, rho, self.representatives)
        self.bandwidths = Bandwidths(local, self.before, self.deployed)
        for t in self.log:
            x, a, r, y, h, terminated = self.placed(t)
            x, y = self.representatives.visit(x), self.representatives.visit(y)
            for one in (self.before, self.deployed):  # values are those of the plan that follows at once
                one.naive.data.add(x, a, r, y, h, terminated)
                one._note_plan()
