"""The program of the paper's authors compared with the algorithms of the text: total reward in TwinRooms.

Their Kernel-UCBVI and Greedy-Kernel-UCBVI on representative states differ from the paper's text:

    distances        coordinates are divided by the box's widths (2, 1), so that σ is 0.05 along x
    estimates        every representative has its own sums, so it does not use the samples that came before it
    bonus            s/√C + (1+β)·H/C, and H for an action not tried since the representative was made
    caps             values are capped at H at every step
    far states       a state far from all representatives has the values of the nearest one; there are at most 500
    equal values     the lowest action is taken; a representative made since the last plan has Q = 0 until the next

This file is a compiled, self-contained copy of it (tests/naive/as_run.py is the same in NumPy). kernelrl's agents have
the preset "text". Mean over seeds with a 95 % interval (Student's t).

    python benchmarks/as_run.py [--episodes 10000] [--seeds 4] [--only KernelUCBVI]
"""

import argparse
import math
from typing import NamedTuple

import numba
import numpy as np

import kernelrl as krl
from _common import H, environment, report, seconds
from kernelrl.agents.evaluation import t_interval
from kernelrl.jit.stream import episode_seed

ACTIONS, MOST = 4, 500


class Program(NamedTuple):
    """The state of the authors' program; M is the number of representatives, `most` the largest."""

    sigma: float
    beta: float
    merge: float
    scale: float  # s of the bonus
    greedy: bool
    widths: np.ndarray  # (d,) what coordinates are divided by
    states: np.ndarray  # (most, d)
    number: np.ndarray  # (1,) M
    weight: np.ndarray  # (most, A) Σw
    reward: np.ndarray  # (most, A) Σw·r
    next: np.ndarray  # (most, A, most) Σw by next representative
    seen: np.ndarray  # (most, A) whether there was a sample since
    Q: np.ndarray  # (H, most, A) of the last plan
    V: np.ndarray  # (H+1, most)


def new_program(horizon, actions, sigma, beta, widths, merge, most=MOST, scale=1.0, greedy=False):
    """The state before any data."""
    V = np.full((horizon + 1, most), float(horizon))
    V[horizon] = 0.0
    return Program(
        sigma, beta, merge, scale, greedy, np.asarray(widths, float), np.zeros((most, len(widths))),
        np.zeros(1, np.int64), np.zeros((most, actions)), np.zeros((most, actions)), np.zeros((most, actions, most)),
        np.zeros((most, actions), np.bool_), np.zeros((horizon, most, actions)), V,
    )  # fmt: skip


@numba.njit
def distance(program, x, y):
    """ρ between two states."""
    total = 0.0
    for j in range(x.size):
        total += ((x[j] - y[j]) / program.widths[j]) ** 2
    return math.sqrt(total)


@numba.njit
def nearest(program, x):
    """The nearest representative and its distance; -1 if there is none."""
    found, best = -1, math.inf
    for u in range(program.number[0]):
        rho = distance(program, program.states[u], x)
        if rho < best:
            found, best = u, rho
    return found, best


@numba.njit
def visit(program, x):
    """The representative of a visited state, which may be a new one."""
    u, rho = nearest(program, x)
    M = program.number[0]
    if rho <= program.merge or M == len(program.states):
        return u
    program.states[M] = x
    program.number[0] = M + 1
    return M


@numba.njit(fastmath={"reassoc", "nsz"})
def expected(counts, V, M):
    """Σ_y counts(y)·V(y)."""
    total = 0.0
    for y in range(M):
        total += counts[y] * V[y]
    return total


@numba.njit
def q_of(program, u, h, q):
    """Q_h of representative `u` from the data so far into `q` (A,); return the largest."""
    H = len(program.Q)
    best = -math.inf
    for a in range(q.size):
        C = program.beta + program.weight[u, a]
        bonus = program.scale / math.sqrt(C) + (1.0 + program.beta) * H / C if program.seen[u, a] else float(H)
        total = program.reward[u, a] + expected(program.next[u, a], program.V[h + 1], program.number[0])
        q[a] = total / C + bonus
        best = max(best, q[a])
    return best


@numba.njit
def begin_episode(program):
    """Kernel-UCBVI's plan on all data."""
    H = len(program.Q)
    if program.greedy:
        return
    for h in range(H - 1, -1, -1):
        for u in range(program.number[0]):
            program.V[h, u] = min(float(H), q_of(program, u, h, program.Q[h, u]))


@numba.njit
def choose(program, x, h):
    """The action to take: the lowest of the best ones."""
    u, _ = nearest(program, x)
    if u < 0:
        return 0
    if program.greedy:
        q_of(program, u, h, program.Q[h, u])
    return program.Q[h, u].argmax()


@numba.njit
def observe(program, x, a, r, y, h, terminated):
    """Add a transition; Greedy lowers the value of its state first."""
    u = visit(program, x)
    if program.greedy:
        program.V[h, u] = min(program.V[h, u], q_of(program, u, h, program.Q[h, u]))
    v = visit(program, y)
    for i in range(program.number[0]):
        w = math.exp(-((distance(program, program.states[i], program.states[u]) / program.sigma) ** 2) / 2.0)
        program.weight[i, a] += w
        program.reward[i, a] += w * r
        if not terminated:
            program.next[i, a, v] += w
        program.seen[i, a] = True


def play_theirs(greedy, episodes, seed):
    """Total reward and number of representatives of one run of the authors' program with the paper's settings."""
    program = new_program(H, ACTIONS, 0.025, 0.01, (2.0, 1.0), 0.05, greedy=greedy)
    env, total = environment().unwrapped, 0.0
    for k in range(episodes):
        x, _ = env.reset(seed=int(episode_seed(seed, k)))
        begin_episode(program)
        for h in range(H):
            a = choose(program, x, h)
            y, r, terminated, _, _ = env.step(a)
            observe(program, x, a, r, y, h, terminated)
            x, total = y, total + r
    return total, int(program.number[0])


def play_ours(greedy, episodes, seed):
    """The same for one run of kernelrl with preset "text"."""
    agent = (krl.GreedyKernelUCBVI if greedy else krl.KernelUCBVI).preset("text")
    history = agent.fit(environment(), episodes, seed=seed, progress=False)
    return float(history.returns.sum()), agent.number_of_representatives


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--only", choices=("KernelUCBVI", "GreedyKernelUCBVI"), action="append")
    options = parser.parse_args()
    rows = []
    for name in options.only or ("KernelUCBVI", "GreedyKernelUCBVI"):
        for label, play in (("the authors' program", play_theirs), ("as in the text", play_ours)):
            greedy = name == "GreedyKernelUCBVI"
            play(greedy, 2, 0)  # compiled before it is timed
            timed = [seconds(play, greedy, options.episodes, seed) for seed in range(options.seeds)]
            times, rewards, numbers = np.array([(time, *run) for time, run in timed]).T
            low, high = t_interval(rewards)
            rows.append({
                "agent": name, "setting": label, "total reward": float(rewards.mean()),
                "± (95 %)": float(high - low) / 2, "lowest": float(rewards.min()), "highest": float(rewards.max()),
                "representatives": float(numbers.mean()), "seconds per run": float(times.mean()),
            })  # fmt: skip
            print(rows[-1], flush=True)
    title = f"Total reward in {options.episodes} episodes of TwinRooms, seeds 0 to {options.seeds - 1}"
    report("as_run", title, rows)


if __name__ == "__main__":
    main()
