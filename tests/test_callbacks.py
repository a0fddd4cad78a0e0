"""Callbacks of `fit` see what they should, when they should, and change nothing."""

from __future__ import annotations

import copy
import sys
import types

import gymnasium as gym
import numpy as np
import pytest

import kernelrl as krl
from kernelrl import console
from killed_loops import content, no_waiting_for_disks  # noqa: F401
from test_interface import CLASSES, make_env

ROOMS = "kernelrl/TwinRooms-v0"
each_agent = pytest.mark.parametrize("name", CLASSES)


def made(name):
    cls, options = CLASSES[name]
    return cls(**options)


class Seen:
    """Notes when it was called."""

    def __init__(self, answer=None, every=None):
        self.answer, self.every, self.calls = answer, every, []

    def __call__(self, agent, history):
        assert agent.episodes == history.first_episode + len(history)
        self.calls.append(agent.episodes)
        return self.answer


def ucbvi():
    return krl.UCBVI(bins=5, bonus_scale=0.01)


@pytest.mark.parametrize("driver", ["compiled", "python"])
def test_when_they_are_called(driver):
    agent, seen, own = ucbvi(), Seen(), Seen(every=30)
    for episodes in (150, 0, 55):
        agent.fit(make_env(), episodes, seed=0, driver=driver, callback=[seen, own], every=100)
    assert seen.calls == [100, 150, 150, 200, 205]
    assert own.calls == [30, 60, 90, 120, 150, 150, 180, 205]
    once = Seen()
    ucbvi().fit(make_env(), 250, seed=0, driver=driver, callback=once)
    assert once.calls == [100, 200, 250]


def test_what_they_see():
    returns = []
    agent = ucbvi()
    history = agent.fit(make_env(), 30, seed=0, callback=lambda _, history: returns.append(history.returns), every=7)
    assert [len(part) for part in returns] == [7, 14, 21, 28, 30]
    assert all(np.array_equal(part, history.returns[: len(part)]) for part in returns)
    assert not history.stopped


def test_one_that_returns_false_stops():
    agent, other = ucbvi(), Seen()
    history = agent.fit(make_env(), 1000, seed=0, callback=[Seen(answer=False), other], every=20)
    assert len(history) == agent.episodes == 20 and history.stopped and not history.interrupted
    assert other.calls == [20]
    for answer in (None, 0, True):
        assert len(ucbvi().fit(make_env(), 50, seed=0, callback=Seen(answer=answer), every=20)) == 50


@each_agent
@pytest.mark.filterwarnings("ignore:episodes. after .* the policy to deploy collects")
@pytest.mark.parametrize("driver", ["compiled", "python"])
def test_the_agent_is_the_same_as_without(name, driver, tmp_path):
    """With evaluations, checkpoints and read-outs on the way, in one call or in two."""
    plain, watched = made(name), made(name)
    plain.fit(make_env(), 25, seed=1, driver=driver)
    evaluate = krl.callbacks.Evaluate(make_env(), episodes=3, every=4)
    callbacks = [
        evaluate,
        krl.callbacks.Checkpoint(tmp_path / "agent.krl", every=6),
        lambda agent, history: agent.q_values([[0.5, 0.5]], 0),
    ]
    for episodes in (11, 14):
        watched.fit(make_env(), episodes, seed=1, driver=driver, callback=callbacks, every=3)
    assert content(plain, tmp_path) == content(watched, tmp_path) == (tmp_path / "agent.krl").read_bytes()
    assert evaluate.results["episode"].to_list() == [4, 8, 11, 12, 16, 20, 24, 25]


def test_evaluate():
    agent, evaluate = ucbvi(), krl.callbacks.Evaluate(ROOMS, episodes=10, seed=4)
    agent.fit(ROOMS, 40, seed=0, callback=evaluate, every=20)
    results = evaluate.results
    assert results.columns == ["episode", "mean", "low", "high", "seconds"] and len(results) == 2
    assert results["mean"][-1] == agent.evaluate(ROOMS, 10, seed=4).mean
    assert results["low"][0] <= results["mean"][0] <= results["high"][0]


def test_stop_at():
    for mean, episodes in ((-1.0, 30), (1e9, 90)):
        stop = krl.callbacks.StopAt(mean, episodes=25)
        assert len(ucbvi().fit(make_env(), 90, seed=0, callback=stop, every=10)) == episodes


def test_stop_after():
    agent = ucbvi()
    history = agent.fit(make_env(), 10**7, seed=0, callback=krl.callbacks.StopAfter(seconds=0.05))
    assert history.stopped and 0 < len(history) < 10**7


