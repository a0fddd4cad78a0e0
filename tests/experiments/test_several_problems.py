"""Experiments over several problems: the file, the runs, the store, and what is said where something is wrong."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import kernelrl as krl
from experiment_parts import GREEDY, RANDOM, call, start, table, wait_for, write_toml
from kernelrl import experiments
from kernelrl.experiments.config import Experiment, ExperimentError, read_experiment
from kernelrl.experiments.learning import episodes_to, learn
from kernelrl.experiments.plan import Plan
from kernelrl.experiments.problems import Problem
from kernelrl.experiments.store import FORMAT, FORMAT_SEVERAL
from kernelrl.reporting import write_report
from stored_jobs import store_and_jobs

NEAR = 'id = "kernelrl/TwinRooms-v0"\ngoal = [0.3, 0.3]\nradius = 0.3\n'
ROOMS = f'[[environments]]\nlabel = "rooms"\n{NEAR}'
RAMP = '[[environments]]\nid = "kernelrl/Ramp-v0"\nepisodes = 12\n'
OIL = '[[environments]]\nlabel = "Oil 10"\nid = "kernelrl/Oil-v0"\nsteepness = 10\n'
AT = '\n[agents.at."rooms"]\nbandwidth = 0.2\n'


def write(path: Path, problems: str, agents: str, episodes: int = 30, seeds: object = 2) -> Path:
    path.write_text(f'name = "test"\nepisodes = {episodes}\nseeds = {seeds}\n\n{problems}\n{agents}')
    return path


def read(tmp_path: Path, problems: str, agents: str, **options: int) -> Experiment:
    return read_experiment(write(tmp_path / "experiment.toml", problems, agents), **options)


# ------------------------------------------------------------------------------------------------------------ the file


def test_problems_and_agents(tmp_path):
    agents = RANDOM + GREEDY + 'on = ["r*", "kernelrl/Ramp-v0"]\n' + AT + '[agents.at."*"]\nlipschitz = 3\n'
    experiment = read(tmp_path, ROOMS + RAMP + OIL, agents)
    found = [(problem, entry.label) for _, problem, entry in experiment.pairs()]
    on_all = [("rooms", "random"), ("kernelrl/Ramp-v0", "random"), ("Oil 10", "random")]
    assert sorted(found) == sorted([*on_all, ("rooms", "greedy"), ("kernelrl/Ramp-v0", "greedy")])
    placed = {problem: entry.others for _, problem, entry in experiment.pairs() if entry.label == "greedy"}
    assert placed["rooms"]["bandwidth"] == 0.2 and placed["kernelrl/Ramp-v0"]["bandwidth"] == 0.1
    assert {options["lipschitz"] for options in placed.values()} == {3}
    assert Experiment.checked(experiment.to_json(), "again").to_json() == experiment.to_json()
    assert [environment.table for environment, problem, _ in experiment.pairs() if problem == "Oil 10"] == [
        {"id": "kernelrl/Oil-v0", "steepness": 10}
    ]


def test_a_label_with_signs_of_patterns_is_itself(tmp_path):
    problems = ROOMS.replace('"rooms"', '"a[1]"') + ROOMS.replace('"rooms"', '"a1"')
    experiment = read(tmp_path, problems, RANDOM + 'on = ["a[1]"]\n')
    assert experiment.agents[0].on == ["a[1]", "a1"]  # the second fits the pattern


def test_not_on_and_sweeps(tmp_path):
    agents = GREEDY.replace("bonus_scale = 0.02\n", 'not_on = ["Oil *"]\n') + "[agents.sweep]\nbonus_scale = [0.1, 1]\n"
    experiment = read(tmp_path, ROOMS + OIL, agents)
    assert [(problem, entry.label) for _, problem, entry in experiment.pairs()] == [
        ("rooms", "greedy bonus_scale=0.1"), ("rooms", "greedy bonus_scale=1"),
    ]  # fmt: skip


def test_given_episodes_are_those_of_all_problems(tmp_path):
    problems = ROOMS + RAMP + OIL.replace("steepness", "steps = 9\nsteepness")
    numbers = [(entry.episodes, entry.steps) for entry in read(tmp_path, problems, RANDOM).environments]
    assert numbers == [(None, None), (12, None), (None, 9)]
    changed = read(tmp_path, problems, RANDOM, episodes=5, seeds=1)
    assert changed.episodes == 5 and {(entry.episodes, entry.steps) for entry in changed.environments} == {(None, None)}


def test_problems_of_another_experiment(tmp_path):
    write(tmp_path / "other.toml", ROOMS + RAMP + OIL.replace("steepness", "steps = 9\nsteepness"), RANDOM, episodes=77)
    experiment = read(tmp_path, 'problems = "other.toml"', GREEDY + 'on = ["rooms"]')
    assert [(entry.label, entry.episodes, entry.steps) for entry in experiment.environments] == [
        ("rooms", 77, None), ("kernelrl/Ramp-v0", 12, None), ("Oil 10", None, 9),
    ]  # fmt: skip
    assert experiment.environments[0].others == {"goal": [0.3, 0.3], "radius": 0.3}
    for named, words in (("quick", 'problems: the experiment "quick" has no'), ("nothing", "no experiment of that")):
        with pytest.raises(ExperimentError, match=words):
            read(tmp_path, f'problems = "{named}"', RANDOM)
    with pytest.raises(ExperimentError, match="problems and environments are both given"):
        read(tmp_path, 'problems = "other.toml"\n' + ROOMS, RANDOM)
    with pytest.raises(ExperimentError, match="problems must be the name"):
        read(tmp_path, "problems = 3", RANDOM)
    write(tmp_path / "circle.toml", 'problems = "circle.toml"', RANDOM)
    with pytest.raises(ExperimentError, match=r'"circle.toml" takes its problems from another one'):
        read(tmp_path, 'problems = "circle.toml"', RANDOM)


@pytest.mark.parametrize(
    ("problems", "agents", "words"),
    [
        (ROOMS + ROOMS, "", ['the label "rooms" occurs twice', "problem"]),
        (ROOMS + ROOMS.replace('"rooms"', '"Rooms"'), "", ["capital letters only"]),
        (ROOMS.replace('"rooms"', '" rooms"'), "", ['environments " rooms" label', "spaces"]),
        (ROOMS.replace("id", "name"), "", ['environments "rooms" id is missing']),
        ("[[environments]]\nlevel = 3\n", "", ["environments number 1 id is missing"]),
        ("environments = []\n", "", ["environments", "at least 1"]),
        (RAMP.replace("12", "0"), "", ['environments "kernelrl/Ramp-v0" episodes', "got 0"]),
        (RAMP + "steps = 100\n", "", ['environments "kernelrl/Ramp-v0"', "episodes and steps"]),
        (RAMP + "best = 1\nworst = 2\n", "", ["best must be above worst, got 1 and 2"]),
        (RAMP + "best = -1\n", "", ["best must be above worst, got -1 and 0"]),
        (RAMP + "best = inf\n", "", ["best", "finite"]),
        (RAMP + 'best = "much"\n', "", ["best", "'much'"]),
        (ROOMS + f"[environment]\n{NEAR}", "", ["environment and environments are both given"]),
        (ROOMS, 'on = ["romos"]', ['agents "random" on: there is no problem "romos"', "did you mean rooms?"]),
        (ROOMS, 'on = ["Oil *"]', ['agents "random" on', "Oil *"]),
        (ROOMS, 'not_on = ["*x"]', ['agents "random" not_on', "*x"]),
        (ROOMS, 'not_on = ["r*"]', ['agents "random" on and not_on leave no problem']),
        (ROOMS, "on = []", ['agents "random" on', "at least 1"]),
        (ROOMS, "on = 3", ['agents "random" on', "list"]),
        (ROOMS, "[agents.at.x]\nhorizon = 3", ['agents "random" at: there is no problem "x"']),
        (ROOMS, '[agents.at.rooms]\nagent = "OptQL"', ['at."rooms": agent is the same on all problems']),
        (ROOMS, "[agents.sweep]\nhorizon = [3]\n[agents.at.rooms]\nhorizon = 3", ["sweep.horizon", 'at."rooms"']),
        (f"[environment]\n{NEAR}", 'on = ["rooms"]', ['agents "random" on', "[[environments]]"]),
        ("", "", ["environment is missing", "[[environments]]"]),
    ],
)
def test_wrong_files(tmp_path, problems, agents, words):
    with pytest.raises(ExperimentError) as caught:
        read(tmp_path, problems, RANDOM + agents)
    for word in [*words, "experiment.toml"]:
        assert word in str(caught.value)


def test_an_agent_that_cannot_take_a_problem(tmp_path):
    """It is found before anything runs, and the error names the way out."""
    grid = '[[agents]]\nlabel = "grid"\nagent = "UCBVI"\nbins = 5\n'
    with pytest.raises(ExperimentError, match=r'agents "grid" on "Oil 10": .*not_on = \["Oil 10"\]'):
        Plan.of(read(tmp_path, ROOMS + OIL, grid))
    assert list(Plan.of(read(tmp_path, ROOMS + OIL, grid + 'not_on = ["Oil 10"]')).kinds) == [("rooms", "grid")]
    with pytest.raises(ExperimentError, match=r'environments "Oil 10": .*"stepness".*did you mean steepness'):
        Plan.of(read(tmp_path, OIL.replace("steep", "step"), RANDOM))


# ------------------------------------------------------------------------------------------------------------ the runs


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished experiment on two problems, not to be changed."""
    folder = tmp_path_factory.mktemp("several")
    file = write(folder / "a.toml", ROOMS + RAMP, RANDOM + GREEDY + AT)
    assert experiments.run(file, folder / "out", workers=1).finished
    return folder / "out"


