"""Several open episodes at once: pending visits, results that come late and out of order, files, abandoned episodes."""

from __future__ import annotations

import math
import pickle
import sys
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import edited_files
import kernelrl as krl
from kernelrl.agents.rigs import Rigs, with_visits
from killed_loops import ACTIONS, BOX, H, check_all_lines, content, no_waiting_for_disks  # noqa: F401
from naive.rigs import NaiveRigs
from test_interface import AGENTS, CLASSES, make

sys.path.append(str(Path(__file__).resolve().parent.parent / "examples"))

import device_loop
import two_rigs
from device_loop import Plate
from own_algorithm import OptimisticQLearning

each_agent = pytest.mark.parametrize("name", CLASSES)
each_variant = pytest.mark.parametrize("variant", AGENTS)
START = np.array([0.5, 0.5])


def started(variant, seed=3, actions=ACTIONS, **changes):
    agent = make(variant, **changes) if variant in AGENTS else CLASSES[variant][0](**{**CLASSES[variant][1], **changes})
    agent.start(BOX, actions, H, seed=seed)
    return agent


def result(rng, k=0):
    """Reward, next state and whether the episode terminated."""
    return float(rng.random()) * (30.0 if k == 5 else 1.0), rng.random(2), bool(rng.random() < 0.1)


def play(agent, seed, calls, after=lambda agent: agent, rigs=3):
    """Random calls of several rigs: results come late and in any order. `after(agent)` may replace the agent.

    Returns the agent and the log of what was called, with what came out of it.
    """
    rng, log, states = np.random.default_rng(seed), [], {}
    for k in range(calls):
        numbers = agent.open_episodes
        if not numbers or (len(numbers) < rigs and rng.random() < 0.4):
            number = agent.open_episode().number
            states[number] = START
            log.append(("open", number))
        else:
            number = numbers[int(rng.integers(len(numbers)))]
            handle = agent.open_episode_number(number)
            if handle.episode.action is not None:
                told = result(rng, k)
                handle.observe(*told)
                states[number] = told[1]
                log.append(("observe", number, told))
            elif handle.episode.over or rng.random() < 0.1:
                handle.end()
                log.append(("end", number))
            else:
                log.append(("choose", number, states[number], handle.choose(states[number])))
        agent = after(agent)
    return agent, log


def replay(agent, log):
    """The calls of a log; the actions must be the same."""
    handles = {}
    for kind, number, *rest in log:
        if kind == "open":
            handles[number] = agent.open_episode()
            assert handles[number].number == number
        elif kind == "choose":
            assert handles[number].choose(rest[0]) == rest[1]
        elif kind == "observe":
            handles[number].observe(*rest[0])
        else:
            handles[number].end()


# ---------------------------------------------------------------------------------------------- one after the other


@each_variant
def test_one_handle_at_a_time_is_the_plain_loop(variant, tmp_path):
    one, plain, rng = started(variant), started(variant), np.random.default_rng(0)
    for k in range(4):
        handle, x = one.open_episode(), START
        plain.begin_episode()
        for h in range(H):
            actions = handle.choose(x), plain.choose(x, h)
            assert actions[0] == actions[1]
            r, y, terminated = result(rng, 5 * (k == 2))
            handle.observe(r, y, terminated)
            plain.observe(x, actions[0], r, y, h, terminated)
            x = y
            if terminated:
                break
        handle.end()
        plain.end_episode()
        assert content(one, tmp_path) == content(plain, tmp_path)


# ------------------------------------------------------------------------------------------------------ pending visits


@each_agent
@pytest.mark.parametrize("seed", range(4))
def test_rigs_that_open_at_the_same_state_do_not_repeat_each_other(name, seed):
    agent = started(name, seed=seed)
    handles = [agent.open_episode() for _ in range(4)]
    assert sorted(handle.choose(START) for handle in handles) == [1, 2, 3, 4]
    fifth = agent.open_episode()
    assert fifth.choose(START) in (1, 2, 3, 4)
    assert fifth.choose(START, mask=None) == fifth.episode.action


