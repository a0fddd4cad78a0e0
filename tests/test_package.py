"""What is packaged: one version, bounds that hold here, a minimal installation, other systems (faked)."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import kernelrl as krl
from kernelrl.experiments import lock
from kernelrl.experiments.config import ExperimentError
from kernelrl.geometry import buckets

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PLOTTING = {"matplotlib", "plotly"}


def test_the_version_is_in_one_place():
    assert PROJECT["project"]["dynamic"] == ["version"] and "version" not in PROJECT["project"]
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert cited[1] == krl.__version__
    Version(krl.__version__)


def test_numba_is_bounded_to_versions_that_include_the_installed_one():
    (numba,) = [Requirement(text) for text in PROJECT["project"]["dependencies"] if text.startswith("numba")]
    assert {specifier.operator for specifier in numba.specifier} == {">=", "<"}
    assert Version(metadata.version("numba")) in numba.specifier


def test_extras_and_the_sdist():
    assert {"ray", "peers", "data", "docs"} <= PROJECT["project"]["optional-dependencies"].keys()
    for name in PROJECT["tool"]["flit"]["sdist"]["include"]:
        assert (ROOT / name).exists(), name


def test_the_minimal_installation_that_docs_show_is_all_but_plotting():
    shown = re.search(r"pip install --no-deps kernelrl\npip install (.+)", (ROOT / "docs" / "start.md").read_text())
    needed = {Requirement(text).name for text in PROJECT["project"]["dependencies"]}
    assert {Requirement(text).name for text in re.findall(r"'([^']+)'|(\S+)", shown[1]) for text in text if text} == (
        needed - PLOTTING
    )


WITHOUT_PLOTTING = """
import sys
for name in ("matplotlib", "plotly", "ray"):
    sys.modules[name] = None  # as if it were not installed
import kernelrl as krl
import kernelrl.experiments, kernelrl.cli
agent = krl.UCBVI(bins=5)
agent.fit("kernelrl/Ramp-v0", 5, seed=0, progress=False)
agent.save("agent.krl")
why = krl.load("agent.krl").explain([0.5], 0)
print(why)
kernelrl.experiments.run("ramp.toml", "out", workers=1)
for what in (why.figure, lambda: __import__("kernelrl.reporting")):
    try:
        what()
    except ImportError as error:
        print("said:", error)
try:
    kernelrl.experiments.run("ramp.toml", "other", engine="ray")
except ValueError as error:
    print("said:", error)
sys.argv = ["kernelrl", "run", "ramp.toml", "--report"]
kernelrl.cli.main()
"""
RAMP = """
name = "ramp"
episodes = 3
seeds = 1
[environment]
id = "kernelrl/Ramp-v0"
[[agents]]
label = "grid"
agent = "UCBVI"
bins = 5
"""


def test_without_plotting_and_ray(tmp_path):
    (tmp_path / "ramp.toml").write_text(RAMP)
    command = [sys.executable, "-c", WITHOUT_PLOTTING]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    said = re.findall("^said: (.*)", done.stdout, re.M)
    assert said[0].startswith("a figure needs matplotlib") and said[0].endswith("pip install matplotlib")
    assert said[1].startswith("a report needs matplotlib and plotly")
    assert "kernelrl[ray]" in said[2]
    assert done.returncode == 2 and "--report needs matplotlib and plotly" in done.stderr, done.stderr
    assert not (tmp_path / "results").exists()  # said before anything ran


def test_a_saved_agent_on_windows(tmp_path):
    """There folders cannot be opened, and open files have no `fchmod` before Python 3.13."""
    code = """
import os, sys, kernelrl as krl
from kernelrl.agents import files
class Other:
    name = "nt"
    def __getattr__(self, name):
        if name == "fchmod":
            raise AttributeError(name)
        return getattr(os, name)
    def open(self, path, *more):
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied", path)
        return os.open(path, *more)
files.os = Other()
agent = krl.UCBVI(bins=5)
agent.fit("kernelrl/Ramp-v0", 5, seed=0, progress=False)
agent.save("agent.krl")
agent.save("agent.krl")
print(krl.load("agent.krl").episodes)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout.split()[-1:] == ["5"], done.stderr


def test_experiments_say_that_they_need_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "fcntl", None)
    with pytest.raises(ExperimentError, match=r"flock.*WSL"), lock.FolderLock(tmp_path):
        pass


def test_memory_where_there_is_no_proc(monkeypatch):
    """On macOS there is neither /proc nor /sys."""

    def missing(path, *more, **others):
        raise FileNotFoundError(path)

    monkeypatch.setattr(buckets.Path, "read_text", missing)
    assert buckets.available_memory() > 2**20
