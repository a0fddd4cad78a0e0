"""Every agent through one interface: what `fit`, the read-outs, saving and driving by hand promise, for all alike."""

from __future__ import annotations

import copy
import functools
import io
import json
import os
import pickle
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import OrderEnforcing, TimeLimit, TransformReward

import kernelrl as krl
from kernelrl.envs import CompiledEnv, TwinRooms
from kernelrl.jit.handles import Handle, pointers
from pairs import in_own_units
from plain import GREEDY
from small_envs import Counting, Halved, Line

KERNEL = {**GREEDY, "bandwidth": 0.1, "bonus_scale": 0.02, "representatives": None}
MERGED = {**GREEDY, "bandwidth": 0.1, "bonus_scale": 0.02, "representatives": "auto"}
BOX = {"metric": krl.metrics.Lp(2, scale="box"), "bonus": krl.bonuses.Simplified(2.0, 0.5)}
SCHEDULE = krl.schedules.Power(0.15, 0.1, 0.9)
LOCAL = {"bandwidth": krl.schedules.Local(0.15, 0.05), "representatives": 0.1, "reading": "blend"}
SEVERAL = {"bandwidth": krl.schedules.Bandwidths([0.15, 0.05]), "representatives": 0.1, "reading": "blend"}
GRID = {"bins": 5, "bonus_scale": 0.01}
HOEFFDING = {"bonus": "hoeffding", "bonus_scale": 1e-5, "total_episodes": 100}

# Every agent with each option that changes how it works; a new agent joins here.
AGENTS = {
    "KernelUCBVI": (krl.KernelUCBVI, KERNEL),
    "KernelUCBVI per step": (krl.KernelUCBVI, {**KERNEL, "stationary": False}),
    "KernelUCBVI interpolated": (krl.KernelUCBVI, {**KERNEL, "lipschitz": 2.0}),
    "KernelUCBVI interpolated per step": (krl.KernelUCBVI, {**KERNEL, "lipschitz": (1.0, 0.9), "stationary": False}),
    "KernelUCBVI each step": (krl.KernelUCBVI, {**KERNEL, "replan": "step", "stationary": False}),
    "KernelUCBVI doubling": (krl.KernelUCBVI, {**KERNEL, "replan": "doubling"}),
    "KernelUCBVI doubling interpolated": (krl.KernelUCBVI, {**KERNEL, "replan": "doubling", "lipschitz": 2.0}),
    "GreedyKernelUCBVI": (krl.GreedyKernelUCBVI, {**KERNEL, "lipschitz": 2.0}),
    "GreedyKernelUCBVI per step": (krl.GreedyKernelUCBVI, {**KERNEL, "lipschitz": (1.0, 0.9), "stationary": False}),
    "KernelUCBVI merged": (krl.KernelUCBVI, MERGED),
    "KernelUCBVI merged per step": (krl.KernelUCBVI, {**MERGED, "stationary": False, "replan": "step"}),
    "KernelUCBVI merged interpolated": (krl.KernelUCBVI, {**MERGED, "lipschitz": 2.0, "replan": "doubling"}),
    "KernelUCBVI merged in units of the box": (krl.KernelUCBVI, {**MERGED, **BOX}),
    "KernelUCBVI merged on schedule": (krl.KernelUCBVI, {**MERGED, "bandwidth": SCHEDULE}),
    "KernelUCBVI on schedule": (krl.KernelUCBVI, {**KERNEL, "bandwidth": SCHEDULE}),
    "GreedyKernelUCBVI merged": (krl.GreedyKernelUCBVI, MERGED),
    "GreedyKernelUCBVI merged per step": (krl.GreedyKernelUCBVI, {**MERGED, "stationary": False, "lipschitz": 2.0}),
    "GreedyKernelUCBVI merged in units of the box": (krl.GreedyKernelUCBVI, {**MERGED, **BOX}),
    "GreedyKernelUCBVI merged on schedule": (krl.GreedyKernelUCBVI, {**MERGED, "bandwidth": SCHEDULE}),
    "GreedyKernelUCBVI on schedule": (krl.GreedyKernelUCBVI, {**KERNEL, "lipschitz": 2.0, "bandwidth": SCHEDULE}),
    "KernelUCBVI automatic": (krl.KernelUCBVI, {}),
    "KernelUCBVI automatic and coarse": (krl.KernelUCBVI, {"max_representatives": 60, "stationary": False}),
    "KernelUCBVI local": (krl.KernelUCBVI, {**MERGED, **LOCAL, "replan": 1.3}),
    "KernelUCBVI several": (krl.KernelUCBVI, {**MERGED, **SEVERAL}),
    "GreedyKernelUCBVI several": (krl.GreedyKernelUCBVI, {**MERGED, **SEVERAL, "stationary": False}),
    "GreedyKernelUCBVI automatic": (krl.GreedyKernelUCBVI, {}),
    "GreedyKernelUCBVI automatic and coarse": (krl.GreedyKernelUCBVI, {"max_representatives": 60}),
    "GreedyKernelUCBVI local": (krl.GreedyKernelUCBVI, {**MERGED, **LOCAL, "stationary": False}),
    "RandomAgent": (krl.RandomAgent, {}),
    "UCBVI": (krl.UCBVI, GRID),
    "UCBVI each step": (krl.UCBVI, {"bins": 5, "replan": "step", **HOEFFDING}),
    "UCBVI doubling per step": (krl.UCBVI, {**GRID, "replan": "doubling", "stationary": False, "bins": (3, 2)}),
    "UCBVI minimum": (krl.UCBVI, {**GRID, "minimum": True}),
    "UCBVI minimum doubling per step": (
        krl.UCBVI,
        {**GRID, "minimum": True, "replan": "doubling", "stationary": False, "bins": (3, 2)},
    ),
    "GreedyUCBVI": (krl.GreedyUCBVI, GRID),
    "GreedyUCBVI per step": (krl.GreedyUCBVI, {**GRID, "stationary": False}),
    "OptQL": (krl.OptQL, GRID),
    "OptQL bonus after": (krl.OptQL, {**GRID, "bonus_place": "after"}),
    "AdaptiveQL": (krl.AdaptiveQL, {"bonus_scale": 0.02}),
    "AdaMB": (krl.AdaMB, {"bonus_scale": 0.02}),
    "AdaMB with a Lipschitz constant": (krl.AdaMB, {"bonus_scale": 0.02, "lipschitz": 0.5, "split_exponent": 1.0}),
}
CLASSES = {cls.__name__: (cls, options) for cls, options in reversed(AGENTS.values())}  # each agent once

