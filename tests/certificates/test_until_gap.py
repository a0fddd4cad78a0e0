"""`fit(…, until_gap=…, model=…)`: it ends when the certificate is tight enough, and learns the same."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import kernelrl as krl
from exogenous_envs import ALPHA, ambulance
from kernelrl.agents.stopping import DeclaredGap
from rooms_walked import ROOMS, goal_reward
from small_envs import Line

ENV = "kernelrl/TwinRooms-v0"
MODEL = krl.models.Displacement(rooms=ROOMS, reward=goal_reward, reward_lipschitz=10.0)
SEEN = krl.models.Displacement(rooms=ROOMS, reward_lipschitz=10.0)
VARIED = krl.models.Displacement(rooms=ROOMS, reward=goal_reward, reward_lipschitz=10.0, variation=0.1)
COARSE = {"model": MODEL, "cell": 0.05}


def walker():
    return krl.RandomAgent()


def checks(most):
    """The numbers of episodes at which a declared model is looked at."""
    k, found = 64, []
    while k <= most:
        found.append(k)
        k += k // 4
    return found


def test_when_it_looks():
    gap = DeclaredGap(1.0, MODEL, None, None)
    assert sorted({k + gap.left(k) for k in range(500)}) == checks(700)[:11]


def test_it_ends_at_the_first_check_that_is_tight_enough():
    table = walker().fit(ENV, 400, seed=1, transitions=True).transitions
    found = {k: krl.certify(table.filter(table["episode"] < k), MODEL, env=ENV, cell=0.05) for k in checks(400)}
    gaps = [each.gap for each in found.values()]
    wanted = 0.5 * (gaps[2] + gaps[3])
    expected = next(k for k, each in found.items() if each.gap <= wanted)
    agent = walker()
    history = agent.fit(ENV, 400, seed=1, until_gap=wanted, **COARSE)
    assert len(history) == agent.episodes == expected < 400
    assert history.gap == history.certificate.gap == found[expected].gap <= wanted
    assert history.certificate.bounds([0.1, 0.1]) == found[expected].bounds([0.1, 0.1])
    assert history.transitions is None


def test_also_at_the_end():
    history = walker().fit(ENV, 70, seed=1, until_gap=0.001, delta=0.1, transitions=True, **COARSE)
    assert len(history) == 70 and history.certificate.delta == 0.1
    expected = krl.certify(history.transitions, MODEL, env=ENV, cell=0.05, delta=0.1)
    assert history.gap == expected.gap
    assert walker().fit(ENV, 0, seed=1, until_gap=1.0, **COARSE).certificate is None


@pytest.mark.parametrize("make", [krl.KernelUCBVI, krl.RandomAgent], ids=["keeps its transitions", "does not"])
def test_it_learns_the_same(make):
    agents = [make() for _ in range(3)]
    agents[0].fit(ENV, 70, seed=2)
    agents[1].fit(ENV, 70, seed=2, until_gap=0.001, **COARSE)
    agents[2].fit(ENV, 30, seed=2, until_gap=0.001, **COARSE)
    last = agents[2].fit(ENV, 40, until_gap=0.001, **COARSE)
    states = np.random.default_rng(0).random((20, 2))
    values = [agent.q_values(states, 3) for agent in agents]
    returns = [agent.fit(ENV, 5).returns for agent in agents]
    for found in (values, returns):
        assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])
    samples = last.certificate.plan.samples.number
    assert samples == (70 if make is krl.KernelUCBVI else 40) * 20  # an agent's own, or those of the call


def test_both_drivers_end_alike():
    ends = {
        (len(history), history.gap)
        for driver in ("compiled", "python")
        for history in [walker().fit(ENV, 100, seed=3, until_gap=19.9, driver=driver, **COARSE)]
    }
    assert len(ends) == 1


def test_a_callback_that_stops_has_its_certificate():
    history = walker().fit(ENV, 50, seed=1, until_gap=0.001, callback=lambda agent, so_far: False, every=10, **COARSE)
    assert len(history) == 10 and history.stopped and history.certificate.plan.samples.number == 200


def test_refined():
    history = walker().fit(ENV, 20, seed=1, until_gap=0.001, refine=True, transitions=True, **COARSE)
    expected = krl.certify(history.transitions, MODEL, env=ENV, cell=0.05, refine=True)
    assert history.certificate.refined and history.gap == expected.gap


@pytest.mark.parametrize("make", [krl.KernelUCBVI, krl.RandomAgent], ids=["keeps its transitions", "does not"])
def test_exogenous_noise(make):
    env = gym.make("kernelrl/Ambulance-v0", arrivals="beta", alpha=ALPHA)
    agent = make(reward_range=(0, 1))
    history = agent.fit(env, 200, seed=1, until_gap=2.0, model=ambulance(), cell=0.05, transitions=True)
    assert len(history) == agent.episodes in checks(200) and history.gap == history.certificate.gap <= 2.0
    expected = krl.certify(history.transitions, ambulance(), env=env, reward_range=(0, 1), cell=0.05)
    assert history.certificate.bounds([0.3], 2) == expected.bounds([0.3], 2)


def test_exogenous_noise_is_refused_before_anything_is_played():
    for changes, options, kind, said in [
        ({}, {"refine": True}, ValueError, "refine=True is for displacements, and .* Exogenous"),
        ({"noise_of": "action"}, {}, ValueError, "noise_of"),
        ({"noise_cell": 0.1, "action_cell": 0.1}, {"cell": 1e-9}, ValueError, "cell=1e-09: .* are too many"),
        ({"noise_cell": 1.0, "action_cell": 1.0}, {"cell": 1e-10}, MemoryError, "cell=1e-10: .* cell=.* fits"),
    ]:
        agent = krl.RandomAgent(reward_range=(0, 1))
        with pytest.raises(kind, match=said):
            agent.fit("kernelrl/Ambulance-v0", 10, until_gap=1.0, model=ambulance(**changes), **options)
        assert agent.episodes == 0


def test_ranges_of_rewards():
    """Noisy rewards need one; deterministic ones have their own, and one that is given is taken."""
    noisy = krl.models.Displacement(rooms=SEEN.rooms, reward="noisy", reward_lipschitz=10.0)
    with pytest.raises(ValueError, match=r"reward_range: .* give reward_range=\(lowest, highest\): to the agent"):
        walker().fit(ENV, 10, until_gap=1.0, model=noisy, cell=0.05)
    history = walker().fit(ENV, 10, seed=0, until_gap=1.0, model=SEEN, cell=0.05)
    assert history.certificate.reward_range[0] <= 0.0 and 1.0 <= history.certificate.reward_range[1]
    history = krl.RandomAgent(reward_range=(0.0, 1.0)).fit(ENV, 10, seed=0, until_gap=1.0, model=SEEN, cell=0.05)
    assert history.certificate.reward_range == (0.0, 1.0)


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"model": MODEL}, TypeError, "model: it says what until_gap=… is computed from; give until_gap"),
        ({"delta": 0.1}, TypeError, "delta is that of the certificate of a declared model; give model=…"),
        ({"cell": 0.1, "until_gap": 1.0}, TypeError, "cell is that of the certificate of a declared model"),
        ({"model": "rooms", "until_gap": 1.0}, TypeError, "model must be a declaration, krl.models"),
        ({"model": MODEL, "until_gap": 0.0}, ValueError, "until_gap must be a finite number above 0"),
        ({"model": MODEL, "until_gap": 1.0, "delta": 1.5}, ValueError, "delta"),
        ({"model": MODEL, "until_gap": 1.0, "cell": -1.0}, ValueError, "cell must be"),
        ({"model": MODEL, "until_gap": 1.0, "cell": 1e-7}, MemoryError, "cell=1e-07: .* cell=.* fits"),
        ({"refine": True, "until_gap": 1.0}, TypeError, "refine is that of the certificate of a declared model"),
        ({"model": MODEL, "until_gap": 1.0, "refine": "yes"}, ValueError, "refine must be True or False, got 'yes'"),
        ({"model": VARIED, "until_gap": 1.0, "refine": True}, ValueError, "refine=True is for .* variation=0.1"),
        ({"until_gap": 1.0}, ValueError, "until_gap: RandomAgent gives no certificates"),
    ],
)
def test_bad_input_is_refused_before_anything_is_played(options, kind, said):
    agent = walker()
    with pytest.raises(kind, match=said):
        agent.fit(ENV, 10, seed=0, **options)
    assert agent.episodes == 0


def test_continuous_actions_and_numbers_as_states_are_refused():
    everywhere = krl.models.Displacement(reward=goal_reward, reward_lipschitz=1.0)
    with pytest.raises(TypeError, match="certificates are for Discrete actions"):
        walker().fit("kernelrl/Oil-v0", 10, until_gap=1.0, model=everywhere)


def test_episodes_that_end_early_are_refused_and_stay_learnt():
    env = gym.wrappers.TimeLimit(Line(ends=True), 7)
    model = krl.models.Displacement(reward=lambda x, a: np.zeros(len(x)), reward_lipschitz=0.0)
    agent = krl.RandomAgent()
    with pytest.raises(ValueError, match=r"terminated: row .* does not say where episodes end") as caught:
        agent.fit(env, 80, seed=0, until_gap=0.1, model=model, cell=0.1)
    assert agent.episodes == len(caught.value.history) == 64
