"""`transitions = true`: all transitions of a run are stored, complete and without doubles, also after kills."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import polars
import pytest

import kernelrl as krl
from experiment_parts import write_toml
from kernelrl.experiments import learning, load
from kernelrl.experiments import run as run_experiment
from kernelrl.experiments.config import ExperimentError, read_experiment
from kernelrl.experiments.learning import learn
from kernelrl.experiments.objects import build_peer
from kernelrl.experiments.store import StoreError, open_store
from kernelrl.experiments.transitions import TRANSITIONS
from stored_jobs import kills, store_and_jobs

EPISODES = 12
AGENT = """
[[agents]]
label = "grid"
agent = "UCBVI"
bins = 4
transitions = true
"""
PLAIN = AGENT.replace("transitions = true\n", "")


def make_env():
    """That of `write_toml`."""
    return gym.make("kernelrl/TwinRooms-v0", goal=(0.3, 0.3), radius=0.3)


@pytest.fixture
def planned(tmp_path):
    """A store and its one job."""
    experiment = read_experiment(write_toml(tmp_path / "a.toml", AGENT, episodes=EPISODES, seeds=[5]))
    store, (job,) = store_and_jobs(experiment, tmp_path / "out")
    return store, job


def whole():
    """The transitions of the same run without a store."""
    agent = krl.UCBVI(bins=4)
    return agent.fit(make_env(), EPISODES, seed=5, progress=False, transitions=True).transitions


def finish(store, job):
    """Learn to the end; what is stored then."""
    assert list(learn(job, Path(job.path), lambda: False))[-1]["kind"] == "finished"
    (run,) = store.runs()
    return run.transitions()


def test_as_recorded_by_fit(planned):
    store, job = planned
    assert finish(store, job).equals(whole())
    agent = krl.KernelUCBVI(bandwidth=0.2, representatives=0.2)
    assert agent.learn_from(Path(job.path, TRANSITIONS), env=make_env()) == EPISODES * 20
    (run,) = store.runs()
    assert run.config["transitions"] is True


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_every_rename(planned, monkeypatch, when):
    store, job = planned
    reached = set()
    for name in kills(store, job, when, monkeypatch):
        reached.add(name)
        run = store.run("grid", 5)
        if run.episodes:
            assert run.transitions().equals(whole().filter(polars.col("episode") < run.episodes))
        assert finish(store, job).equals(whole())
    assert {TRANSITIONS, "agent.krl"} <= reached


def test_damaged_files_are_named(planned):
    store, job = planned
    finish(store, job)
    (run,) = store.runs()
    file = run.path / TRANSITIONS
    good = polars.read_parquet(file, use_pyarrow=False)
    for bad in (
        good.head(-1),
        polars.concat([good, good]),
        good.reverse(),
        good.with_columns(episode=polars.col("step")),
    ):
        bad.write_parquet(file)
        with pytest.raises(
            StoreError, match=r"transitions.parquet is damaged: it does not hold every step of episodes 0"
        ):
            run.transitions()
    good.with_columns(reward=None).write_parquet(file)
    with pytest.raises(StoreError, match=r"a value is missing \(null\) in column reward"):
        run.transitions()
    file.write_bytes(b"PAR1")
    with pytest.raises(StoreError, match=r"transitions.parquet is damaged or cut short"):
        run.transitions()
    file.unlink()
    with pytest.raises(StoreError, match=r"transitions.parquet is missing"):
        run.transitions()


def test_an_experiment_and_its_extension(tmp_path):
    """By worker processes; continuing with or without transitions is refused, since they would not be complete."""
    options = {"workers": 1, "checkpoint_seconds": 0.001}
    both = AGENT + PLAIN.replace('"grid"', '"plain"')
    assert run_experiment(
        write_toml(tmp_path / "a.toml", both, episodes=6, seeds=1), tmp_path / "out", **options
    ).finished
    longer = write_toml(tmp_path / "a.toml", both, episodes=EPISODES, seeds=1)
    assert run_experiment(longer, tmp_path / "out", **options).finished
    recorded, plain = open_store(tmp_path / "out").runs()
    collected = recorded.transitions().group_by("episode").sum().sort("episode")["reward"]
    np.testing.assert_allclose(collected, recorded.history()["return"], rtol=1e-12)
    assert not (plain.path / TRANSITIONS).exists() and len(load(tmp_path / "out")) == 2 * EPISODES
    with pytest.raises(StoreError, match="is missing: the run's agent has no `transitions = true`"):
        plain.transitions()
    changed = write_toml(tmp_path / "a.toml", PLAIN + AGENT.replace('"grid"', '"plain"'), episodes=EPISODES, seeds=1)
    with pytest.raises(ExperimentError, match="transitions was True and is False now"):
        run_experiment(changed, tmp_path / "out", **options)


def test_what_is_refused(tmp_path):
    with pytest.raises(ExperimentError, match="transitions: input should be a valid boolean, got 1"):
        read_experiment(write_toml(tmp_path / "a.toml", AGENT.replace("true", "1")))
    swept = PLAIN + "[agents.sweep]\ntransitions = [true, false]\n"
    with pytest.raises(ExperimentError, match=r"sweep.transitions: sweeps go over hyper-parameters"):
        read_experiment(write_toml(tmp_path / "a.toml", swept))


def test_peers_do_not_record(monkeypatch):
    from kernelrl.experiments import objects
    from kernelrl.experiments.config import AgentEntry

    monkeypatch.setattr(objects, "Peer", lambda *given: None)
    with pytest.raises(ExperimentError, match="transitions: they are recorded for kernelrl's own agents only"):
        build_peer(AgentEntry(label="ppo", agent="sb3:PPO", transitions=True))


def test_machine_code_is_prepared(planned):
    """Before the first episode, like that of runs without transitions."""
    _, job = planned
    entry = learning.AgentEntry(**job.agent)
    assert entry.transitions is True
    agent, env = krl.UCBVI(bins=4), make_env()
    agent.get_ready(env, 0)
    other = entry.model_copy(update={"transitions": False})
    assert learning.compile_key(agent, entry, env) != learning.compile_key(agent, other, env)
