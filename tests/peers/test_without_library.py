"""Agents of another library in experiments, as far as that can be seen without it: words, files, runs of a stand-in."""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kernelrl as krl
from experiment_parts import GREEDY, RANDOM, environment, table, write_toml
from kernelrl import experiments, peers
from kernelrl.envs.making import make_environment
from kernelrl.experiments.config import AgentEntry, ExperimentError, read_experiment
from kernelrl.experiments.learning import learn
from kernelrl.experiments.objects import build_any, listing
from kernelrl.experiments.plan import Plan
from kernelrl.experiments.store import AGENT, RUN
from kernelrl.peers import library, options
from kernelrl.peers.training import Training
from stored_jobs import store_and_jobs

PPO = '\n[[agents]]\nlabel = "peer"\nagent = "sb3:PPO"\n'
ROOMS = "kernelrl/TwinRooms-v0"


def peer(name="sb3:PPO", **given):
    return build_any(AgentEntry(**{"label": "it", "agent": name, **given}))


# --------------------------------------------------------------------------------------------------- not installed


@pytest.fixture
def absent(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, package=None: None)


def test_what_to_install(absent, tmp_path):
    words = r"""agents "peer": sb3:PPO needs Stable-Baselines3, .* not installed: pip install 'kernelrl\[peers\]'"""
    with pytest.raises(ExperimentError, match=words):
        experiments.run(write_toml(tmp_path / "a.toml", RANDOM + PPO), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_names(absent):
    """They are known without the library, and a wrong one needs no installation to be found."""
    with pytest.raises(
        ExperimentError, match=r'no agent "sb3:PPO2".*did you mean sb3:PPO\?.*sb3:A2C, sb3:DQN, sb3:PPO'
    ):
        peer("sb3:PPO2")
    assert list(listing()["peers"]) == ["sb3:A2C", "sb3:DQN", "sb3:PPO", "sb3:SAC", "sb3:TD3"]


def test_an_experiment_without_peers_does_not_import_it(tmp_path):
    file = write_toml(tmp_path / "a.toml", RANDOM, episodes=2, seeds=1)
    program = (
        "import sys; from kernelrl.experiments.runner import Plan; from kernelrl.experiments.config import *; "
        f"Plan.of(read_experiment({str(file)!r})); print('torch' in sys.modules, 'stable_baselines3' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment())
    assert done.stdout.split() == ["False", "False"], done.stderr


def test_a_broken_installation(monkeypatch, tmp_path):
    (tmp_path / "stable_baselines3.py").write_text("raise OSError('libtorch.so is missing')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "stable_baselines3", raising=False)
    with pytest.raises(ValueError, match=r"cannot be imported \(OSError: libtorch\.so is missing\): pip install"):
        library.algorithm("sb3:DQN")


# ------------------------------------------------------------------------------------------------- hyper-parameters


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"n_step": 3},
            r'no hyper-parameter "n_step" \(did you mean n_steps\?\); allowed: .*learning_rate.*time_aware',
        ),
        ({"seed": 3}, "seed: the experiment lists the seeds; leave it out"),
        ({"env": "x"}, "env: the experiment names the environment"),
        ({"_init_setup_model": False}, "no hyper-parameter"),
        ({"horizon": 0}, "horizon must be"),
        ({"time_aware": "yes"}, "time_aware must be"),
        ({"preset": "text"}, "preset: sb3:PPO has no presets; leave preset out"),
        ({"monitor": True}, "monitor: sb3:PPO has no optimistic values to compare; leave monitor out"),
    ],
)
def test_wrong_hyper_parameters(stand_in, given, words):
    with pytest.raises(ExperimentError, match=f'agents "it": .*{words}'):
        peer(**given)


