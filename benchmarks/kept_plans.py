"""Kernel-UCBVI on representatives, this version against an earlier one: processor time and what is learnt.

Both versions play the same seeds of TwinRooms in turns, a few hundred episodes each, so that whatever else the machine
does slows both down. The ratio of their processor times is that of the sums over all seeds; the difference of total
rewards is paired by seeds, with a 95 % interval (Student's t).

    python benchmarks/kept_plans.py --before COMMIT [--episodes 10000] [--seeds 8] [--kinds text alike …]
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from _common import report
from _versions import versions
from kernelrl.agents.evaluation import t_interval

KINDS = {
    "text": 'krl.KernelUCBVI.preset("text")',
    "replan=1.01": 'krl.KernelUCBVI.preset("text", replan=1.01)',
    "alike": 'krl.KernelUCBVI.preset("text", metric=krl.metrics.Folded(krl.envs.twin_rooms_fold))',
    "per step": 'krl.KernelUCBVI.preset("text", stationary=False)',
    "automatic": 'krl.KernelUCBVI(replan="episode")',
    "related actions": 'krl.KernelUCBVI.preset("text", action_bandwidth=0.5, action_metric="euclidean")',
}
CODE = """
import json, sys, time, warnings
import gymnasium as gym, kernelrl as krl
warnings.simplefilter("ignore")
env, make = gym.make("kernelrl/TwinRooms-v0"), lambda: {make}
make().fit(env, 3, seed=0, progress=False)
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    seed, episodes, new = json.loads(line)
    agent = make() if new else agent
    start = time.process_time()
    history = agent.fit(env, episodes, seed=seed, progress=False)
    print(json.dumps([time.process_time() - start, float(history.returns.sum())]), flush=True)
"""
PART = 500  # episodes of a turn


@contextlib.contextmanager
def players(sources, kind, cache):
    """A process for each version, which has compiled what it needs."""
    with contextlib.ExitStack() as stack:
        found = []
        for source in sources:
            environment = {**os.environ, "PYTHONPATH": str(source), "XDG_CACHE_HOME": str(cache)}
            command, pipe = [sys.executable, "-c", CODE.format(make=KINDS[kind])], subprocess.PIPE
            process = subprocess.Popen(
                command, env=environment, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
            )
            found.append(stack.enter_context(process))
            if not process.stdout.readline():
                raise RuntimeError(f"{source} cannot do {kind!r}")
        yield found


def play(processes, seed, episodes):
    """Seconds and total reward of each version, (versions, 2), for one seed."""
    total = np.zeros((len(processes), 2))
    for first in range(0, episodes, PART):
        for row, process in zip(total, processes, strict=True):
            print(json.dumps([seed, min(PART, episodes - first), first == 0]), file=process.stdin, flush=True)
            row += json.loads(process.stdout.readline())
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", required=True, help="a commit to compare with")
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=["text"])
    given, rows = parser.parse_args(), []
    with versions(given.before) as sources, tempfile.TemporaryDirectory() as cache:
        for kind in given.kinds:
            with players(sources.values(), kind, cache) as processes:
                found = np.array([play(processes, 1 + seed, given.episodes) for seed in range(given.seeds)])
            (before, now), difference = found[:, :, 0].mean(axis=0), found[:, 1, 1] - found[:, 0, 1]
            low, high = t_interval(difference) if given.seeds > 1 else (np.nan, np.nan)
            rows.append({
                "": kind, "seconds before": float(before), "seconds now": float(now), "ratio": float(now / before),
                "total reward before": float(found[:, 0, 1].mean()), "difference": float(difference.mean()),
                "from": float(low), "to": float(high),
            })  # fmt: skip
            print(rows[-1], flush=True)
    title = f"Kernel-UCBVI against {given.before}: {given.episodes:,} episodes of TwinRooms, {given.seeds} seeds"
    report("kept_plans", title, rows)


if __name__ == "__main__":
    main()