@pytest.mark.parametrize("name", ["KernelUCBVI", "GreedyKernelUCBVI", "AdaptiveQL", "AdaMB"])
def test_continuous_actions_do_not_repeat_each_other(name):
    options = {"lipschitz": None, "representatives": 0.2} if "Kernel" in name else {}
    agent = started(name, actions=gym.spaces.Box(-1.0, 1.0, (1,), np.float64), **options)
    first, second = agent.open_episode(), agent.open_episode()
    assert first.choose(START) != second.choose(START)


def test_a_pending_visit_vanishes_when_the_result_comes():
    """Then the result itself counts, and the choice is that of the plain loop with the same data."""
    agent, plain = started("UCBVI"), started("UCBVI")
    first, second = agent.open_episode(), agent.open_episode()
    action = first.choose(START)
    first.observe(1.0, START)
    plain.begin_episode()
    plain.observe(START, action, 1.0, START, 0)
    plain.end_episode()
    plain.begin_episode()
    second.choose(START)
    assert np.array_equal(agent.q_values([START], 0), plain.q_values([START], 0))
    assert np.array_equal(agent.counts([START], 0), plain.counts([START], 0))


@pytest.mark.parametrize("name", ["KernelUCBVI", "GreedyKernelUCBVI", "UCBVI", "OptQL", "AdaptiveQL", "AdaMB"])
def test_told_results_count_at_once(name):
    """An agent that has been told what another was told before chooses alike, whoever opened first."""
    agent, rng = started(name), np.random.default_rng(0)
    handles = [agent.open_episode(), agent.open_episode()]
    handles[0].choose(START)
    handles[0].observe(1.0, rng.random(2), terminated=True)
    later = agent.open_episode()
    counts = agent.counts([START], 0)
    assert counts.sum() > started(name).counts([START], 0).sum()
    assert later.choose(START) in (1, 2, 3, 4)


@pytest.mark.parametrize("kind", ["exact", "merged", "per step"])
@pytest.mark.parametrize("seed", range(3))
def test_against_the_naive_version(kind, seed):
    """Q', the weights of pending visits and the choice, for Kernel-UCBVI with a Gaussian kernel."""
    options = {
        "bandwidth": 0.3, "bonus_scale": 0.5, "reward_range": (0.0, 1.0), "metric": "euclidean", "replan": "episode",
        "bonus": krl.bonuses.Simplified(), "stationary": kind != "per step",
        "reading": "nearest" if kind == "merged" else "auto", "representatives": 0.0 if kind == "merged" else None,
    }  # fmt: skip
    agent, naive = krl.KernelUCBVI(**options), NaiveRigs(0.3, 0.01, 0.5, H, 4, kind != "per step")
    agent.start(BOX, ACTIONS, H, seed=seed)
    rng = np.random.default_rng(seed)
    handles = [agent.open_episode() for _ in range(3)]
    places = [rng.choice([0.4, 0.5, 0.6], 2) for _ in handles]
    for _ in range(30):
        i = int(rng.integers(3))
        handle = handles[i]
        if handle.episode.over:
            handle.end()
            handles[i], places[i] = agent.open_episode(), rng.choice([0.4, 0.5, 0.6], 2)
            continue
        h = handle.episode.step
        if handle.episode.action is None:
            pending = [
                (other.episode.state, other.episode.action - 1, other.episode.step)
                for other in handles if other is not handle and other.episode.action is not None
            ]  # fmt: skip
            action = handle.choose(places[i]) - 1
            if pending:
                q, fall, n = with_visits(agent, pending, np.array(places[i]), h)
                expected, visits = naive.values_with(pending, np.array(places[i]), h)
                assert np.allclose(q - fall, expected, atol=2e-5) and np.allclose(n - visits[1], visits[0], atol=1e-9)
                assert expected[action] >= expected.max() - 3e-5
        else:
            r, y = float(rng.random()), rng.choice([0.4, 0.5, 0.6], 2)
            naive.tell(np.array(places[i]), handle.episode.action - 1, r, y, h)
            handle.observe(r, y)
            places[i] = y


# ---------------------------------------------------------------------------- what the result depends on, and files