def test_runs_are_those_of_single_experiments(made, tmp_path):
    """To the last bit, tables and agents."""
    wider = GREEDY.replace("bandwidth = 0.1", "bandwidth = 0.2")
    problems = {"rooms": (NEAR, wider, 30), "kernelrl/Ramp-v0": ('id = "kernelrl/Ramp-v0"\n', GREEDY, 12)}
    for label, (environment, greedy, episodes) in problems.items():
        file, out = tmp_path / "one.toml", tmp_path / label.replace("/", "_")
        write(file, f"[environment]\n{environment}", RANDOM + greedy, episodes)
        assert experiments.run(file, out, workers=1).finished
        assert table(out).drop("problem").equals(table(made).filter(problem=label).drop("problem"))
        alone, among = experiments.open_store(out), experiments.open_store(made)
        for run in alone.runs():
            other = among.run(run.label, run.seed, label)
            names = [path.name for path in run.path.glob("agent*.krl")]
            assert names and all((run.path / n).read_bytes() == (other.path / n).read_bytes() for n in names)
            assert run.config == other.config


def test_layout(made):
    runs = sorted(str(path.parent.relative_to(made)) for path in made.rglob("run.json"))
    ramp = next(path.name for path in (made / "runs").iterdir() if path.name.startswith("kernelrl_Ramp-v0-"))
    folders = [f"runs/{p}/{label}/seed-{s}" for p in (ramp, "rooms") for label in ("greedy", "random") for s in (0, 1)]
    assert runs == sorted(folders)
    assert json.loads((made / "experiment.json").read_text())["format"] == FORMAT_SEVERAL
    record = json.loads((made / "runs/rooms/greedy/seed-1/run.json").read_text())
    assert record["format"] == FORMAT and record["problem"] == "rooms"
    assert record["configuration"]["hyper_parameters"]["bandwidth"] == 0.2


