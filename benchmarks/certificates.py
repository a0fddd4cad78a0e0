"""Certificates from a declared model of displacements: how tight they are, what they cost, and whether they hold.

    gaps          TwinRooms, data of agents: the bounds at the start after 1,000, 10,000 and 30,000 episodes
    finer         the same with cells of half the side
    others        the same for SquareWorld, PBall2D and Ramp
    lattice       a walk on a lattice with exact V*: violations at full size and with a smaller bonus
    twin_rooms    TwinRooms: V* against the bounds at every step and cell
    declaration   how often a right declaration is contradicted, and one that is wrong in one region; a walker's data
    declaration_agents    the same, data of agents

`python benchmarks/certificates.py [PART …] [--seeds N]`; all parts without a name.
"""

import argparse
import sys
import time
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np

import kernelrl as krl
from _common import environment, report
from kernelrl.certifying.bernstein import Bonus
from kernelrl.certifying.plan import RewardBounds, backward
from kernelrl.certifying.pools import Piece, Pool
from kernelrl.certifying.sums import Offsets

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from naive.lattice import draws, optimal_values
from rooms_walked import GOALS, HIGH, LOW, MOVES, ROOMS, goal_reward, halved, table

EPISODES = (1_000, 10_000, 30_000)
AGENTS = {
    "KernelUCBVI()": krl.KernelUCBVI,
    'preset("text", bonus_scale=0.1)': partial(krl.KernelUCBVI.preset, "text", bonus_scale=0.1),
}
CAP = 20.0


def declared(reward, **changes):
    return krl.models.Displacement(rooms=ROOMS, reward=reward, reward_lipschitz=10.0, **changes)


def gaps(seeds):
    bounds_at_start("certificates_gaps", seeds, 0.005, AGENTS)


def finer(seeds):
    bounds_at_start("certificates_finer", seeds, 0.0025, AGENTS)


def bounds_at_start(file, seeds, cell, agents):
    V = krl.envs.solve(environment()).start_value
    starts, rows = np.array([[0.1, 0.1], [1.1, 0.1]]), []
    for name, make in agents.items():
        found = {}
        for seed in range(seeds):
            recorded = make().fit(environment(), EPISODES[-1], seed=seed, transitions=True, progress=False).transitions
            for k in EPISODES:
                for kind, reward, limits in (
                    ("deterministic", "deterministic", (0, 1)), ("deterministic, no range", "deterministic", None),
                    ("known", goal_reward, (0, 1)),
                ):  # fmt: skip
                    given = {"env": environment(), "reward_range": limits, "cell": cell, "progress": False}
                    before = time.process_time()
                    made = krl.certify(recorded.head(20 * k), declared(reward), **given)
                    cpu, (lower, upper) = time.process_time() - before, made.bounds(starts)
                    found.setdefault((k, kind), []).append((lower.mean(), upper.mean(), made.gap, cpu))
        for (k, kind), values in found.items():
            lower, upper, gap, cpu = np.mean(values, axis=0)
            rows.append({
                "data of": name, "episodes": k, "reward": kind, "seeds": seeds, "lower": float(lower),
                "upper": float(upper), "gap, %": float(100 * (upper - lower) / CAP),
                "at the worse start, %": float(100 * gap / CAP), "CPU s": float(cpu),
            })  # fmt: skip
    notes = [f"V* = {V:.4g}; gaps are shares of the cap, 20; δ = 0.05, cells {cell}; CPU s: of the whole call."]
    report(file, "Bounds on V* at the start of TwinRooms, mean of seeds and of both starts", rows, notes)


def pball():
    """PBall2D, level 2: moves and noise, then the nearest point of the disc. Noise of states on its edge is unknown."""
    moves = np.array([[0.0, 0.0], [0.05, 0.0], [-0.05, 0.0], [0.0, 0.05], [0.0, -0.05]])

    def recover(x, a, y):
        edge = np.linalg.norm(y, axis=1, keepdims=True) > 1.0 - 1e-9
        return np.where(edge, np.nan, y - x - moves[a])

    def project(x, a, noise):
        y = x + moves[a] + noise
        return y / np.maximum(1.0, np.linalg.norm(y, axis=1, keepdims=True))

    return krl.models.Exogenous(
        function=project, recover=recover, noise=((-0.05, -0.05), (0.05, 0.05)), noise_cell=0.01,
        reward=lambda x, a: np.maximum(0.0, 1.0 - np.linalg.norm(x - 0.5, axis=1) / 0.2), reward_of="state-action",
        lipschitz=(2**0.5, 0.0, 2**0.5), reward_lipschitz=(5.0 * 2**0.5, 0.0, 0.0),
    )  # fmt: skip