@each_variant
def test_late_results_out_of_order_and_kills(variant, tmp_path):
    """The calls in their order determine the agent, and saving and loading after any of them changes nothing."""
    kills = np.random.default_rng(list(AGENTS).index(variant))  # after other calls for each variant

    def again(agent):
        if kills.random() < 0.85:
            return agent
        agent.save(tmp_path / "again.krl")
        return krl.load(tmp_path / "again.krl")

    whole, log = play(started(variant), 1, 40)
    killed, same = play(started(variant), 1, 40, again)
    assert repr(log) == repr(same) and len({number for _, number, *_ in log}) > 4
    assert content(whole, tmp_path) == content(killed, tmp_path)
    replayed = started(variant)
    replay(replayed, log)
    assert content(whole, tmp_path) == content(replayed, tmp_path)
    assert whole.open_episodes == killed.open_episodes != ()
    for number in whole.open_episodes:
        assert whole.rigs.open[number].outside == killed.rigs.open[number].outside
        killed.open_episode_number(number).end()
        whole.open_episode_number(number).end()
    assert content(whole, tmp_path) == content(killed, tmp_path) and whole.rigs is None


def test_streams_do_not_depend_on_the_others():
    """A random agent's episode takes the same actions, whenever the other one chooses."""
    chosen = []
    for order in ((0, 0, 0, 1, 1, 1), (1, 0, 1, 0, 1, 0)):
        agent = started("RandomAgent")
        handles = [agent.open_episode(), agent.open_episode()]
        actions = [[], []]
        for i in order:
            actions[i].append(handles[i].choose([0.1 + 0.3 * i, 0.1 * len(actions[i])]))
            handles[i].observe(0.0, START)
        chosen.append(actions)
    assert chosen[0] == chosen[1]


TOLD = [name for name in AGENTS if "minimum" not in name and name != "RandomAgent"]


def told_in_one_order(agent, opens=0, together=False):
    """Two rigs whose results and ends come in one order; the second opens, and both choose, earlier or later."""
    H, rng = 6, np.random.default_rng(5)
    agent.start(gym.spaces.Box(0.0, 1.0, (2,)), gym.spaces.Discrete(3), H, seed=0)
    for _ in range(12):
        states, actions, rewards = rng.random((2, H + 1, 2)), rng.integers(3, size=(2, H)), rng.random((2, H))
        rigs = [agent.open_episode()]
        for k, i in enumerate((0, 0, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1)):
            if k == opens:
                rigs.append(agent.open_episode())
            for j in range(len(rigs)) if together else (i,):
                h = rigs[j].episode.step
                if h < H:
                    rigs[j].choose(states[j, h])
            h = rigs[i].episode.step
            rigs[i].observe(rewards[i, h], states[i, h + 1], action=int(actions[i, h]))
        for rig in rigs:
            rig.end()
    places = np.random.default_rng(1).random((20, 2))
    q = np.array([agent.q_values(places, h) for h in range(H)])
    return q, [[agent.act(x, step=h) for x in places] for h in range(H)], repr(agent.settings_used())


@pytest.mark.parametrize("variant", TOLD)
def test_what_is_learnt_depends_on_the_order_in_which_it_was_told(variant):
    """Opening and choosing earlier or later changes nothing but choices; there are enough rows for automatic settings.

    Agents with the minimum over plans are left out: they depend on when plans were made, which is documented.
    """
    q, actions, settings = told_in_one_order(make(variant))
    for opens, together in ((4, False), (0, True)):
        other_q, other_actions, other_settings = told_in_one_order(make(variant), opens, together)
        assert settings == other_settings and actions == other_actions
        assert np.allclose(q, other_q, rtol=0.0, atol=1e-6)


def test_a_plan_is_up_to_date_when_all_have_ended():
    """Also with `replan="auto"`, for which a plan in the middle of episodes is no reason to leave out the next."""
    agent = krl.KernelUCBVI(bandwidth=0.1, representatives=None)
    agent.start(BOX, ACTIONS, H, seed=0)
    rigs = [agent.open_episode(), agent.open_episode()]
    for _ in range(H):
        for rig in rigs:
            rig.choose(START)
        for rig in rigs:
            rig.observe(1.0, START, action=1)
    for rig in rigs:
        rig.end()
    for counts in (agent.counts([START], 0), agent.open_episode() and agent.counts([START], 0)):
        assert counts.sum() > 2 * H


