"""Loops of one's own: an episode half done is kept in the file, resumed to the last bit, or abandoned."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import edited_files
import kernelrl as krl
from kernelrl.agents.episode import Episode
from killed_loops import ACTIONS, BOX, H, check_all_lines, content, no_waiting_for_disks  # noqa: F401
from test_interface import AGENTS, CLASSES, make

sys.path.append(str(Path(__file__).resolve().parent.parent / "examples"))

import device_loop
from device_loop import Plate, learn
from own_algorithm import OptimisticQLearning

EXAMPLES = Path(device_loop.__file__).parent
each_variant = pytest.mark.parametrize("variant", AGENTS)


def started(variant, **changes):
    agent = make(variant, **changes)
    agent.start(BOX, ACTIONS, H, seed=3)
    return agent


def play(agent, rng, steps=H, scale=1.0, ends=True):
    """Some steps of an episode, at random states."""
    agent.begin_episode()
    x = rng.random(2)
    for h in range(steps):
        y = rng.random(2)
        agent.observe(x, agent.choose(x, h), scale * rng.normal(), y, h, terminated=h == H - 1 and rng.random() < 0.3)
        x = y
    if ends:
        agent.end_episode()
    return x


# -------------------------------------------------------------------------------------------------------- the example


def make_small(name):
    """A quick agent for states of one coordinate."""
    cls, options = CLASSES[name]
    return lambda: cls(**options)


def run_example(folder, make, episodes=2):
    folder.mkdir(exist_ok=True)
    return learn(folder / "plate.krl", Plate(folder / "plate.json"), episodes, make)


@pytest.mark.parametrize("name", [*CLASSES, "OptimisticQLearning"])
def test_the_example_survives_a_kill_at_any_line(name, tmp_path, monkeypatch):
    """Every line of every pass is tried: the file of the agent is the same at the end."""
    monkeypatch.setattr(device_loop, "STEPS", 3)
    make = OptimisticQLearning if name == "OptimisticQLearning" else make_small(name)
    number = check_all_lines(tmp_path, lambda folder: run_example(folder, make), device_loop, "plate.krl")
    assert number > 2 * 3 * device_loop.STEPS  # chosen, moved, told, at each step


def test_the_script_survives_real_kills(tmp_path):
    arguments = [str(tmp_path / "plate.krl"), str(tmp_path / "plate.json"), "15"]
    command = [sys.executable, str(EXAMPLES / "device_loop.py"), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not (tmp_path / "plate.krl").exists() and process.poll() is None:
        time.sleep(0.001)
    time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    whole = learn(tmp_path / "whole.krl", Plate(tmp_path / "whole.json"), 15)
    assert whole.episodes == 15
    assert (tmp_path / "whole.krl").read_bytes() == (tmp_path / "plate.krl").read_bytes()


def test_the_example_learns(tmp_path):
    agent = device_loop.learn(tmp_path / "a.krl", Plate(tmp_path / "a.json"), 40)
    assert agent.act([20.0], 0) == 2


# ------------------------------------------------------------------------------------------- in the middle of episodes


@each_variant
def test_saved_and_loaded_between_any_two_calls(variant, tmp_path):
    """The agent that was saved and loaded after every call is the one that was not."""
    whole, parts, kept = started(variant), started(variant), 0
    rng = np.random.default_rng(0)

    def again():
        nonlocal parts, kept
        parts.save(tmp_path / "parts.krl")
        parts, kept = krl.load(tmp_path / "parts.krl"), kept + 1

    for k in range(2):
        for agent in (whole, parts):
            agent.begin_episode()
        again()
        x = rng.random(2)
        for h in range(H):
            actions = whole.choose(x, h), parts.choose(x, h)
            again()
            assert parts.episode.action == actions[0] == actions[1] == parts.choose(x, h)
            y, r = rng.random(2), float(rng.normal()) * (10.0 if k == 0 else 1.0)
            for agent in (whole, parts):
                agent.observe(x, actions[0], r, y, h)
            again()
            x = y
        for agent in (whole, parts):
            agent.end_episode()
        again()
        assert content(whole, tmp_path) == content(parts, tmp_path)
    assert kept == 2 * (2 * H + 2)


@each_variant
def test_an_abandoned_episode_has_never_begun(variant, tmp_path):
    """The file is the same as before it, and what comes then is the same, also where settings would have changed."""
    agent, rng = started(variant), np.random.default_rng(1)
    for k in range(4):
        before = content(agent, tmp_path)
        play(agent, rng, int(rng.integers(H + 1)), scale=100.0 if k == 2 else 1.0, ends=False)
        if k % 2 == 0:
            agent.save(tmp_path / "half.krl")
            agent = krl.load(tmp_path / "half.krl")
            assert agent.episode is not None
        agent.abandon_episode()
        assert agent.episode is None and content(agent, tmp_path) == before
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            play(agent, rng)
    undisturbed, rng = started(variant), np.random.default_rng(1)
    for _ in range(4):
        play(started("RandomAgent"), rng, int(rng.integers(H + 1)), ends=False)  # only for its random numbers
        play(undisturbed, rng)
    assert content(undisturbed, tmp_path) == content(agent, tmp_path)


def test_abandoning_after_settings_were_chosen(tmp_path):
    """The episode in which automatic settings are chosen, with new representatives and bandwidths, is undone."""
    agent, rng, changed = started("KernelUCBVI automatic"), np.random.default_rng(0), 0
    for _ in range(60):
        before, used = content(agent, tmp_path), repr(agent.settings_used())
        agent.begin_episode()
        changed += repr(agent.settings_used()) != used
        agent.abandon_episode()
        assert content(agent, tmp_path) == before and repr(agent.settings_used()) == used
        play(agent, rng, scale=0.1)
    assert changed > 0


def test_abandoning_does_not_change_policies_that_were_read():
    agent, rng = started("KernelUCBVI merged"), np.random.default_rng(0)
    for _ in range(5):
        play(agent, rng)
    states = rng.random((20, 2))
    before = [agent.act(x, 0) for x in states], agent.q_values(states, 0)
    play(agent, rng, ends=False)
    [agent.act(x, 0) for x in states]
    agent.abandon_episode()
    assert [agent.act(x, 0) for x in states] == before[0]
    assert np.array_equal(agent.q_values(states, 0), before[1])


# ------------------------------------------------------------------------------------------------ where an episode is


def test_what_is_known_of_an_open_episode():
    agent = started("OptQL")
    assert agent.episode is None
    agent.begin_episode()
    assert agent.episode == Episode(step=0, state=None, action=None, over=False)
    action = agent.choose([0.5, 0.25], 0)
    assert agent.episode.step == 0 and agent.episode.action == action and agent.episode.state.tolist() == [0.5, 0.25]
    agent.observe([0.5, 0.25], action, 0.5, [0.75, 0.5], 0)
    assert agent.episode.step == 1 and agent.episode.action is None and agent.episode.state.tolist() == [0.75, 0.5]
    agent.observe([0.75, 0.5], 2, 0.5, [0.5, 0.5], 1, terminated=True)  # an action of one's own
    assert agent.episode.over
    agent.end_episode()
    assert agent.episode is None and agent.episodes == 1
    agent.begin_episode()
    for h in range(H):
        assert not agent.episode.over
        agent.observe([0.5, 0.5], 1, 0.0, [0.5, 0.5], h)
    assert agent.episode.over and agent.episode.step == H


@pytest.mark.parametrize("space", [gym.spaces.Discrete(5, start=2), gym.spaces.Box(0.0, 1.0, (2, 1))], ids=str)
def test_states_and_actions_as_users_give_them(space, tmp_path):
    agent = krl.OptQL(bins=None if isinstance(space, gym.spaces.Discrete) else 3)
    agent.start(space, gym.spaces.Discrete(3, start=-1), H, seed=0)
    state = 3 if isinstance(space, gym.spaces.Discrete) else np.array([[0.5], [0.25]])
    agent.begin_episode()
    action = agent.choose(state, 1, mask=[True, False, True])
    agent.save(tmp_path / "a.krl")
    for twin in (agent, krl.load(tmp_path / "a.krl"), pickle.loads(pickle.dumps(agent))):
        episode = twin.episode
        assert episode.step == 1 and episode.action == action and np.array_equal(episode.state, state)
        assert np.shape(episode.state) == np.shape(state) and type(episode.action) is type(action)
        twin.observe(episode.state, episode.action, 0.0, episode.state, episode.step)


def test_continuous_actions_of_an_open_episode(tmp_path):
    agent = krl.KernelUCBVI()
    agent.start(BOX, gym.spaces.Box(-1.0, 1.0, (1,), np.float32), H, seed=0)
    agent.begin_episode()
    action = agent.choose([0.5, 0.5], 0)
    agent.save(tmp_path / "a.krl")
    found = krl.load(tmp_path / "a.krl").episode.action
    assert found.dtype == np.float32 and np.array_equal(found, action)


def test_choosing_again_gives_the_same_action_and_draws_nothing():
    agent = started("RandomAgent")
    agent.begin_episode()
    first, words = agent.choose([0.5, 0.5], 0), agent.model.stream.copy()
    assert {agent.choose([0.5, 0.5], 0) for _ in range(50)} == {first}
    assert np.array_equal(agent.model.stream, words)
    assert len({agent.choose([0.5, x], 0) for x in np.linspace(0, 1, 50)}) > 1  # other states
    assert agent.choose([0.5, 1.0], 0, mask=[False, False, True, False]) == 3  # another question
    agent.observe([0.5, 1.0], 3, 0.0, [0.5, 0.5], 0)
    chosen = set()
    for _ in range(50):
        chosen.add(agent.choose([0.5, 0.5], 1))
        agent.observe([0.5, 0.5], 1, 0.0, [0.5, 0.5], 1)
    assert len(chosen) == 4  # its result was told


# ---------------------------------------------------------------------------------------------------------- bad calls


def test_errors_say_what_to_do(tmp_path):
    agent, env = krl.OptQL(bins=3), gym.make("kernelrl/TwinRooms-v0")
    for call in (agent.abandon_episode, agent.end_episode, agent.begin_episode):
        with pytest.raises(RuntimeError, match=r"call fit\(env, …\) or start\(…\) first"):
            call()
    agent.start(env.observation_space, env.action_space, 20, seed=0)
    with pytest.raises(RuntimeError, match=r"^abandon_episode: no episode is open, so there is nothing to abandon"):
        agent.abandon_episode()
    with pytest.raises(RuntimeError, match=r"^end_episode: no episode is open; begin_episode\(\) opens one"):
        agent.end_episode()
    agent.begin_episode()
    agent.begin_episode()  # nothing has happened in the first
    agent.choose([0.5, 0.5], 0)
    before = content(agent, tmp_path)
    table = {"state_0": [0.5], "state_1": [0.5], "action": [0], "reward": [0.0], "step": [0]}
    table |= {"next_state_0": [0.5], "next_state_1": [0.5], "terminated": [False]}
    for name, call in {
        "fit": lambda: agent.fit(env, 1),
        "learn_from": lambda: agent.learn_from(table),
    }.items():
        with pytest.raises(RuntimeError, match=rf"^{name}: an episode is open, at step 0 .*abandon_episode\(\) makes"):
            call()
    for state in ([np.nan, 0.5], [0.5], [0.5, 7.0], None):
        with pytest.raises((ValueError, TypeError), match="state"):
            agent.choose(state, 0)
        with pytest.raises((ValueError, TypeError), match="next_state"):
            agent.observe([0.5, 0.5], 0, 0.0, state, 0)
    with pytest.raises(ValueError, match=r"^action must be one of 0 … 3, got 4"):
        agent.observe([0.5, 0.5], 4, 0.0, [0.5, 0.5], 0)
    with pytest.raises(ValueError, match=r"^mask allows no action"):
        agent.choose([0.5, 0.5], 0, mask=[False] * 4)
    assert content(agent, tmp_path) == before
    agent.abandon_episode()
    agent.fit(env, 1)


CHANGES = {
    "step": [-1, 99, None, 1.0, True], "state": [[0.5], [0.5, 9.0], [1, 2], None, "x", [0.5, None]],
    "action": [-1, 4, 1.0, "a"], "mask": [[True], [True] * 5, [0.5] * 4, [False] * 4, 3], "over": [1, None],
    "before": [{}, None, 3],
}  # fmt: skip


@pytest.mark.parametrize("key", [*CHANGES, "missing", "further", "not open", "horizon", "episodes", "array"])
def test_files_with_an_open_episode_are_checked(key, tmp_path):
    agent = started("OptQL")
    play(agent, np.random.default_rng(0))
    agent.begin_episode()
    agent.choose([0.5, 0.5], 0)
    agent.save(tmp_path / "good.krl")
    krl.load(edited(tmp_path / "good.krl", tmp_path / "same.krl", "over", False))  # as it was
    for value in CHANGES.get(key, [None]):
        bad = edited(tmp_path / "good.krl", tmp_path / "bad.krl", key, value)
        with pytest.raises(ValueError, match=r"bad\.krl is damaged"):
            krl.load(bad)


def edited(good, bad, key, value):
    """A copy of the file with one thing changed."""
    header, arrays = edited_files.read(good)
    if key == "missing":
        del header["open"]["step"]
    elif key == "further":
        header["open"]["more"] = 1
    elif key == "not open":
        del header["open"]
    elif key in ("horizon", "episodes"):
        header["open"]["before"][key] += 1
    elif key == "array":
        arrays["before/more"] = arrays["before/stream"]
    else:
        header["open"][key] = value
    edited_files.write(bad, header, list(arrays.items()))
    return bad