def test_one_table(made):
    frame = experiments.load(made)
    assert frame.columns == ["problem", "label", "seed", "episode", "return", "steps", "seconds", "value"]
    counts = dict(frame.group_by("problem").len().iter_rows())
    assert counts == {"rooms": 2 * 2 * 30, "kernelrl/Ramp-v0": 2 * 2 * 12}


def test_the_store_of_one_environment_is_as_ever(tmp_path):
    """Its file says nothing of problems, so that earlier versions read it."""
    out = tmp_path / "out"
    assert experiments.run(write_toml(tmp_path / "a.toml", RANDOM, 3, 1), out, workers=1).finished
    content = json.loads((out / "experiment.json").read_text())
    assert content == {
        "format": 3,
        "kernelrl": krl.__version__,
        "experiment": {
            "name": "test",
            "episodes": 3,
            "seeds": [0],
            "environment": {"id": "kernelrl/TwinRooms-v0", "goal": [0.3, 0.3], "radius": 0.3},
            "agents": [{"label": "random", "agent": "RandomAgent"}],
        },
    }
    assert list(json.loads((out / "runs/random/seed-0/run.json").read_text())) == [
        "format", "label", "seed", "configuration", "episodes", "finished", "seconds", "versions", "machine",
        "settings_used",
    ]  # fmt: skip
    store = experiments.open_store(out)
    (problem,) = store.problems
    assert not store.several and problem.label == "kernelrl/TwinRooms-v0" and problem.episodes == 3
    assert experiments.load(out)["problem"].unique().to_list() == [problem.label]
    assert store.only(problem.label).experiment == store.experiment
    assert [run.key for run in store.runs()] == [("random", 0)]