each_variant = pytest.mark.parametrize("variant", AGENTS)
each_agent = pytest.mark.parametrize("agent", CLASSES)
H, EPISODES, SEED = 10, 30, 7
STEPS = (0, 4, H - 1)
READ_OUTS = ("q_values", "values", "counts", "bonuses")


def make(variant, **changes):
    cls, options = AGENTS[variant]
    return cls(**{**options, **changes})


def make_env(**options):
    """TwinRooms with goals that are soon found and short episodes, since exact agents slow down with every step."""
    return gym.make("kernelrl/TwinRooms-v0", **{"goal": (0.3, 0.3), "radius": 0.3, "max_episode_steps": H, **options})


def states_to_read():
    """States anywhere and states where episodes pass, (8, 2)."""
    anywhere = np.random.default_rng(0).random((4, 2)) * [2, 1]
    return np.concatenate([anywhere, [[0.1, 0.1], [1.1, 0.1], [0.2, 0.1], [0.3, 0.3]]])


def read(agent, states=None, steps=STEPS):
    """All that can be read of an agent, by name and step."""
    states = states_to_read() if states is None else states
    out = {(name, h): getattr(agent, name)(states, step=h) for name in READ_OUTS for h in steps if hasattr(agent, name)}
    return out | {("act", h): [agent.act(x, step=h) for x in states] for h in steps}


def check_equal(one, other):
    """To the last bit."""
    assert one.keys() == other.keys()
    for key in one:
        assert np.array_equal(one[key], other[key]), key


@functools.cache
def whole(variant):
    """History and read-outs of EPISODES episodes in one call, with the compiled driver."""
    agent = make(variant)
    history = agent.fit(make_env(), EPISODES, seed=SEED, driver="compiled")
    return history, read(agent)