def test_an_end_with_a_warning_that_is_an_error(tmp_path):
    """The episode has ended, and a file with the others can be loaded."""
    agent = krl.UCBVI(bins=3, reward_range=(0.0, 1.0))
    agent.start(BOX, ACTIONS, H, seed=0)
    first, second = agent.open_episode(), agent.open_episode()
    told(first, 5.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="outside"):
            first.end()
    agent.save(tmp_path / "a.krl")
    assert agent.episodes == 1 and krl.load(tmp_path / "a.krl").open_episodes == (second.number,)


def test_an_own_algorithm_and_pickling(tmp_path):
    agent = OptimisticQLearning()
    agent.start(BOX, ACTIONS, H, seed=0)
    agent, log = play(agent, 2, 60, lambda agent: pickle.loads(pickle.dumps(agent)))
    twin = OptimisticQLearning()
    twin.start(BOX, ACTIONS, H, seed=0)
    replay(twin, log)
    assert content(agent, tmp_path) == content(twin, tmp_path)


def test_masks(tmp_path):
    agent = started("OptQL")
    first, second = agent.open_episode(), agent.open_episode()
    assert first.choose(START, mask=[True, True, False, False]) in (1, 2)
    assert {first.episode.action, second.choose(START, mask=[True, True, False, False])} == {1, 2}
    third = agent.open_episode()
    assert third.choose(START, mask=[False, False, False, True]) == 4
    agent.save(tmp_path / "a.krl")
    loaded = krl.load(tmp_path / "a.krl")
    assert content(loaded, tmp_path) == content(agent, tmp_path)
    handle = loaded.open_episode_number(third.number)
    assert handle.choose(START, mask=[False, False, False, True]) == 4
    with pytest.raises(RuntimeError, match=r"^choose: episode 2 waits for the result"):
        handle.choose(START)


def plates(folder):
    return [Plate(folder / "plate-1.json"), Plate(folder / "plate-2.json")]


@each_agent
def test_the_example_survives_a_kill_at_any_line(name, tmp_path, monkeypatch):
    cls, options = CLASSES[name]
    for module in (device_loop, two_rigs):
        monkeypatch.setattr(module, "STEPS", 3)

    def run(folder):
        two_rigs.learn(folder / "agent.krl", plates(folder), 3, lambda: cls(**options))

    assert check_all_lines(tmp_path, run, two_rigs, "agent.krl") > 3 * two_rigs.STEPS


def test_the_example_learns(tmp_path):
    agent = two_rigs.learn(tmp_path / "agent.krl", plates(tmp_path), 40)
    assert agent.episodes == 40 and agent.open_episodes == () and agent.act([20.0], 0) == 2


# ----------------------------------------------------------------------------------------------------------- abandoned


@each_agent
def test_an_abandoned_episode_alone(name, tmp_path):
    agent, rng = started(name), np.random.default_rng(0)
    for k in range(3):
        before = content(agent, tmp_path)
        handle = agent.open_episode()
        handle.choose(START)
        handle.observe(*result(rng, 5 * (k == 1))[:2])
        if k == 2:
            agent.save(tmp_path / "a.krl")
            agent = krl.load(tmp_path / "a.krl")
            handle = agent.open_episode_number(handle.number)
        handle.abandon()
        assert agent.open_episodes == () and content(agent, tmp_path) == before
        agent.begin_episode()
        agent.observe(START, agent.choose(START, 0), float(rng.random()), START, 0)
        agent.end_episode()


@each_agent
@pytest.mark.parametrize("loaded", [False, True], ids=["", "loaded"])
def test_an_abandoned_episode_among_others(name, loaded, tmp_path):
    """The agent is that of the calls of the others, with the actions that they took."""
    agent, twin, rng = started(name), started(name), np.random.default_rng(0)
    first, gone, second = (agent.open_episode() for _ in range(3))
    left, right = twin.open_episode(), twin.open_episode()
    for _ in range(2):
        for handle, other in ((first, left), (gone, None), (second, right)):
            action = handle.choose(START)
            told = result(rng, 5 * (other is None))
            handle.observe(*told[:2])
            if other is not None:
                other.choose(START)
                other.observe(*told[:2], action=action)
    second.choose(START)
    if loaded:
        agent.save(tmp_path / "a.krl")
        agent = krl.load(tmp_path / "a.krl")
        first, gone, second = (agent.open_episode_number(number) for number in agent.open_episodes)
    pending = second.episode.action
    gone.abandon()
    assert agent.open_episodes == (first.number, second.number) and second.episode.action == pending
    assert first.episode.step == left.episode.step == 2
    for handle in (first, left, second, right):
        handle.end()
    states = rng.random((20, 2))
    assert agent.episodes == twin.episodes == 2
    assert agent.settings_used() == twin.settings_used()
    assert np.allclose(agent.q_values(states, 0), twin.q_values(states, 0), rtol=0, atol=1e-5)
    if hasattr(agent, "counts"):
        assert np.allclose(agent.counts(states, 0), twin.counts(states, 0))
    for handle in (first, gone, second):
        with pytest.raises(RuntimeError, match="has ended or was abandoned"):
            handle.choose(START)


