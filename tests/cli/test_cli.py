"""The command line apart from `run`: what it prints, and that it is quick to start."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import kernelrl as krl
from experiment_parts import call, environment
from kernelrl.cli import app, solve, theory


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def test_list():
    said = invoke("list").stdout
    for word in (
        "experiments:",
        "paper",
        "KernelUCBVI",
        "kernelrl/TwinRooms-v0",
        "exponential-power",
        "lp",
        "joint",
        "power",
    ):
        assert word in said
    content = json.loads(invoke("list", "--json").stdout)
    assert list(content) == [
        "experiments", "models", "agents", "peers", "environments", "kernels", "metrics", "bonuses", "schedules",
        "lipschitz",
    ]  # fmt: skip
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

    cli_main = importlib.import_module("kernelrl.cli.main")
    monkeypatch.setattr(cli_main, "app", full)
    with pytest.raises(SystemExit) as ended:
        cli_main.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "kernelrl: [Errno 28] No space left on device: 'report/regret.png'\n"


def test_what_commands_ask_for(monkeypatch):
    """The options arrive where the work is done."""
    seen = []
    monkeypatch.setattr(
        "kernelrl.reporting.write_report",
        lambda path, out, overview: seen.append((path, out, overview)) or Path("page.html"),
    )
    monkeypatch.setattr(solve, "optimal_values", lambda env, tolerance: seen.append((env, tolerance)))
    monkeypatch.setattr(solve, "show", lambda *given: None)
    monkeypatch.setattr(theory, "show", lambda *given: None)
    monkeypatch.setattr("kernelrl.theory.summarise", lambda env, episodes, **more: seen.append((env, episodes, more)))
    assert invoke("report", "results").stdout == "Written: page.html\n"
    assert json.loads(invoke("report", "results", "--out", "there", "--overview", "--json").stdout) == {
        "report": "page.html"
    }
    invoke("solve", "kernelrl/TwinRooms-v0", "--tolerance", "0.1")
    assert invoke("theory", "kernelrl/TwinRooms-v0", "--episodes", "7", "--json").stdout == "null\n"
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
        (Path("results"), None, False),
        (Path("results"), Path("there"), True),
        ("kernelrl/TwinRooms-v0", 0.1),
        ("kernelrl/TwinRooms-v0", 7, unless_given),
        ("kernelrl/Ramp-v0", 50_000, given),
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