OTHERS = {  # steps, model, side of cells, numbers of episodes
    "SquareWorld": (20, krl.models.Displacement(reward_lipschitz=6.066), 0.005, (500, 2_000, 5_000)),
    "Ramp": (2, krl.models.Displacement(reward_lipschitz=0.5), 0.001, (500, 2_000, 8_000)),
    "PBall2D": (30, pball(), 0.01, (500, 2_000, 5_000)),
}  # fmt: skip


def others(seeds):
    rows = []
    for name, (H, model, cell, numbers) in OTHERS.items():
        env = gym.make(f"kernelrl/{name}-v0", **({"level": 2} if name == "PBall2D" else {}))
        start = env.reset(seed=0)[0] if name != "PBall2D" else np.zeros(2)
        V, found = float(krl.envs.solve(env).values(start[None], 0)[0]), {}
        for seed in range(seeds):
            recorded = krl.KernelUCBVI().fit(env, numbers[-1], seed=seed, transitions=True, progress=False).transitions
            for k in numbers:
                before = time.process_time()
                made = krl.certify(recorded.head(H * k), model, env=env, reward_range=(0, 1), cell=cell, progress=False)
                found.setdefault(k, []).append((*made.bounds(start), time.process_time() - before))
        for k, values in found.items():
            lower, upper, cpu = np.mean(values, axis=0)
            inside = sum(low <= V + 1e-2 and V - 1e-2 <= high for low, high, _ in values)
            rows.append({
                "problem": name, "cap": H, "V*": V, "cells": cell, "episodes": k, "seeds": seeds, "lower": float(lower),
                "upper": float(upper), "gap, %": float(100 * (upper - lower) / H), "V* inside": inside,
                "narrowest, %": float(100 * min(high - low for low, high, _ in values) / H),
                "widest, %": float(100 * max(high - low for low, high, _ in values) / H),
                "CPU s": float(cpu),
            })  # fmt: skip
    report("certificates_others", "Bounds on V* at the start, data of KernelUCBVI(), rewards between 0 and 1", rows)


def lattice(seeds):
    horizon, shape, moves = 20, (19, 20), ((2, 0), (-2, 0), (0, 2), (0, -2))
    points = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1)
    rewards = np.maximum(0.0, 1.0 - 0.5 * np.linalg.norm(points - 15.0, axis=-1))
    V = optimal_values(rewards, moves, horizon)
    bonus, known = Bonus.of(2.0 * horizon * 4 * rewards.size, 0.05), RewardBounds((rewards[None],), (rewards[None],))
    rows = [
        {"scale of the bonus": scale, "samples of each action": n, "seeds": seeds, "violated": 0, "mean gap": 0.0}
        for scale in (1.0, 0.3, 0.1) for n in (300, 1500, 5000)
    ]  # fmt: skip
    for seed in range(seeds):
        D = draws(np.random.default_rng(seed), moves, 5000)
        for row in rows:
            pools = []
            for d in D[:, : row["samples of each action"]]:
                places, counts = np.unique(d, axis=0, return_counts=True)
                pools.append(Pool(len(d), 0.0, Offsets(places, counts * 1.0), float(((d - d.mean(axis=0)) ** 2).sum())))
            piece = Piece(0, (0, 0), shape, ((0, 0),), (tuple(pools),))
            found = backward((piece,), known, horizon, bonus, slope=0.5, span=1, scale=row["scale of the bonus"])
            low, high = found.lower[0], found.upper[0]
            row["violated"] += bool((low > V + 1e-9).any() or (high < V - 1e-9).any())
            row["mean gap"] += float(high[0, 2, 2] - low[0, 2, 2]) / seeds
    report("certificates_lattice", "Runs in which V* is outside its bounds at some step and point of a lattice", rows)


