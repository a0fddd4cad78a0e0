"""The paper's experiment, `make paper` with its report, against what the authors' package would need for it.

Ours is the processor time of `kernelrl run paper`, of its report and of all their processes: 48 runs of 50,000
episodes. The authors' package is rlberry 0.1, as in `peers.py`: its processor time of an episode is measured in
the same run and multiplied. Neither includes compiling. It has no Greedy-Kernel-UCBVI (1.77 times their Kernel-
UCBVI, see there). Where rooms are alike their Kernel-UCBVI has fewer representatives; it is taken to be quicker by
the factor by which ours is.

    python benchmarks/paper.py [--first 2000] [--last 2400] [--keep FOLDER]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _common import report
from kernelrl.experiments.store import Store
from peers import GREEDY, Peer, install

EPISODES, SEEDS = 50_000, 8
KERNEL, ALIKE, FAST = "Kernel-UCBVI", "Kernel-UCBVI, rooms alike", "Greedy-Kernel-UCBVI"
PEERS = {KERNEL: "KernelUCBVI", "UCBVI": "UCBVI", "OptQL": "OptQL", "AdaptiveQL": "AdaptiveQL"}


def their_milliseconds(first, last):
    """Processor time of an episode of each of their agents, in ms."""
    found = {}
    for label, name in PEERS.items():
        peer = Peer(name)
        peer.play(first)
        found[label] = 1e3 * peer.play(last - first)[0] / (last - first)
        peer.process.stdin.close()
        peer.process.wait()
    return found


def spent():
    """Processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def command(*words):
    """Run a command of kernelrl; its processor time and its wall-clock time."""
    before, began = spent(), time.perf_counter()
    subprocess.run([sys.executable, "-m", "kernelrl", *words], check=True, stdout=subprocess.DEVNULL)
    return spent() - before, time.perf_counter() - began


def learning_seconds(folder, seeds):
    """Seconds that each agent has learnt for, all seeds together: wall-clock time of its process."""
    store, found = Store(folder), {}
    for run in store.runs():
        if run.seed < seeds:
            found[run.label] = found.get(run.label, 0.0) + float(run.history()["seconds"][-1])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=2000)
    parser.add_argument("--last", type=int, default=2400)
    parser.add_argument("--keep", type=Path, help="store the experiment in this folder, which must be new")
    options = parser.parse_args()
    install()
    theirs = their_milliseconds(options.first, options.last)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch) / "paper"
        few = ("--episodes", "20", "--seeds", "1", "--report")
        command("run", "paper", "--out", str(Path(scratch) / "few"), *few)  # compiles everything
        learning, wall = command("run", "paper", "--out", str(folder))
        reporting, _ = command("report", str(folder))
        mine = learning_seconds(folder, SEEDS)
    theirs[FAST] = GREEDY * theirs[KERNEL]
    theirs[ALIKE] = theirs[KERNEL] * mine[ALIKE] / mine[KERNEL]
    rows = []
    for label, seconds in mine.items():
        rows.append({
            "": label, "authors' ms per episode": theirs[label],
            "authors' seconds": theirs[label] * EPISODES * SEEDS / 1e3, "seconds": seconds,
        })  # fmt: skip
    needed, used = sum(row["authors' seconds"] for row in rows), learning + reporting
    rows.append({"": "report", "authors' ms per episode": 0.0, "authors' seconds": 0.0, "seconds": reporting})
    rows.append({"": "make paper", "authors' ms per episode": 0.0, "authors' seconds": needed, "seconds": used})
    for row in rows:
        row["times faster"] = row["authors' seconds"] / row["seconds"]
    notes = [
        f"The runs took {wall:.0f} s on {os.cpu_count()} cores.",
        "Seconds of an agent are wall-clock time of its learning, the last two rows processor time.",
    ]
    report("paper", f"The paper's experiment: {len(mine)} agents, {SEEDS} seeds, {EPISODES} episodes", rows, notes)
    print(json.dumps({"seconds": used, "authors": needed, "ratio": needed / used}))


if __name__ == "__main__":
    main()
