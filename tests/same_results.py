"""Compares what all agents compute in two versions of the package, to the last bit.

    python tests/same_results.py COMMIT [NAME …]        the working tree against a commit
    python tests/same_results.py --record FILE [NAME …]  write what this version computes

Returns, read-outs, policies and certificates of every kind of agent, on TwinRooms and on an environment in Python whose
episodes end early and whose rewards are costs. Two machines may differ in the last bit, so both versions run here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import kernelrl as krl
from plain import plain

ROOT = Path(__file__).resolve().parent.parent
EPISODES = 150
UNIT = {"reward_range": (0.0, 1.0), "bonus_scale": 0.1}


def agents() -> dict[str, Any]:
    """Makes of agents by name: those for TwinRooms."""
    K, G = plain(krl.KernelUCBVI), plain(krl.GreedyKernelUCBVI)
    joint, full = krl.bonuses.Joint(0.1), krl.bonuses.Full(0.1)
    promise = {"reward_range": (0.0, 1.0), "lipschitz": (10.0, 1.0), "representatives": 0.02}
    return {
        "kernel": lambda: K(bandwidth=0.05, **UNIT),
        "kernel_auto": lambda: K(bandwidth=0.05, bonus_scale=0.1),
        "kernel_step": lambda: K(bandwidth=0.05, replan="step", **UNIT),
        "kernel_doubling": lambda: K(bandwidth=0.05, replan="doubling", stationary=False, **UNIT),
        "kernel_cones": lambda: K(bandwidth=0.05, lipschitz=3.0, **UNIT),
        "kernel_log": lambda: K(bandwidth=0.05, lipschitz="log", **UNIT),
        "kernel_few": lambda: K(bandwidth=0.05, max_representatives=40, **UNIT),
        "kernel_schedule": lambda: K(bandwidth=krl.schedules.Power(0.1, 0.05, 0.5), **UNIT),
        "kernel_box": lambda: K(bandwidth=0.05, metric=krl.metrics.Lp(1, scale="box"), kernel="epanechnikov", **UNIT),
        "kernel_fold": lambda: K(
            bandwidth=0.05, metric=krl.metrics.Folded(krl.envs.twin_rooms_fold, "euclidean"), **UNIT
        ),
        "kernel_joint": lambda: K(bandwidth=0.05, bonus=joint, **promise),
        "kernel_full": lambda: K(bandwidth=0.05, bonus=full, **promise),
        "kernel_automatic": lambda: krl.KernelUCBVI(),
        "kernel_local": lambda: K(bandwidth=krl.schedules.Local(0.1, 0.03), stationary=False, **UNIT),
        "greedy_automatic": lambda: krl.GreedyKernelUCBVI(),
        "greedy_local": lambda: G(bandwidth=krl.schedules.Local(0.1, 0.03), reading="blend", **UNIT),
        "exact": lambda: K(bandwidth=0.05, representatives=None, **UNIT),
        "exact_cones": lambda: K(bandwidth=0.05, representatives=None, lipschitz=(1.0, 1.0), stationary=False, **UNIT),
        "exact_pooled_cones": lambda: K(bandwidth=0.05, representatives=None, lipschitz=3.0, **UNIT),
        "exact_joint": lambda: K(bandwidth=0.05, bonus=joint, **promise | {"representatives": None}),
        "exact_full": lambda: K(bandwidth=0.05, bonus=full, **promise | {"representatives": None}),
        "greedy": lambda: G(bandwidth=0.05, **UNIT),
        "greedy_auto": lambda: G(bandwidth=0.05, bonus_scale=0.1),
        "greedy_cones": lambda: G(bandwidth=0.05, lipschitz=2.0, stationary=False, **UNIT),
        "greedy_joint": lambda: G(bandwidth=0.05, bonus=joint, **promise),
        "greedy_exact": lambda: G(bandwidth=0.05, representatives=None, lipschitz=3.0, **UNIT),
        "greedy_exact_step": lambda: G(
            bandwidth=0.05, representatives=None, lipschitz=3.0, stationary=False, kernel="tricube", **UNIT
        ),
        "greedy_exact_joint": lambda: G(bandwidth=0.05, bonus=joint, **promise | {"representatives": None}),
        "ucbvi": lambda: krl.UCBVI(bins=10, **UNIT),
        "ucbvi_step": lambda: krl.UCBVI(bins=10, stationary=False, replan="doubling", **UNIT),
        "ucbvi_minimum": lambda: krl.UCBVI(bins=10, minimum=True, **UNIT),
        "ucbvi_hoeffding": lambda: krl.UCBVI(bins=10, bonus="hoeffding", total_episodes=EPISODES, **UNIT),
        "greedy_ucbvi": lambda: krl.GreedyUCBVI(bins=10, **UNIT),
        "opt_ql": lambda: krl.OptQL(bins=10, **UNIT),
        "opt_ql_after": lambda: krl.OptQL(bins=10, bonus_place="after", bonus_scale=0.1),
        "adaptive_ql": lambda: krl.AdaptiveQL(**UNIT),
        "adamb": lambda: krl.AdaMB(**UNIT),
        "random": lambda: krl.RandomAgent(reward_range=(0.0, 1.0)),
    }


class Costly(gym.Env[Any, Any]):
    """A walk on [0, 1]: each step costs, and the right end is the end."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float64)
    action_space = gym.spaces.Discrete(2, start=1)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin near the left end."""
        super().reset(seed=seed)
        self.x = 0.3 * self.np_random.random()
        return np.array([self.x]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Walk, with noise."""
        self.x = float(np.clip(self.x + 0.2 * (2 * action - 3) + 0.05 * self.np_random.normal(), 0.0, 1.0))
        return np.array([self.x]), -1.0 - self.x, self.x > 0.9, False, {}


