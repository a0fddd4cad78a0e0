"""What the analysis promises, on Ramp, whose optimal values are known: optimism, monotonicity, Lipschitz continuity.

Each test also shows that values moved below the cap, and that it would see a bonus that is too small.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_allclose

import kernelrl as krl
from naive.ramp import RampValues

H = 2
STATES = np.linspace(0.0, 1.0, 41)[:, None]
NOISY = {"noise": 0.15}  # spreads the visited states, so that the kernel's bias counts
OPTIONS = {"bandwidth": 0.3, "regularization": 1.0, "lipschitz": (0.5, 1.0), "representatives": None}
OPTIONS["reward_range"] = (0, 1)


def ramp(**options):
    return gym.make("kernelrl/Ramp-v0", **options)


def learner(greedy, bonus, **options):
    cls = krl.GreedyKernelUCBVI if greedy else krl.KernelUCBVI
    return cls(**{**OPTIONS, "bonus": bonus, **options})


def rounds(agent, episodes, times, seed=0, **env_options):
    """Yield after each of `times` runs of `episodes` episodes."""
    env = ramp(**env_options)
    for _ in range(times):
        agent.fit(env, episodes, seed=seed if agent.episodes == 0 else None, driver="python")
        agent.begin_episode()  # so that the last data are planned with
        yield
        agent.end_episode()


def test_optimal_values():
    """Far from the walls and with a straight ramp, going right twice from ½ brings 0.5·(0.5 + 0.7)."""
    assert_allclose(RampValues(2).values([[0.5]], 0), 0.6, atol=1e-9)
    env, rng = ramp(noise=0.3).unwrapped, np.random.default_rng(0)
    optimal = RampValues(2, noise=0.3)
    returns = []
    for seed in rng.integers(2**31, size=4000):
        env.reset(seed=int(seed))
        returns.append(env.step(1)[1] + env.step(1)[1])
    assert abs(np.mean(returns) - optimal.q_values([[0.5]], 0)[0, 1]) < 4 * np.std(returns) / np.sqrt(len(returns))


@pytest.mark.parametrize("merge", [None, 0.03])
@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("greedy", [True, False])
def test_optimism(greedy, stationary, merge):
    optimal = RampValues(H, **NOISY)
    agent = learner(greedy, krl.bonuses.Joint(0.1, 1000), stationary=stationary, representatives=merge)
    moved = np.zeros(H, bool)
    for _ in rounds(agent, 240, 4, **NOISY):
        for h in range(H):
            V = agent.values(STATES, step=h)
            assert (V >= optimal.values(STATES, h) - 1e-9).all()
            assert (agent.q_values(STATES, step=h) >= optimal.q_values(STATES, h) - 1e-9).all()
            moved[h] |= (V < H - h - 1e-3).any()
    assert moved.all()


@pytest.mark.parametrize("greedy", [True, False])
def test_a_shrunken_bonus_is_caught(greedy):
    """The same check as in `test_optimism` fails with a twentieth of the bonus."""
    optimal, agent = RampValues(H, **NOISY), learner(greedy, krl.bonuses.Joint(0.1, 1000), bonus_scale=0.05)
    short = [
        (agent.values(STATES, step=h) < optimal.values(STATES, h) - 1e-3).any()
        for _ in rounds(agent, 240, 2, **NOISY)
        for h in range(H)
    ]
    assert any(short)


def test_the_full_bonus_is_optimistic_and_says_nothing():
    agent = learner(True, krl.bonuses.Full(0.1, 300))
    for _ in rounds(agent, 200, 1):
        assert (agent.values(STATES, step=0) == H).all()
        assert (agent.bonuses(STATES, step=0) > 2 * H).all()


def test_greedy_is_monotone():
    agent = learner(True, krl.bonuses.Joint(0.1, 1000))
    before = np.array([np.full(len(STATES), float(H - h)) for h in range(H)])
    first = before
    for _ in rounds(agent, 60, 12, **NOISY):
        V = np.array([agent.values(STATES, step=h) for h in range(H)])
        assert (V <= before).all()
        before = V
    assert (before < first - 1e-3).any(axis=1).all()


def test_kernel_ucbvi_need_not_be_monotone():
    """A plan from scratch can raise values, with new data: what holds for Greedy is not a matter of course."""
    agent = learner(False, krl.bonuses.Simplified(scale=0.1), bandwidth=0.05)
    before, rose = np.full(len(STATES), float(H)), False
    for _ in rounds(agent, 10, 12, **NOISY):
        V = agent.values(STATES, step=0)
        rose |= bool((V > before + 1e-6).any())
        before = V
    assert rose


@pytest.mark.parametrize("greedy", [True, False])
def test_values_are_lipschitz(greedy):
    L = [1.0, 0.5]
    agent = learner(greedy, krl.bonuses.Joint(0.1, 1000), bandwidth=0.1)
    rho = np.abs(STATES - STATES.T)
    for _ in rounds(agent, 400, 2, **NOISY):
        for h in range(H):
            V = agent.values(STATES, step=h)
            assert (np.abs(V[:, None] - V) <= L[h] * rho + 1e-9).all()
            assert np.abs(V[:, None] - V).max() > 1e-3
            if not greedy:  # Greedy's Q̃ is that of the state itself, and is not interpolated
                Q = agent.q_values(STATES, step=h)
                for q in Q.T[np.isfinite(Q).all(axis=0)]:
                    assert (np.abs(q[:, None] - q) <= L[h] * rho + 1e-9).all()


def test_targets_themselves_are_not_lipschitz():
    """Without interpolation the last test would fail."""
    agent = learner(False, krl.bonuses.Simplified(), bandwidth=0.05, lipschitz=None)
    for _ in rounds(agent, 200, 1):
        Q = agent.q_values(STATES, step=0)[:, 1]
        assert (np.abs(Q[:, None] - Q) > 1.0 * np.abs(STATES - STATES.T) + 1e-3).any()


# --------------------------------------------------------------------------------------------------- the monitor


@pytest.mark.parametrize("greedy", [True, False])
def test_monitor(greedy):
    optimal = RampValues(H, **NOISY)
    valid = learner(greedy, krl.bonuses.Joint(0.1, 1000)).fit(ramp(**NOISY), 400, seed=1, monitor=optimal.values)
    seen = valid.optimism
    assert seen.values.shape == seen.optimal.shape == (400 * H,)
    assert seen.steps[:4].tolist() == [0, 1, 0, 1] and seen.episodes[-1] == 399
    assert seen.rate == 0.0 and seen.worst == 0.0 and seen.moved > 0.1
    small = learner(greedy, krl.bonuses.Joint(0.1, 1000), bonus_scale=0.01).fit(
        ramp(**NOISY), 400, seed=1, monitor=optimal
    )
    assert small.optimism.rate > 0.05
    assert small.optimism.worst == pytest.approx((small.optimism.optimal - small.optimism.values).max())


def test_monitoring_changes_nothing():
    plain, watched = (learner(True, krl.bonuses.Simplified(scale=0.1)) for _ in range(2))
    first = plain.fit(ramp(), 50, seed=3, driver="python")
    watched.fit(ramp(), 10, seed=3)
    second = watched.fit(ramp(), 40, monitor=RampValues(H).values)
    assert np.array_equal(first.returns[10:], second.returns) and first.optimism is None
    assert second.optimism.episodes[[0, -1]].tolist() == [10, 49]
    assert np.array_equal(plain.values(STATES, step=0), watched.values(STATES, step=0))


def test_monitor_refuses_what_it_cannot_use():
    agent = learner(True, "simplified")
    with pytest.raises(TypeError, match="monitor must be a function"):
        agent.fit(ramp(), 5, monitor=3)
    with pytest.raises(ValueError, match='leave driver="compiled" out'):
        agent.fit(ramp(), 5, monitor=RampValues(H).values, driver="compiled")
    with pytest.raises(ValueError, match="one value per state"):
        agent.fit(ramp(), 5, monitor=lambda states, step: np.zeros((len(states), 2)))
