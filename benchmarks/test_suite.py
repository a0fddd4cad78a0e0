"""What `make test` takes from an empty compile cache, now and at an earlier commit, in one run on the same machine.

Each version is cloned into an empty folder with a virtual environment of its own; installing is not counted. `their
seconds` is the sum of the durations of the tests that both versions have, by their names: what the same work takes.
Takes about 10 minutes for each version on two cores.

    python benchmarks/test_suite.py [--before COMMIT]
"""

import argparse
import collections
import os
import re
import resource
import subprocess
import tempfile
import time
from pathlib import Path

from _common import report
from _versions import ROOT

DURATION = re.compile(r"\s*([\d.]+)s (?:call|setup|teardown) +(\S+::.+)")


def tested(folder, commit):
    """Seconds, processor seconds and the duration of each test of a clone at that commit."""
    subprocess.run(["git", "clone", "-q", ROOT, folder], check=True)
    subprocess.run(["git", "checkout", "-q", commit], cwd=folder, check=True)
    options = os.environ.get("PYTEST_ADDOPTS", "") + " --durations=0 -vv --color=no"
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / ".cache"), "PYTEST_ADDOPTS": options}
    subprocess.run(["make", "setup"], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(["make", "test"], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    taken, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    print(commit, done.stdout.splitlines()[-1], flush=True)
    durations = collections.Counter()
    for line in done.stdout.splitlines():
        if found := DURATION.match(line):
            durations[found[2].strip()] += float(found[1])
    return taken, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, durations


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", metavar="COMMIT")
    options = parser.parse_args()
    found, commits = {}, {"before": options.before, "now": "HEAD"}
    with tempfile.TemporaryDirectory() as place:
        for name in commits if options.before else ["now"]:
            found[name] = tested(Path(place) / name, commits[name])
    common = set.intersection(*(set(durations) for *_, durations in found.values()))
    rows = [
        {
            "version": name, "tests": len(durations), "seconds": taken, "processor seconds": used,
            "tests that both have": len(common), "their seconds": float(sum(durations[test] for test in common)),
        }
        for name, (taken, used, durations) in found.items()
    ]  # fmt: skip
    if options.before:
        rows.append({"version": "now/before"} | {key: rows[1][key] / rows[0][key] for key in list(rows[0])[1:]})
    report("test_suite", "make test from an empty compile cache", rows)


if __name__ == "__main__":
    main()
