"""The work on one run, stopped and killed at every point: what is stored belongs together, and the end is the same."""

from __future__ import annotations

import itertools
import shutil
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

import kernelrl as krl
from experiment_parts import GREEDY, RANDOM, write_toml
from kernelrl.agents.files import write_json
from kernelrl.experiments import learning
from kernelrl.experiments.config import AgentEntry, read_experiment
from kernelrl.experiments.engine import Task
from kernelrl.experiments.learning import learn, snapshot_marks
from kernelrl.experiments.objects import build_agent
from kernelrl.experiments.plan import Result, agent_table, plan_jobs
from kernelrl.experiments.store import AGENT, FORMAT, HISTORY, RUN, Run, Store
from kernelrl.experiments.waiting import Waiting
from stored_jobs import kills, store_and_jobs

EPISODES = 40


@pytest.fixture
def planned(tmp_path):
    """A store and its one job, with a checkpoint at each snapshot, after 1, 2, 8, 20 and 40 episodes."""
    experiment = read_experiment(write_toml(tmp_path / "a.toml", GREEDY, episodes=EPISODES, seeds=[5]))
    store, (job,) = store_and_jobs(experiment, tmp_path / "out")
    return store, job


def finish(store, job):
    """Learn to the end; the history without seconds, and values of the agent."""
    events = list(learn(job, Path(job.path), lambda: False))
    assert events[-1]["kind"] == "finished"
    (run,) = store.runs()
    assert run.finished and run.record["finished"] is True
    return run.history().drop("seconds"), run.agent().values([[0.2, 0.2], [1.5, 0.5]], 4).tolist()


def restart(store):
    """Remove all that was learnt."""
    shutil.rmtree(store.path / "runs")


def check_whole(store):
    """Whatever is stored belongs together."""
    run = store.run("greedy", 5)
    history = run.history()
    assert len(history) == run.episodes
    if run.episodes:
        assert run.agent().episodes == run.episodes
        assert run.record["episodes"] >= run.episodes
    assert all(krl.load(path).episodes == episode for episode, path in run.snapshots())
    assert run.finished == (run.episodes == EPISODES) and run.history_and_end()[1] == run.finished
    return run.episodes


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_every_rename(planned, monkeypatch, when):
    store, job = planned
    expected = finish(store, job)
    reached = set()
    for name in kills(store, job, when, monkeypatch):
        reached.add(name)
        episodes = check_whole(store)
        left = list(Path(job.path).glob(".*.part"))
        assert left or when == "after"
        found = finish(store, job)
        assert found[0].equals(expected[0]) and found[1] == expected[1]
        assert episodes <= EPISODES and not list(Path(job.path).glob(".*.part"))
    assert {HISTORY, AGENT, RUN, "agent-2.krl"} <= reached


def test_stopped(planned):
    store, job = planned
    expected = finish(store, job)
    for pieces in (0, 1, 3):
        restart(store)
        answers = itertools.chain([False] * pieces, itertools.repeat(True))
        events = list(learn(job, Path(job.path), answers.__next__))
        assert events[-1]["kind"] == "stopped"
        assert check_whole(store) == max((event["episode"] for event in events if "episode" in event), default=0)
        found = finish(store, job)
        assert found[0].equals(expected[0]) and found[1] == expected[1]


def test_stopped_after_a_kill_between_the_last_two_files(planned):
    """run.json is ahead of the agent then; what is learnt from there on is stored all the same."""
    store, job = planned
    job = replace(job, snapshots=[])
    list(learn(job, Path(job.path), itertools.chain([False] * 2, itertools.repeat(True)).__next__))
    run = store.run("greedy", 5)
    before = run.episodes
    write_json(run.path / RUN, run.record | {"episodes": EPISODES, "finished": True})
    assert 0 < before < EPISODES and not run.finished
    list(learn(job, Path(job.path), itertools.chain([False], itertools.repeat(True)).__next__))
    assert before < run.episodes < EPISODES and run.record["episodes"] == run.episodes


def test_pieces_end_at_snapshots(planned):
    _, job = planned
    events = list(learn(job, Path(job.path), lambda: False))
    stored = [event["episode"] for event in events if event["kind"] == "checkpoint"]
    assert stored == snapshot_marks(EPISODES) == [1, 2, 8, 20, 40]