def costly_agents() -> dict[str, Any]:
    """Makes of agents for `Costly`."""
    K, G, horizon = plain(krl.KernelUCBVI), plain(krl.GreedyKernelUCBVI), {"horizon": 8}
    return {
        "costly_kernel": lambda: K(bandwidth=0.1, bonus_scale=0.2, **horizon),
        "costly_exact": lambda: K(bandwidth=0.1, bonus_scale=0.2, representatives=None, lipschitz=5.0, **horizon),
        "costly_greedy": lambda: G(bandwidth=0.1, bonus_scale=0.2, **horizon),
        "costly_greedy_exact": lambda: G(
            bandwidth=0.1, bonus_scale=0.2, representatives=None, lipschitz=5.0, **horizon
        ),
        "costly_ucbvi": lambda: krl.UCBVI(bins=8, bonus_scale=0.2, **horizon),
        "costly_greedy_ucbvi": lambda: krl.GreedyUCBVI(bins=8, bonus_scale=0.2, **horizon),
        "costly_opt_ql": lambda: krl.OptQL(bins=8, bonus_scale=0.2, **horizon),
        "costly_adaptive_ql": lambda: krl.AdaptiveQL(bonus_scale=0.2, **horizon),
    }


def results(name: str, agent: Any, env: gym.Env[Any, Any], steps: tuple[int, ...]) -> dict[str, Any]:
    """What one agent computes."""
    history = agent.fit(env, EPISODES, seed=3, progress=False)
    found = {"returns": history.returns, "values": history.optimistic_values}
    rng, space = np.random.default_rng(0), env.observation_space
    assert isinstance(space, gym.spaces.Box)
    states = space.low + (space.high - space.low) * rng.random((40, space.low.size))
    for h in steps:
        found[f"q{h}"], found[f"v{h}"] = agent.q_values(states, h), agent.values(states, h)
        if hasattr(agent, "bonuses"):
            found[f"b{h}"], found[f"c{h}"] = agent.bonuses(states, h), agent.counts(states, h)
        found[f"act{h}"] = np.array([agent.act(x, h) for x in states])
    if "joint" in name or "full" in name:
        found["certificate"] = np.array([tuple(agent.certificate(x)) for x in states])
    return {f"{name}.{key}": value for key, value in found.items()}


def record(path: str, names: list[str]) -> None:
    """Write what this version computes."""
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {}
    for name, make in agents().items():
        if not names or name in names:
            found |= results(name, make(), gym.make("kernelrl/TwinRooms-v0"), (0, 7, 19))
    for name, make in costly_agents().items():
        if not names or name in names:
            found |= results(name, make(), Costly(), (0, 3, 7))
    np.savez(path, **found)


def compare(before: Any, after: Any) -> int:
    """Print what differs; return how many arrays do."""
    differing = 0
    for name in sorted(set(before) | set(after)):
        if name not in before or name not in after:
            print(f"only in one: {name}")
        elif not np.array_equal(before[name], after[name], equal_nan=True):
            with np.errstate(invalid="ignore"):
                apart = np.nanmax(np.where(before[name] == after[name], 0.0, abs(before[name] - after[name])))
            print(f"differs: {name} by {apart:.3g}")
        else:
            continue
        differing += 1
    return differing


def main() -> None:
    """Compare, or record."""
    if sys.argv[1] == "--record":
        record(sys.argv[2], sys.argv[3:])
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "worktree", "add", "--detach", f"{folder}/then", sys.argv[1]], cwd=ROOT, check=True)
        try:
            for where, file in ((Path(folder) / "then", "then.npz"), (ROOT, "now.npz")):
                command = [sys.executable, __file__, "--record", f"{folder}/{file}", *sys.argv[2:]]
                subprocess.run(command, env={**os.environ, "PYTHONPATH": str(where / "src")}, check=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", f"{folder}/then"], cwd=ROOT, check=True)
        with np.load(f"{folder}/then.npz") as before, np.load(f"{folder}/now.npz") as after:
            before, after = dict(before), dict(after)
    differing = compare(before, after)
    print(f"{len(after)} arrays compared, {differing} differ")
    sys.exit(differing > 0)


if __name__ == "__main__":
    main()