def test_everything_is_killed(tmp_path):
    """As when the power fails: the same command continues, to the same results."""
    slow = '[[environments]]\nlabel = "slow"\nid = "experiment_parts:Rooms-v0"\npause = {}\n'
    steps = slow.replace('"slow"', '"in steps"') + "steps = 1201\n"
    file, agents = tmp_path / "a.toml", RANDOM + GREEDY
    write(file, (slow + steps).format(0.0, 0.0), agents, episodes=60, seeds=1)
    assert experiments.run(file, tmp_path / "whole").finished
    write(file, (slow + steps).format(0.001, 0.001), agents, episodes=60, seeds=1)
    out = tmp_path / "out"

    def begun():
        runs = experiments.open_store(out).runs() if (out / "experiment.json").exists() else []
        return any(10 < run.episodes < 60 for run in runs if run.label == "greedy")

    running = start("run", file, "--out", out, "--workers", "2", "--checkpoint", "0.2")
    wait_for(lambda: begun() or running.poll() is not None)
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    for pid in [running.pid, *map(int, children)]:
        os.kill(pid, signal.SIGKILL)
    running.communicate()
    assert not all(run.finished for run in experiments.open_store(out).planned() if run.has_checkpoint)
    again = call("run", file, "--out", out, "--json")
    assert again.returncode == 0, again.stderr
    assert table(out).equals(table(tmp_path / "whole"))
    rows = json.loads(again.stdout)["runs"]
    assert [(row["problem"], row["label"]) for row in rows] == list(
        itertools.product(("slow", "in steps"), ("random", "greedy"))
    )
    assert [row["episodes"] for row in rows] == [60, 60, 61, 61]  # of 20 steps each


# ----------------------------------------------------------------------------------------------------- numbers of steps


def planned(tmp_path, steps):
    """A store and its job: PuddleWorld, whose episodes end at the goal, as long as `steps` says."""
    problem = f'[[environments]]\nid = "kernelrl/PuddleWorld-v0"\nsteps = {steps}\n'
    return store_and_jobs(read(tmp_path, problem, RANDOM, seeds=1), tmp_path / f"out-{steps}")


@pytest.mark.parametrize("steps", [1, 50, 51, 999])
def test_a_number_of_steps(tmp_path, steps):
    """The run ends with the episode in which the number is reached, and is what `fit` gives."""
    store, (job,) = planned(tmp_path, steps)
    events = list(learn(job, Path(job.path), lambda: False))
    assert events[-1]["kind"] == "finished" and events[-1]["done"] >= steps
    (run,) = store.runs()
    history = run.history()
    assert run.finished and history["steps"].sum() >= steps > history["steps"][:-1].sum()
    direct = krl.RandomAgent().fit(gym.make("kernelrl/PuddleWorld-v0"), len(history), seed=0)
    assert np.array_equal(history["steps"], direct.lengths) and np.array_equal(history["return"], direct.returns)
    marks, total = job.snapshots, history["steps"].cum_sum().to_list()
    assert marks[-1] == steps
    assert [k for k, _ in run.snapshots()] == sorted({next(k for k, t in enumerate(total, 1) if t >= m) for m in marks})
    assert not planned(tmp_path, steps)[1]  # nothing is left to do


