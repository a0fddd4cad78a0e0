"""What users see of certificates for exogenous noise: ambulance and oil, agents, tests of declarations, errors."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import kernelrl as krl
from exogenous_envs import ALPHA, ambulance, logged, oil, waiting

STATES = np.linspace(0.0, 1.0, 101)[:, None]
SHIFTING = {"arrivals": "shifting", "alpha": ALPHA}


def made(name, **settings):
    return gym.make(f"kernelrl/{name}-v0", **settings)


def certified(table, model, env, **settings):
    return krl.certify(
        table, model, **{"env": env, "reward_range": (0, 1), "cell": 0.02, "progress": False, **settings}
    )


def optimal(env):
    """V* (5, 101), of `solve`, to 0.001."""
    V = krl.envs.solve(env)
    return [V.values(STATES, h) for h in range(5)]


def assert_inside(certificate, V):
    """V* everywhere and at every step."""
    for h in range(5):
        lower, upper = certificate.bounds(STATES, h)
        assert (lower <= V[h] + 2e-3).all() and (V[h] <= upper + 2e-3).all()


@pytest.mark.parametrize("arrivals", ["uniform", "beta"])
def test_ambulance(arrivals):
    env = made("Ambulance", arrivals=arrivals, alpha=ALPHA)
    V = optimal(env)
    for seed in range(5):
        for episodes in (20, 400):
            found = certified(logged(env, episodes, seed), ambulance(), env)
            assert_inside(found, V)
    lower, upper = found.bounds([0.5])
    assert upper - lower < 0.9 and found.gap == pytest.approx(upper - lower)
    assert found.check_declaration() and found.check_declaration().reason == ""


def test_oil():
    env = made("Oil", form="laplace", steepness=1.0)
    V = optimal(env)
    for seed in range(5):
        for episodes in (20, 400):
            found = certified(logged(env, episodes, seed), oil(), env)
            assert_inside(found, V)
    assert found.gap < 0.9


def test_discrete_actions():
    """One law for all actions, and one for each."""
    env = made("Ambulance", arrivals="beta", alpha=ALPHA, actions=5)
    V, table, reward = optimal(env), logged(env, 300, 0, discrete=True), waiting(ALPHA)
    gaps = []
    for noise_of in ("all", "action"):
        model = ambulance(reward=lambda x, a, z: reward(x, a[:, None] / 4.0, z), noise_of=noise_of)
        found = certified(table, model, env)
        assert_inside(found, V)
        assert found.kept.shape == (5,) and found.check_declaration()
        gaps.append(found.gap)
    assert gaps[0] < gaps[1]


def test_agents():
    """An agent's own transitions and the same recorded give the same bounds; policies are compared with them."""
    env, agent = made("Ambulance", arrivals="beta", alpha=ALPHA), krl.KernelUCBVI()
    history = agent.fit(env, 200, seed=3, transitions=True, progress=False)
    own = agent.certify(ambulance(), reward_range=(0, 1), cell=0.02)
    other = certified(history.transitions, ambulance(), env)
    assert own.bounds([0.3], 2) == other.bounds([0.3], 2)
    assert own.kept.sum() == 980 and own.kept.shape == (51,)
    gap = own.policy_gap(agent, env, episodes=200)
    assert 0.0 < gap.bound <= 5.0


def test_wrong_declarations():
    """Calls that come from elsewhere at each step; rewards of another function; noise that depends on the action."""
    env = made("Ambulance", **SHIFTING)
    table = logged(env, 500, 0)
    found = certified(table, ambulance(), env).check_declaration()
    assert not found and "noise" in found.reason
    env = made("Ambulance", arrivals="beta", alpha=ALPHA)
    table = logged(env, 500, 1)
    found = certified(table, ambulance(reward=lambda x, a, z: 0.9 * waiting(ALPHA)(x, a, z)), env).check_declaration()
    assert not found and "reward" in found.reason
    table["next_state"] = np.clip(table["next_state"] + 0.1 * table["action"], 0.0, 1.0)
    found = certified(table, ambulance(reward=lambda x, a, z: 0.0 * x[:, 0]), env).check_declaration()
    assert not found


def test_right_declarations_are_rarely_contradicted():
    env = made("Ambulance", arrivals="uniform", alpha=ALPHA)
    assert all(certified(logged(env, 60, seed), ambulance(), env).check_declaration() for seed in range(15))