@each_variant
def test_history_and_read_outs(variant):
    history, found = whole(variant)
    assert isinstance(history, krl.History) and len(history) == EPISODES
    assert history.returns.shape == history.lengths.shape == (EPISODES,)
    assert history.returns.dtype == np.float64 and history.lengths.dtype == np.int64
    assert (history.lengths == H).all()
    assert history.first_episode == 0 and history.interrupted is False and history.seconds > 0
    assert (history.returns >= 0).all() and (history.returns <= H).all() and history.returns.max() > 0
    assert history.optimistic_values[0] == H
    n = len(states_to_read())
    for (name, h), values in found.items():
        if name == "act":
            assert all(isinstance(a, int) and 0 <= a < 4 for a in values)
        else:
            assert values.dtype == np.float64 and values.shape == ((n,) if name == "values" else (n, 4))
        if name == "values":
            assert (values <= H - h).all() and (values >= 0).all()
    if "RandomAgent" not in variant:
        assert any((found["values", h] < H - h - 0.5).any() for h in STEPS), (
            "no value has moved: the other tests would see little"
        )
        least = 0.01 if "Kernel" in variant else 0  # β, where there is one
        assert (found["counts", 0] >= least).all() and found["counts", 0].max() > 1


@pytest.mark.parametrize("check", krl.testing.AGENT_CHECKS)
@each_variant
def test_interface(variant, check):
    """All that `krl.testing.check_agent` checks, one by one."""
    krl.testing.AGENT_CHECKS[check](functools.partial(make, variant), make_env())


@pytest.mark.parametrize("variant", ["KernelUCBVI interpolated", "GreedyKernelUCBVI merged"])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))])
def test_a_copy_of_an_agent_that_has_acted(variant, copied):
    """The plan of the policy to deploy, which is kept in the form that compiled code takes, is copied with it."""
    agent = make(variant)
    agent.fit(make_env(), 5, seed=SEED)
    before = read(agent)
    twin = copied(agent)
    check_equal(read(twin), before)
    agent.fit(make_env(), 5, seed=SEED)
    read(agent)
    check_equal(read(twin), before)


class Map(np.ndarray):
    """Stands for a memory map."""


class Mapping(pickle.Pickler):
    """Pickles as joblib does for its workers: arrays become memory maps, which cannot be written to."""

    def reducer_override(self, part):
        if not isinstance(part, np.ndarray):
            return NotImplemented
        order = "C" if part.flags.c_contiguous else "F"
        return Map, (part.shape, part.dtype, part.tobytes(order), 0, None, order)


def mapped(part):
    """What a worker of joblib gets."""
    file = io.BytesIO()
    Mapping(file).dump(part)
    return pickle.loads(file.getvalue())


def test_arrays_that_joblib_hands_over_are_read_only_maps():
    array = mapped({"a": np.asfortranarray(np.arange(6.0).reshape(2, 3))})["a"]
    assert type(array) is Map and not array.flags.writeable and array.flags.f_contiguous and array[1, 2] == 5.0


def check_owned(part, seen=None):
    """All arrays that can be reached through attributes, entries and handles can be written to."""
    seen = {} if seen is None else seen
    if id(part) in seen:
        return
    seen[id(part)] = part
    if isinstance(part, np.ndarray):
        assert type(part) is np.ndarray and part.flags.writeable
    elif isinstance(part, Handle):
        check_owned(part.model, seen)
    elif isinstance(part, dict | list | tuple):
        for each in part.values() if isinstance(part, dict) else part:
            check_owned(each, seen)
    elif type(part).__module__.startswith("kernelrl") and not isinstance(part, type):
        check_owned(getattr(part, "__dict__", {}), seen)


MAPPED = [
    "KernelUCBVI interpolated", "KernelUCBVI automatic", "GreedyKernelUCBVI merged", "UCBVI", "GreedyUCBVI", "OptQL",
    "AdaptiveQL", "AdaMB", "RandomAgent",
]  # fmt: skip


@pytest.mark.parametrize("variant", MAPPED)
def test_an_agent_of_memory_maps(variant):
    """It has acted before, so that plans to deploy are kept; nothing is compiled again for its arrays."""
    agent = make(variant)
    agent.fit(make_env(), 15, seed=SEED)
    before, policy = read(agent), agent.policy()
    twin = mapped(agent)
    check_owned(vars(twin))
    known = len(pointers)
    check_equal(read(twin), before)
    assert [mapped(policy)(x, 0) for x in states_to_read()] == before["act", 0]
    returns = [each.fit(make_env(), 5).returns for each in (twin, agent)]
    assert np.array_equal(*returns)
    assert len(pointers) == known


