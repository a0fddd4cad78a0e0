"""`learn_from`: equal to `observe` for each row, for every agent; what happens around it."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import gymnasium as gym
import numba
import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelrl as krl
from kernelrl.agents import logged as learning
from kernelrl.episodes import verbs
from kernelrl.episodes.rows import take_compiled
from logged_rows import logged, one_by_one
from small_envs import Chain
from test_compile_once import signatures
from test_interface import AGENTS, check_equal, make_env, read
from test_interface import make as make_agent

sys.path.append(str(Path(__file__).resolve().parent.parent / "examples"))

SMALL = {"goal": (0.3, 0.3), "radius": 0.3, "max_episode_steps": 10}
SEED = 5


def rows(episodes=30, ends=0.1, seed=0):
    return logged("kernelrl/TwinRooms-v0", episodes, ends, seed, **SMALL)


def make(variant, **options):
    """An agent whose plans are full ones, which can be equal to the last bit."""
    agent = make_agent(variant, **options)
    agent.plan_tolerance = 0.0
    return agent


def started(agent, env=None):
    agent.get_ready(make_env() if env is None else env, SEED)
    return agent


def file_of(agent, tmp_path):
    agent.save(tmp_path / "agent.krl")
    return (tmp_path / "agent.krl").read_bytes()


@pytest.fixture(scope="module", autouse=True)
def small_parts():
    """Many calls of `between_rows`, which must change nothing."""
    before, learning.BETWEEN = learning.BETWEEN, 61
    yield
    learning.BETWEEN = before


# ------------------------------------------------------------------------------------------------------------ equality


@pytest.mark.parametrize("variant", AGENTS)
def test_equal_to_observing_one_by_one(variant):
    episodes = {"replan": "episode"} if "replan" in AGENTS[variant][0].hyper_parameters else {}
    reference = one_by_one(started(make(variant, **episodes)), rows())
    agent = make(variant)
    assert agent.learn_from(rows(), env=make_env(), seed=SEED) == len(rows())
    assert agent.episodes == 0
    check_equal(read(agent), read(reference))


@pytest.mark.parametrize("variant", ["KernelUCBVI automatic", "GreedyKernelUCBVI automatic", "KernelUCBVI local"])
def test_equal_for_agents_that_have_learnt_before(variant):
    """Their settings are looked at again, although that is not due."""
    agents = [make(variant) for _ in range(2)]
    for agent in agents:
        agent.fit(make_env(), 25, seed=SEED, progress=False)
    table = rows(seed=3)
    agents[0].learn_from(table)
    other = agents[1]
    other._renewal = other.episodes
    if other._automatic is not None:
        other._automatic.due = other.episodes
    check_equal(read(agents[0]), read(one_by_one(other, table)))
    assert agents[0].episodes == 25 and agents[0].act([0.1, 0.1], 0) in range(4)


@pytest.mark.parametrize("new", [krl.KernelUCBVI, krl.GreedyKernelUCBVI])
def test_equal_for_agents_with_continuous_actions_that_have_learnt_before(new):
    env, table = gym.make("kernelrl/Oil-v0"), logged("kernelrl/Oil-v0", 40)
    agent, other = new(), new()
    for each in (agent, other):
        each.fit(env, 40, seed=SEED, progress=False)
    agent.learn_from(table)
    other._automatic.due = other.episodes
    one_by_one(other, table, before_looking=lambda: other._keeping.settle(other.model))
    states = np.linspace(0.0, 1.0, 7)[:, None]
    assert np.array_equal(agent.q_values(states, 0), other.q_values(states, 0))
    assert agent.settings_used()["action_bandwidth"] == other.settings_used()["action_bandwidth"]


@pytest.mark.parametrize("new", [krl.KernelUCBVI, krl.GreedyKernelUCBVI])
def test_rows_with_far_too_many_representatives(new, monkeypatch):
    """They are then only logged, from whatever row on, and represented again in the end."""
    found = []
    for between in (7, 50, 10_000):
        monkeypatch.setattr(learning, "BETWEEN", between)
        agent = new(max_representatives=9)
        agent.learn_from(rows(12), env=make_env(), seed=SEED)
        agent.learn_from(rows(60, seed=4))
        assert 1 < agent.number_of_representatives <= 9
        found.append(read(agent))
    check_equal(found[0], found[1])
    check_equal(found[0], found[2])


@pytest.mark.parametrize("variant", ["KernelUCBVI", "KernelUCBVI merged", "UCBVI minimum", "AdaMB"])
def test_two_tables_and_a_fit_between(variant):
    """The store has the samples of all; `fit` goes on from there."""
    agents = [make(variant), make(variant)]
    first, second = rows(), rows(seed=9)
    agents[0].learn_from(first, env=make_env(), seed=SEED)
    one_by_one(started(agents[1]), first)
    histories = [agent.fit(make_env(), 3, progress=False) for agent in agents]
    agents[0].learn_from(second)
    one_by_one(agents[1], second)
    assert np.array_equal(histories[0].returns, histories[1].returns)
    check_equal(read(agents[0]), read(agents[1]))


def test_states_and_actions_of_a_box():
    """Actions between those of the net count as the nearest."""
    env, table = gym.make("kernelrl/Oil-v0"), logged("kernelrl/Oil-v0", 40)
    moved = np.random.default_rng(0).random(len(table))
    table = table.with_columns(polars.Series("action_0", moved))
    for new in (krl.KernelUCBVI, lambda: krl.AdaptiveQL(bonus_scale=0.1), lambda: krl.AdaMB(bonus_scale=0.1)):
        agent = new()
        agent.learn_from(table, env=env, seed=SEED)
        other = one_by_one(started(new(), env), table)
        states = np.linspace(0.0, 1.0, 7)[:, None]
        assert np.array_equal(agent.q_values(states, 0), other.q_values(states, 0))
        as_arrays = {name: table[name].to_numpy() for name in ("reward", "step", "terminated")}
        as_arrays |= {name: table[f"{name}_0"].to_numpy()[:, None] for name in ("state", "action", "next_state")}
        twin = new()
        twin.learn_from(as_arrays, env=env, seed=SEED)
        assert np.array_equal(agent.q_values(states, 0), twin.q_values(states, 0))


def test_states_of_a_discrete_space():
    env = gym.wrappers.TimeLimit(Chain(first=3), 6)
    table = krl.RandomAgent().fit(env, 30, seed=0, progress=False, transitions=True).transitions
    assert table["state"].dtype == polars.Int64 and table["state"].min() == 3
    for new in (krl.UCBVI, krl.GreedyUCBVI, krl.OptQL):
        agent, other = new(), started(new(), env)
        agent.learn_from(table.rename({"state": "state_0"}), env=env, seed=SEED)
        one_by_one(other, table)
        assert np.array_equal(agent.q_values([3, 4, 5, 6], 0), other.q_values([3, 4, 5, 6], 0))


def test_an_algorithm_of_the_users():
    from own_algorithm import OptimisticQLearning

    env, table = gym.make("kernelrl/Ramp-v0"), logged("kernelrl/Ramp-v0", 40)
    agent = OptimisticQLearning()
    agent.learn_from(table, env=env, seed=SEED)
    other = one_by_one(started(OptimisticQLearning(), env), table)
    states = np.linspace(0.0, 1.0, 9)[:, None]
    assert np.array_equal(agent.q_values(states, 0), other.q_values(states, 0))
    assert agent.counts(states, 0).sum() > 0


EXACT = ["KernelUCBVI", "KernelUCBVI per step", "KernelUCBVI interpolated", "KernelUCBVI interpolated per step"]


@pytest.mark.parametrize("variant", EXACT)
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1))
def test_another_order_gives_the_same_values(variant, seed):
    table = rows(20)
    agents = [make(variant), make(variant)]
    agents[0].learn_from(table, env=make_env(), seed=SEED)
    agents[1].learn_from(table.sample(fraction=1.0, shuffle=True, seed=seed), env=make_env(), seed=SEED)
    one, other = (read(agent) for agent in agents)
    for key in one:
        if key[0] != "act":
            np.testing.assert_allclose(one[key], other[key], rtol=0, atol=1e-6, err_msg=str(key))


POOLED = ["KernelUCBVI", "KernelUCBVI merged", "KernelUCBVI automatic", "GreedyKernelUCBVI automatic", "UCBVI"]


@pytest.mark.parametrize("variant", POOLED)
def test_steps_are_not_needed_where_data_are_pooled(variant):
    agents = [make(variant), make(variant)]
    agents[0].learn_from(rows(), env=make_env(), seed=SEED)
    agents[1].learn_from(rows().drop("step"), env=make_env(), seed=SEED)
    check_equal(read(agents[0]), read(agents[1]))


@pytest.mark.parametrize("variant", ["KernelUCBVI per step", "GreedyKernelUCBVI", "OptQL", "AdaMB", "GreedyUCBVI"])
def test_steps_are_needed_elsewhere(variant):
    with pytest.raises(ValueError, match='the column "step" is missing; the step of the episode, from 0'):
        make(variant).learn_from(rows().drop("step"), env=make_env())


def test_transitions_of_fit_make_the_same_agent():
    """Up to rounding, since it has planned once."""
    agent, twin = make("KernelUCBVI"), make("KernelUCBVI")
    history = agent.fit(make_env(), 20, seed=SEED, progress=False, transitions=True)
    twin.learn_from(history.transitions, env=make_env(), seed=SEED)
    agent.begin_episode()
    states = [[0.1, 0.1], [0.5, 0.5]]
    assert np.array_equal(agent.counts(states, 0), twin.counts(states, 0))
    np.testing.assert_allclose(agent.q_values(states, 0), twin.q_values(states, 0), atol=1e-6)


# ------------------------------------------------------------------------------------------------- what is around it


def test_saved_and_loaded(tmp_path):
    for variant in ("KernelUCBVI automatic", "KernelUCBVI", "GreedyKernelUCBVI", "OptQL"):
        agent = make(variant)
        agent.learn_from(rows(), env=make_env(), seed=SEED)
        agent.save(tmp_path / "agent.krl")
        twin = krl.load(tmp_path / "agent.krl")
        check_equal(read(agent), read(twin))
        one, other = (a.fit(make_env(), 4, progress=False).returns for a in (agent, twin))
        assert np.array_equal(one, other)


def test_automatic_settings_are_chosen_and_few_rows_only_kept():
    agent = krl.KernelUCBVI()
    assert agent.learn_from(rows(2), env=make_env(), seed=SEED) == 20
    assert agent.settings_used()["bandwidth"] == "auto"  # fewer than 100 transitions
    agent.learn_from(rows(20))
    assert agent.settings_used()["bandwidth"].start == pytest.approx(0.7)
    assert agent.number_of_representatives > 5


def test_range_of_rewards():
    """It widens before the first row, so that agents whose values only fall keep what they learn."""
    table = rows().with_columns(polars.col("reward") * 10.0 - 3.0)
    lowest, highest = table["reward"].min(), table["reward"].max()
    agent = krl.OptQL(bins=5)
    agent.learn_from(table, env=make_env(), seed=SEED)
    assert agent.settings_used()["reward_range"] == (lowest, highest)
    given = krl.OptQL(bins=5, reward_range=(lowest, highest))
    given.learn_from(table, env=make_env(), seed=SEED)
    check_equal(read(agent), read(given))
    with pytest.warns(UserWarning, match="reward_range: the reward .* is outside"):
        krl.OptQL(bins=5, reward_range=(0, 1)).learn_from(table, env=make_env(), seed=SEED)


def test_guarantees():
    bonus = {"bandwidth": 0.1, "representatives": None, "reward_range": (0, 1), "lipschitz": 5.0}
    agent = krl.KernelUCBVI(**bonus, bonus=krl.bonuses.Joint(0.1, episodes=9))
    with pytest.raises(ValueError, match="holds for 9 episodes, and rows of a table come without episodes"):
        agent.learn_from(rows(), env=make_env())
    agent = krl.KernelUCBVI(**bonus, bonus=krl.bonuses.Joint(0.1))
    with pytest.raises(ValueError, match=r"row 7 \(the first is 0\), column reward: reward: 1.5 is outside"):
        agent.learn_from(spoilt("reward", 7, 1.5), env=make_env())
    agent.learn_from(rows(), env=make_env(), seed=SEED)
    lower, upper = agent.certificate([0.1, 0.1])
    assert lower <= upper


def spoilt(column, row, value, table=None):
    """The table with another value in one place."""
    table = rows() if table is None else table
    values = table[column].to_list()
    values[row] = value
    return table.with_columns(polars.Series(column, values, strict=False))


def test_an_agent_must_be_started():
    agent = krl.UCBVI(bins=5)
    with pytest.raises(RuntimeError, match="has not been started: give env=…, an environment or its id"):
        agent.learn_from(rows())
    with pytest.raises(ValueError, match="row 3"):
        agent.learn_from(spoilt("action", 3, 4), env=make_env())
    assert agent.model is None
    agent.learn_from(rows(), env=make_env(), seed=SEED)
    with pytest.raises(ValueError, match="seed: it is for starting an agent"):
        agent.learn_from(rows(), seed=SEED)
    with pytest.raises(ValueError, match="env: its states are"):
        agent.learn_from(rows(), env=gym.make("kernelrl/Ramp-v0"))


@pytest.mark.parametrize("variant", ["KernelUCBVI automatic", "GreedyKernelUCBVI", "UCBVI", "AdaptiveQL"])
def test_after_an_error_the_agent_is_as_before(variant, tmp_path, monkeypatch):
    agent = make(variant)
    agent.fit(make_env(), 12, seed=SEED, progress=False)
    before, values = file_of(agent, tmp_path), read(agent)
    with pytest.raises(ValueError, match="row 200"):
        agent.learn_from(spoilt("reward", 200, None))
    assert file_of(agent, tmp_path) == before

    def full(model):
        raise MemoryError("no more")

    many = rows(400)
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(verbs, "has_room", lambda model: False)
        patch.setattr(verbs, "grow", full)
        agent.learn_from(many)
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(agent, "after_rows", lambda: 1 / 0)
        agent.learn_from(many)
    assert file_of(agent, tmp_path) == before
    check_equal(read(agent), values)
    agent.learn_from(many)  # still usable


def press(times):
    """Ctrl-C, in the middle of the rows."""

    def between_rows():
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)

    return between_rows


def test_ctrl_c_keeps_the_rows_before_it(monkeypatch, capsys, tmp_path):
    agent, other = make("UCBVI", reward_range=(0, 1)), make("UCBVI", reward_range=(0, 1))
    started(agent)
    with monkeypatch.context() as patch:
        patch.setattr(agent, "between_rows", press(1))
        taken = agent.learn_from(rows())
    assert "Stopping after these rows" in capsys.readouterr().err
    assert 61 <= taken < len(rows())
    other.learn_from(rows().head(taken), env=make_env(), seed=SEED)
    check_equal(read(agent), read(other))
    before = file_of(agent, tmp_path)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(agent, "between_rows", press(2))
        agent.learn_from(rows())
    assert file_of(agent, tmp_path) == before


def test_a_bar(capsys):
    make("UCBVI").learn_from(rows(), env=make_env(), progress=True)
    said = capsys.readouterr().err
    assert "UCBVI, rows" in said and "300/300" in said
    agent = make("UCBVI")
    with pytest.raises(ValueError, match=r"^progress must be True, False or None, got 'x'"):
        agent.learn_from(rows(), env=make_env(), progress="x")
    assert agent.model is None


def test_an_algorithm_that_learns_in_end_episode(monkeypatch):
    agent = started(krl.RandomAgent())
    monkeypatch.setattr(verbs.end_episode, "is_implemented", lambda cls: cls is type(agent.model))
    with pytest.raises(TypeError, match=r"implements end_episode, .* @krl.verbs.catch_up.implement_plain"):
        agent.learn_from(rows())


def test_no_rows(tmp_path):
    agent = make("KernelUCBVI automatic")
    with pytest.raises(ValueError, match="table: it has no rows"):
        agent.learn_from(rows().head(0), env=make_env(), seed=SEED)
    assert agent.model is None
    agent.fit(make_env(), 2, seed=SEED, progress=False)
    before = file_of(agent, tmp_path)
    with pytest.raises(ValueError, match="table: it has no rows"):
        agent.learn_from(rows().head(0))
    assert file_of(agent, tmp_path) == before


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled with the JIT disabled")
def test_rows_are_compiled_once_for_each_algorithm():
    for options in ({"bins": 5}, {"bins": (2, 3), "stationary": False, "replan": "step"}):
        krl.UCBVI(**options).learn_from(rows(), env=make_env())
    found = signatures(take_compiled)
    assert found and set(found.values()) == {1}