def test_ctrl_c_while_an_episode_is_abandoned_changes_nothing(monkeypatch, tmp_path):
    """The calls of the others are repeated, which may take long."""
    agent, _ = play(started("GreedyKernelUCBVI"), 4, 60)
    handle = agent.open_episode_number(agent.open_episodes[0])
    before, perform, left = content(agent, tmp_path), Rigs.perform, [20]

    def interrupted(self, agent, call):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return perform(self, agent, call)

    monkeypatch.setattr(Rigs, "perform", interrupted)
    with pytest.raises(KeyboardInterrupt):
        handle.abandon()
    assert content(agent, tmp_path) == before
    twin = krl.load(tmp_path / "content.krl")
    handle.abandon()
    twin.open_episode_number(handle.number).abandon()
    assert content(agent, tmp_path) == content(twin, tmp_path)


def told(handle, reward):
    """One step of an episode."""
    handle.choose(START)
    handle.observe(reward, START)


@pytest.mark.parametrize("loaded", [False, True], ids=["", "loaded"])
def test_no_number_is_given_twice(loaded, tmp_path):
    """An ended episode keeps its number, so that abandoning a later one leaves it alone."""

    def again(agent):
        agent.save(tmp_path / "a.krl")
        return krl.load(tmp_path / "a.krl") if loaded else agent

    agent = started("UCBVI")
    first, _, _ = (agent.open_episode() for _ in range(3))
    first.abandon()
    agent = again(agent)
    ended = agent.open_episode()
    assert ended.number == 3
    told(ended, 1.0)
    ended.end()
    agent = again(agent)
    counts = agent.counts([START], 0)
    later = agent.open_episode()
    assert later.number == 4
    told(later, 0.5)
    later.abandon()
    assert agent.episodes == 1 and np.array_equal(agent.counts([START], 0), counts)
    assert agent.open_episode().number == 4  # as if the abandoned one had never begun
    for number in agent.open_episodes:
        agent.open_episode_number(number).end()
    agent = again(agent)
    assert agent.episodes == 4 and agent.open_episode().number == 5  # also after a time when none was open


# ----------------------------------------------------------------------------------------------------------- bad calls


