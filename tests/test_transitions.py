"""`fit(…, transitions=True)`: every transition as a row, by both drivers, also around errors and in parts."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import polars
import pytest

import kernelrl as krl
from kernelrl.agents.transitions import empty_frame
from kernelrl.episodes.loop import run_compiled
from small_envs import Chain, Line

ENV = "kernelrl/TwinRooms-v0"
COLUMNS = [
    "episode", "step", "state_0", "state_1", "action", "reward", "next_state_0", "next_state_1", "terminated",
    "truncated",
]  # fmt: skip


def make():
    return krl.UCBVI(bins=5, bonus_scale=0.1)


class Noting(gym.Wrapper):
    """Notes what passes through it: the naive version."""

    def __init__(self, env):
        super().__init__(env)
        self.rows, self.episode = [], -1

    def reset(self, **options):
        self.episode, self.time = self.episode + 1, 0
        self.x, info = self.env.reset(**options)
        return self.x, info

    def step(self, action):
        y, reward, terminated, truncated, info = self.env.step(action)
        self.rows.append((self.episode, self.time, *np.ravel(self.x), *np.ravel(action), reward, *np.ravel(y),
                          terminated, truncated and not terminated))  # fmt: skip
        self.x, self.time = y, self.time + 1
        return y, reward, terminated, truncated, info


def check_rows(table, noted):
    """A row for each step, with the same numbers."""
    expected = np.array(noted, np.float64)
    assert np.array_equal(table.to_numpy().astype(np.float64), expected)


@pytest.mark.parametrize("driver", ["compiled", "python"])
def test_both_drivers_record_the_same(driver):
    env = gym.make(ENV)
    noting = Noting(env)
    make().fit(noting, 12, seed=3, progress=False)
    agent = make()
    history = agent.fit(env, 12, seed=3, driver=driver, progress=False, transitions=True)
    table = history.transitions
    assert table.columns == COLUMNS and len(table) == history.lengths.sum()
    assert table.dtypes == [polars.Int64] * 2 + [polars.Float64] * 2 + [polars.Int64] + [polars.Float64] * 3 + [
        polars.Boolean, polars.Boolean,
    ]  # fmt: skip
    check_rows(table, noting.rows)
    assert np.array_equal(table.group_by("episode", maintain_order=True).sum()["reward"].to_numpy(), history.returns)


def test_recording_changes_nothing():
    one, other = make(), make()
    histories = [one.fit(ENV, 10, seed=3), other.fit(ENV, 10, seed=3, transitions=True)]
    assert histories[0].transitions is None
    assert np.array_equal(histories[0].returns, histories[1].returns)
    assert np.array_equal(one.q_values([[0.1, 0.1]], 0), other.q_values([[0.1, 0.1]], 0))


def test_nothing_else_is_compiled_for_those_that_do_not_record():
    agent = make()
    agent.fit(ENV, 1, seed=3)
    before = len(run_compiled.signatures) if hasattr(run_compiled, "signatures") else 0
    make().fit(ENV, 2, seed=4)
    assert (len(run_compiled.signatures) if hasattr(run_compiled, "signatures") else 0) == before


def test_in_parts_it_is_the_same():
    whole = make().fit(ENV, 10, seed=3, transitions=True).transitions
    agent = make()
    parts = [agent.fit(ENV, n, seed=3, transitions=True).transitions for n in (4, 0, 6)]
    assert polars.concat(parts).equals(whole)
    assert parts[1].equals(empty_frame(agent.spaces))


@pytest.mark.parametrize(
    "env", [Line(ends=True, first=2), Chain(first=3), Chain(box=True)], ids=["ends", "numbers", "box"]
)
def test_other_spaces_and_ends(env):
    noting = Noting(gym.wrappers.TimeLimit(env, 7))
    new = krl.UCBVI if isinstance(env.observation_space, gym.spaces.Discrete) else lambda: krl.UCBVI(bins=4)
    table = new().fit(noting, 20, seed=0, progress=False, transitions=True).transitions
    assert table.columns[2] == ("state" if isinstance(env.observation_space, gym.spaces.Discrete) else "state_0")
    check_rows(table, noting.rows)
    assert new().learn_from(table, env=noting) == len(table)


def test_continuous_actions():
    noting = Noting(gym.make("kernelrl/Oil-v0"))
    krl.RandomAgent().fit(noting, 20, seed=0, progress=False)
    table = krl.RandomAgent().fit("kernelrl/Oil-v0", 20, seed=0, progress=False, transitions=True).transitions
    assert table.columns[3] == "action_0"
    check_rows(table, noting.rows)


def test_the_horizon_of_the_agent_truncates():
    history = krl.UCBVI(bins=5, horizon=3).fit(ENV, 4, seed=0, transitions=True)
    assert history.transitions["truncated"].to_list() == [False, False, True] * 4
    assert history.transitions["step"].to_list() == [0, 1, 2] * 4


class BrokenError(Exception):
    """Of the environment."""


class Breaking(gym.Wrapper):
    """Fails at a step."""

    steps = 0

    def step(self, action):
        self.steps += 1
        if self.steps == 47:
            raise BrokenError
        return self.env.step(action)


def test_after_an_error_the_rows_of_whole_episodes():
    whole = make().fit(gym.make(ENV), 2, seed=3, transitions=True).transitions
    agent = make()
    with pytest.raises(BrokenError) as caught:
        agent.fit(Breaking(gym.make(ENV)), 9, seed=3, progress=False, transitions=True)
    assert caught.value.history.transitions.equals(whole)


def test_a_compiled_run_that_fails():
    """Episodes that are played again to go back are not recorded again."""
    new = lambda: krl.UCBVI(bins=5, reward_range=(-50, -0.5))  # noqa: E731
    with pytest.raises(ValueError, match="excludes 0") as caught:
        new().fit(gym.make("kernelrl/PuddleWorld-v0"), 500, seed=0, progress=False, transitions=True)
    history = caught.value.history
    assert len(history.transitions) == history.lengths.sum()
    assert np.array_equal(
        history.transitions.group_by("episode", maintain_order=True).sum()["reward"].to_numpy(), history.returns
    )


def test_with_a_monitor():
    history = make().fit(ENV, 2, seed=3, monitor=lambda states, h: np.zeros(len(states)), transitions=True)
    assert len(history.transitions) == len(history.optimism.values) == 40
    with pytest.raises(ValueError, match="transitions must be True or False"):
        make().fit(ENV, 2, transitions=1)
