"""Compiles exported policies and asks them for actions."""

from __future__ import annotations

import ctypes
import itertools
import shutil
import subprocess
from pathlib import Path

import numpy as np

COMPILER = shutil.which("cc")
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]
numbers = itertools.count()

SHARED = """\
#include "{header}"
void many(long n, const {real} *states, const int *steps, {out} *found)
{{
    long i;
    for (i = 0; i < n; i++)
        {call};
}}
"""


def compiled(header: Path, name="kernelrl", real="double", axes=0, flags=FLAGS, compiler=COMPILER):
    """A function (states, steps) → actions of a header, compiled without warnings."""
    d = f"{name.upper()}_STATE_SIZE"
    call = f"found[i] = {name}_act(states + i * {d}, steps[i])"
    if axes:
        call = f"{name}_act(states + i * {d}, steps[i], found + i * {axes})"
    source = header.with_name(f"many_{next(numbers)}.c")
    source.write_text(SHARED.format(header=header.name, real=real, out=real if axes else "int", call=call))
    library = source.with_suffix(".so")
    subprocess.run([compiler, *flags, "-shared", "-fPIC", str(source), "-o", str(library), "-lm"], check=True)
    code = ctypes.CDLL(str(library))

    def play(states, steps):
        x = np.ascontiguousarray(states, np.float64 if real == "double" else np.float32)
        h = np.ascontiguousarray(steps, np.int32)
        found = np.zeros((len(x), axes), x.dtype) if axes else np.zeros(len(x), np.int32)
        code.many(ctypes.c_long(len(x)), *(array.ctypes.data_as(ctypes.c_void_p) for array in (x, h, found)))
        return found

    return play


def played(agent, states, steps):
    """What `act` plays, for many states: past the horizon, the last step's policy."""
    found = np.zeros(len(states), np.int64)
    for h in np.unique(steps):
        at = steps == h
        found[at] = agent.deployed_actions(states[at], int(min(h, agent.spaces.horizon - 1)))
    if agent.spaces.net is not None:
        return agent.spaces.net.points[found]
    return found + agent.spaces.first_action
