"""Many short runs: what `kernelrl run` costs for each besides learning, and how much memory it takes.

    python benchmarks/small_runs.py [--before COMMIT] [--turns 3] [--runs 1000] [--many 10000] [--ray]

1,000 runs of 10 episodes in TwinRooms with one worker. Processor time is that of all processes of the command, less
the `seconds` of learning in the histories, per run: once with everything (starting two processes, the table at the
end), and once for each run beyond the first 20, which leaves out what an experiment costs however many runs it has.
Versions are measured in turns; the result is the median. `MB of the parent` is the largest memory of the process that
the user starts, with --runs and with --many runs. With --ray also on a Ray cluster of this machine, in wall-clock time,
since the processor time of Ray's processes is not known.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from _common import report
from _versions import versions

FILE = """
name = "small"
episodes = 10
seeds = {runs}

[environment]
id = "kernelrl/TwinRooms-v0"

[[agents]]
label = "agent"
{agent}
"""
AGENTS = {
    "RandomAgent": 'agent = "RandomAgent"',
    "OptQL": 'agent = "OptQL"\npreset = "text"',
    "Kernel-UCBVI": 'agent = "KernelUCBVI"\npreset = "text"',
}
FEW = 20
# A process of its own, so that resources are those of one command and its children.
CODE = """
import json, resource, sys, time
from kernelrl.cli.main import main
began = time.perf_counter()
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
children, own = resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)
cpu = sum(used.ru_utime + used.ru_stime for used in (own, children))
print(json.dumps([cpu, own.ru_maxrss / 1024, time.perf_counter() - began]))
"""
LEARNT = "import sys; from kernelrl.experiments import open_store\n"
LEARNT += "print(sum(run.record['seconds'] for run in open_store(sys.argv[1]).runs()))"


def command(code, source, cache, *arguments):
    """The last line that a process prints."""
    environment = {**os.environ, "PYTHONPATH": str(source), "XDG_CACHE_HOME": str(cache)}
    environment |= {"RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], env=environment, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def measured(agent, runs, source, cache, *options):
    """Processor seconds besides learning, megabytes of the parent and seconds of an experiment."""
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, "small.toml"), Path(folder, "out")
        file.write_text(FILE.format(runs=runs, agent=AGENTS[agent]))
        cpu, megabytes, seconds = command(CODE, source, cache, "run", file, "--out", out, *options)
        return cpu - command(LEARNT, source, cache, out), megabytes, seconds


def row_of(agent, given, source, cache):
    """One version's numbers."""
    few_cpu, _, few_seconds = measured(agent, FEW, source, cache, "--workers", 1)
    cpu, megabytes, seconds = measured(agent, given.runs, source, cache, "--workers", 1)
    return {
        "runs": given.runs,
        "CPU-ms per run": 1000 * cpu / given.runs,
        "beyond the start": 1000 * (cpu - few_cpu) / (given.runs - FEW),
        "wall-ms beyond the start": 1000 * (seconds - few_seconds) / (given.runs - FEW),
        "MB of the parent": megabytes,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", help="a commit to compare with")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--many", type=int, default=10_000, help="for the memory of the parent; 0 leaves it out")
    parser.add_argument("--agents", nargs="*", default=list(AGENTS))
    parser.add_argument("--ray", action="store_true")
    given, rows = parser.parse_args(), []
    with versions(given.before) as sources, tempfile.TemporaryDirectory() as cache:
        for source in sources.values():
            for agent in given.agents:
                measured(agent, 2, source, cache, "--workers", 1)  # compiles
        for agent in given.agents:
            turns = {version: [] for version in sources}
            for _ in range(given.turns):
                for version, source in sources.items():
                    turns[version].append(row_of(agent, given, source, cache))
            for version, found in turns.items():
                medians = {key: statistics.median(row[key] for row in found) for key in found[0]}
                rows.append({"agent": agent, "version": version, **medians})
        report("small_runs", f"Runs of 10 episodes of TwinRooms, {given.turns} turns", rows)
        if given.many:
            memory(given, sources["now"], cache)
        if given.ray:
            on_ray(given, sources, cache)


def memory(given, source, cache):
    """The memory of the parent against the number of runs."""
    rows = []
    for n in (given.runs, given.many):
        _, megabytes, seconds = measured("RandomAgent", n, source, cache)
        rows.append({"experiment": f"{n} runs", "MB of the parent": megabytes, "wall-ms per run": 1000 * seconds / n})
    report("small_runs_memory", "Memory of the process that the user starts, RandomAgent", rows)


def on_ray(given, sources, cache):
    """What a run takes on a Ray cluster of this machine."""
    rows = []
    for version, source in sources.items():
        walls = [measured("RandomAgent", n, source, cache, "--engine", "ray")[2] for n in (FEW, given.runs)]
        each = 1000 * (walls[1] - walls[0]) / (given.runs - FEW)
        rows.append({"version": version, "runs": given.runs, "seconds": walls[1], "wall-ms beyond the start": each})
    report("small_runs_ray", "Runs of 10 episodes on a Ray cluster of this machine, RandomAgent", rows)


if __name__ == "__main__":
    main()