@pytest.mark.parametrize("handles", [False, True])
def test_open_episodes_of_memory_maps(handles):
    """What a worker gets goes on, and can go back to before the episode."""
    agent = make("GreedyKernelUCBVI merged")
    agent.fit(make_env(), 5, seed=SEED)
    before, x = read(agent), [0.2, 0.1]
    if handles:
        for y in ([0.3, 0.1], [0.2, 0.2]):
            handle = agent.open_episode()
            handle.choose(x)
            handle.observe(0.0, y)
            handle.choose(y)
    else:
        agent.begin_episode()
        agent.observe(x, agent.choose(x, 0), 0.0, [0.3, 0.1], 0)
    twin = mapped(agent)
    check_owned(vars(twin))
    if not handles:
        assert twin.choose([0.3, 0.1], 1) == agent.choose([0.3, 0.1], 1)
        twin.abandon_episode()
    for number in twin.open_episodes:
        first, second = (each.open_episode_number(number) for each in (twin, agent))
        assert first.choose(first.episode.state) == second.choose(second.episode.state)
        first.abandon()
    check_equal(read(twin), before)


@each_variant
def test_another_seed_is_another_run(variant):
    history, _ = whole(variant)
    other = make(variant).fit(make_env(), EPISODES, seed=SEED + 1)
    assert not np.array_equal(other.returns, history.returns)


