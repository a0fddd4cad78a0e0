"""A public kernel agent and its naive counterpart, driven by hand over the same logs.

Every read-out must agree, at states of the log and at others, during the episodes and after them.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import kernelrl as krl
from kernelrl.agents.action_kernel import OTHERS
from kernelrl.planning.passing import PLAN_ERROR
from naive import kernels, metrics
from naive.between_actions import Between
from naive.bonuses import SimplifiedBonus
from naive.deployed import NaiveDeployed
from naive.estimates import Related, argmax_set, lipschitz_constants
from naive.greedy_kernel_ucbvi import NaiveGreedyKernelUCBVI
from naive.kernel_ucbvi import NaiveKernelUCBVI
from naive.local import Bandwidths, NaiveLocal
from naive.representatives import NaiveRepresentatives
from naive.several import SeveralDeployed, SeveralGreedyKernelUCBVI, SeveralKernelUCBVI, estimates
from problems import BANDWIDTHS, BONUS_SCALES, REGULARIZATIONS, Log, lipschitz_options, random_log

READ_OUTS = ("counts", "bonuses", "q_values", "values")
TOLERANCE = 1e-9

BOX = (np.array([-0.5, -1.0, 0.0]), np.array([1.5, 1.0, 1.0]))  # contains the unit box; widths 2, 2, 1

KERNELS = {name: (name, g) for name, g in kernels.BY_NAME.items()}
KERNELS["exponential-power-3"] = (krl.kernels.ExponentialPower(3), kernels.exponential_power(3))
KERNELS["exponential-power-4.5"] = (krl.kernels.ExponentialPower(4.5), kernels.exponential_power(4.5))

SCALE = np.array([0.5, 2.0, 1.0])
FACTORS = ((1.0, 1.0, 1.0), (0.05, 0.01, 1.0), (0.0, 1.0, 0.5), (2.0, 0.0, 1.0))  # root, count and scale
RANGES = ((0, 1), (-1, 0), (-1, 1), (-2, 0))


def lp_pair(p, scale=None):
    """Public and naive metric; they are made for d dimensions."""
    if scale is None:
        return lambda d: (krl.metrics.Lp(p), metrics.lp(p))
    if isinstance(scale, str):
        return lambda d: (krl.metrics.Lp(p, scale=scale), metrics.lp(p, (BOX[1] - BOX[0])[:d]))
    return lambda d: (krl.metrics.Lp(p, scale=scale[:d]), metrics.lp(p, scale[:d]))


METRICS = {
    "euclidean": lambda d: ("euclidean", metrics.euclidean),
    "manhattan": lambda d: ("manhattan", metrics.manhattan),
    "chebyshev": lambda d: ("chebyshev", metrics.chebyshev),
    "lp-3": lp_pair(3),
    "lp-1-scaled": lp_pair(1, SCALE),
    "lp-2-box": lp_pair(2, "box"),
    "lp-inf-scaled": lp_pair(np.inf, SCALE),
}


def in_own_units(lipschitz, width):
    """Lipschitz constants for rewards in [0, 1] as they are for rewards in a range of that width."""
    if isinstance(lipschitz, tuple):
        return lipschitz[0] * width, lipschitz[1]
    return None if lipschitz is None else np.asarray(lipschitz) * width


def tolerance(greedy: bool, log: Log, merge: float | None) -> float:
    """How far read-outs may be off: see `kernelrl.planning.passing` for exact Kernel-UCBVI."""
    return TOLERANCE if greedy or merge is not None else PLAN_ERROR


class Pair:
    """A public agent and its naive counterpart, told the same things."""

    def __init__(
        self,
        greedy: bool,
        log: Log,
        *,
        sigma: float = 0.117,
        beta: float = 0.0137,
        kernel=KERNELS["gaussian"],
        metric=("euclidean", metrics.euclidean),
        bonus_scale: float = 0.05,
        factors: tuple[float, float, float] = (1.0, 1.0, 1.0),
        lipschitz=None,
        stationary: bool = True,
        replan: str | float = "episode",
        reward_range=(0, 1),
        seed: int = 0,
        bounds=BOX,
        merge: float | None = None,
        most: int | None = None,
        reading: str = "nearest",
        local: tuple[float, float, str] | None = None,  # minimum, exponent and by of `krl.schedules.Local`
        several: tuple[float, ...] = (),  # of `krl.schedules.Bandwidths`, in the place of `sigma`
        related: float | None = None,  # σ_A between actions, whose distance is that of their numbers
        continuous: bool = False,  # actions are those of a net, from -1 to 2
        measured: bool = False,  # their distance is given as it is, and lipschitz holds for it
        plan_tolerance: float = 1e-12,  # of plans on representatives
        mask=None,  # which actions are allowed in a state
        **others,
    ):
        H, A, d = log.H, log.A, log.d
        self.log, self.greedy, self.seed = log, greedy, seed
        self.tolerance = max(tolerance(greedy, log, merge), plan_tolerance)
        self.low, self.width = reward_range[0], reward_range[1] - reward_range[0]
        nothing = -self.low / self.width
        bandwidth = sigma if local is None else krl.schedules.Local(sigma, *local)
        public = {
            "bandwidth": krl.schedules.Bandwidths(several) if several else bandwidth,
            "regularization": beta,
            "kernel": kernel[0],
            "metric": metric[0],
            "bonus": krl.bonuses.Simplified(*factors),
            "bonus_scale": bonus_scale,
            "lipschitz": in_own_units(lipschitz, self.width),
            "stationary": stationary,
            "representatives": merge,
            "max_representatives": most,
            "horizon": H,
            "reward_range": reward_range,
            "reading": reading,
            "action_bandwidth": None if related is None and measured else "auto" if related is None else related,
            "action_metric": "euclidean" if measured or (related is not None and not continuous) else "auto",
            "action_bins": A if continuous else "auto",
            **({} if mask is None else {"mask": mask}),
            **others,
        }
        self.mask = mask
        L = lipschitz_constants(lipschitz, H)
        shared = (H, A, sigma, beta, kernel[1], metric[1])
        bonus = SimplifiedBonus(H, *factors)
        self.deployed = NaiveDeployed(*shared, stationary, nothing)
        if greedy:
            self.agent = krl.GreedyKernelUCBVI(**public)
            self.naive = NaiveGreedyKernelUCBVI(*shared, L, stationary, bonus_scale, bonus, nothing)
        else:
            self.agent = krl.KernelUCBVI(**public, replan=replan)
            self.naive = NaiveKernelUCBVI(*shared, L, stationary, replan, bonus_scale, bonus, nothing)
        if several:
            each = estimates(several, beta, kernel[1], metric[1], A, bonus_scale, [bonus] * len(several))
            self.deployed = SeveralDeployed(H, A, each, stationary, nothing)
            if greedy:
                self.naive = SeveralGreedyKernelUCBVI(H, A, each, L, stationary, nothing)
            else:
                self.naive = SeveralKernelUCBVI(H, A, each, L, stationary, replan, nothing)
        self.related, measured = None, measured or (related is not None and not continuous)
        spacing = (3.0 if measured else 1.0) / max(1, A - 1) if continuous else 1.0
        places = spacing * np.arange(A)[:, None]
        if measured and L is not None and A > 1:
            self.naive.between = Between(places, all_between=continuous)
        if related is not None:
            limit = OTHERS if continuous and local is not None else np.inf
            self.related = Related.of(abs(places - places.T), related, limit)
            for one in self.naive.estimates if several else (self.naive, self.deployed):
                one.kernel["related"] = self.related
        if merge is not None or related is not None or getattr(self.naive, "between", None) is not None:
            merge = merge or 0.0
            representatives, blend = NaiveRepresentatives(merge, metric[1], most or np.inf), reading == "blend"
            itself = () if greedy or L is None else ("q_values", "values")
            self.naive = representatives.before(self.naive, itself, blend)
            self.deployed = representatives.before(self.deployed, blend=blend)
            self.naive.followers.append(self.deployed)
        if mask is not None:
            for one in (self.naive, self.naive.naive, self.deployed, self.deployed.naive):
                one.mask = mask
        self.bandwidths = None
        if local is not None:
            table = NaiveLocal(A, sigma, *local, kernel[1], metric[1], representatives)
            table.related = self.related
            self.bandwidths = Bandwidths(table, self.naive, self.deployed)
        self.agent.plan_tolerance = plan_tolerance
        box = gym.spaces.Box(bounds[0][:d], bounds[1][:d], dtype=np.float64)
        self.agent.start(box, gym.spaces.Box(-1.0, 2.0, (1,)) if continuous else gym.spaces.Discrete(A), H, seed)

    def begin_episode(self) -> None:
        self.agent.begin_episode()
        if self.bandwidths is not None:
            self.bandwidths.begin_episode()
        self.naive.begin_episode()

    def observe(self, t) -> None:
        self.agent.observe(
            t.x, self.agent.spaces.action(t.a), self.low + self.width * t.r, t.y, t.h, terminated=t.terminated
        )
        self.naive.observe(*t)
        if not hasattr(self.naive, "followers"):
            self.deployed.observe(*t)

    def check(self, states) -> None:
        """All read-outs at all steps."""
        states = np.asarray(states, dtype=float)
        for h in range(self.log.H):
            for name in READ_OUTS:
                actual = getattr(self.agent, name)(states, step=h)
                expected = getattr(self.naive, name)(states, h)
                assert actual.shape == expected.shape
                off = self.tolerance * self.width if name in ("q_values", "values") else TOLERANCE
                if name != "counts":
                    expected = expected * self.width
                if name in ("q_values", "values"):
                    expected = expected + self.low * (self.log.H - h)
                assert_allclose(actual, expected, rtol=TOLERANCE, atol=off, err_msg=f"{name} at step {h}")

    def allowed(self, q, states) -> np.ndarray:
        """Q of the actions that are allowed; -∞ of others."""
        if self.mask is None:
            return q
        return np.array(
            [[q[i, a] if self.mask(x, a) else -np.inf for a in range(self.log.A)] for i, x in enumerate(states)]
        )

    def check_policies(self, states) -> None:
        """The action chosen is optimistic-greedy, the one deployed greedy without bonus; ties aside."""
        for h in range(self.log.H):
            q, deployed = (self.allowed(one.q_values(states, h), states) for one in (self.naive, self.deployed))
            for i, x in enumerate(states):
                number = self.agent.spaces.check_action
                assert number(self.agent.choose(x, h)) in argmax_set(q[i], 2 * self.tolerance)
                assert number(self.agent.act(x, step=h)) in argmax_set(deployed[i], TOLERANCE)

    def play(self, states, rng: np.random.Generator, checks: int = 3) -> None:
        """Go through the log; check at a few random moments, before the first episode's first sample and at the end."""
        moments = set(rng.integers(len(self.log.transitions) + 1, size=checks).tolist())
        seen = 0
        for episode in self.log.episodes:
            self.begin_episode()
            if seen == 0 or seen in moments:
                self.check(states)
            for t in episode:
                if rng.random() < 0.5:  # people with their own loop need not ask, nor obey, nor ask about this state
                    x = t.x if rng.random() < 0.5 else states[rng.integers(len(states))]
                    a = self.agent.spaces.check_action(self.agent.choose(x, t.h))
                    assert rng.random() < 0.8 or a in argmax_set(
                        self.allowed(self.naive.q_values([x], t.h), [x])[0], 2 * self.tolerance
                    )
                self.observe(t)
                seen += 1
                if seen in moments:
                    self.check(states)
                    self.check_policies(states[:3])
            self.agent.end_episode()
        self.check(states)
        self.begin_episode()
        self.check(states)
        self.check_policies(states[:12])

    def check_moved(self, states) -> None:
        """Values fell below the cap at every step, or agreement would mean little."""
        for h in range(self.log.H):
            assert (self.naive.values(states, h) < self.log.H - h - 1e-3).any(), f"no value moved at step {h}"


