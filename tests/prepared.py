"""Programs that run one after another as in new processes, without the second that importing the package takes each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PREPARED = """
import gc, os, runpy, sys, traceback
sys.path.insert(0, "")
import kernelrl.experiments
from kernelrl import RandomAgent, envs, metrics
from numba.core.registry import cpu_target
cpu_target.target_context.refresh()  # numba's own preparations
gc.freeze()  # collecting garbage in a fork would copy all memory
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            runpy.run_path(line.strip(), run_name="__main__")
            sys.stdout.flush()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def user_environment(folder: Path) -> dict[str, str]:
    """Variables of a process with a cache of its own in `folder`."""
    return os.environ | {"XDG_CACHE_HOME": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}


class Prepared:
    """A process in `folder` that has imported this package, and nothing of the user's; programs run in forks of it."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PREPARED], cwd=folder, env=user_environment(folder), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def __enter__(self) -> Prepared:
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.communicate()

    def run(self, program: str = "run.py") -> tuple[list[Any], list[str]]:
        """What the program prints as JSON: its results, and the functions it has compiled."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(program, file=self._process.stdin, flush=True)
        lines = []
        for line in self._process.stdout:
            if line.startswith("ended"):
                break
            lines.append(line)
        assert line == "ended 0\n", f"{program}: {line}"
        *results, compiled_again = json.loads("".join(lines))
        return results, compiled_again
