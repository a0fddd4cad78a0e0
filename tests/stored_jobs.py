"""Jobs of an experiment without its engine, and what happens to one that is killed at any of its renames."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

from kernelrl.experiments.learning import learn
from kernelrl.experiments.plan import Plan, Result, extend, plan_jobs
from kernelrl.experiments.store import Store


def store_and_jobs(experiment, folder):
    """The store of an experiment in `folder` and the jobs of its runs."""
    plan, store = Plan.of(experiment), Store(folder)
    store.path.mkdir(exist_ok=True)
    extend(store, experiment, plan)
    return store, plan_jobs(store, experiment, 1000.0, Result(store))


class Killed(BaseException):
    """Stands for the end of the process."""


def kills(store, job, when, monkeypatch):
    """Begin the job's run again and again, killed "before" or "after" its first, second … rename.

    After each kill the name of the file is yielded; there are none left when a run comes to its end.
    """
    rename = os.replace
    for last in itertools.count():
        shutil.rmtree(store.path / "runs", ignore_errors=True)
        names = []

        def dying(source, target, last=last, names=names):
            names.append(Path(target).name)
            if when == "after" or len(names) <= last:
                rename(source, target)
            if len(names) == last + 1:
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", dying)
            patch.setattr(Path, "unlink", lambda path, missing_ok=False: None)  # nobody tidies up after a kill
            try:
                for _ in learn(job, Path(job.path), lambda: False):
                    pass
            except Killed:
                pass
        if len(names) <= last:
            return
        yield names[-1]
