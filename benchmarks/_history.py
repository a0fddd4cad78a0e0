"""The history of all benchmarks: results/bench.jsonl has one line for each table that a benchmark has printed.

A line says what was measured (`name`, `title`, `rows`), when, of which commit and whether the tree had changes that are
not committed, and on which machine. `make bench-compare` shows the last two lines of each benchmark side by side:

    python benchmarks/_history.py [NAME …]
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "results" / "bench.jsonl"


# ------------------------------------------------------------------------------------------------------------- writing


def append(name, title, rows, file=FILE):
    """Add the rows of a benchmark, dictionaries with the same keys."""
    commit, dirty = version()
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    entry = {"name": name, "title": title, "date": now, "commit": commit, "dirty": dirty, "machine": machine()}
    file.parent.mkdir(exist_ok=True)
    with open(file, "a", encoding="utf-8") as stream:
        stream.write(json.dumps(entry | {"rows": rows}, ensure_ascii=False) + "\n")


def version():
    """The commit of the source, and whether a file that belongs to it has changed since; None without git."""
    try:
        ask = {"cwd": ROOT, "check": True, "capture_output": True, "text": True}
        commit = subprocess.run(["git", "rev-parse", "HEAD"], **ask).stdout.strip()
        changed = subprocess.run(["git", "status", "--porcelain", "--untracked-files=no"], **ask).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None, None
    return commit, bool(changed)


def machine():
    """What times depend on besides the source."""
    packages = {name: metadata.version(name) for name in ("numba", "numpy")}
    return {"processor": processor(), "cores": os.cpu_count(), "python": platform.python_version(), **packages}


def processor():
    """The model of the processor, where the system says it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


# ----------------------------------------------------------------------------------------------------------- comparing


def entries(file=FILE):
    """All entries by name, in order; a line that was cut short when a process ended is left out."""
    found = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        try:
            entry = json.loads(line)
            found.setdefault(entry["name"], []).append(entry)
        except (ValueError, KeyError, TypeError):
            print(f"{file}: a line is damaged and left out", file=sys.stderr)
    return found


def pairs_of(before, now):
    """The rows of two entries that belong together: those with the same texts, the first with the first of these."""
    left = list(before["rows"])
    pairs = []
    for row in now["rows"]:
        old = next((other for other in left if texts_of(other) == texts_of(row)), None)
        if old is not None:
            left.remove(old)
            pairs.append((old, row))
    return pairs


def texts_of(row):
    """What names a row."""
    return {key: value for key, value in row.items() if not is_number(value)}


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def table_of(before, now):
    """Every number of two entries, side by side."""
    table = Table(title=now["title"], title_justify="left")
    for column in ("row", "column", "before", "now", "now/before"):
        table.add_column(column, justify="left" if column in ("row", "column") else "right")
    for i, (old, new) in enumerate(pairs_of(before, now)):
        label = ", ".join(map(str, texts_of(new).values())) or f"row {i + 1}"
        for key in (key for key in new if is_number(new[key]) and is_number(old.get(key))):
            ratio = f"{new[key] / old[key]:.3f}" if old[key] else "–"
            table.add_row(label, key, f"{old[key]:.4g}", f"{new[key]:.4g}", ratio)
            label = ""
    return table


def words_of(entry):
    """When and of what an entry is."""
    commit = "no commit" if entry["commit"] is None else entry["commit"][:10]
    return f"{entry['date']}, {commit}{' with changes' if entry['dirty'] else ''}"


def differences(before, now):
    """In what the machines of two entries differ."""
    old, new = before["machine"], now["machine"]
    keys = sorted(old.keys() | new.keys())
    return [f"{key} {old.get(key)} and {new.get(key)}" for key in keys if old.get(key) != new.get(key)]


def compare(names=(), file=FILE, console=None):
    """Show the last two entries of each benchmark that has two; return how many were shown."""
    console, shown = console or Console(width=140, highlight=False), 0
    for name, found in sorted(entries(file).items()):
        if len(found) < 2 or (names and name not in names):
            continue
        before, now = found[-2:]
        console.print(f"\n== {name}: before {words_of(before)}; now {words_of(now)}", markup=False)
        if different := differences(before, now):
            console.print(f"The machines differ: {'; '.join(different)}.", markup=False)
        console.print(table_of(before, now))
        rows = len(now["rows"]) - len(pairs_of(before, now))
        if rows:
            console.print(f"{rows} of {len(now['rows'])} rows were not there before.")
        shown += 1
    if not shown:
        console.print(f"There is no benchmark with two entries in {file}; `make bench-NAME` adds one.", markup=False)
    return shown


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Show the last two entries of each benchmark side by side.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only of these benchmarks")
    compare(parser.parse_args().names)