def test_checkpoints(tmp_path):
    one, three, all_ = (
        krl.callbacks.Checkpoint(tmp_path / f"{name}.krl", every=10, keep=keep)
        for name, keep in (("one", 1), ("three", 3), ("all", None))
    )
    (tmp_path / "three-x.krl").write_text("not one of them")
    agent = ucbvi()
    agent.fit(make_env(), 105, seed=0, callback=[one, three, all_])
    assert [path.name for path in one.files()] == ["one.krl"]
    assert [path.name for path in three.files()] == ["three-90.krl", "three-100.krl", "three-105.krl"]
    assert len(all_.files()) == 11 and (tmp_path / "three-x.krl").exists()
    loaded = krl.load(three.files()[0])
    loaded.fit(make_env(), 15)
    assert content(loaded, tmp_path) == content(agent, tmp_path) == one.files()[0].read_bytes()


# -------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("driver", ["compiled", "python"])
@pytest.mark.parametrize("at", [20, 35])
def test_nothing_is_lost_by_an_error_in_a_callback(driver, at, tmp_path):
    def fails(agent, history):
        if agent.episodes == at:
            raise OSError("no space")

    agent, plain = ucbvi(), ucbvi()
    with pytest.raises(OSError, match="no space") as caught:
        agent.fit(make_env(), 35, seed=0, driver=driver, callback=fails, every=10)
    whole = plain.fit(make_env(), 60, seed=0, driver=driver)
    assert agent.episodes == len(caught.value.history) == at
    assert np.array_equal(caught.value.history.returns, whole.returns[:at])
    agent.fit(make_env(), 60 - at, driver=driver)
    assert content(agent, tmp_path) == content(plain, tmp_path)


def test_an_environment_that_fails_after_a_callback_drew_random_numbers(tmp_path):
    """Going back to the last whole episode gives what was there, with what was drawn from the agent's stream."""

    class Fails(gym.Wrapper):
        steps = 0

        def step(self, action):
            self.steps += 1
            if self.steps == 47:
                raise OSError("unplugged")
            return self.env.step(action)

    kept = {}

    def draws(agent, history):
        agent.predict([0.5, 0.5], deterministic=False)
        kept[agent.episodes] = content(agent, tmp_path)

    agent = krl.RandomAgent()
    with pytest.raises(OSError, match="unplugged"):
        agent.fit(Fails(make_env()), 20, seed=0, callback=draws, every=1)
    assert content(agent, tmp_path) == kept[agent.episodes]


@pytest.mark.parametrize("call", ["fit", "observe", "begin_episode", "open_episode", "learn_from"])
def test_one_that_learns_is_an_error(call, tmp_path):
    """It changes nothing, and the agent goes on."""
    x, agent, plain = [0.5, 0.5], ucbvi(), ucbvi()
    arguments = {"fit": (make_env(), 1), "observe": (x, 0, 1.0, x, 0), "learn_from": ({},)}.get(call, ())
    with pytest.raises(RuntimeError, match=rf"^{call}: a callback must not let the agent learn") as caught:
        agent.fit(make_env(), 35, seed=0, callback=lambda agent, _: getattr(agent, call)(*arguments), every=10)
    assert len(caught.value.history) == agent.episodes == 10
    agent.fit(make_env(), 5)
    plain.fit(make_env(), 15, seed=0)
    assert content(agent, tmp_path) == content(plain, tmp_path)


def test_a_copy_may_learn_in_a_callback(tmp_path):
    agent, plain, copies = ucbvi(), ucbvi(), []

    def tries(agent, history):
        copies.append(copy.deepcopy(agent))
        copies[-1].fit(make_env(), 5)

    agent.fit(make_env(), 20, seed=0, callback=tries, every=10)
    plain.fit(make_env(), 20, seed=0)
    assert content(agent, tmp_path) == content(plain, tmp_path) and [c.episodes for c in copies] == [15, 25]


@pytest.mark.parametrize("answer", [False, np.False_])
def test_false_of_numpy_stops_too(answer):
    """A comparison of NumPy numbers, such as `history.returns.mean() < 0.9`, is not Python's own False."""
    history = ucbvi().fit(make_env(), 35, seed=0, callback=lambda agent, history: answer, every=10)
    assert history.stopped and len(history) == 10


@pytest.mark.parametrize("answer", [None, True, np.True_, 0, 0.0, "stop"])
def test_nothing_else_stops(answer):
    assert not ucbvi().fit(make_env(), 15, seed=0, callback=lambda agent, history: answer, every=10).stopped