def test_stopped_and_continued_in_steps(tmp_path):
    _, (job,) = planned(tmp_path, 999)
    list(learn(job, Path(job.path), lambda: False))
    expected = table(tmp_path / "out-999")
    for pieces in (1, 3, 4):
        shutil.rmtree(tmp_path / "out-999")
        store, (job,) = planned(tmp_path, 999)
        answers = itertools.chain([False] * pieces, itertools.repeat(True))
        assert list(learn(job, Path(job.path), answers.__next__))[-1]["kind"] == "stopped"
        assert not store.runs()[0].finished
        list(learn(job, Path(job.path), lambda: False))
        assert store.runs()[0].finished and table(store.path).equals(expected)


def test_no_call_passes_a_number_of_steps(tmp_path):
    _, (job,) = planned(tmp_path, 999)
    agent = krl.RandomAgent()
    agent.get_ready(gym.make("kernelrl/PuddleWorld-v0"), 0)
    assert [episodes_to(missing, job, agent) for missing in (1, 49, 50, 99, 100, 999)] == [1, 1, 1, 1, 2, 19]


# ------------------------------------------------------------------------------------------------------------ extending


def test_extended_by_a_problem_an_agent_and_episodes(made, tmp_path):
    out = shutil.copytree(made, tmp_path / "out")
    larger = write(tmp_path / "b.toml", OIL + ROOMS + RAMP.replace("12", "15"), GREEDY + AT + RANDOM, 40, seeds=3)
    text = larger.read_text().replace("[agents.at", 'not_on = ["Oil 10"]\n[agents.at')
    larger.write_text(text.replace("radius = 0.3\n", "radius = 0.3\nbest = 9.0\n"))
    assert experiments.run(larger, out, workers=1).finished
    assert experiments.run(larger, tmp_path / "direct", workers=1).finished
    assert table(out).equals(table(tmp_path / "direct"))
    assert experiments.open_store(out).problem("rooms").best == 9.0


@pytest.mark.parametrize(
    ("problems", "agents", "words"),
    [
        (ROOMS, RANDOM + GREEDY + AT, ['a problem "kernelrl/Ramp-v0"', "extended, not shortened", "remove"]),
        (ROOMS + RAMP.replace("12", "11"), RANDOM + GREEDY + AT, ['"kernelrl/Ramp-v0": it has 12 episodes, not 11']),
        (ROOMS + RAMP.replace("episodes = 12", "steps = 99"), RANDOM + GREEDY + AT, ["it counts episodes, not steps"]),
        (ROOMS + RAMP + "slope = 0.3\n", RANDOM + GREEDY + AT, ['"kernelrl/Ramp-v0": its environment', "slope"]),
        (ROOMS + RAMP, RANDOM + GREEDY, ['agents "greedy" on "rooms": bandwidth was 0.2 and is 0.1']),
        (ROOMS + RAMP, RANDOM + GREEDY + 'not_on = ["k*"]' + AT, ['an agent "greedy" on "kernelrl/Ramp-v0"']),
        (f"[environment]\n{NEAR}", RANDOM + GREEDY, ["a list of [[environments]], not one environment"]),
    ],
)
def test_other_changes_are_refused(made, tmp_path, problems, agents, words):
    file = write(tmp_path / "b.toml", problems, agents)
    before = table(made)
    with pytest.raises(ExperimentError) as caught:
        experiments.run(file, made)
    for word in [*words, "--out"]:
        assert word in str(caught.value)
    assert table(made).equals(before)


def test_fewer_seeds_are_refused(made, tmp_path):
    file = write(tmp_path / "b.toml", ROOMS + RAMP, RANDOM + GREEDY + AT, seeds=[1])
    with pytest.raises(ExperimentError, match=r"seed 0, .*remove .*/runs/\*/\*/seed-0"):
        experiments.run(file, made)