def test_across_processes(tmp_path):
    """Saved here, loaded and continued in another process, then loaded here again."""
    chosen = ["KernelUCBVI interpolated", "GreedyKernelUCBVI", "UCBVI", "GreedyUCBVI", "OptQL", "AdaptiveQL", "AdaMB"]
    for i, variant in enumerate(chosen):
        agent = make(variant)
        agent.fit(make_env(), 13, seed=SEED)
        agent.save(tmp_path / f"{i}.krl")
    program = f"""
import json, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import kernelrl as krl
from test_interface import make_env
returns = []
for i in range({len(chosen)}):
    path = {str(tmp_path)!r} + f"/{{i}}.krl"
    agent = krl.load(path)
    returns.append(agent.fit(make_env(), {EPISODES - 13}).returns.tolist())
    agent.save(path)
print(json.dumps(returns))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    for i, (variant, returns) in enumerate(zip(chosen, json.loads(run.stdout), strict=True)):
        history, found = whole(variant)
        assert returns == history.returns[13:].tolist()
        check_equal(found, read(krl.load(tmp_path / f"{i}.krl")))


# -------------------------------------------------------------------------------------------------------------- rewards


@each_agent
@pytest.mark.parametrize("driver", ["compiled", "python"])
def test_returns_are_in_the_environments_own_units(agent, driver):
    cls, options = CLASSES[agent]
    learner = cls(**options, reward_range=(-1, 2))
    rewards = []

    class Recording(gym.Wrapper):
        def step(self, action):
            step = self.env.step(action)
            rewards.append(step[1])
            return step

    env = make_env() if driver == "compiled" else Recording(make_env())
    history = learner.fit(env, 12, seed=SEED, driver=driver)
    assert history.returns.min() >= 0 and history.returns.max() > 1  # rewards of TwinRooms are in [0, 1]
    if rewards:
        assert np.array_equal(history.returns, [sum(rewards[k * H : (k + 1) * H]) for k in range(12)])
    other = cls(**options, reward_range=(-1, 2))
    assert np.array_equal(other.fit(make_env(), 12, seed=SEED).returns, history.returns)


@each_agent
def test_rewards_in_another_unit_make_the_same_run(agent):
    """Four times the reward and four times the range: exact in binary, so equal to the last bit."""
    cls, options = CLASSES[agent]
    plain = cls(**options, reward_range=(0, 1))
    if "lipschitz" in options:
        options = options | {"lipschitz": in_own_units(options["lipschitz"], 4)}
    scaled = cls(**options, reward_range=(0, 4))
    one = plain.fit(make_env(), 12, seed=SEED)
    other = scaled.fit(TransformReward(make_env(), lambda r: 4 * r), 12, seed=SEED)
    assert np.array_equal(4 * one.returns, other.returns) and one.returns.max() > 0
    units = {"q_values": 4, "values": 4, "bonuses": 4}
    check_equal(
        {key: value if key[0] == "act" else units.get(key[0], 1) * value for key, value in read(plain).items()},
        read(scaled),
    )


# ------------------------------------------------------------------------------------------------- drivers and wrappers


def doubled(options):
    """Hyper-parameters for twice the rewards."""
    if "lipschitz" not in options:
        return options
    return options | {"lipschitz": in_own_units(options["lipschitz"], 2)}


@each_agent
def test_a_wrapper_of_the_users_is_obeyed(agent):
    cls, options = CLASSES[agent]
    for env in (Halved(make_env()), TransformReward(make_env(), lambda r: 0.5 * r), TimeLimit(Halved(make_env()), H)):
        learner = cls(**options, reward_range=(0, 0.5))
        history = learner.fit(env, 5, seed=SEED)
        twice = cls(**doubled(options), reward_range=(0, 1)).fit(make_env(), 5, seed=SEED).returns
        assert np.array_equal(2 * history.returns, twice)
        assert history.returns.max() > 0
        with pytest.raises(ValueError, match=r'driver: only a krl.envs.CompiledEnv.* wrapper .*driver="python"'):
            learner.fit(env, 1, driver="compiled")
        assert learner.episodes == 5


def test_auto_takes_the_compiled_driver_where_it_can(monkeypatch):
    def refuse(self, action):
        raise AssertionError("the Python driver was used")

    bare = make_env().unwrapped
    monkeypatch.setattr(CompiledEnv, "step", refuse)
    for env in (make_env(), make_env(disable_env_checker=True), TimeLimit(OrderEnforcing(bare), H)):
        assert len(krl.RandomAgent().fit(env, 3, seed=0)) == 3
    for env in (Counting(make_env()), TimeLimit(Counting(bare), H)):
        with pytest.raises(AssertionError, match="Python driver"):
            krl.RandomAgent().fit(env, 3, seed=0)


def test_a_subclass_of_an_environment_is_not_taken_for_it():
    class Lazy(TwinRooms):
        def step(self, action):
            state, _, *rest = super().step(action)
            return state, 0.75, *rest

    history = krl.RandomAgent().fit(TimeLimit(Lazy(), 20), 2, seed=0)
    assert history.returns.tolist() == [15.0, 15.0]


# --------------------------------------------------------------------------------------------------- other environments

LINE = {**GREEDY, "bandwidth": 0.1, "bonus_scale": 0.01, "representatives": None, "reward_range": (-1, 2), "horizon": 6}


def line_agent(name, **changes):
    cls, options = CLASSES[name]
    if "bandwidth" not in options:
        return cls(**options, horizon=6, reward_range=(-1, 2))
    return cls(**{**LINE, "lipschitz": options.get("lipschitz"), **changes})


@each_agent
def test_actions_that_do_not_begin_at_zero(agent):
    plain, shifted = line_agent(agent), line_agent(agent)
    here, there = Line(actions=3), Line(actions=3, first=5)
    one, other = plain.fit(here, 15, seed=1), shifted.fit(there, 15, seed=1)
    assert np.array_equal(one.returns, other.returns)
    assert set(there.taken) == {5, 6, 7}
    assert [a - 5 for a in there.taken] == here.taken
    states = np.linspace(0, 1, 5)[:, None]
    for h in range(6):
        assert np.array_equal(plain.values(states, step=h), shifted.values(states, step=h))
        assert [a + 5 for a in (plain.act(x, step=h) for x in states)] == [shifted.act(x, step=h) for x in states]
    with pytest.raises(ValueError, match="action must be one of 5 … 7"):
        shifted.observe([0.5], 0, 0.0, [0.5], 0)


@each_agent
def test_episodes_that_terminate(agent, tmp_path):
    learner = line_agent(agent)
    env = Line(ends=True)
    history = learner.fit(env, 40, seed=3)
    assert history.lengths.min() < 6 and history.lengths.max() == 6
    assert history.lengths.sum() == len(env.taken)
    learner.save(tmp_path / "agent.krl")
    twin = krl.load(tmp_path / "agent.krl")
    assert np.array_equal(learner.fit(Line(ends=True), 10).returns, twin.fit(Line(ends=True), 10).returns)


@pytest.mark.parametrize("agent", ["KernelUCBVI", "GreedyKernelUCBVI"])
def test_nothing_comes_after_termination(agent):
    """The value after it is zero in the environment's units; after a time limit it is not."""
    values = []
    for terminated in (True, False):
        learner = line_agent(agent, bonus_scale=0.0, lipschitz=0.0)
        learner.start(gym.spaces.Box(0, 1, (1,), np.float64), gym.spaces.Discrete(1), 6, seed=0)
        for _ in range(30):
            learner.begin_episode()
            learner.observe([0.5], 0, 2.0, [0.5], 0, terminated=terminated)
            learner.end_episode()
        learner.begin_episode()
        values.append(learner.q_values([[0.5]], step=0)[0, 0])
    assert values[0] == pytest.approx(2.0, rel=1e-2)  # the reward, and nothing more
    assert values[1] > 2.5