def twin_rooms(seeds):
    optimal, rows, values = krl.envs.solve(environment()), [], {}
    for kind, reward in (("deterministic", "deterministic"), ("noisy", "noisy"), ("known", goal_reward)):
        for episodes in (100, 1000):
            violated, worst = 0, -np.inf
            for seed in range(seeds):
                logged = table(np.random.default_rng([seed, 7]), episodes, noisy=kind == "noisy")
                made = krl.certify(logged, declared(reward), env=environment(), reward_range=(0, 1), cell=0.025)
                outside = -np.inf
                for h in range(20):
                    for i, room in enumerate(made.plan.cells.rooms):
                        for shift in (-0.49, 0.0, 0.49):
                            states = room.centres().reshape(-1, 2) + shift * room.side
                            key = h, i, shift
                            if key not in values:
                                values[key] = optimal.values(states, h)
                            low, high = made.bounds(states, h)
                            outside = max(outside, (low - values[key]).max(), (values[key] - high).max())
                violated += outside > 1e-4  # what V* itself may be off
                worst = max(worst, outside)
            rows.append({
                "reward": kind, "episodes": episodes, "seeds": seeds, "violated": int(violated),
                "nearest to a violation": float(-worst),
            })  # fmt: skip
    report("certificates_twin_rooms", "Runs in which V* of TwinRooms is outside its bounds at some step and cell", rows)


def declaration(seeds):
    rows = []
    for what, options, model in (
        ("right", (), declared("deterministic")),
        ("halved in a quarter of a room", (halved,), declared("deterministic")),
    ):
        flagged = 0
        for seed in range(seeds):
            logged = table(np.random.default_rng([seed, 9]), 5000, *options)
            made = krl.certify(logged, model, env=environment(), reward_range=(0, 1), cell=0.1)
            flagged += not made.check_declaration()
        rows.append({"displacements": what, "episodes": 5000, "runs": seeds, "contradicted": int(flagged)})
    report("certificates_declaration", "Runs in which data contradict the declaration, a test at level 1 %", rows)


class Rooms(gym.Env):
    """TwinRooms, or a copy in which moves go `factor` times as far."""

    observation_space = gym.spaces.Box(np.zeros(2), np.array([2.0, 1.0]), dtype=np.float64)
    action_space = gym.spaces.Discrete(4)

    def __init__(self, factor):
        self.factor = factor

    def reset(self, seed=None, options=None):
        """The bottom left of either room."""
        super().reset(seed=seed)
        self.room = int(self.np_random.integers(2))
        self.x = np.array([0.1 + self.room, 0.1])
        return self.x.copy(), {}

    def step(self, a):
        """A move and noise, clipped onto the room."""
        r = max(0.0, 1.0 - float(np.linalg.norm(self.x - GOALS[self.room])) / 0.1)
        y = self.x + MOVES[a] * self.factor(self.x[None])[0] + 0.01 * self.np_random.normal(size=2)
        self.x = np.clip(y, LOW[self.room], HIGH[self.room])
        return self.x.copy(), r, False, False, {}


def declaration_agents(seeds):
    rows = []
    for name, make in AGENTS.items():
        for what, factor in (("right", lambda x: np.ones(len(x))), ("halved in a quarter of a room", halved)):
            flagged = 0
            for seed in range(100, 100 + seeds):
                env = gym.wrappers.TimeLimit(Rooms(factor), 20)
                recorded = make().fit(env, 5000, seed=seed, transitions=True, progress=False).transitions
                made = krl.certify(recorded, declared("deterministic"), env=env, reward_range=(0, 1), cell=0.1)
                flagged += not made.check_declaration()
            rows.append({
                "data of": name, "displacements": what, "episodes": 5000, "runs": seeds, "contradicted": int(flagged),
            })  # fmt: skip
    report(
        "certificates_declaration_agents", "Runs in which data contradict the declaration, a test at level 1 %", rows
    )


PARTS = {
    "gaps": (gaps, 20), "finer": (finer, 5), "others": (others, 5), "lattice": (lattice, 200),
    "twin_rooms": (twin_rooms, 100), "declaration": (declaration, 100),
    "declaration_agents": (declaration_agents, 24),
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*", metavar="PART")
    parser.add_argument("--seeds", type=int)
    given = parser.parse_args()
    for name in given.part or PARTS:
        run, seeds = PARTS[name]
        run(given.seeds or seeds)


if __name__ == "__main__":
    main()