def test_bad_arguments(tmp_path):
    agent, C = ucbvi(), krl.callbacks
    for wrong in (3, "look", [None], {"a": 1}):
        with pytest.raises(TypeError, match=r"^callback must be a function \(agent, history\), or a list of them, got"):
            agent.fit(make_env(), 1, callback=wrong)
    for every in (0, -1, 1.5, None):
        with pytest.raises((TypeError, ValueError), match=r"^every must be"):
            agent.fit(make_env(), 1, callback=Seen(), every=every)
    for every in (-5, 2.5, "a", True):
        with pytest.raises(ValueError, match=r"^the attribute `every` of a callback must be a whole number"):
            agent.fit(make_env(), 1, callback=Seen(every=every))
    for wrong in (float("nan"), "x", None, [1.0, 2.0]):
        with pytest.raises(ValueError, match=r"^mean must be a finite number, got "):
            C.StopAt(wrong)
    with pytest.raises(ValueError, match=r"^progress must be True, False or None, got 'x'"):
        agent.fit(make_env(), 1, progress="x")
    for wrong in (None, 3):
        with pytest.raises(TypeError, match=rf'^path must be a path, such as "agent.krl"; got {wrong}'):
            C.Checkpoint(wrong)
        with pytest.raises(TypeError, match=rf'^folder must be a path, such as "runs"; got {wrong}'):
            C.TensorBoard(wrong)
    with pytest.raises(ValueError, match=r"^seconds must be"):
        C.StopAfter(seconds=0)
    with pytest.raises(FileNotFoundError, match=r"^path: there is no folder"):
        C.Checkpoint(tmp_path / "none" / "agent.krl")
    with pytest.raises(ValueError, match=r"^keep must be"):
        C.Checkpoint(tmp_path / "agent.krl", keep=0)
    with pytest.raises(ValueError, match=r"^episodes must be"):
        C.Evaluate(make_env(), episodes=0)
    assert agent.model is None


# --------------------------------------------------------------------------------------------------------- TensorBoard


class Writer:
    """Stands for tensorboard.summary.Writer."""

    written: list[tuple[str, float, int]] = []  # noqa: RUF012

    def __init__(self, folder):
        assert isinstance(folder, str)

    def add_scalar(self, tag, data, step):
        self.written.append((tag, data, step))

    def flush(self):
        pass

    def close(self):
        pass


def test_tensorboard(monkeypatch, tmp_path):
    module = types.ModuleType("tensorboard")
    module.__spec__ = types.SimpleNamespace()
    summary = types.ModuleType("tensorboard.summary")
    summary.Writer = Writer
    monkeypatch.setitem(sys.modules, "tensorboard", module)
    monkeypatch.setitem(sys.modules, "tensorboard.summary", summary)
    board, agent = krl.callbacks.TensorBoard(tmp_path / "logs", every=8), ucbvi()
    histories = [agent.fit(make_env(), n, seed=0, callback=board) for n in (20, 13)]
    board.close()
    returns = np.concatenate([history.returns for history in histories])
    found = [(step, value) for tag, value, step in Writer.written if tag == "episode/return"]
    assert found == list(zip(range(1, 34), returns.tolist(), strict=True))
    assert {tag for tag, _, _ in Writer.written} == {"episode/return", "episode/length", "episode/optimistic value"}


def test_without_tensorboard(monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"^TensorBoard is not installed: pip install 'kernelrl\[tensorboard\]'"):
        krl.callbacks.TensorBoard(tmp_path)


def test_with_tensorboard_itself(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    agent, board = ucbvi(), krl.callbacks.TensorBoard(tmp_path, every=8)
    history = agent.fit(make_env(), 20, seed=0, callback=board)
    board.close()
    events = EventAccumulator(str(tmp_path), size_guidance={"tensors": 0})
    events.Reload()
    found = [event.tensor_proto.float_val[0] for event in events.Tensors("episode/return")]
    assert np.allclose(found, history.returns)


# ----------------------------------------------------------------------------------------------------------- notebooks


class ZMQInteractiveShell:
    """What IPython's shell is called in a notebook."""


@pytest.fixture
def notebook(monkeypatch):
    """A notebook, as far as the console can see; what is displayed, as HTML."""
    shown = []

    class Display:
        def update(self, bar):
            shown.append((bar._repr_html_(), repr(bar)))

    def display(bar, display_id):
        assert display_id
        shown.append((bar._repr_html_(), repr(bar)))
        return Display()

    package, module = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    package.get_ipython = ZMQInteractiveShell
    module.display = display
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return shown


def test_a_bar_in_notebooks(notebook, capsys):
    ucbvi().fit(make_env(), 300, seed=0)
    html, text = notebook[-1]
    assert '<progress value="300" max="300"' in html and text.startswith("UCBVI: 300/300, return ")
    assert notebook[0][1] == "UCBVI: 0/300, return –"
    before = len(notebook)
    ucbvi().fit(make_env(), 30, seed=0, progress=False)
    assert len(notebook) == before
    ucbvi().fit(make_env(), 30, seed=0, progress=True)
    assert len(notebook) > before
    assert "━" not in capsys.readouterr().err  # no bar for terminals beside it


def test_no_bar_elsewhere(monkeypatch, notebook, capsys):
    for shell in (None, types.SimpleNamespace()):
        monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda shell=shell: shell)
        assert not console.in_notebook()
        ucbvi().fit(make_env(), 30, seed=0)
    monkeypatch.delitem(sys.modules, "IPython")
    assert not console.in_notebook()
    assert notebook == [] and capsys.readouterr().err == ""
