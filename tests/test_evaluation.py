"""`agent.evaluate`: the deployed policy's value, and an agent that stays as it was."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from hypothesis import given
from hypothesis import strategies as st

import kernelrl as krl
from kernelrl.agents.evaluation import FIRST, empirical_bernstein, t_interval
from kernelrl.jit.stream import episode_seed
from naive import statistics as naive
from naive.ramp import RampValues
from plain import plain
from small_envs import Counting, Line


def fitted(**options):
    agent = plain(krl.GreedyKernelUCBVI)(
        bandwidth=0.1, bonus_scale=0.02, representatives=None, lipschitz=2.0, reward_range=(0, 1), **options
    )
    agent.fit(gym.make("kernelrl/TwinRooms-v0", goal=(0.3, 0.3), radius=0.3), 30, seed=3)
    return agent


@pytest.mark.parametrize(
    "agent",
    [
        plain(krl.GreedyKernelUCBVI)(
            bandwidth=0.1, bonus_scale=0.02, representatives=None, lipschitz=2.0, reward_range=(0, 1)
        ),
        plain(krl.KernelUCBVI)(bandwidth=0.1, bonus_scale=0.02, representatives=0.1, reward_range=(0, 1)),
        krl.UCBVI(bins=5, bonus_scale=0.02, reward_range=(0, 1)),
        krl.AdaptiveQL(bonus_scale=0.02, reward_range=(0, 1)),
        krl.AdaMB(bonus_scale=0.02, reward_range=(0, 1)),
        krl.RandomAgent(reward_range=(0, 1)),
    ],
    ids=lambda agent: type(agent).__name__,
)
def test_plays_the_deployed_policy(agent):
    """Against the loop written out."""
    env = gym.make("kernelrl/TwinRooms-v0", goal=(0.3, 0.3), radius=0.3)
    agent.fit(env, 30, seed=3)
    found = agent.evaluate(env, 12, 5)
    returns = []
    for k in range(12):
        state, _ = env.reset(seed=int(episode_seed(5, FIRST + k)))
        total = 0.0
        for step in range(20):
            state, reward, *_ = env.step(agent.act(state, step))
            total += reward
        returns.append(total)
    np.testing.assert_array_equal(found.returns, returns)
    assert found.mean == np.mean(returns)
    half = 2.2009851600916384 * np.std(returns, ddof=1) / np.sqrt(12)  # t of 11 degrees of freedom
    np.testing.assert_allclose(found.t_interval, [found.mean - half, found.mean + half])
    half = naive.empirical_bernstein(returns, 20.0, 0.05, 2)
    np.testing.assert_allclose(found.interval, np.clip([found.mean - half, found.mean + half], 0, 20))
    again = agent.evaluate(env, 12, 5, delta=0.5)
    assert again.t_interval[1] - again.t_interval[0] < found.t_interval[1] - found.t_interval[0]


def test_changes_nothing(tmp_path):
    env = gym.make("kernelrl/TwinRooms-v0", goal=(0.3, 0.3), radius=0.3)
    agent, other = fitted(), fitted()
    agent.evaluate(env, 3, 3)
    agent.save(tmp_path / "a.krl")
    other.save(tmp_path / "b.krl")
    assert (tmp_path / "a.krl").read_bytes() == (tmp_path / "b.krl").read_bytes()
    np.testing.assert_array_equal(agent.fit(env, 5).returns, other.fit(env, 5).returns)


def test_not_the_episodes_of_a_fit():
    env = Counting(TimeLimit(Line(), 6))
    agent = krl.RandomAgent(reward_range=(-1, 2))
    agent.fit(env, 3, seed=0)
    seeds = {int(episode_seed(0, k)) for k in range(1000)}
    assert not seeds & {int(episode_seed(0, FIRST + k)) for k in range(1000)}
    before = env.steps
    agent.evaluate(env, 4, 0)
    assert env.steps == before + 4 * 6  # a wrapper of the user's is obeyed


def test_ends_when_the_episode_ends():
    env = TimeLimit(Line(actions=3, first=2, ends=True), 50)
    agent = krl.RandomAgent(reward_range=(-1, 2))
    agent.fit(env, 1, seed=0)
    assert len(agent.evaluate(env, 20, 1).returns) == 20


def test_one_episode_says_nothing_about_the_spread():
    agent = fitted()
    found = agent.evaluate(gym.make("kernelrl/TwinRooms-v0"), 1)
    assert found.t_interval == (-np.inf, np.inf) and found.interval == (0.0, 20.0)


# -------------------------------------------------------------------------------------------- empirical Bernstein


@given(st.integers(2, 30), st.sampled_from([0.5, 1.0, 40.0]), st.sampled_from([0.01, 0.3]), st.sampled_from([1, 2]))
def test_empirical_bernstein(n, width, delta, sides):
    returns = np.random.default_rng(n).uniform(-0.5, 0.5, n) * width
    expected = naive.empirical_bernstein(returns.tolist(), width, delta, sides)
    np.testing.assert_allclose(empirical_bernstein(returns, width, delta, sides), expected, rtol=1e-9)


def test_empirical_bernstein_by_hand():
    """Of 0 and 1 the sample variance is ½; one side at δ = 2/e has log 1, two sides at 4/e."""
    assert empirical_bernstein([0.0, 1.0], 1.0, 2 / np.e, 1) == pytest.approx(np.sqrt(0.5) + 7 / 3)
    assert empirical_bernstein([5.0], 1.0, 0.1) == np.inf
    with pytest.raises(ValueError, match="sides"):
        empirical_bernstein([0.0, 1.0], 1.0, 0.1, 3)
    for delta in (0, 1, -0.1, "small", True, np.nan):
        with pytest.raises(ValueError, match="delta must be a number between 0 and 1"):
            empirical_bernstein([0.0, 1.0], 1.0, delta)


@pytest.mark.parametrize("rare", [1.0, -1.0])
def test_rare_returns_are_covered(rare):
    """One episode in a thousand pays: the t interval covers in two thirds of cases, the other as often as it says."""
    returns = rare * (np.random.default_rng(0).random((2000, 1000)) < 0.001)
    truth, t_covers, covers, above = 0.001 * rare, 0, 0, 0
    for row in returns:
        low, high = t_interval(row)
        t_covers += low <= truth <= high
        covers += abs(row.mean() - truth) <= empirical_bernstein(row, 1.0, 0.05)
        above += truth >= row.mean() - empirical_bernstein(row, 1.0, 0.05, 1)
    assert t_covers / 2000 < 0.75
    assert covers / 2000 >= 0.95 and above / 2000 >= 0.95


class Lottery(gym.Env):
    """One step, which pays `prize` with probability `chance`."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, prize, chance, ends=False):
        self.prize, self.chance, self.ends = prize, chance, ends

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.array([0.5]), {}

    def step(self, action):
        reward = self.prize if self.np_random.random() < self.chance else 0.0
        return np.array([0.5]), reward, self.ends, False, {}