def test_many_runs_are_not_held_in_memory(tmp_path):
    """Planned runs take a few bytes each; a job is made when its turn comes."""
    experiment = read_experiment(write_toml(tmp_path / "a.toml", RANDOM + GREEDY, seeds=5000))
    store = Store(tmp_path / "out")
    store.path.mkdir()
    store.write(experiment.to_json())
    tracemalloc.start()
    try:
        jobs = plan_jobs(store, experiment, 20.0, Result(store))
        waiting = Waiting(jobs, lambda job: job.label)
        ours = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/kernelrl/experiments/*")])
        assert sum(trace.size for trace in ours.traces) < 5e5
    finally:
        tracemalloc.stop()
    assert len(jobs) == len(waiting) == 10_000 and not store.runs()
    assert [job.key for job in jobs[:3]] == [("random", 0), ("greedy", 0), ("random", 1)]
    taken = [waiting.take({"random"}), waiting.take(set()), waiting.take_like(Task(jobs[0])), waiting.take(set())]
    assert [task.job.key for task in taken] == [("greedy", 0), ("random", 0), ("random", 1), ("greedy", 1)]
    assert waiting.take_like(Task(jobs[1])).job.key == ("greedy", 2) and len(waiting) == 9995


def test_seconds_go_on(planned):
    store, job = planned
    finish(store, job)
    (run,) = store.runs()
    before = run.history()["seconds"]
    list(learn(replace(job, episodes=EPISODES + 20), Path(job.path), lambda: False))
    after = run.history()["seconds"]
    assert after[:EPISODES].equals(before) and after.is_sorted() and after[-1] > before[-1]


def test_someone_elses_checkpoint_is_refused(planned):
    store, job = planned
    finish(store, job)
    with pytest.raises(ValueError, match=r"agent\.krl has seed 5"):
        list(learn(replace(job, seed=6), Path(job.path), lambda: False))


def test_a_history_shorter_than_the_agent_is_an_error(planned):
    """It cannot come about by a kill, so something else is wrong."""
    _, job = planned
    folder = Path(job.path)
    kinds = (event["kind"] for event in learn(job, folder, lambda: False))
    next(kind for kind in kinds if kind == "checkpoint")
    kinds.close()
    shutil.copy(folder / HISTORY, folder / "old")
    list(learn(job, folder, lambda: False))
    shutil.copy(folder / "old", folder / HISTORY)
    with pytest.raises(ValueError, match=r"history\.parquet is damaged"):
        list(learn(job, folder, lambda: False))


def test_compiling_does_not_play_in_foreign_environments(tmp_path, monkeypatch):
    experiment = read_experiment(write_toml(tmp_path / "a.toml", GREEDY, pause=0.0))
    (entry,) = experiment.agents
    assert agent_table(entry)["bandwidth"] == 0.1
    import experiment_parts

    monkeypatch.setattr(learning, "WARMED", set())
    monkeypatch.setattr(experiment_parts.Rooms, "step", lambda self, action: pytest.fail("a step was taken"))
    learning.warm(entry, experiment.environment)
    assert len(learning.WARMED) == 1
    learning.warm(entry, experiment.environment)
    assert len(learning.WARMED) == 1


CONFIGURED = {"agent": "KernelUCBVI", "hyper_parameters": {}, "environment": {"id": "none"}, "monitor": False}


def test_functions_that_the_experiment_names(tmp_path):
    """Their files are an experiment's own, so what they name is imported."""
    metric = {"name": "custom", "function": "user_functions:around"}
    entry = AgentEntry(label="own", agent="KernelUCBVI", bandwidth=0.1, representatives=None, metric=metric)
    agent = build_agent(entry)
    agent.save(tmp_path / AGENT)
    with pytest.raises(ValueError, match="trust=True"):
        krl.load(tmp_path / AGENT)
    job = learning.Job("own", 0, 10, {}, {}, str(tmp_path), [], 60.0)
    write_json(tmp_path / RUN, {"format": FORMAT, "configuration": CONFIGURED, "episodes": 0})
    resumed, history, recorded = learning.resume(job, entry, tmp_path)
    assert repr(resumed) == repr(agent) and history.episodes == recorded == 0
    assert repr(Run("own", 0, tmp_path, 10).agent()) == repr(agent)
