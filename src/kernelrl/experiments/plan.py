"""From an experiment and its store to the runs that are left to do.

Every agent is made and started, so that mistakes show before anything runs. An experiment may extend the one in the
store, but not contradict it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kernelrl import console
from kernelrl.agents.files import write_json
from kernelrl.experiments.config import Experiment, ExperimentError
from kernelrl.experiments.learning import Job, compile_key, record, snapshot_marks
from kernelrl.experiments.objects import build_any, build_environment, configuration, optimal_values
from kernelrl.experiments.problems import Problem, problems_of
from kernelrl.experiments.store import EXPERIMENT, HISTORY, RUN, Run, Store, StoreError, is_free, make_folder, safe_name
from kernelrl.experiments.transitions import TRANSITIONS

__all__ = ["Plan", "Result", "extend", "plan_jobs"]


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
        begun = [run for run in store.runs() if run.has_checkpoint]
        if begun:
            same_experiment(store, new, begun)
        for run in begun:
            same_configuration(run, plan.configurations[run.problem, run.label])
        if store.experiment == new:
            return
    elif not is_free(store.path):
        raise ExperimentError(
            f"{store.path} holds runs, but no {EXPERIMENT} that says of which experiment; choose another folder with "
            "--out"
        )
    store.write(new)


def same_experiment(store: Store, new: dict[str, Any], begun: list[Run]) -> None:
    """Reject an experiment that does not extend the one to which the runs `begun` belong."""
    old = store.experiment
    where, other = f"{store.path} holds another experiment", "choose another folder with --out"
    if old["name"] != new["name"]:
        raise ExperimentError(f'{where}, "{old["name"]}", not "{new["name"]}"; {other}')
    if store.several != ("environments" in new):
        words = ["one environment", "a list of [[environments]]"]
        raise ExperimentError(f"{where}: it has {words[store.several]}, not {words[not store.several]}; {other}")
    problems = {problem.label: problem for problem in problems_of(new)}
    for problem in store.problems:
        if any(run.problem == problem.label for run in begun):
            same_problem(store, problem, problems, other)
    agents = {
        (label, agent["label"]) for label in problems for agent in new["agents"] if label in agent.get("on", [label])
    }
    shrunk = f"{store.path}: an experiment can be extended, not shortened"
    for run in begun:
        no_more = "which the experiment no longer has; add it again, remove"
        if (run.problem, run.label) not in agents:
            on = f' on "{run.problem}"' if store.several else ""
            raise ExperimentError(
                f'{shrunk}: it has an agent "{run.label}"{on}, {no_more} {run.path.parent}, or {other}'
            )
        if run.seed not in new["seeds"]:
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


def plan_jobs(store: Store, experiment: Experiment, plan: Plan, checkpoint_seconds: float, result: Result) -> list[Job]:
    """The unfinished runs, the first seed of every agent first; runs that cannot be read count as failed."""
    jobs = []
    for seed in experiment.seeds:
        for environment, problem, entry in experiment.pairs():
            begun = store.run(entry.label, seed, problem)
            marks = snapshot_marks(begun.planned_steps or begun.planned) if seed == experiment.seeds[0] else []
            job = Job(
                entry.label, seed, begun.planned, agent_table(entry), environment.table, str(begun.path), marks,
                checkpoint_seconds, problem, store.several, begun.planned_steps,
            )  # fmt: skip
            try:
                if begun.has_checkpoint:
                    _ = begun.config
                else:
                    begin(begun, record(job, plan.configurations[problem, entry.label], 0, 0.0, False))
                if not begun.finished:
                    begun.history()
                    if entry.transitions and begun.has_checkpoint:
                        begun.transitions()
                    jobs.append(job)
            except StoreError as error:
                result.failed[job.key] = f"{error}; remove {begun.path} to begin this run again"
                result.unreadable.add(job.key)
                console.say(f"{job.name}: {result.failed[job.key]}")
    return jobs


def begin(run: Run, content: dict[str, Any]) -> None:
    """Reset the folder of a run without a checkpoint to its state before the first episode."""
    make_folder(run.path)
    for left in (run.path / HISTORY, run.path / TRANSITIONS, *run.path.glob("agent-*.krl")):
        left.unlink(missing_ok=True)
    write_json(run.path / RUN, content)


def agent_table(entry: Any) -> dict[str, Any]:
    """An agent's entry as JSON."""
    named = {"label": entry.label, "agent": entry.agent, "monitor": entry.monitor, "transitions": entry.transitions}
    table = {**named, **entry.others}
    return table if entry.preset is None else {**table, "preset": entry.preset}