@pytest.mark.parametrize(
    ("agents", "words"),
    [
        ('agent = "sb3:PPO"\nn_steps = 1', "Stable-Baselines3 rejects these hyper-parameters: n_steps must be greater"),
        ('agent = "sb3:SAC"', "action_space: SAC needs Box actions"),
        ('agent = "sb3:PPO"\nnoise = {name = "builtins:bool", wrong = 1}', "noise: builtins:bool cannot be made"),
        ('agent = "sb3:PPO"\npolicy = "no_such_module:Policy"', "no_such_module:Policy.* cannot be imported"),
    ],
)
def test_what_is_seen_before_anything_runs(stand_in, tmp_path, agents, words):
    file = write_toml(tmp_path / "a.toml", f'[[agents]]\nlabel = "it"\n{agents}\n')
    with pytest.raises(ExperimentError, match=f'agents "it": .*{words}'):
        experiments.run(file, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_time_limit(stand_in):
    env = krl.envs.TwinRooms()
    with pytest.raises(ValueError, match="horizon: the environment has no time limit"):
        peer().get_ready(env)
    made = peer(horizon=7)
    made.get_ready(env)
    assert made.horizon == 7


def test_arguments_of_the_constructor(stand_in):
    kwargs = {"net_arch": [8, 8], "activation_fn": "math:tanh"}
    noise = {"name": "types:SimpleNamespace", "sigma": [0.1, 0.2], "at": "inf"}
    made = peer(train_freq=[1, "episode"], policy_kwargs=kwargs, noise=noise, learning_rate=0.5)
    made.get_ready(make_environment(ROOMS))
    model = made.model
    assert (model.rate, model.train_freq, model.device) == (0.5, (1, "episode"), "cpu")
    assert model.policy_name == "MlpPolicy" and model.policy_kwargs["net_arch"] == [8, 8]
    assert model.policy_kwargs["activation_fn"](0.0) == 0.0
    assert model.noise.sigma.tolist() == [0.1, 0.2] and model.noise.at == float("inf")
    assert options.arguments({"noise": "none", "horizon": 3}) == {"noise": None}
    shown = made.settings
    assert shown["noise"] == noise and shown["n_steps"] == 8 and shown["time_aware"] is True
    assert not {"env", "seed", "_init_setup_model"} & shown.keys()


# --------------------------------------------------------------------------------------------------------- one run


def trained(seed=3, episodes=12, seconds=1000.0, **given):
    made, env = peer(**given), make_environment(ROOMS)
    training, parts = Training(made, env, seed, episodes), []
    while made.episodes < episodes:
        parts.append(training.play(seconds))
    training.close()
    return made, parts


def test_pieces_are_one_run(stand_in):
    whole, (part,) = trained()
    pieced, parts = trained(seconds=0.0)
    assert [len(p) for p in parts] == [1] * 12 and [p.first_episode for p in parts] == list(range(12))
    assert np.array_equal(np.concatenate([p.returns for p in parts]), part.returns)
    assert np.array_equal(whole.model.policy.weights, pieced.model.policy.weights)
    assert (part.lengths == whole.horizon).all() and np.isnan(part.optimistic_values).all()
    assert whole.model.total == 12 * whole.horizon
    assert not np.array_equal(trained(seed=4)[0].model.policy.weights, whole.model.policy.weights)
    assert trained(seed=2**40)[0].seed == 2**40


@pytest.mark.parametrize("steps", [1, 59, 60, 61, 120])
def test_a_number_of_steps(stand_in, steps):
    """A run ends with the episode in which they are reached."""
    made, env = peer(horizon=20), make_environment(ROOMS)
    training = Training(made, env, 3, None, steps)
    part = training.play(1000.0)
    training.close()
    assert len(part) == -(-steps // 20) and made.model.total == steps + 20


def test_random_numbers_of_others_are_left_alone(stand_in):
    import torch

    expected = trained()[0].model.policy.weights
    made, env = peer(), make_environment(ROOMS)
    np.random.seed(5)
    random.seed(5)
    draws = [(np.random.random(), random.random()) for _ in range(13)]
    np.random.seed(5)
    random.seed(5)
    training, seen = Training(made, env, 3, 12), [(np.random.random(), random.random())]
    while made.episodes < 12:
        training.play(0.0)
        seen.append((np.random.random(), random.random()))
    assert seen == draws
    assert np.array_equal(made.model.policy.weights, expected)
    assert torch.get_num_threads() == 4


def test_an_error_in_the_middle(stand_in, monkeypatch):
    made, env = peer(), make_environment("Acrobot-v1")
    training = Training(made, env, 0, 5)
    training.play(0.0)
    monkeypatch.setattr(type(env.unwrapped), "step", lambda self, action: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        training.play(0.0)
    training.close()


def test_values_and_files(stand_in, tmp_path):
    made, _ = trained()
    value = made.evaluate(ROOMS, 40, seed=1)
    assert value.returns.shape == (40,) and value.mean == value.returns.mean() and value.interval is None
    alone = krl.envs.TwinRooms()  # without a spec, so that episodes are played one after the other
    one_by_one = peers.Peer("sb3:PPO", {"horizon": made.horizon}, {"weights": made.model.policy.weights})
    assert np.array_equal(one_by_one.evaluate(alone, 40, seed=1).returns, value.returns)
    made.save(tmp_path / "a.krl")
    made.save(tmp_path / "b.krl")
    assert (tmp_path / "a.krl").read_bytes() == (tmp_path / "b.krl").read_bytes()
    again = peers.load(tmp_path / "a.krl")
    assert (again.episodes, again.seed) == (12, 3)
    assert np.array_equal(again.evaluate(ROOMS, 40, seed=1).returns, value.returns)
    with pytest.raises(ValueError, match="do not fit this environment"):
        peers.load(tmp_path / "a.krl").evaluate("CartPole-v1", 1)
    with pytest.raises(ValueError, match=r"holds sb3:PPO, an agent of Stable-Baselines3, which kernelrl\.peers\.load"):
        krl.load(tmp_path / "a.krl")
    krl.RandomAgent().save(tmp_path / "c.krl")
    with pytest.raises(ValueError, match="'RandomAgent', which is not one of Stable-Baselines3"):
        peers.load(tmp_path / "c.krl")


def test_files_that_name_code(stand_in, tmp_path):
    made, _ = trained(episodes=1, policy_kwargs={"activation_fn": "math:tanh"})
    made.save(tmp_path / "a.krl")
    with pytest.raises(ValueError, match="names math:tanh, and importing it would run code"):
        peers.load(tmp_path / "a.krl")
    assert peers.load(tmp_path / "a.krl", trust=True).evaluate(ROOMS, 2).returns.size == 2


def test_a_file_where_the_library_is_missing(stand_in, tmp_path, monkeypatch):
    trained(episodes=1)[0].save(tmp_path / "a.krl")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, package=None: None)
    with pytest.raises(ValueError, match=r"^sb3:PPO needs Stable-Baselines3, which is not installed"):
        peers.load(tmp_path / "a.krl")


def test_damaged_files(stand_in, tmp_path):
    trained(episodes=1)[0].save(tmp_path / "a.krl")
    content = (tmp_path / "a.krl").read_bytes()
    (tmp_path / "a.krl").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"a\.krl is not a saved kernelrl agent, or it is damaged"):
        peers.load(tmp_path / "a.krl")


# -------------------------------------------------------------------------------------------- runs of an experiment


@pytest.fixture
def planned(stand_in, tmp_path):
    """A store and its one job."""
    experiment = read_experiment(write_toml(tmp_path / "a.toml", PPO, episodes=12, seeds=[5]))
    store, (job,) = store_and_jobs(experiment, tmp_path / "out")
    return store, job


def test_only_a_whole_run_is_stored(planned, monkeypatch):
    store, job = planned
    monkeypatch.setattr("kernelrl.experiments.learning.PIECE_SECONDS", 0.0)
    answers = itertools.chain([False] * 4, itertools.repeat(True))
    events = list(learn(job, Path(job.path), answers.__next__))
    assert [event["kind"] for event in events] == ["progress"] * 5 + ["stopped"] and events[-2]["done"] == 4
    assert os.listdir(job.path) == [] and not store.run("peer", 5).has_checkpoint
    half = learn(job, Path(job.path), lambda: False)
    list(itertools.islice(half, 3))
    half.close()  # as if it had been killed
    events = list(learn(job, Path(job.path), lambda: False))
    assert [event["kind"] for event in events[-2:]] == ["checkpoint", "finished"]
    run = store.run("peer", 5)
    assert run.finished and sorted(os.listdir(job.path)) == [AGENT, "history.parquet", RUN]
    made, (part,) = trained(seed=5)  # on other rooms, so only the form is the same
    assert run.history()["return"].len() == len(part) and run.history()["value"].is_nan().all()
    assert run.record["settings_used"] == {"horizon": made.horizon}
    assert run.record["versions"]["stable-baselines3"] == "0.0-stand-in"


def test_more_episodes_are_a_new_run(planned):
    store, job = planned
    list(learn(job, Path(job.path), lambda: False))
    longer = dataclasses.replace(job, episodes=20)
    events = list(learn(longer, Path(job.path), lambda: False))
    assert events[0]["done"] == 0 and store.run("peer", 5).episodes == 20
    found = store.run("peer", 5).history()["return"].to_list()
    for file in (AGENT, "history.parquet"):
        Path(job.path, file).unlink()
    list(learn(longer, Path(job.path), lambda: False))
    assert store.run("peer", 5).history()["return"].to_list() == found


def test_a_kill_between_two_files_of_another_run(planned, monkeypatch):
    """The history of a new run never stands beside the agent of the old one."""
    store, job = planned
    list(learn(job, Path(job.path), lambda: False))
    monkeypatch.setattr("kernelrl.peers.peer.Peer.save", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        list(learn(dataclasses.replace(job, episodes=20), Path(job.path), lambda: False))
    assert not store.run("peer", 5).has_checkpoint


def test_an_experiment_with_its_report(stand_in, tmp_path):
    """In worker processes: beside our own agents, in the same store, on the same page."""
    agents = RANDOM + PPO + "[agents.sweep]\nlearning_rate = [0.1, 0.2]\n"
    file = write_toml(tmp_path / "a.toml", agents, episodes=12, seeds=2)
    assert experiments.run(file, tmp_path / "out", workers=2).finished
    assert experiments.run(file, tmp_path / "again", workers=1).finished
    found = table(tmp_path / "out").fill_nan(None)
    assert found.equals(table(tmp_path / "again").fill_nan(None))
    assert set(found["label"]) == {"random", "peer learning_rate=0.1", "peer learning_rate=0.2"}
    changed = write_toml(tmp_path / "b.toml", agents.replace("[0.1, 0.2]", "[0.1, 0.2]\nn_steps = [3]"), 12)
    with pytest.raises(ExperimentError, match="an experiment can be extended, not shortened"):
        experiments.run(changed, tmp_path / "out")
    from kernelrl.reporting.summary import summarize

    summary = summarize(experiments.open_store(tmp_path / "out"), maps=True)
    assert not summary.notes and [maps.label for maps in summary.maps] == ["random"]
    values = summary.measures["peer learning_rate=0.1"]["value of deployed policy"].values
    assert np.isfinite(values).all() and summary.optimal is not None


def test_other_hyper_parameters_under_an_old_label(stand_in, tmp_path):
    file = write_toml(tmp_path / "a.toml", PPO, episodes=2, seeds=1)
    assert experiments.run(file, tmp_path / "out").finished
    write_toml(file, PPO + "learning_rate = 0.1\n", episodes=2, seeds=1)  # the default
    assert experiments.run(file, tmp_path / "out").finished
    write_toml(file, PPO + "time_aware = false\n", episodes=2, seeds=1)
    with pytest.raises(ExperimentError, match=r'agents "peer": time_aware was True and is False now'):
        experiments.run(file, tmp_path / "out")


def test_nothing_is_compiled_for_them(stand_in, tmp_path):
    plan = Plan.of(read_experiment(write_toml(tmp_path / "a.toml", GREEDY + PPO)))
    assert plan.kinds[ROOMS, "peer"] is None and plan.kinds[ROOMS, "greedy"] is not None
