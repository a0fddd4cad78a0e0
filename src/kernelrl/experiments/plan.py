"""From an experiment and its store to the runs that are left to do.

Every agent is made and started, so that mistakes show before anything runs. An experiment may extend the one in the
store, but not contradict it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from kernelrl import console
from kernelrl.experiments.config import AgentEntry, Experiment, ExperimentError
from kernelrl.experiments.declared import declared
from kernelrl.experiments.learning import Job, compile_key, snapshot_marks
from kernelrl.experiments.objects import build_any, build_environment, configuration, optimal_values
from kernelrl.experiments.problems import Problem, problems_of
from kernelrl.experiments.store import EXPERIMENT, Run, Store, StoreError, is_free, safe_name

__all__ = ["Jobs", "Plan", "Result", "extend", "plan_jobs"]


@dataclass
class Result:
    """How an experiment ended."""

    store: Store
    failed: dict[tuple[Any, ...], str] = field(default_factory=dict)
    """Label and seed of the runs that failed (with several problems: problem, label and seed), with the traceback."""
    unreadable: set[tuple[Any, ...]] = field(default_factory=set)
    """Those of them that were not tried, because their files are damaged."""
    interrupted: bool = False

    @property
    def finished(self) -> bool:
        """Whether every run has all its episodes."""
        return not self.failed and not self.interrupted


@dataclass
class Plan:
    """For each problem and label the configuration and the kind of machine code it needs."""

    configurations: dict[tuple[str, str], dict[str, Any]]
    kinds: dict[tuple[str, str], Any]

    @classmethod
    def of(cls, experiment: Experiment) -> Plan:
        """Make and start every agent, so that mistakes show before anything runs."""
        plan, envs = cls({}, {}), dict[str, Any]()
        if experiment.model is not None:
            declared(experiment.model, "model")
        for environment, problem, entry in experiment.pairs():
            agent = build_any(entry)
            if problem not in envs:
                envs[problem] = build_environment(environment)
            try:
                agent.get_ready(envs[problem], 0)
            except (TypeError, ValueError) as error:
                where = f' on "{problem}"' if experiment.several else ""
                remedy = f'; not_on = ["{problem}"] leaves this problem out' if experiment.several else ""
                raise ExperimentError(f'agents "{entry.label}"{where}: {error}{remedy}') from error
            optimal_values(agent, entry, envs[problem])  # computed once and cached on disk for the workers
            plan.configurations[problem, entry.label] = configuration(agent, entry, environment)
            plan.kinds[problem, entry.label] = compile_key(agent, entry, envs[problem])
        for env in envs.values():
            env.close()
        return plan


def extend(store: Store, experiment: Experiment, plan: Plan) -> None:
    """Make `store` the store of `experiment`, which may extend the experiment in it but not contradict it.

    Only runs with a checkpoint count: a run that ended before its first checkpoint can still be changed.
    """
    new = experiment.to_json()
    if (store.path / EXPERIMENT).exists():
        if any(True for _ in store.begun()):
            same_experiment(store, new)
        for run in store.begun():
            same_configuration(run, plan.configurations[run.problem, run.label])
        if store.experiment == new:
            return
    elif not is_free(store.path):
        raise ExperimentError(
            f"{store.path} holds runs, but no {EXPERIMENT} that says of which experiment; choose another folder with "
            "--out"
        )
    store.write(new)


def same_experiment(store: Store, new: dict[str, Any]) -> None:
    """Reject an experiment that does not extend the one to which the runs with a checkpoint belong."""
    old = store.experiment
    where, other = f"{store.path} holds another experiment", "choose another folder with --out"
    if old["name"] != new["name"]:
        raise ExperimentError(f'{where}, "{old["name"]}", not "{new["name"]}"; {other}')
    if store.several != ("environments" in new):
        words = ["one environment", "a list of [[environments]]"]
        raise ExperimentError(f"{where}: it has {words[store.several]}, not {words[not store.several]}; {other}")
    problems = {problem.label: problem for problem in problems_of(new)}
    with_results = {run.problem for run in store.begun()}
    for problem in store.problems:
        if problem.label in with_results:
            same_problem(store, problem, problems, other)
    agents = {
        (label, agent["label"]) for label in problems for agent in new["agents"] if label in agent.get("on", [label])
    }
    shrunk = f"{store.path}: an experiment can be extended, not shortened"
    seeds = set(new["seeds"])
    for run in store.begun():
        no_more = "which the experiment no longer has; add it again, remove"
        if (run.problem, run.label) not in agents:
            on = f' on "{run.problem}"' if store.several else ""
            raise ExperimentError(
                f'{shrunk}: it has an agent "{run.label}"{on}, {no_more} {run.path.parent}, or {other}'
            )
        if run.seed not in seeds:
            folders = store.path.joinpath("runs", *["*"] * (2 if store.several else 1), run.path.name)
            raise ExperimentError(f"{shrunk}: it has seed {run.seed}, {no_more} {folders}, or {other}")


def same_problem(store: Store, old: Problem, problems: dict[str, Problem], other: str) -> None:
    """Reject a problem with results that is gone, is another one now, or has fewer episodes or steps."""
    new = problems.get(old.label) if store.several else next(iter(problems.values()))
    of = f'"{old.label}": ' if store.several else ""
    shrunk = f"{store.path}: an experiment can be extended, not shortened: {of}it has"
    if new is None:
        folder = store.path / "runs" / safe_name(old.label)
        raise ExperimentError(
            f'{store.path}: an experiment can be extended, not shortened: it has a problem "{old.label}", which the '
            f"experiment no longer has; add it again, remove {folder}, or {other}"
        )
    if old.environment != new.environment:
        raise ExperimentError(
            f"{store.path} holds another experiment: {of}its environment is {old.environment}, not {new.environment}; "
            f"{other}"
        )
    if (old.steps is None) != (new.steps is None):
        units = ["episodes", "steps"]
        counted = units[old.steps is not None]
        raise ExperimentError(f"{store.path}: {of}it counts {counted}, not {units[old.steps is None]}; {other}")
    if new.steps is not None and old.steps is not None and new.steps < old.steps:
        raise ExperimentError(f"{shrunk} {old.steps} steps, not {new.steps}; {other}")
    if new.steps is None and new.episodes < old.episodes:
        raise ExperimentError(f"{shrunk} {old.episodes} episodes, not {new.episodes}; {other}")


def same_configuration(begun: Run, configured: dict[str, Any]) -> None:
    """Reject a run that would continue with other hyper-parameters."""
    try:
        old = begun.config
    except StoreError:
        return  # `plan_jobs` reports the run as failed
    if old["agent"] != configured["agent"]:
        changes = [f"agent was {old['agent']} and is {configured['agent']}"]
    else:
        was, now = old["hyper_parameters"], configured["hyper_parameters"]
        changes = [
            f"{name} was {was.get(name)!r} and is {now.get(name)!r}"
            for name in sorted(was.keys() | now.keys())
            if was.get(name) != now.get(name)
        ]
    if old.get("monitor", False) != configured["monitor"]:
        changes.append(f"monitor was {old.get('monitor', False)} and is {configured['monitor']}")
    if old.get("transitions", False) != configured.get("transitions", False):
        changes.append(f"transitions was {old.get('transitions', False)} and is {not old.get('transitions', False)}")
    if changes:
        on = f' on "{begun.problem}"' if begun.several else ""
        raise ExperimentError(
            f'agents "{begun.label}"{on}: {"; ".join(changes)} now, but {begun.path.parent} has results under that '
            "label; add the changed agent beside this one under its own label, remove that folder to learn it again, "
            "or choose another folder with --out"
        )


class Jobs(Sequence[Job]):
    """The runs that are left to do, in order. There may be many, so each job is made when it is asked for."""

    def __init__(self, store: Store, experiment: Experiment, checkpoint_seconds: float) -> None:
        self._store, self._seeds, self._checkpoint_seconds = store, experiment.seeds, checkpoint_seconds
        self._pairs = [
            (environment.table, problem, entry.label, agent_table(entry))
            for environment, problem, entry in experiment.pairs()
        ]
        self._left = array("q")  # their numbers among all runs

    def __len__(self) -> int:
        return len(self._left)

    @overload
    def __getitem__(self, i: int) -> Job: ...
    @overload
    def __getitem__(self, i: slice) -> list[Job]: ...
    def __getitem__(self, i: Any) -> Any:
        """A job, or some of them."""
        return [self._job(n) for n in self._left[i]] if isinstance(i, slice) else self._job(self._left[i])

    def keep(self, is_left: Callable[[Run, Job], bool]) -> None:
        """Look at all runs, the first seed of every agent first, and keep those that are left to do."""
        for n in range(len(self._seeds) * len(self._pairs)):
            if is_left(self._run(n), self._job(n)):
                self._left.append(n)

    def _run(self, n: int) -> Run:
        _, problem, label, _ = self._pairs[n % len(self._pairs)]
        return self._store.run(label, self._seeds[n // len(self._pairs)], problem)

    def _job(self, n: int) -> Job:
        environment, problem, label, agent = self._pairs[n % len(self._pairs)]
        run = self._run(n)
        marks = snapshot_marks(run.planned_steps or run.planned) if run.seed == self._seeds[0] else []
        return Job(
            label, run.seed, run.planned, agent, environment, str(run.path), marks, self._checkpoint_seconds, problem,
            self._store.several, run.planned_steps,
        )  # fmt: skip


def plan_jobs(store: Store, experiment: Experiment, checkpoint_seconds: float, result: Result) -> Jobs:
    """The unfinished runs, the first seed of every agent first; runs that cannot be read count as failed."""

    def is_left(run: Run, job: Job) -> bool:
        try:
            if not run.has_checkpoint:
                return True
            if not run.finished:
                run.history()
                if AgentEntry(**job.agent).transitions:
                    run.transitions()
                return True
        except StoreError as error:
            result.failed[job.key] = f"{error}; remove {run.path} to begin this run again"
            result.unreadable.add(job.key)
            console.say(f"{job.name}: {result.failed[job.key]}")
        return False

    jobs = Jobs(store, experiment, checkpoint_seconds)
    jobs.keep(is_left)
    return jobs


def agent_table(entry: Any) -> dict[str, Any]:
    """An agent's entry as JSON."""
    named = {"label": entry.label, "agent": entry.agent, "monitor": entry.monitor, "transitions": entry.transitions}
    table = {**named, **entry.others}
    return table if entry.preset is None else {**table, "preset": entry.preset}
