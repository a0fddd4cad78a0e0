"""The speed of kernelrl compared with rlberry 0.1, the package of the paper's authors, on the same TwinRooms.

Both play the same range of episodes in turns of a few hundred, on one core, in one run. Processor times are compared;
compiling happens in the episodes before. rlberry is unchanged, kernelrl has the preset "text". rlberry is installed
into its own virtual environment (`.venv-peers`) the first time. Its Greedy-Kernel-UCBVI was never published; its
inner loop is plain Python. It was measured to take 1.77 times as long as their Kernel-UCBVI, and this time is used
here.

    python benchmarks/peers.py [--first 2000] [--last 3000] [--only KernelUCBVI]
"""

import argparse
import json
import os
import subprocess
import sys
import time
import venv
from pathlib import Path

import numpy as np

import kernelrl as krl
from _common import H, environment, report
from kernelrl.envs.interface import advance, reset
from kernelrl.jit.compile import compiled
from kernelrl.jit.stream import episode_seed

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".venv-peers"
# rlberry 0.1 requires gym without a version; later versions of gym have another interface.
PACKAGES = ("rlberry==0.1", "gym==0.26.2", "numba")
GREEDY = 1.77
TURNS = 4


def seconds(function):
    """The processor time of a call, and its result."""
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


class Peer:
    """An agent of rlberry in its own process."""

    def __init__(self, name, seed=0):
        command = [str(PEERS / "bin" / "python"), str(ROOT / "benchmarks" / "_peer.py")]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.ask("make", name, seed)

    def ask(self, *command):
        """The answer to a command."""
        self.process.stdin.write((json.dumps(command) + "\n").encode())
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"the peer's process ended at {command}")
        return json.loads(answer)

    def play(self, episodes):
        """Seconds and reward of the next episodes, and the number of representatives after them."""
        answer = self.ask("play", episodes)
        return answer["seconds"], answer["reward"], answer["representatives"]


class Ours:
    """An agent of kernelrl, as in the text."""

    def __init__(self, name):
        make = getattr(krl, name).preset
        make("text").fit(environment(), 2, seed=1, progress=False)  # compiles everything
        self.agent, self.env = make("text"), environment()

    def play(self, episodes):
        """Seconds and reward of the next episodes, and the number of representatives after them."""
        spent, history = seconds(lambda: self.agent.fit(self.env, episodes, seed=0, progress=False))
        return spent, float(history.returns.sum()), getattr(self.agent, "number_of_representatives", 0)


@compiled(cache=False)
def dynamics_alone(env, stream, states, first, episodes, horizon):
    """The environment with fixed actions."""
    x, y, total = states[0], states[1], 0.0
    for k in range(first, first + episodes):
        reset(env, episode_seed(0, k), stream, x)
        for h in range(horizon):
            reward, _, _ = advance(env, stream, x, h % 4, y)
            total += reward
            x[0], x[1] = y[0], y[1]
    return total


class Environment:
    """TwinRooms and its random stream alone."""

    def __init__(self):
        self.arguments = environment().unwrapped.dynamics, np.zeros(4, np.uint64), np.zeros((2, 2))
        self.first = 0
        self.play(1)

    def play(self, episodes):
        """Seconds and reward of the next episodes."""
        spent, total = seconds(lambda: dynamics_alone(*self.arguments, self.first, episodes, H))
        self.first += episodes
        return spent, total, 0


# peer, then for each agent of kernelrl: name, factor of the peer's time
CONTESTS = {
    "KernelUCBVI": [("KernelUCBVI", 1.0), ("GreedyKernelUCBVI", GREEDY)],
    "OptQL": [("OptQL", 1.0)],
    "AdaptiveQL": [("AdaptiveQL", 1.0)],
    "UCBVI": [("UCBVI", 1.0), ("GreedyUCBVI", 1.0)],
}


def install():
    """Make the peers' virtual environment, once."""
    if (PEERS / "installed").exists():
        return
    print("Installing rlberry 0.1 into .venv-peers …", file=sys.stderr)
    venv.create(PEERS, with_pip=True, clear=True)
    pip = [str(PEERS / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, *PACKAGES], check=True)
    (PEERS / "installed").write_text("rlberry 0.1\n")


def contest(name, first, last):
    """Play episodes `first` … `last` in turns; return one row per player."""
    players = [("rlberry 0.1", Peer(name), 1.0), ("environment alone", Environment(), 1.0)]
    players += [(ours, Ours(ours), factor) for ours, factor in CONTESTS[name]]
    before = [player.play(first) for _, player, _ in players]
    used, reward = np.zeros(len(players)), np.array([played[1] for played in before])
    for _ in range(TURNS):
        for i, (_, player, _) in enumerate(players):
            spent, gained, number = player.play((last - first) // TURNS)
            used[i] += spent
            reward[i] += gained
            before[i] = (0.0, 0.0, number)
    each = used / (last - first)
    rows = []
    for i, (label, _, factor) in enumerate(players):
        ratio = factor * each[0] / each[i]
        rows.append({
            "contest": name, "agent": label, "ms per episode": each[i] * 1e3, "µs per step": each[i] / H * 1e6,
            "representatives": before[i][2], "times faster": ratio, "total reward": float(reward[i]),
        })  # fmt: skip
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=2000)
    parser.add_argument("--last", type=int, default=3000)
    parser.add_argument("--only", choices=CONTESTS, action="append")
    options = parser.parse_args()
    install()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # children inherit it: all take turns on one core
    rows = [row for name in options.only or CONTESTS for row in contest(name, options.first, options.last)]
    title = f"kernelrl and rlberry 0.1 on TwinRooms, episodes {options.first} to {options.last}, one core, in turns"
    report("peers", title, rows)


if __name__ == "__main__":
    main()