def test_a_damaged_run_is_named_by_its_problem(made, tmp_path):
    out = shutil.copytree(made, tmp_path / "out")
    (out / "runs/rooms/greedy/seed-1/agent.krl").write_bytes(b"broken")
    file = write(tmp_path / "a.toml", ROOMS + RAMP, RANDOM + GREEDY + AT, episodes=31)
    done = call("run", file, "--out", out, "--workers", "1")
    assert done.returncode == 1 and "Damaged: rooms greedy seed 1." in done.stderr
    assert "rooms:\n" in done.stdout and "  greedy  1 of 2 runs finished" in done.stdout
    result = experiments.run(file, out, workers=1)
    assert set(result.failed) == result.unreadable == {("rooms", "greedy", 1)}


@pytest.mark.parametrize("value", [None, [{"id": "kernelrl/Ramp-v0"}], {"id": "kernelrl/Ramp-v0"}])
def test_environments_of_another_shape(made, tmp_path, value):
    content = json.loads((made / "experiment.json").read_text())
    content["experiment"]["environments"] = value
    (tmp_path / "experiment.json").write_text(json.dumps(content))
    with pytest.raises(experiments.StoreError, match=r"experiment\.json is damaged: experiment\.environments"):
        experiments.open_store(tmp_path)


# ------------------------------------------------------------------------------------------------------------- problems


def test_problems_of_a_store(made):
    store = experiments.open_store(made)
    rooms, ramp = store.problems
    assert (rooms.label, rooms.episodes, rooms.horizon, rooms.steps) == ("rooms", 30, 20, None)
    assert rooms.environment == {"id": "kernelrl/TwinRooms-v0", "goal": [0.3, 0.3], "radius": 0.3}
    assert (ramp.label, ramp.episodes, ramp.horizon) == ("kernelrl/Ramp-v0", 12, 2)
    assert ramp.best == pytest.approx(0.6, abs=1e-3) and ramp.worst == 0.0
    assert ramp.fraction([0.0, 0.3]) == pytest.approx([0.0, 0.5], abs=1e-3)
    assert ramp.make().spec.id == "kernelrl/Ramp-v0"
    with pytest.raises(ValueError, match=r'problem: there is no problem "room".*did you mean rooms'):
        store.problem("room")
    with pytest.raises(ValueError, match="problem must be given"):
        store.run("greedy", 0)
    only = store.only("rooms")
    assert only.experiment["environment"] == rooms.environment and only.experiment["episodes"] == 30
    assert only.experiment["agents"][1]["bandwidth"] == 0.2 and "on" not in only.experiment["agents"][1]
    assert [run.key for run in only.runs()] == [
        ("rooms", label, seed) for label in ("random", "greedy") for seed in (0, 1)
    ]


def test_scales():
    cart = Problem("cart", {"id": "CartPole-v1"}, 10, given_best=500.0, given_worst=10.0)
    assert cart.horizon == 500 and cart.optimal is None and "not known" in cart.no_optimal
    assert cart.fraction([10.0, 255.0, 500.0]).tolist() == [0.0, 0.5, 1.0]
    assert Problem("cart", {"id": "CartPole-v1"}, 10).fraction([3.0]) is None
    below = Problem("down", {"id": "kernelrl/Ramp-v0"}, 10, given_worst=1.0)
    assert below.best < below.worst and below.fraction([0.5]) is None
    gone = Problem("gone", {"id": "Nowhere-v0"}, 10)
    assert gone.horizon is None and gone.best is None and "cannot be made" in gone.no_optimal


def test_a_report_of_each(made, tmp_path):
    """One problem has no run yet; that does not hinder the others."""
    out = shutil.copytree(made, tmp_path / "out")
    content = json.loads((out / "experiment.json").read_text())
    content["experiment"]["environments"].append({"label": "later", "id": "kernelrl/Oil-v0"})
    for agent in content["experiment"]["agents"]:
        agent["on"].append("later")
    (out / "experiment.json").write_text(json.dumps(content))
    page = write_report(out)
    assert page == out / "report" / "report.html" and all(word in page.read_text() for word in ("rooms", "later"))
    shutil.rmtree(out / "runs")
    with pytest.raises(ValueError, match="no run with an episode"):
        write_report(out)
