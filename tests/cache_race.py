"""Two processes that compile at once into one cache, again and again; then a third that reads what they have left.

In each trial the cache is empty. Both processes compile a function of one name for two types and with several
constants, some of them in both processes. Every result is checked where it is computed and where it is read.

    python tests/cache_race.py 200             # prints what happened; the exit code is 1 if anything failed
    python tests/cache_race.py 200 --numba     # the same with numba's own cache, which has the fault
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numba

from kernelrl.jit import compile as kernelrl_compile

FACTORS = (2, 3, 5)
VALUES = (1.5, 2)
ORDERS = (  # what each process compiles, in this order
    ((2, 1.5), (5, 1.5), (3, 2), (5, 2)),
    ((3, 1.5), (5, 1.5), (2, 2), (5, 2)),
)
PATIENCE = 300  # seconds until a process that does not come is given up


def function_of(factor: int, folder: Path, own: bool) -> Any:
    """A function that multiplies, not compiled yet, with its cache in `folder`: ours or numba's own."""

    def multiply(x):
        return x * factor

    if own:
        os.environ["XDG_CACHE_HOME"] = str(folder)
        kernelrl_compile.cache_dir.cache_clear()
        return kernelrl_compile.compiled(multiply)
    numba.config.CACHE_DIR = str(folder)
    return numba.njit(cache=True)(multiply)


def wrong_results(pairs: Any, folder: Path, own: bool, hits: list[int]) -> list[str]:
    """What is wrong among the products of these pairs; `hits` counts those that came from the disk."""
    found = []
    for factor, value in pairs:
        try:
            function = function_of(factor, folder, own)
            result = function(value)
            hits.append(sum(function.stats.cache_hits.values()))
        except Exception as error:
            result = repr(error)
        if result != factor * value or type(result) is not type(value):
            found.append(f"{folder.name}: {factor} * {value} = {result}")
    return found


def compile_in_turn(number: int, trials: int, root: str, own: bool, barrier: Any, results: Any) -> None:
    """What one of the two processes does."""
    found, hits = [], []
    for trial in range(trials):
        barrier.wait(PATIENCE)
        found += wrong_results(ORDERS[number], Path(root) / str(trial), own, hits)
    results.put((found, len(hits), sum(hits)))


def read_all(trials: int, root: str, own: bool, results: Any) -> None:
    """What the third process does."""
    found, hits = [], []
    pairs = [(factor, value) for factor in FACTORS for value in VALUES]
    for trial in range(trials):
        found += wrong_results(pairs, Path(root) / str(trial), own, hits)
    results.put((found, len(hits), sum(hits)))


def finish(processes: list[Any], results: Any) -> tuple[list[str], int, int]:
    """Start processes; return what went wrong, how many functions they called and how many came from the disk."""
    for process in processes:
        process.start()
    found, calls, hits = [], 0, 0
    for process in processes:
        process.join()
        if process.exitcode:
            found.append(f"a process ended with exit code {process.exitcode}")
        else:
            wrong, called, hit = results.get(timeout=PATIENCE)
            found, calls, hits = found + wrong, calls + called, hits + hit
    return found, calls, hits


def race(trials: int, own: bool = True) -> dict[str, Any]:
    """Run the trials; `failures` counts wrong results, errors and processes that died, `wrong` names the first ones."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as root:
        barrier, results = context.Barrier(2), context.Queue()
        both = [
            context.Process(target=compile_in_turn, args=(number, trials, root, own, barrier, results))
            for number in (0, 1)
        ]
        wrong, calls, _ = finish(both, results)
        reader = context.Process(target=read_all, args=(trials, root, own, results))
        more, read, hits = finish([reader], results)
    wrong += more
    return {
        "trials": trials,
        "failures": len(wrong),
        "compiled": calls,
        "read": read,
        "from_disk": hits,
        "wrong": wrong[:10],
    }


if __name__ == "__main__":
    outcome = race(int(sys.argv[1]), own="--numba" not in sys.argv)
    print(json.dumps(outcome, indent=1))
    sys.exit(outcome["failures"] > 0)