def test_errors_say_what_to_do(tmp_path):
    agent, env = krl.OptQL(bins=3), gym.make("kernelrl/TwinRooms-v0")
    with pytest.raises(RuntimeError, match=r"call fit\(env, …\) or start\(…\) first"):
        agent.open_episode()
    agent.start(BOX, ACTIONS, H, seed=0)
    with pytest.raises(ValueError, match=r"^number must be one of the open episodes \[\], got 3"):
        agent.open_episode_number(3)
    agent.begin_episode()
    agent.choose(START, 0)
    with pytest.raises(RuntimeError, match=r"^open_episode: an episode is open, at step 0"):
        agent.open_episode()
    agent.abandon_episode()
    handle, other = agent.open_episode(), agent.open_episode()
    before = content(agent, tmp_path)
    for name, call in {
        "begin_episode": agent.begin_episode, "end_episode": agent.end_episode,
        "abandon_episode": agent.abandon_episode,
        "choose": lambda: agent.choose(START, 0), "observe": lambda: agent.observe(START, 1, 0.0, START, 0),
        "fit": lambda: agent.fit(env, 1), "learn_from": lambda: agent.learn_from({}),
    }.items():  # fmt: skip
        with pytest.raises(RuntimeError, match=rf"^{name}: episodes \[0, 1\] are open, each with a handle of its own"):
            call()
    with pytest.raises(RuntimeError, match=r"^observe: nothing was chosen in episode 0; call choose\(state\) first"):
        handle.observe(0.0, START)
    for state in ([math.nan, 0.5], [0.5], [0.5, 7.0], None):
        with pytest.raises((ValueError, TypeError), match="state"):
            handle.choose(state)
    with pytest.raises(ValueError, match=r"^mask allows no action"):
        handle.choose(START, mask=[False] * 4)
    assert content(agent, tmp_path) == before
    handle.choose(START)
    before = content(agent, tmp_path)
    for wrong in ([math.nan, 0.5], [0.5], None):
        with pytest.raises((ValueError, TypeError), match="next_state"):
            handle.observe(0.0, wrong)
    with pytest.raises(ValueError, match=r"^reward must be"):
        handle.observe(math.nan, START)
    with pytest.raises(ValueError, match=r"^action must be one of 1 … 4, got 0"):
        handle.observe(0.0, START, action=0)
    with pytest.raises(RuntimeError, match=r"^choose: episode 0 waits for the result of its action at step 0"):
        handle.choose([0.1, 0.1])
    assert content(agent, tmp_path) == before
    handle.observe(0.0, START, terminated=True)
    with pytest.raises(RuntimeError, match=r"^choose: episode 0 is over; call end\(\)"):
        handle.choose(START)
    handle.end()
    for call in (handle.end, handle.abandon, lambda: handle.observe(0.0, START), lambda: handle.choose(START)):
        with pytest.raises(RuntimeError, match=r"^episode 0 has ended or was abandoned"):
            call()
    assert "ended" in repr(handle) and "step=0" in repr(other)
    other.end()
    assert agent.episodes == 2


@pytest.mark.parametrize(
    "bad", ["row", "kind", "nan", "order", "action", "number", "stream", "header", "episodes", "array"]
)
def test_files_with_open_episodes_are_checked(bad, tmp_path):
    agent, _ = play(started("OptQL"), 4, 20)
    agent.save(tmp_path / "good.krl")
    header, arrays = edited_files.read(tmp_path / "good.krl")
    edited_files.write(tmp_path / "same.krl", header, list(arrays.items()))
    krl.load(tmp_path / "same.krl")
    calls = arrays["rigs/calls"]
    if bad == "row":
        calls = calls[:-1, :3]
    elif bad == "order":
        calls = calls[::-1]
    elif bad in ("kind", "nan", "action", "number"):
        calls[1, {"kind": 0, "nan": 3, "action": 2, "number": 1}[bad]] = np.nan if bad == "nan" else 77
    elif bad == "stream":
        header["rigs"]["episodes"][-1]["stream"] = [0, 0, 0, 0]
    elif bad == "header":
        header["rigs"]["more"] = 1
    elif bad == "episodes":
        header["started"]["episodes"] += 1
    else:
        arrays["rigs/more"] = calls
    arrays["rigs/calls"] = np.ascontiguousarray(calls)
    edited_files.write(tmp_path / "bad.krl", header, list(arrays.items()))
    with pytest.raises(ValueError, match=r"bad\.krl is damaged"):
        krl.load(tmp_path / "bad.krl")


def whole(episode, rng):
    """Play an episode with random results, without ending it."""
    state = START
    for _ in range(H):
        episode.choose(state)
        state = rng.random(2)
        episode.observe(float(rng.random()), state)


def after_a_renewal(path):
    """Values of an agent that chose before bandwidths were renewed and observed after it; saved between if `path`."""
    agent = krl.GreedyKernelUCBVI(bandwidth=krl.schedules.Local(0.3, 0.03), representatives=0.0, reading="nearest")
    agent.start(BOX, ACTIONS, H, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(21):
        episode = agent.open_episode()
        whole(episode, rng)
        episode.end()
    first, second = agent.open_episode(), agent.open_episode()
    whole(second, rng)
    first.choose(START)
    second.end()  # after this one, the 22nd, bandwidths are renewed
    if path:
        agent.save(path)
        agent = krl.load(path)
        first = agent.open_episode_number(first.number)
    first.observe(0.0, START)
    return agent.values([START], 0)[0]


def test_a_choice_before_weights_were_renewed(tmp_path):
    """Its targets are forgotten, so an agent that was saved after the choice learns the same as one that was not."""
    assert after_a_renewal(tmp_path / "a.krl") == after_a_renewal(None)
