"""Which task begins when: each kind of machine code is compiled by one task, and no core waits for nothing."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from kernelrl.console import Runs
from kernelrl.experiments.driver import Driver
from kernelrl.experiments.engine import Event, Task
from kernelrl.experiments.learning import Job
from kernelrl.experiments.local import LocalEngine, Worker
from kernelrl.experiments.waiting import Waiting

DATA = {
    "progress": {"done": 1, "mean": 0.0}, "failed": {"why": "", "trace": ""}, "died": {"why": "", "trace": ""},
}  # fmt: skip
KINDS = {("", "a"): "slow", ("", "b"): "slow", ("", "c"): "quick"}


class Script:
    """An engine that does what a list says: (name of the task, kind of event), checking what is under way."""

    def __init__(self, slots, events):
        self.slots = slots
        self.events = list(events)
        self.begun = []
        self.tasks = {}
        self.batches = []

    def submit(self, batch):
        self.begun += [task.job.name for task in batch]
        self.tasks |= {task.job.name: task for task in batch}
        self.batches.append(len(batch))

    def next_event(self, timeout):
        name, kind, expected = self.events.pop(0)
        assert expected is None or self.begun == expected
        if kind == "short":
            return Event(self.tasks[name], "finished", {"done": 5, "seconds": 0.001})
        return Event(self.tasks[name], kind, dict(DATA.get(kind, {})))


def drain(engine, names, kinds, tmp_path):
    """Let the engine do the runs with these labels and seeds; return those that failed."""
    jobs = [Job(name[0], int(name[1:]), 5, {"agent": "a"}, {}, str(tmp_path), [], 60.0) for name in names]
    display = SimpleNamespace(say=print, update=lambda *given: None, end=lambda *given: None)
    result = SimpleNamespace(failed={})
    waiting = Waiting(jobs, lambda job: kinds.get((job.problem, job.label)))
    Driver(engine, display, SimpleNamespace(asked=False), result).drain(waiting)
    assert not engine.events and set(engine.begun) == {job.name for job in jobs}
    return list(result.failed)


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
    assert drain(Script(2, script), ["a0", "b0"], KINDS, tmp_path) == [("a", 0)]


def test_without_kinds_nothing_waits(tmp_path):
    a, b = "a, seed 0", "b, seed 0"
    drain(Script(2, [(a, "finished", [a, b]), (b, "finished", [a, b])]), ["a0", "b0"], {}, tmp_path)


def test_short_runs_go_in_batches_and_long_ones_alone(tmp_path):
    """The first goes alone and shows how long a run takes; a batch has runs of one agent, and leaves some to others."""
    a, c = [f"a, seed {seed}" for seed in range(20)], "c, seed 0"
    order = [a[0], *a[1:18], c, a[18], a[19]]
    kinds = ["short" if name[0] == "a" else "finished" for name in order]
    engine = Script(1, [(name, kind, None) for name, kind in zip(order, kinds, strict=True)])
    drain(engine, [*(f"a{seed}" for seed in range(18)), "c0", "a18", "a19"], {}, tmp_path)
    assert engine.begun == order and engine.batches == [1, 17, 1, 2]
    engine = Script(1, [(name, "finished", None) for name in a])  # it does not say how long, or long
    drain(engine, [f"a{seed}" for seed in range(20)], {}, tmp_path)
    assert engine.batches == [1] * 20


def test_a_run_that_kills_its_process_does_not_take_the_others_of_its_batch_with_it(tmp_path):
    a = [f"a, seed {seed}" for seed in range(9)]
    script = [(a[0], "short", None), (a[1], "short", None), (a[2], "died", None)]
    script += [(name, "returned", None) for name in a[3:]]
    script += [(a[8], "short", None), (a[7], "short", None), (a[6], "short", None)]  # each alone
    script += [(name, "short", None) for name in (a[5], a[4], a[3])]
    script += [(a[2], "died", None), (a[2], "died", None)]
    engine = Script(1, script)
    assert drain(engine, [f"a{seed}" for seed in range(9)], {}, tmp_path) == [("a", 2)]
    assert engine.batches == [1, 8, *[1] * 8]


def test_a_display_of_many_runs_holds_only_those_under_way(capsys):
    display = Runs(30)
    for seed in range(3):
        job = Job("a", seed, 10, {}, {}, "", [], 60.0)
        display.update(job, 4, 0.5)
        display.end(job, "finished", 10)
    assert not display._done and not display._said and display._ended == 30
    assert capsys.readouterr().err.count("finished") == 3


@pytest.mark.parametrize("learning", [False, True])
def test_a_worker_that_only_compiles_is_stopped_at_once(learning, monkeypatch):
    """It has nothing to store, and compiling cannot be interrupted; one that learns is asked to store what it has."""
    report = 'print(\'{"run": 0, "kind": "progress", "done": 1, "mean": 0}\', flush=True); ' if learning else ""
    stopped = '{"run": 0, "kind": "stopped"}'
    code = f"import sys; {report}[print('{stopped}', flush=True) for line in sys.stdin if 'stop' in line]"
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda arguments, **given: popen([sys.executable, "-c", code], **given))
    engine = LocalEngine(1, 2)
    engine.submit([Task(Job("a", 0, 5, {}, {}, "", [], 60.0))])
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
