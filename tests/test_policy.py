"""`agent.policy()`: what `act` plays, as one object for Python and for users' compiled code."""

from __future__ import annotations

import pickle
import warnings

import gymnasium as gym
import numba
import numpy as np
import pytest

import kernelrl as krl
from small_envs import Chain

H = 6
WORLD = gym.make("kernelrl/PuddleWorld-v0", max_episode_steps=H)
STATES = np.random.default_rng(0).random((60, 2))


@numba.njit
def play(policy, states, steps, out):
    for i in range(out.size):
        out[i] = policy(states[i], steps[i])


def trained(name, env, episodes=40, **options):
    agent = getattr(krl, name)(horizon=H, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few episodes are not meant to teach much
        agent.fit(env, episodes, seed=0, progress=False)
    return agent


def check(agent, states):
    """Compiled and from Python, `policy` does as `act`."""
    steps = np.arange(len(states)) % H
    wanted = [agent.act(x, step=int(h)) for x, h in zip(states, steps, strict=True)]
    policy, found = agent.policy(), np.zeros(len(states), np.int64)
    play(policy, states, steps, found)
    if policy.actions is None:
        assert found.tolist() == wanted
    else:
        np.testing.assert_array_equal(policy.actions[found].astype(np.float32), np.array(wanted, np.float32))
    assert [policy(x, h) for x, h in zip(states, steps, strict=True)] == found.tolist()
    return policy, found


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("UCBVI", {"bins": 5}),
        ("GreedyUCBVI", {"bins": 5, "stationary": False}),
        ("OptQL", {"bins": 5}),
        ("AdaptiveQL", {}),
        ("RandomAgent", {}),
        ("KernelUCBVI", {"bandwidth": 0.1}),
        ("GreedyKernelUCBVI", {"bandwidth": 0.1, "representatives": None, "lipschitz": 1.0, "reading": "nearest"}),
    ],
)
def test_as_act(name, options):
    agent = trained(name, WORLD, **options)
    _, found = check(agent, STATES)
    assert len(set(found.tolist())) > 1


def test_automatic_settings():
    agent = trained("KernelUCBVI", WORLD, 60)
    check(agent, STATES)


@pytest.mark.parametrize("name", ["AdaptiveQL", "RandomAgent"])
def test_continuous_actions(name):
    """The result is the row of `policy.actions`."""
    env = gym.make("kernelrl/Oil-v0")
    agent = trained(name, env)
    states = np.random.default_rng(0).random((40, *env.observation_space.shape))
    policy, _ = check(agent, states)
    assert policy.actions.shape == agent.action_net.shape


def test_discrete_states():
    """A state is a number."""
    agent = trained("UCBVI", Chain(box=False, slip=0.1), bonus_scale=0.1)
    check(agent, np.arange(4))


def test_it_is_a_snapshot():
    """Learning on and losing the agent change nothing."""
    states, steps = np.random.default_rng(0).random((300, 2)), np.arange(300) % H
    for name, options in (("UCBVI", {"bins": 8}), ("OptQL", {"bins": 8}), ("KernelUCBVI", {"bandwidth": 0.1})):
        agent = trained(name, WORLD, 10, **options)
        policy, before, after, new = agent.policy(), *np.zeros((3, 300), np.int64)
        play(policy, states, steps, before)
        agent.fit(WORLD, 300, progress=False)
        play(policy, states, steps, after)
        play(agent.policy(), states, steps, new)
        assert np.array_equal(before, after) and not np.array_equal(before, new)
        del agent
        again = pickle.loads(pickle.dumps(policy))
        play(again, states, steps, after)
        assert np.array_equal(before, after)


def test_any_state_and_step():
    """States are moved into the box, steps to the last one; arrays may have any type and strides."""
    policy = trained("UCBVI", WORLD, bins=5).policy()
    found = np.zeros(6, np.int64)
    states = np.array([[5.0, 0.2], [-1.0, 0.2], [1.0, np.nan], [0.3, 0.4], [0.3, 0.4], [0.3, 0.4]])
    play(policy, states, np.array([0, 0, 0, H - 1, H + 100, -3]), found)
    assert found.tolist() == [
        policy([1.0, 0.2], 0), policy([0.0, 0.2], 0), policy([1.0, 0.0], 0), policy([0.3, 0.4], H - 1),
        policy([0.3, 0.4], H - 1), policy([0.3, 0.4], 0),
    ]  # fmt: skip
    again = np.zeros(6, np.int64)
    play(policy, np.asfortranarray(states).astype(np.float32), np.array([0, 0, 0, H - 1, H + 100, -3]), again)
    assert again.tolist() == found.tolist()
    with pytest.raises(ValueError, match="coordinates"):
        play(policy, np.zeros((6, 3)), np.zeros(6, np.int64), found)
    with pytest.raises(ValueError, match="state must have shape"):
        policy([0.1, 0.2, 0.3], 0)


def test_a_global_of_a_compiled_function():
    policy = trained("UCBVI", WORLD, bins=5).policy()

    @numba.njit
    def first(x, y):
        return policy(np.array([x, y]), 0)

    assert first(0.5, 0.5) == policy([0.5, 0.5], 0)


def test_wrong_arguments():
    policy = trained("UCBVI", WORLD, bins=5).policy()
    for call in ("policy(x)", "policy(x, 0, 1)", "policy(0.5, 0)", "policy(x, 0.5)", "policy(x, step=1)"):
        scope: dict = {"__name__": __name__}
        exec(f"def wrong(policy, x):\n    return {call}", scope)
        with pytest.raises(numba.core.errors.TypingError, match="a policy is called"):
            numba.njit(scope["wrong"])(policy, np.zeros(2))


def test_a_policy_of_ones_own():
    """A subclass that deploys something else must say what, for compiled code too."""

    class Other(krl.OptQL, abstract=True):
        def deployed_actions(self, states, step):
            return np.zeros(len(states), np.int64)

    agent = Other(bins=3, horizon=H)
    agent.start(gym.spaces.Box(0.0, 1.0, (2,), np.float64), gym.spaces.Discrete(2), H, 0)
    with pytest.raises(TypeError, match="policy: compiled code does not know the policy to deploy of Other"):
        agent.policy()
    with pytest.raises(RuntimeError, match="has not been started"):
        krl.OptQL(bins=3).policy()
