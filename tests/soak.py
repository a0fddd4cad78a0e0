"""The long version of the tests of docs/reliability.md: a table of what was tried, what failed and what was lost.

    python tests/soak.py                          # about 20 minutes on two cores
    python tests/soak.py --minutes 5              # less of everything
    python tests/soak.py --only kills,memory      # some parts

Every part runs in a process of its own, two at a time; what it prints is in results/soak/PART.log. The exit status is 1
if anything failed or was lost. The numbers are also written to results/soak.json.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from soak_parts.outcome import Outcome, last_lines

MINUTES = 20.0  # that all parts take together where nothing else runs on two cores
ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"


@dataclasses.dataclass(frozen=True)
class Part:
    """Something to try."""

    words: str
    module: str
    function: str = "run"
    options: dict[str, int] = dataclasses.field(default_factory=dict)
    plain: bool = False  # without machine code, where an index out of bounds is an error

    def run(self, scale: float, folder: Path) -> Outcome:
        """Try it."""
        import importlib

        function: Callable[..., Outcome] = getattr(importlib.import_module(f"soak_parts.{self.module}"), self.function)
        return function(scale, folder, **self.options)


PARTS = {  # the longest first
    "kills": Part("experiments killed", "kills", options={"count": 200}),
    "files": Part("edited files", "files", options={"count": 250}),
    "environments": Part("environments that fail", "environments"),
    "ray": Part("Ray tasks, nodes and drivers killed", "kills", "run_ray", {"count": 25}),
    "hand": Part("calls by hand, not compiled", "hand", options={"count": 15}, plain=True),
    "plain": Part("edited files, not compiled", "files", options={"count": 25}, plain=True),
    "cache": Part("cache of machine code", "cache", options={"races": 200, "damaged": 8, "cold": 3}),
    "disk": Part("full disk, saving threads", "disk", options={"saves": 500, "runs": 5, "threaded": 4000}),
    "memory": Part("memory of long runs", "memory", options={"episodes": 50_000}),
}


def run_part(name: str, scale: float, target: Path) -> None:
    """What the process of a part does: try it, and write what was found."""
    with tempfile.TemporaryDirectory(prefix=f"soak-{name}-") as folder:
        try:
            outcome = PARTS[name].run(scale, Path(folder))
        except BaseException:
            outcome = Outcome({}, [f"the part itself: {last_lines()}"], [])
            print(last_lines(), file=sys.stderr)
        target.write_text(json.dumps(dataclasses.asdict(outcome)))


def start_part(name: str, scale: float, folder: Path) -> dict[str, Any]:
    """Run a part in a process of its own; return its row of the table."""
    part, began, target = PARTS[name], time.monotonic(), folder / f"{name}.json"
    paths = [str(ROOT / "src"), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "NUMBA_DISABLE_JIT": "1" if part.plain else "0"}
    command = [sys.executable, __file__, "--part", name, "--scale", str(scale), "--target", str(target)]
    target.unlink(missing_ok=True)
    with (folder / f"{name}.log").open("w") as log:
        done = subprocess.run(command, env=environment, stdout=log, stderr=log, check=False)
    found = json.loads(target.read_text()) if target.exists() else {"tried": {}, "failed": [], "lost": []}
    if done.returncode or not target.exists():
        found["failed"].append(f"the part ended with exit status {done.returncode}; see {folder / name}.log")
    return {"part": name, "words": part.words, **found, "seconds": round(time.monotonic() - began)}


def table_of(rows: list[dict[str, Any]]) -> str:
    """The table in Markdown."""
    lines = ["| part | tried | failed | lost | seconds |", "|---|---|---|---|---|"]
    for row in rows:
        tried = ", ".join(f"{number:,} {what}" for what, number in row["tried"].items())
        lines.append(f"| {row['words']} | {tried} | {len(row['failed'])} | {len(row['lost'])} | {row['seconds']} |")
    return "\n".join(lines)


def soak(names: list[str], minutes: float) -> int:
    """Run these parts, print the table, write the numbers; return the exit status."""
    folder = RESULTS / "soak"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began, rows = time.monotonic(), {}
    with ThreadPoolExecutor(2) as pool:
        futures = {pool.submit(start_part, name, minutes / MINUTES, folder): name for name in names}
        for future in as_completed(futures):
            row = rows[futures[future]] = future.result()
            wrong = len(row["failed"]) + len(row["lost"])
            print(f"{row['words']}: {row['seconds']} s, {f'{wrong} WRONG' if wrong else 'fine'}", file=sys.stderr)
    ordered = [rows[name] for name in names]
    seconds = round(time.monotonic() - began)
    (RESULTS / "soak.json").write_text(json.dumps({"minutes": minutes, "seconds": seconds, "parts": ordered}, indent=1))
    print(table_of(ordered))
    for row in ordered:
        for kind in ("failed", "lost"):
            for words in row[kind][:5]:
                print(f"\n{row['part']}, {kind}: {words}")
    return int(any(row["failed"] or row["lost"] for row in ordered))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--minutes", type=float, default=MINUTES, help="how long, on two idle cores (%(default)s)")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas (%(default)s)")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--scale", type=float, default=1.0, help=argparse.SUPPRESS)
    parser.add_argument("--target", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        run_part(options.part, options.scale, options.target)
        return 0
    names = options.only.split(",")
    if not set(names) <= set(PARTS) or options.minutes <= 0:
        parser.error(f"--only takes {', '.join(PARTS)}; --minutes is above 0")
    return soak(names, options.minutes)


if __name__ == "__main__":
    sys.exit(main())