def test_rare_returns_in_an_environment():
    """Where nothing was seen, Student's interval says that there is nothing; the other one does not."""
    env = TimeLimit(Lottery(1.0, 0.0005), 1)
    agent = krl.RandomAgent(reward_range=(0, 1))
    agent.fit(env, 1, seed=0)
    found = agent.evaluate(env, 500, 0)
    assert found.mean == 0.0 and found.t_interval == (0.0, 0.0)
    assert found.interval[0] == 0.0 and 0.0005 < found.interval[1] < 0.1


@pytest.mark.parametrize(
    ("reward_range", "possible"),
    [((-1, 2), (-3, 6)), ((0, 2), (0, 6)), ((-3, 0), (-9, 0)), ((1, 2), (0, 6)), ((-3, -1), (-9, 0))],
)
def test_the_interval_is_within_what_is_possible(reward_range, possible):
    """An episode may end early, so that even where each reward is at least 1 its return may be less than 3."""
    env = TimeLimit(Lottery(sum(reward_range) / 2, 1.0), 3)
    agent = krl.RandomAgent(reward_range=reward_range)
    agent.fit(env, 1, seed=0)
    assert agent.evaluate(env, 2, 0).interval == possible
    low, high = agent.evaluate(env, 3000, 0).interval
    assert possible[0] < low < 1.5 * sum(reward_range) < high < possible[1]


def test_no_interval_without_a_range_that_holds():
    agent = krl.RandomAgent(reward_range=(0, 1))
    agent.fit(TimeLimit(Lottery(1.0, 0.5), 2), 1, seed=0)
    assert agent.evaluate(TimeLimit(Lottery(1.0, 0.5), 2), 5).interval is not None
    beyond = agent.evaluate(TimeLimit(Lottery(1.5, 0.9), 2), 5)
    assert beyond.interval is None and np.isfinite(beyond.t_interval).all()
    agent = krl.RandomAgent()
    agent.fit(TimeLimit(Lottery(1.0, 0.5), 2), 9, seed=0)
    assert agent.evaluate(TimeLimit(Lottery(1.0, 0.5), 2), 5).interval is None
    agent = krl.RandomAgent(reward_range=(0, 0.5))  # a promise that was not kept while learning
    with pytest.warns(UserWarning, match="reward_range"):
        agent.fit(TimeLimit(Lottery(1.0, 0.9), 2), 9, seed=0)
    assert agent.evaluate(TimeLimit(Lottery(0.25, 0.5), 2), 5).interval is None


# ----------------------------------------------------------------------------------------------------- the policy's gap


