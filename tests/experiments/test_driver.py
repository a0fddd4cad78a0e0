"""Which task begins when: each kind of machine code is compiled by one task, and no core waits for nothing."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from kernelrl.experiments.engine import Event, Task
from kernelrl.experiments.learning import Job
from kernelrl.experiments.local import LocalEngine, Worker
from kernelrl.experiments.runner import Driver

KINDS = {("", "a"): "slow", ("", "b"): "slow", ("", "c"): "quick"}


class Script:
    """An engine that does what a list says: (name of the task, kind of event), checking what is under way."""

    def __init__(self, slots, events):
        self.slots = slots
        self.events = list(events)
        self.begun = []
        self.tasks = {}

    def submit(self, task):
        self.begun.append(task.job.name)
        self.tasks[task.job.name] = task

    def next_event(self, timeout):
        name, kind, expected = self.events.pop(0)
        assert self.begun == expected
        data = {"progress": {"done": 1, "mean": 0.0}, "failed": {"why": "", "trace": ""}}.get(kind, {})
        return Event(self.tasks[name], kind, data)


def drain(engine, names, kinds, tmp_path):
    tasks = [Task(Job(name[0], int(name[1]), 5, {}, {}, str(tmp_path), [], 60.0)) for name in names]
    display = SimpleNamespace(say=print, update=lambda *given: None, end=lambda *given: None)
    Driver(engine, display, SimpleNamespace(asked=False), SimpleNamespace(failed={}), kinds).drain(tasks)
    assert not engine.events and sorted(engine.begun) == sorted(task.job.name for task in tasks)


def test_others_of_a_kind_wait_for_the_first(tmp_path):
    a, b, c, other = (f"{label}, seed {seed}" for label, seed in ("a0", "b0", "c0", "c1"))
    script = [
        (c, "progress", [a, c]),  # b is of the same kind as a
        (c, "finished", [a, c]),
        (other, "finished", [a, c, other]),
        (a, "progress", [a, c, other]),
        (a, "finished", [a, c, other, b]),
        (b, "finished", [a, c, other, b]),
    ]
    drain(Script(2, script), ["a0", "b0", "c0", "c1"], KINDS, tmp_path)


def test_a_task_that_fails_while_compiling_leaves_it_to_the_next(tmp_path):
    a, b = "a, seed 0", "b, seed 0"
    script = [
        (a, "failed", [a]),
        (a, "failed", [a, a]),
        (a, "failed", [a, a, a]),
        (b, "progress", [a, a, a, b]),
        (b, "finished", [a, a, a, b]),
    ]
    engine = Script(2, script)
    tasks = [Task(Job(label, 0, 5, {}, {}, str(tmp_path), [], 60.0)) for label in "ab"]
    result = SimpleNamespace(failed={})
    display = SimpleNamespace(say=print, update=lambda *given: None, end=lambda *given: None)
    Driver(engine, display, SimpleNamespace(asked=False), result, KINDS).drain(tasks)
    assert not engine.events and list(result.failed) == [("a", 0)]


def test_without_kinds_nothing_waits(tmp_path):
    a, b = "a, seed 0", "b, seed 0"
    drain(Script(2, [(a, "finished", [a, b]), (b, "finished", [a, b])]), ["a0", "b0"], {}, tmp_path)


@pytest.mark.parametrize("learning", [False, True])
def test_a_worker_that_only_compiles_is_stopped_at_once(learning, monkeypatch):
    """It has nothing to store, and compiling cannot be interrupted; one that learns is asked to store what it has."""
    report = 'print(\'{"kind": "progress", "done": 1, "mean": 0}\', flush=True); ' if learning else ""
    code = f'import sys; {report}[print(\'{{"kind": "stopped"}}\', flush=True) for line in sys.stdin if "stop" in line]'
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda arguments, **given: popen([sys.executable, "-c", code], **given))
    engine = LocalEngine(1, 2)
    engine.submit(Task(Job("a", 0, 5, {}, {}, "", [], 60.0)))
    (worker,) = engine._workers
    assert isinstance(worker, Worker)
    try:
        if learning:
            assert next_event(engine).kind == "progress"
        engine.stop()
        assert next_event(engine).kind == "stopped"
        assert worker.dismissed is not learning
    finally:
        engine.close()


def next_event(engine):
    for _ in range(300):
        event = engine.next_event(0.2)
        if event is not None:
            return event
    raise AssertionError("nothing happened")
