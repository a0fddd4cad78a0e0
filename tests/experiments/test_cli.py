"""The command line apart from `run`: what it prints, and that it is quick to start."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import types
from pathlib import Path

import pytest
from typer.testing import CliRunner

import kernelrl as krl
from experiment_parts import call, environment
from kernelrl import cli
from kernelrl.cli import app
from kernelrl.experiments import display
from kernelrl.experiments.learning import Job


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def test_list():
    said = invoke("list").stdout
    for word in ("experiments:", "paper", "KernelUCBVI", "kernelrl/TwinRooms-v0", "exponential-power", "lp"):
        assert word in said
    content = json.loads(invoke("list", "--json").stdout)
    assert list(content) == ["experiments", "agents", "environments", "kernels", "metrics"]
    assert all(text for entries in content.values() for text in entries.values())


def test_version_and_help():
    done = call("--version")
    assert (done.returncode, done.stdout) == (0, f"{krl.__version__}\n")
    said = invoke("--help").stdout
    for name in ("run", "report", "list", "solve", "theory"):
        assert name in said


def test_errors():
    done = call("run", "papper", "--json")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "no experiment of that name" in done.stderr and "papper" in json.loads(done.stdout)["error"]
    done = call("report")
    assert done.returncode == 2 and "DIR" in done.stderr


def test_trouble_with_a_disk_is_told_without_a_traceback(monkeypatch, capsys):
    def full():
        raise OSError(28, "No space left on device", "report/regret.png")

    monkeypatch.setattr(cli, "app", full)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "kernelrl: [Errno 28] No space left on device: 'report/regret.png'\n"


def test_other_commands_are_handed_on(monkeypatch):
    """They are imported by the command that needs them."""
    seen = []
    module = types.ModuleType("stand-in")
    module.write_report = lambda path, out: seen.append((path, out)) or Path("page.html")
    module.solve_command = lambda env, tolerance, json: seen.append((env, tolerance, json))
    module.command = lambda env, episodes, json, **more: seen.append((env, episodes, json, more))
    for name in ("kernelrl.reporting", "kernelrl.envs.optimal", "kernelrl.theory"):
        monkeypatch.setitem(sys.modules, name, module)
    assert invoke("report", "results").stdout == "Written: page.html\n"
    assert json.loads(invoke("report", "results", "--out", "there", "--json").stdout) == {"report": "page.html"}
    invoke("solve", "kernelrl/TwinRooms-v0", "--tolerance", "0.1")
    invoke("theory", "kernelrl/TwinRooms-v0", "--episodes", "7", "--json")
    chosen = ("--delta", "0.1", "--bandwidth", "0.2", "--regularization", "3", "--kernel", "compact", "--per-step")
    invoke("theory", "kernelrl/Ramp-v0", *chosen, "--lipschitz", "0.5", "1")
    unless_given = {
        "delta": 0.05, "bandwidth": None, "regularization": 0.01, "kernel": "gaussian", "stationary": True,
        "lipschitz": None,
    }  # fmt: skip
    given = {
        "delta": 0.1, "bandwidth": 0.2, "regularization": 3.0, "kernel": "compact", "stationary": False,
        "lipschitz": (0.5, 1.0),
    }  # fmt: skip
    assert seen == [
        (Path("results"), None),
        (Path("results"), Path("there")),
        ("kernelrl/TwinRooms-v0", 0.1, False),
        ("kernelrl/TwinRooms-v0", 7, True, unless_given),
        ("kernelrl/Ramp-v0", 50_000, False, given),
    ]


OWN = """
import gymnasium as gym
from gymnasium.wrappers import TimeLimit
from kernelrl.envs import Ramp

gym.register("mine/Steep-v0", entry_point=Ramp, max_episode_steps=2)


def steep():
    return TimeLimit(Ramp(), 2)
"""


@pytest.mark.parametrize("name", ["own_envs:mine/Steep-v0", "own_envs:steep"])
@pytest.mark.parametrize("which", ["solve", "theory"])
def test_environments_of_modules_in_the_current_folder(tmp_path, monkeypatch, which, name):
    """As the command is when installed: the folder is not among Python's own."""
    (tmp_path / "own_envs.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    given = f"import sys; sys.argv = {['kernelrl', which, name, '--json']!r}"
    elsewhere = "import os; sys.path[:] = [path for path in sys.path if path not in ('', os.getcwd())]"
    program = [sys.executable, "-P", "-c", f"{given}; {elsewhere}; from kernelrl.cli import main; main()"]
    done = subprocess.run(program, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["environment"] == name
    (tmp_path / "own_envs.py").write_text("def")
    done = subprocess.run(program, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert f'env: "{name}" cannot be imported: {tmp_path / "own_envs.py"}, line 1: SyntaxError' in done.stderr


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import kernelrl", {"numba", "polars", "pydantic", "typer", "ray", "matplotlib", "rich"}),
        ("import kernelrl.cli", {"numba", "polars", "pydantic", "ray", "matplotlib"}),
        ("from kernelrl.experiments import load, open_store", {"numba", "pydantic", "typer", "ray", "matplotlib"}),
        ("import kernelrl.experiments.runner", {"ray", "matplotlib", "typer"}),
    ],
)
def test_nothing_is_imported_before_it_is_needed(statement, absent):
    program = f"{statement}\nimport sys\nprint(*(set({sorted(absent)!r}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment(), check=True
    )
    assert done.stdout.strip() == ""


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", Terminal())
    job = Job("greedy [x]", 3, 200, {}, {}, "", [], 20.0)
    with display.Display([job], {job.name: 0}) as shown:
        shown.update(job, 50, None)
        shown.update(job, 100, 1.2345)
        shown.say("by the way [y]")
        shown._live.refresh()
        bars = sys.stderr.getvalue()
        shown.end(job, "finished")
    for word in ("greedy [x], seed 3", "100/200", "mean return 1.23", "by the way [y]", "all"):
        assert word in bars
    assert "greedy [x], seed 3: finished" in sys.stderr.getvalue()


def test_progress_elsewhere_is_sparse(monkeypatch, capsys):
    job = Job("greedy", 3, 200, {}, {}, "", [], 20.0)
    now = [0.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    with display.Display([job], {job.name: 0}) as shown:
        for episode in range(100):
            now[0] += 1.0
            shown.update(job, episode, 0.5)
        shown.end(job, "finished")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4 and lines[0] == "greedy, seed 3: episode 30 of 200, mean return 0.5"
    assert lines[-1] == "greedy, seed 3: finished"
