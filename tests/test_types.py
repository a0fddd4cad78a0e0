"""Everything public is annotated, and a user's file that mypy checks (`make lint`) also runs."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kernelrl as krl

HERE = Path(__file__).parent
THEORY = ("bonuses", "concentration", "covering", "kernel_constants", "lipschitz", "regret")
MODULES = [krl.metrics, krl.kernels, krl.bonuses, krl.schedules, krl.theory, krl.presets, krl.envs]
MODULES += [getattr(krl.theory, name) for name in THEORY]


def public(thing, name):
    """What a module or class makes public, by name."""
    names = getattr(thing, "__all__", None) or [key for key in vars(thing) if not key.startswith("_")]
    for key in names:
        found = inspect.getattr_static(thing, key) if inspect.isclass(thing) else getattr(thing, key)
        found = getattr(found, "fget", found)  # of a property
        found = getattr(found, "__func__", found)  # of a class method
        found = getattr(found, "py_func", found)  # of a compiled function
        yield f"{name}.{key}", found


def not_annotated(thing, name):
    """Functions and methods with parameters or a result of no type."""
    found = []
    for path, part in public(thing, name):
        if inspect.isclass(part) and part.__module__.startswith("kernelrl."):
            found += not_annotated(part, path)
        elif inspect.isclass(thing) and "." not in getattr(part, "__qualname__", ""):
            continue  # a function from elsewhere that the class only refers to
        elif inspect.isfunction(part) and part.__module__.startswith("kernelrl."):
            signature = inspect.signature(part)
            parameters = [parameter for key, parameter in signature.parameters.items() if key not in ("self", "cls")]
            if any(given.annotation is inspect.Parameter.empty for given in parameters):
                found.append(path)
            elif signature.return_annotation is inspect.Signature.empty:
                found.append(path)
    return found


def test_what_is_not_annotated_is_seen():
    class Half:
        def known(self, x: int) -> int:
            return x

        def unknown(self, x):
            return x

    Half.__module__ = Half.known.__module__ = Half.unknown.__module__ = "kernelrl.made_up"
    assert not_annotated(Half, "Half") == ["Half.unknown"]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_everything_public_is_annotated(module):
    assert not_annotated(module, module.__name__) == []


@pytest.mark.parametrize(
    "name", ["Agent", "KernelUCBVI", "GreedyKernelUCBVI", "UCBVI", "AdaptiveQL", "AdaMB", "History"]
)
def test_agents_are_annotated(name):
    assert not_annotated(getattr(krl, name), name) == []


def test_the_user_file_runs():
    path = os.pathsep.join([str(Path(krl.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1"}
    program = [sys.executable, str(HERE / "typed_user_file.py")]
    done = subprocess.run(program, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0 and float(done.stdout) > 4.0, done.stderr
