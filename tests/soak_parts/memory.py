"""Memory over a long run, in a process of its own: flat where the agent's state does not grow, else as the samples do.

python -m soak_parts.memory optql 20000     # prints resident bytes over the run
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import gymnasium as gym

import kernelrl as krl
from experiment_parts import environment
from plain import plain
from soak_parts.outcome import Outcome

H, PIECES = 20, 20
ROOM = 6 * 2**20  # bytes by which a flat run may grow: the allocator's own coming and going
# bytes, arrays that have been doubled ahead included; of greedy-exact 65 MB are its grid of nodes, made once
PER_SAMPLE = {"greedy-exact": 8000, "kernel-exact": 6000}
SHARE = {"kernel-exact": 0.02, "greedy-exact": 0.1, "merged": 0.5, "greedy-merged": 0.5, "saving": 0.1}

FLAT: dict[str, Callable[[], krl.Agent]] = {
    "optql": lambda: krl.OptQL(bins=10),
    "ucbvi": lambda: krl.UCBVI(bins=5),
    "merged": lambda: plain(krl.KernelUCBVI)(bandwidth=0.1, bonus_scale=0.05),
    "greedy-merged": lambda: plain(krl.GreedyKernelUCBVI)(bandwidth=0.1, bonus_scale=0.05),
    "saving": lambda: krl.OptQL(bins=10),
}
GROWING: dict[str, Callable[[], krl.Agent]] = {
    "greedy-exact": lambda: plain(krl.GreedyKernelUCBVI)(bandwidth=0.1, lipschitz=2.0, representatives=None),
    "kernel-exact": lambda: plain(krl.KernelUCBVI)(
        bandwidth=0.05, bonus_scale=0.05, representatives=None, stationary=False
    ),
}


def resident() -> int:
    """Bytes of this process that are in memory."""
    gc.collect()
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def measure(name: str, episodes: int) -> list[int]:
    """Resident bytes after each of PIECES pieces of the run; the first piece also warms everything up."""
    agent, env, found = (FLAT | GROWING)[name](), gym.make("kernelrl/TwinRooms-v0"), []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(PIECES):
            agent.fit(env, episodes // PIECES, seed=0, progress=False)
            if name == "saving":
                for _ in range(max(1, episodes // PIECES // 10)):
                    agent.save(Path(folder) / "agent.krl")
                    agent = krl.load(Path(folder) / "agent.krl")
            found.append(resident())
    return found


def check(outcome: Outcome, name: str, episodes: int) -> None:
    """Measure in another process, and compare with what is promised."""
    command = [sys.executable, "-m", "soak_parts.memory", name, str(episodes)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    outcome.count("episodes", episodes)
    if done.returncode:
        outcome.failed.append(f"{name}: exit status {done.returncode}: {done.stderr[-1500:]}")
        return
    found = json.loads(done.stdout)
    settled = len(found) // 2 if name in FLAT else 0  # by then all cells are seen and all representatives made
    growth = found[-1] - found[settled]
    samples = H * episodes * (len(found) - 1 - settled) // len(found)
    print(f"{name:16}{episodes:>8} episodes, {found[-1] / 2**20:6.0f} MB, {growth / samples:8.2f} bytes a sample more")
    allowed = ROOM if name in FLAT else ROOM + PER_SAMPLE[name] * samples
    if growth > allowed:
        outcome.failed.append(f"{name}: grew by {growth} bytes in {samples} samples: {found}")


def run(scale: float, folder: Path, episodes: int) -> Outcome:
    """So many episodes of each agent, scaled; fewer of those that keep every sample."""
    outcome = Outcome()
    for name in FLAT | GROWING:
        check(outcome, name, max(10 * PIECES, round(episodes * scale * SHARE.get(name, 1.0))))
    outcome.tried["agents"] = len(FLAT | GROWING)
    return outcome


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