@each_agent
@pytest.mark.parametrize("horizon", [5, H, 30])
def test_horizon_and_time_limit(agent, horizon):
    """An episode ends at the one that comes first, whichever driver."""
    cls, options = CLASSES[agent]
    returns = []
    for driver in ("compiled", "python"):
        learner = cls(**options, horizon=horizon)
        history = learner.fit(make_env(), 8, seed=2, driver=driver)
        assert (history.lengths == min(horizon, H)).all()
        assert learner.values([[0.5, 0.5]], step=horizon - 1).shape == (1,)
        returns.append(history.returns)
    assert np.array_equal(*returns)


@pytest.mark.parametrize("driver", ["compiled", "python"])
def test_without_a_wrapper_nothing_truncates(driver):
    bare = make_env().unwrapped
    assert krl.RandomAgent(horizon=33).fit(bare, 2, seed=0, driver=driver).lengths.tolist() == [33, 33]
    bare = make_env(max_episode_steps=-1)  # Gymnasium's way to leave the wrapper out
    assert krl.RandomAgent(horizon=33).fit(bare, 2, seed=0, driver=driver).lengths.tolist() == [33, 33]


@pytest.mark.parametrize("driver", ["compiled", "python"])
def test_the_smallest_time_limit_counts(driver):
    env = TimeLimit(make_env(max_episode_steps=12), 9)
    assert krl.RandomAgent().fit(env, 2, seed=0, driver=driver).lengths.tolist() == [9, 9]
    env = TimeLimit(make_env(max_episode_steps=12), 15)
    assert krl.RandomAgent().fit(env, 2, seed=0, driver=driver).lengths.tolist() == [12, 12]


@each_agent
def test_single_precision_observations(agent):
    """Where the state is float32, so are the bounds; nothing is made of the rounding."""
    env = Line(dtype=np.float32)
    env.observation_space = gym.spaces.Box(np.float32(0.0), np.float32(1.0), (1,), np.float32)
    learner = line_agent(agent)
    history = learner.fit(env, 10, seed=1)
    assert (history.lengths == 6).all()


@each_agent
def test_progress_is_shown_when_asked_for(agent, capsys):
    cls, options = CLASSES[agent]
    cls(**options).fit(make_env(), 3, seed=0, progress=False)
    cls(**options).fit(make_env(), 3, seed=0)  # standard error is no terminal here
    assert cls.__name__ not in capsys.readouterr().err
    cls(**options).fit(make_env(), 3, seed=0, progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert cls.__name__ in captured.err and "3/3" in captured.err


@each_agent
def test_a_seed_is_drawn_when_none_is_given(agent):
    cls, options = CLASSES[agent]
    runs = [cls(**options).fit(make_env(), 6).returns.tolist() for _ in range(3)]
    assert runs[0] != runs[1] or runs[1] != runs[2]


@each_agent
def test_repr_shows_the_settings(agent):
    cls, options = CLASSES[agent]
    text = repr(cls(**options, horizon=7))
    assert text.startswith(f"{cls.__name__}(") and "horizon=7" in text and "reward_range='auto'" in text