def test_units():
    """r → 3r - 1 has V* → 3V* - (steps left)."""
    env = made("Ambulance", arrivals="beta", alpha=ALPHA)
    table, reward = logged(env, 100, 0), waiting(ALPHA)
    base = certified(table, ambulance(), env)
    model = ambulance(
        reward=lambda x, a, z: 3.0 * reward(x, a, z) - 1.0, reward_lipschitz=(3 * ALPHA, 3, 3 - 3 * ALPHA)
    )
    other = certified({**table, "reward": 3.0 * table["reward"] - 1.0}, model, env, reward_range=(-1, 2))
    for h in (0, 4):
        for mine, first in zip(other.bounds([0.4], h), base.bounds([0.4], h), strict=True):
            assert mine == pytest.approx(3.0 * first - (5 - h), abs=1e-6)


def test_absorbing_boxes():
    """Oil that ends beyond 0.9: V* there is 0, and rows that contradict the boxes are named."""
    env = made("Oil", form="laplace", steepness=1.0)
    table, model = logged(env, 100, 0), oil(absorbing=[(0.9, 1.0)])
    with pytest.raises(ValueError, match=r"absorbing: row .* inside a box declared as absorbing, and does not end"):
        certified(table, model, env)
    alive = table["state"] < 0.9  # what follows an end never happens
    table = {name: column[alive] for name, column in table.items()}
    table["terminated"] = table["next_state"] > 0.9
    found = certified(table, model, env)
    assert found.bounds([0.99]) == (0.0, 0.0) and found.bounds([0.5])[1] > 1.0
    row = int(np.argmin(table["terminated"]))
    table["terminated"][row] = True
    with pytest.raises(ValueError, match=rf"absorbing: row {row} .* ends its episode at .* outside"):
        certified(table, model, env)
    with pytest.raises(ValueError, match="does not say where episodes end"):
        certified(table, oil(), env)
    table = {**table, "terminated": table["next_state"] > 0.9, "reward": table["reward"] + 1.0}
    model = oil(absorbing=[(0.9, 1.0)], reward=lambda x, a: oil().reward(x, a) + 1.0)
    with pytest.raises(ValueError, match="must include 0"):
        certified(table, model, env, reward_range=(1, 2))


def test_one_row():
    table = {name: np.zeros(1) for name in ("state", "action", "reward", "next_state", "terminated")}
    found = krl.certify(table, ambulance(), env="kernelrl/Ambulance-v0", reward_range=(0, 1), cell=0.1)
    lower, upper = found.bounds([0.5])
    assert (lower, upper) == pytest.approx((0.0, 5.0))
    assert found.check_declaration()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"function": 3}, "function must be a function"),
        ({"noise": (1.0, 0.0)}, "noise must be"),
        ({"noise": 3}, "noise must be"),
        ({"lipschitz": 1.0}, "lipschitz must be three numbers"),
        ({"reward_lipschitz": (1, -1, 0)}, "reward_lipschitz of the action"),
        ({"noise_of": "state"}, "noise_of must be one of"),
        ({"reward_of": "state"}, "reward_of must be one of"),
        ({"recover_error": -1.0}, "recover_error"),
        ({"noise_cell": 0.0}, "noise_cell"),
        ({"absorbing": 0.5}, "absorbing must be a list of boxes"),
        ({"absorbing": [(1, 0)]}, "absorbing: box 0"),
    ],
)
def test_bad_declarations(changes, message):
    with pytest.raises(ValueError, match=message):
        ambulance(**changes)


@pytest.mark.parametrize(
    ("changes", "settings", "message"),
    [
        ({"noise_of": "action"}, {}, "noise_of"),
        ({"recover": lambda x, a, y: y + 0.1}, {}, "recover: row 0 .*recover_error"),
        ({"recover": lambda x, a, y: y[:, 0]}, {}, r"recover: .* must return shape \(10, 1\), got \(10,\)"),
        ({"function": lambda x, a: x}, {}, "function: the function failed"),
        ({"reward": lambda x, a, z: np.full(len(x), np.nan)}, {}, "reward: it must return finite numbers"),
        ({"reward": lambda x, a, z: np.full(len(x), 2.0)}, {}, "reward: at row 0 .* outside"),
        ({"absorbing": [((0, 0), (1, 1))]}, {}, "absorbing: states have 1 coordinates"),
        ({}, {"reward_range": None}, "reward_range"),
        ({}, {"env": None}, "env: give an environment"),
        ({}, {"cell": 1e-6}, "action_cell"),
        ({"action_cell": 0.1}, {"cell": 1e-6}, "cell=1e-06: .* are too many"),
        ({}, {"cell": -1.0}, "cell"),
        ({}, {"delta": 2.0}, "delta"),
    ],
)  # fmt: skip
def test_bad_input(changes, settings, message):
    table = logged("kernelrl/Ambulance-v0", 2, 0)
    with pytest.raises(ValueError, match=message):
        certified(table, ambulance(**changes), **{"env": "kernelrl/Ambulance-v0", **settings})
