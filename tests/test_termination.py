"""After `terminated` nothing more is collected: 0 in the environment's units, for every agent and range of rewards."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TransformObservation

import kernelrl as krl
from plain import GREEDY
from terminating import REWARDS, CorridorCells, Stop, optimal_values

KERNEL = {**GREEDY, "bandwidth": 0.02, "regularization": 0.001, "bonus_scale": 0.05}
# The agent, and whether its states are points of a box.
AGENTS = {
    "KernelUCBVI": (krl.KernelUCBVI, {**KERNEL, "representatives": None}, True),
    "KernelUCBVI per step": (krl.KernelUCBVI, {**KERNEL, "representatives": None, "stationary": False}, True),
    "KernelUCBVI merged": (krl.KernelUCBVI, {**KERNEL, "representatives": 0.01}, True),
    "KernelUCBVI merged, L": (krl.KernelUCBVI, {**KERNEL, "representatives": 0.01, "lipschitz": 300.0}, True),
    "GreedyKernelUCBVI": (krl.GreedyKernelUCBVI, {**KERNEL, "representatives": None, "lipschitz": 300.0}, True),
    "GreedyKernelUCBVI merged": (krl.GreedyKernelUCBVI, {**KERNEL, "representatives": 0.01}, True),
    "UCBVI": (krl.UCBVI, {"bonus_scale": 0.05}, False),
    "UCBVI per step": (krl.UCBVI, {"bonus_scale": 0.05, "stationary": False}, False),
    "UCBVI in a box": (krl.UCBVI, {"bonus_scale": 0.05, "bins": 6}, True),
    "GreedyUCBVI": (krl.GreedyUCBVI, {"bonus_scale": 0.05}, False),
    "OptQL": (krl.OptQL, {"bonus_scale": 0.05}, False),
    "AdaptiveQL": (krl.AdaptiveQL, {"bonus_scale": 0.1}, True),
    "AdaMB": (krl.AdaMB, {"bonus_scale": 0.1}, True),
}
SIZES = {"corridor": 4, "stop": 3}
HORIZON = 8


def make_env(kind, bounds, box, **options):
    """The environment, its model and how a state of the model is seen."""
    options = {**REWARDS[bounds][kind], **options}
    env = CorridorCells(cells=4, slip=0.0, **options) if kind == "corridor" else Stop(**options)
    if not box:
        return env, env, lambda x: x
    see = lambda x: np.array([(x + 0.5) / SIZES[kind]])  # noqa: E731
    return TransformObservation(env, see, gym.spaces.Box(0.0, 1.0, (1,), np.float64)), env, see


def value_of(agent, env, see, H):
    """V^π_0 (X,) of the deployed policy, from the model."""
    P, r, terminal = env.model()
    V = np.zeros(len(terminal))
    for h in reversed(range(H)):
        a = np.array([agent.act(see(x), h) for x in range(len(V))])
        own = P[a, np.arange(len(V))]  # (X, X)
        gain = r[np.arange(len(V)), a]
        gain = (own * gain).sum(axis=1) if gain.ndim == 2 else gain
        V = gain + own @ np.where(terminal, 0.0, V)
    return V


@pytest.mark.parametrize("bounds", REWARDS, ids=map(str, REWARDS))
@pytest.mark.parametrize("kind", ["corridor", "stop"])
@pytest.mark.parametrize("name", AGENTS)
def test_the_deployed_policy_is_optimal(name, kind, bounds):
    cls, options, box = AGENTS[name]
    env, inside, see = make_env(kind, bounds, box)
    agent = cls(**options, horizon=HORIZON, reward_range=bounds)
    agent.fit(env, 1500 if cls in (krl.OptQL, krl.AdaptiveQL, krl.AdaMB) else 250, seed=0)
    optimal = optimal_values(inside, HORIZON)
    assert value_of(agent, inside, see, HORIZON)[0] == pytest.approx(optimal.values([0], 0)[0], abs=1e-9)
    costs = [np.ptp(optimal.q_values([0], h)) for h in range(HORIZON)]
    assert max(costs) > 0.04, "every action is as good: nothing was put to the test"


@pytest.mark.parametrize("kind", ["corridor", "stop"])
@pytest.mark.parametrize("bounds", [(-1.0, 0.0), (-2.0, 0.0), (0.0, 1.0)], ids=str)
@pytest.mark.parametrize("name", ["KernelUCBVI merged", "GreedyKernelUCBVI merged", "UCBVI", "OptQL"])
def test_with_the_range_taken_from_what_is_seen(name, bounds, kind):
    cls, options, box = AGENTS[name]
    env, inside, see = make_env(kind, bounds, box)
    agent = cls(**options, horizon=HORIZON)
    agent.fit(env, 1500, seed=0)
    optimal = optimal_values(inside, HORIZON).values([0], 0)[0]
    assert value_of(agent, inside, see, HORIZON)[0] == pytest.approx(optimal, abs=1e-9)


@pytest.mark.parametrize("bounds", REWARDS, ids=map(str, REWARDS))
@pytest.mark.parametrize("kind", ["corridor", "stop"])
@pytest.mark.parametrize("cls", [krl.UCBVI, krl.GreedyUCBVI])
def test_an_environment_and_its_absorbing_twin_deploy_the_same_values(cls, kind, bounds):
    """From the same actions, with pooled data; the end of the twin is a state like any other."""
    deployed = []
    for twin in (False, True):
        env, _, _ = make_env(kind, bounds, False, twin=twin)
        agent = cls(horizon=HORIZON, reward_range=bounds)
        agent.start(env.observation_space, env.action_space, HORIZON, 0)
        for k in range(60):
            actions = np.random.default_rng(k).random(HORIZON) < 0.7
            x, _ = env.reset(seed=k)
            agent.begin_episode()
            for h in range(HORIZON):
                y, r, terminated, _, _ = env.step(int(actions[h]))
                agent.observe(x, int(actions[h]), r, y, h, terminated)
                x = y
                if terminated:
                    break
            agent.end_episode()
        agent.act(0, 0)
        deployed.append(agent._deployed[1])
    live = SIZES[kind] - 1
    np.testing.assert_allclose(deployed[0][:, :live], deployed[1][:, :live], rtol=0, atol=1e-9)
    assert (deployed[0][0, 0] > 0).all()


@pytest.mark.parametrize("name", AGENTS)
def test_stopping_is_seen_as_what_it_is(name):
    """Q of an action that ends it is its reward, whichever step it is; the bonus is 0."""
    cls, options, box = AGENTS[name]
    env, _, see = make_env("stop", (-2.0, 0.0), box)
    agent = cls(**{**options, "bonus_scale": 0.0}, horizon=HORIZON, reward_range=(-2.0, 0.5))
    agent.start(env.observation_space, env.action_space, HORIZON, 0)
    for _ in range(400):
        agent.begin_episode()
        for h in range(HORIZON):
            agent.observe(see(0), 0, -2.0, see(2), h, terminated=True)
        agent.end_episode()
    agent.begin_episode()
    states = np.array([see(0)])
    for h in range(HORIZON):
        assert agent.q_values(states, step=h)[0, 0] == pytest.approx(-2.0, abs=1e-3)


def test_the_monitor_and_optimal_values_agree(tmp_path):
    """V* of a problem that ends, and an optimistic agent's values, are in the same units."""
    env, inside, _ = make_env("corridor", (-1.0, 0.0), False)
    optimal = optimal_values(inside, HORIZON)
    agent = krl.UCBVI(horizon=HORIZON, reward_range=(-1, 0), bonus_scale=1.0)
    history = agent.fit(env, 60, seed=0, monitor=optimal)
    assert history.optimism.rate == 0.0 and history.optimism.moved > 0.3
    assert (history.optimistic_values >= optimal.values([0], 0)[0] - 1e-9).all()