class Starts(gym.Env):
    """Ramp from one of three starts, by Python."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = float(self.np_random.choice([0.4, 0.5, 0.6]))
        return np.array([self.x]), {}

    def step(self, action):
        reward = 0.5 * self.x
        self.x = float(np.clip(self.x + (0.2 if action else -0.2) + 0.02 * self.np_random.standard_normal(), 0, 1))
        return np.array([self.x]), reward, False, False, {}


CERTIFIED = {
    "reading": "nearest",
    "bandwidth": 0.1,
    "regularization": 5.0,
    "lipschitz": (0.5, 1.0),
    "bonus": krl.bonuses.Joint(0.05),
}
CERTIFIED["reward_range"] = (0, 1)


@pytest.mark.parametrize(("cls", "merge"), [(krl.GreedyKernelUCBVI, None), (krl.KernelUCBVI, 0.02)])
def test_policy_gap_written_out(cls, merge):
    env = TimeLimit(Starts(), 2)
    agent = cls(**CERTIFIED, representatives=merge)
    agent.fit(env, 2500, seed=0)
    found = agent.policy_gap(env, 40, 0.1, 7)
    gaps = []
    for k in range(40):
        state, _ = env.reset(seed=int(episode_seed(7, FIRST + k)))
        upper, total = min(agent.certificate(state)[1], 2.0), 0.0
        for step in range(2):
            state, reward, *_ = env.step(agent.act(state, step))
            total += reward
        gaps.append(upper - total)
    np.testing.assert_allclose(found.upper_values - found.returns, gaps)
    assert len(set(found.upper_values)) == 3 and found.upper_values.max() < 2.0
    half = naive.empirical_bernstein(gaps, 4.0, 0.1, 2)
    np.testing.assert_allclose(found.mean_gap, np.mean(gaps))
    np.testing.assert_allclose(found.interval, np.clip([np.mean(gaps) - half, np.mean(gaps) + half], -2, 2))
    assert found.bound == found.interval[1]
    np.testing.assert_array_equal(found.returns, agent.evaluate(env, 40, 7).returns)


def test_policy_gap_bounds_the_gap():
    """On Ramp, where V* is known: above the gap of the deployed policy, and it falls with data and episodes."""
    env = gym.make("kernelrl/Ramp-v0")
    best = RampValues(2).values([[0.5]], 0)[0]
    agent = krl.GreedyKernelUCBVI(**CERTIFIED, representatives=0.02)
    bounds = []
    for episodes in (20, 2000):
        agent.fit(env, episodes, seed=0)
        gap = best - agent.evaluate(env, 3000, 1).mean
        found = agent.policy_gap(env, 2000)
        assert gap - 0.01 <= found.mean_gap <= found.bound <= 2.0
        bounds.append(found.bound)
    assert bounds[1] < bounds[0] and found.bound < agent.policy_gap(env, 100).bound


def test_policy_gap_refusals():
    env = gym.make("kernelrl/Ramp-v0")
    agent = plain(krl.KernelUCBVI)(bandwidth=0.1, representatives=0.1)
    with pytest.raises(RuntimeError, match="not been started"):
        agent.policy_gap(env)
    agent.fit(env, 1, seed=0)
    with pytest.raises(ValueError, match=r"policy_gap: the bonus .* gives no certificate"):
        agent.policy_gap(env)
    agent = krl.KernelUCBVI(**CERTIFIED, representatives=0.1)
    agent.fit(env, 2, seed=0)
    for argument, value in (("episodes", 0), ("delta", 1.0), ("seed", -1)):
        with pytest.raises(ValueError, match=argument):
            agent.policy_gap(env, **{argument: value})
    with pytest.raises(ValueError, match=r"reward_range: rewards from 0 to 1\.5"):
        agent.policy_gap(TimeLimit(Lottery(1.5, 0.5), 2), 30)
    agent.policy_gap(TimeLimit(Lottery(1.0, 0.5, ends=True), 2), 3)  # an end is no truncation
    for shorter in (TimeLimit(Lottery(1.0, 0.5), 1), gym.make("kernelrl/Ramp-v0", max_episode_steps=1)):
        with pytest.raises(ValueError, match=r"truncated before 2 steps"):
            agent.policy_gap(shorter, 3)


def test_refusals():
    env = gym.make("kernelrl/TwinRooms-v0")
    with pytest.raises(RuntimeError, match="not been started"):
        krl.RandomAgent().evaluate(env, 3)
    agent = fitted()
    with pytest.raises(ValueError, match="episodes"):
        agent.evaluate(env, 0)
    with pytest.raises(ValueError, match="seed"):
        agent.evaluate(env, 3, -1)
    with pytest.raises(ValueError, match="states"):
        agent.evaluate(TimeLimit(Line(), 3), 3)
