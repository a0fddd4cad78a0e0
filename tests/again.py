"""Runs the whole suite many times, in random order of files, some of the times beside a load on both cores.

    python tests/again.py [--times 10] [--loaded 3] [--first 0]

Prints one line per run and ends with status 1 at the first that fails. Run number i has the order that i draws.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parent


def burn() -> None:
    """Keep a core busy."""
    while True:
        pass


def run(number: int, loaded: bool) -> bool:
    """One run; whether all tests passed."""
    files = sorted(str(path) for path in TESTS.rglob("test_*.py"))
    random.Random(number).shuffle(files)
    burners = [multiprocessing.Process(target=burn, daemon=True) for _ in range(2 if loaded else 0)]
    for burner in burners:
        burner.start()
    began = time.monotonic()
    options = ["-q", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]  # else by their numbers of tests
    command = [sys.executable, "-m", "pytest", *options, *files]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    for burner in burners:
        burner.kill()
    lines = done.stdout.splitlines() or ["no output"]
    print(f"run {number}{', loaded' if loaded else ''}: {lines[-1]}, {time.monotonic() - began:.0f} s", flush=True)
    if done.returncode:
        print("\n".join(line for line in lines if line.startswith(("FAILED", "ERROR"))), flush=True)
    return done.returncode == 0


def main() -> None:
    """Run until all is done or something failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--loaded", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    for i in range(given.times):
        if not run(given.first + i, i < given.loaded):
            sys.exit(1)


if __name__ == "__main__":
    main()
