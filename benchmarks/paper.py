"""The paper's experiment, `make paper` with its report, against what the authors' package would need for it.

Ours is the processor time of `kernelrl run paper`, of its report and of all their processes: 48 runs of 50,000
episodes. The authors' package is rlberry 0.1, as in `peers.py`: its processor time of an episode is measured in
the same run and multiplied. Neither includes compiling. It has no Greedy-Kernel-UCBVI (1.77 times their Kernel-
UCBVI, see there). Where rooms are alike their Kernel-UCBVI has fewer representatives; it is taken to be quicker by
the factor by which ours is.

Then the same with `replan=1.01`: Kernel-UCBVI and UCBVI plan when episodes have grown by 1 % since the last plan, so
they do less than the authors' program, which plans before each episode. The total rewards show what that costs.

    python benchmarks/paper.py [--first 2000] [--last 2400] [--keep FOLDER] [--only every|rarely]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path

import numpy as np

from _common import report
from kernelrl.experiments.store import Store
from peers import GREEDY, Peer, install

EPISODES, SEEDS = 50_000, 8
KERNEL, ALIKE, FAST = "Kernel-UCBVI", "Kernel-UCBVI, rooms alike", "Greedy-Kernel-UCBVI"
PLANS = ('agent = "KernelUCBVI"', 'agent = "UCBVI"')  # those that plan, in the experiment's file
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


def with_rare_plans(folder):
    """The experiment's file with `replan=1.01`, written into `folder`."""
    text = files("kernelrl.experiments.catalogue").joinpath("paper.toml").read_text()
    for line in PLANS:
        text = text.replace(line, f"{line}\nreplan = 1.01")
    path = folder / "paper-rarely.toml"
    path.write_text(text)
    return path


def learnt(folder):
    """For each agent: seconds that it has learnt for, wall-clock time of its process, and total reward of each seed."""
    found = {}
    for run in Store(folder).runs():
        history = run.history()
        seconds, rewards = found.setdefault(run.label, ([], []))
        seconds.append(float(history["seconds"][-1]))
        rewards.append(float(history["return"].sum()))
    return found


def row(label, milliseconds, needed, used, reward):
    """One row of the table."""
    return {
        "": label, "authors' ms per episode": milliseconds, "authors' seconds": needed, "seconds": used,
        "times faster": needed / used, "total reward": reward,
    }  # fmt: skip


def run(experiment, folder, scratch, theirs):
    """Run an experiment and its report; one row for each agent, one for the report, and one for all of it."""
    few = ("--episodes", "20", "--seeds", "1", "--report")
    command("run", experiment, "--out", str(scratch / f"few-{folder.name}"), *few)  # compiles everything
    learning, wall = command("run", experiment, "--out", str(folder))
    reporting, _ = command("report", str(folder))
    mine = learnt(folder)
    theirs = dict(theirs)
    theirs[FAST] = GREEDY * theirs[KERNEL]
    theirs[ALIKE] = theirs[KERNEL] * sum(mine[ALIKE][0]) / sum(mine[KERNEL][0])
    rows = [
        row(label, theirs[label], theirs[label] * EPISODES * SEEDS / 1e3, sum(seconds), float(np.mean(rewards)))
        for label, (seconds, rewards) in mine.items()
    ]
    needed = sum(each["authors' seconds"] for each in rows)
    rows.append(row("report", 0.0, 0.0, reporting, 0.0))
    rows.append(row("all", 0.0, needed, learning + reporting, 0.0))
    return rows, wall


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=2000)
    parser.add_argument("--last", type=int, default=2400)
    parser.add_argument("--keep", type=Path, help="store the experiments in this folder, which must be new")
    parser.add_argument("--only", choices=("every", "rarely"), help="plans before every episode, or replan=1.01")
    options = parser.parse_args()
    install()
    theirs = their_milliseconds(options.first, options.last)
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        keep = options.keep or scratch / "runs"
        keep.mkdir(parents=True)
        experiments = {"every": ("paper", "paper"), "rarely": (str(with_rare_plans(scratch)), "paper, replan=1.01")}
        for kind in (options.only,) if options.only else experiments:
            experiment, name = experiments[kind]
            rows, wall = run(experiment, keep / kind, scratch, theirs)
            notes = [
                f"The runs took {wall:.0f} s on {os.cpu_count()} cores.",
                "Seconds of an agent are wall-clock time of its learning, the last two rows processor time.",
            ]
            title = f"The experiment {name}: {len(rows) - 2} agents, {SEEDS} seeds, {EPISODES} episodes"
            report("paper" if kind == "every" else "paper_rarely", title, rows, notes)
            print(json.dumps({"seconds": rows[-1]["seconds"], "authors": rows[-1]["authors' seconds"]}))


if __name__ == "__main__":
    main()