def some_states(log: Log, rng: np.random.Generator, n: int = 25) -> np.ndarray:
    """States of the log, states near them and states anywhere in the unit box, (n, d)."""
    visited = rng.permutation(np.unique(log.states(), axis=0))[:n]
    near = np.clip(visited[:8] + 0.05 * rng.standard_normal((min(8, len(visited)), log.d)), 0, 1)
    return np.concatenate([visited, near, rng.random((8, log.d))])


def compare(greedy: bool, rng_seed: int = 0, transitions: int = 150, checks: int = 3, d: int = 2, **options) -> Pair:
    rng = np.random.default_rng(rng_seed)
    log = random_log(rng, H=3, A=2, d=d, transitions=transitions, sites=4)
    states = some_states(log, rng)
    pair = Pair(greedy, log, **options)
    pair.play(states, rng, checks)
    pair.check_moved(states)
    return pair


@st.composite
def hyper_parameters(draw, log: Log, greedy: bool):
    options = {
        "sigma": draw(st.sampled_from(BANDWIDTHS)),
        "beta": draw(st.sampled_from(REGULARIZATIONS)),
        "kernel": KERNELS[draw(st.sampled_from(sorted(KERNELS)))],
        "metric": METRICS[draw(st.sampled_from(sorted(METRICS)))](log.d),
        "bonus_scale": draw(st.sampled_from(BONUS_SCALES)),
        "factors": draw(st.sampled_from(FACTORS)),
        "lipschitz": draw(lipschitz_options(log.H) if greedy else st.one_of(st.none(), lipschitz_options(log.H))),
        "stationary": draw(st.booleans()),
        "reward_range": draw(st.sampled_from(RANGES)),
    }
    if not greedy:
        options["replan"] = draw(st.sampled_from(["episode", "step", "doubling", 1.3, "auto"]))
    return options


LIPSCHITZ = {"number": 0.5, "array": np.array([0.8, 0.3, 0.6]), "list": [0.8, 0.3, 0.6], "tuple": (0.4, 0.6)}
