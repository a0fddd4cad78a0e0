"""Random problems, for the test whether the step of the episode matters: stationary ones, and ones that depend on it.

    y = x + drift(x) + move_a + noise, clipped onto the box,      r = r(z_S) for z = x or y and some coordinates S

in [0, 1]^d, shown in other units. All that differs between problems is drawn from the seed: see `Generated`.
"""

import gymnasium as gym
import numpy as np

REWARDS = ("smooth", "sparse", "noisy", "coin", "jumps", "constant")
POLICIES = ("random", "by step", "by state and step", "changing")
DEPENDENCES = ("pay-off", "tariff", "weak tariff", "disturbance", "reversal", "weak wind")


class Generated:
    """One problem; `depends` is one of DEPENDENCES, or None for a stationary one."""

    def __init__(self, seed, depends=None):
        rng = np.random.default_rng((seed, 0))
        d = self.d = int(rng.integers(1, 5))
        self.depends, self.A, self.H = depends, int(rng.integers(2, 6)), round(5 * 40 ** rng.random())
        self.size = 0.005 * 40 ** rng.random()
        self.on_grid = rng.random() < 0.15  # no noise, so the same states again and again
        self.noise = 0.0 if self.on_grid else self.size * rng.choice([0.0, 0.1, 0.5, 2.0])
        self.moves = self.size * (
            rng.integers(-1, 2, (self.A, d)) if self.on_grid else rng.standard_normal((self.A, d))
        )
        self.drift = rng.choice(["none", "wind", "pull", "turn"]) if not self.on_grid else "none"
        self.wind = self.size * rng.standard_normal(d)
        self.clock = rng.random() < 0.25  # the first coordinate is h/H: the state tells the step
        self.start = rng.choice(["fixed", "near", "anywhere"])
        self.origin = rng.random(d)
        self.bounded, self.ends = rng.random() < 0.7, rng.random() < 0.3
        self.units = 10.0 ** rng.uniform(-2.0, 2.0, d)
        self._rewards(rng)
        self.plan, self.normal = rng.integers(self.A, size=self.H), rng.standard_normal((self.A, d))
        self.when, self.price = int(self.H * rng.uniform(0.3, 0.7)), rng.uniform(0.0, 1.0, self.H).round()

    def _rewards(self, rng):
        """Draw the form of the rewards."""
        kinds = ("smooth", "noisy", "jumps") if self.depends else REWARDS
        self.reward = rng.choice(kinds)
        self.of_next, self.worth = rng.random() < 0.5, 10.0 ** rng.uniform(-1.0, 2.0)
        self.matter = np.flatnonzero(rng.random(self.d) < 0.6)
        if not len(self.matter):
            self.matter = rng.integers(self.d, size=1)
        self.waves, self.phase = rng.normal(0.0, 6.0, len(self.matter)), rng.uniform(0.0, 6.3)
        self.goal, self.bonus = rng.random(len(self.matter)), rng.random(self.A) * (rng.random() < 0.5)

    def starts(self, rng, n):
        """(n, d) first states."""
        x = np.tile(self.origin, (n, 1))
        if self.start != "fixed":
            x = np.clip(x + (0.05 if self.start == "near" else 1.0) * rng.uniform(-1.0, 1.0, (n, self.d)), 0.0, 1.0)
        if self.clock:
            x[:, 0] = 0.0
        return x

    def advance(self, x, a, h, rng):
        """Next states (n, d), rewards (n,) and ends (n,) of states (n, d) and actions (n,) at steps (n,)."""
        if self.depends == "reversal":
            a = np.where(h >= self.H // 2, self.A - 1 - a, a)
        y = x + self.moves[a] + self._drifting(x) + self.noise * rng.standard_normal(x.shape)
        if self.depends == "disturbance":
            y += np.where(h == self.when, 4.0 * self.size, 0.0)[:, None]
        if self.depends == "weak wind":
            y += np.where(h >= self.when, 0.7 * self.size, 0.0)[:, None]
        if self.clock:
            y[:, 0] = x[:, 0] + 1.0 / self.H
        y = np.clip(y, 0.0, 1.0)
        ends = self.ends & (y[:, -1] > 0.8)
        return y, self._paid(y if self.of_next else x, a, h, rng), ends

    def _drifting(self, x):
        """(n, d) by how much states move on their own."""
        if self.drift == "wind":
            return np.broadcast_to(self.wind, x.shape)
        if self.drift == "pull":
            return 0.1 * (self.origin - x)
        if self.drift == "turn":
            return 0.1 * np.roll((x - 0.5) * np.where(np.arange(self.d) % 2, 1.0, -1.0), 1, axis=1)
        return np.zeros_like(x)

    def _paid(self, z, a, h, rng):
        """(n,) rewards at states z (n, d)."""
        z = z[:, self.matter]
        wave = np.sin(z @ self.waves + self.phase) + self.bonus[a]
        draws = rng.standard_normal(len(z))
        r = {
            "smooth": wave,
            "noisy": wave + draws,
            "coin": 1.0 * (draws > wave),
            "sparse": 1.0 * (((z - self.goal) ** 2).sum(axis=1) < 0.15**2),
            "jumps": np.floor(1.5 * wave) + self.bonus[a],
            "constant": np.ones(len(z)),
        }[self.reward]
        if self.depends == "pay-off":
            r = np.where(h == self.H - 1, 2.0 + r, 0.0)
        if self.depends in ("tariff", "weak tariff"):
            r = r + (2.0 if self.depends == "tariff" else 0.7) * self.price[h]
        return self.worth * r

    def act(self, policy, x, h, episode, rng):
        """(n,) actions at step h: random ones a fifth of the time, else those of a policy."""
        chosen = rng.integers(self.A, size=len(x))
        planned = {
            "random": chosen,
            "by step": np.full(len(x), self.plan[h]),
            "by state and step": ((x - 0.5) @ self.normal.T * np.roll([1.0, -1.0], h)[0]).argmax(axis=1),
            "changing": (self.plan[h] + np.log2(1 + episode).astype(int)) % self.A,
        }[policy]
        return np.where(rng.random(len(x)) < 0.2, chosen, planned)

    def play(self, policy, steps, seed):
        """Transitions (x, a, r, y, h) of whole episodes in order, until there are about as many steps."""
        rng, n = np.random.default_rng((seed, 1)), max(10, steps // self.H)
        x, episode, parts = self.starts(rng, n), np.arange(n), []
        for h in range(self.H):
            a, at = self.act(policy, x, h, episode, rng), np.full(len(x), h)
            y, r, ends = self.advance(x, a, at, rng)
            parts.append((x * self.units, a, r, y * self.units, at, episode))
            x, episode = y[~ends], episode[~ends]
        x, a, r, y, h, episode = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.lexsort((h, episode))
        return x[order], a[order], r[order], y[order], h[order]

    @property
    def box(self):
        """The lowest and the highest state."""
        far = 1.0 if self.bounded else np.inf
        return np.full(self.d, 0.0 if self.bounded else -np.inf), np.full(self.d, far) * self.units


class GeneratedEnv(gym.Env):
    """A generated problem for Gymnasium."""

    def __init__(self, seed, depends=None):
        self.problem = Generated(seed, depends)
        low, high = self.problem.box
        self.observation_space = gym.spaces.Box(low, high, dtype=np.float64)
        self.action_space = gym.spaces.Discrete(self.problem.A)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.h = self.problem.starts(self.np_random, 1), 0
        return self.x[0] * self.problem.units, {}

    def step(self, action):
        at = np.array([action]), np.array([self.h])
        self.x, r, ends = self.problem.advance(self.x, *at, self.np_random)
        self.h += 1
        return self.x[0] * self.problem.units, float(r[0]), bool(ends[0]), False, {}


def environment(seed, depends=None):
    """A generated problem with its time limit."""
    env = GeneratedEnv(seed, depends)
    return gym.wrappers.TimeLimit(env, env.problem.H)
