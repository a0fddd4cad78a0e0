"""`kernelrl.theory.summarise`: the numbers, and what it refuses."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from kernelrl.theory import summarise

TWIN = "kernelrl/TwinRooms-v0"


def test_numbers():
    answer = summarise(TWIN, episodes=5000)
    assert answer["horizon"] == 20 and answer["lipschitz"][0] == 200.0 and answer["lipschitz"][-1] == 10.0
    assert answer["bonuses"]["count"] == [1, 10, 100, 1000, 10_000, 100_000, 1_000_000]
    assert answer["regret"]["kernel_ucbvi"]["total"] > answer["regret"]["ceiling"]
    assert answer["regret"]["says_something_from"] > 1e20


def test_a_useful_bound_is_called_so():
    """A bound below the ceiling needs absurdly many episodes, which the same function can be asked about."""
    K = 10**60
    answer = summarise(TWIN, K)
    assert answer["regret"]["kernel_ucbvi"]["total"] < K * 20
    start = answer["regret"]["says_something_from"]
    before = summarise(TWIN, int(start) // 10)
    assert before["regret"]["kernel_ucbvi"]["total"] > before["regret"]["ceiling"]


def test_unknown_constants_are_said_to_be():
    gym.register("theory-tests/Line-v0", entry_point="small_envs:Line", max_episode_steps=5)
    try:
        answer = summarise("theory-tests/Line-v0", 1000)
        assert not answer["lipschitz_known"]
        assert answer["lipschitz"][0] == pytest.approx(np.log(1000))
        assert summarise("theory-tests/Line-v0", 1000, lipschitz=(1.0, 1.0))["lipschitz_known"]
    finally:
        del gym.registry["theory-tests/Line-v0"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"episodes": 0}, "episodes must be a whole number of at least 1, got 0"),
        ({"episodes": 2.5}, "episodes must be a whole number"),
        ({"delta": 0.0}, "delta must lie between 0 and 1, got 0.0"),
        ({"delta": 1.0}, "delta must lie between 0 and 1"),
        ({"bandwidth": 0.0}, "bandwidth must be a finite number above 0, got 0.0"),
        ({"regularization": -1.0}, "regularization must be a finite number above 0"),
        ({"lipschitz": (-1.0, 1.0)}, "reward must be a finite number of at least 0, got -1.0"),
        ({"kernel": "tricube"}, "kernel: tricube is outside the theory; use gaussian, compact, krl.kernels"),
        ({"env_id": "kernelrl/Nowhere-v0"}, 'env: there is no environment "kernelrl/Nowhere-v0"'),
        ({"env_id": "CartPole-v1"}, "covering number of an unbounded box is infinite"),
        ({"env_id": "FrozenLake-v1"}, "states must be a Box and actions Discrete"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        summarise(**{"env_id": TWIN, "episodes": 100, **options})
