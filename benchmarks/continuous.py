"""Continuous actions: oil and ambulance, 9 cases each, with nothing set, against Adaptive Q-learning and AdaMB.

Each agent plays K episodes of 5 steps; `collected` is its total reward in percent of K·V*, V* that of the continuum of
actions, `deployed` the value of the policy it ends with, in percent of V*. AdaptiveQL and AdaMB, the algorithms of
Sinclair et al. on the joint space, have the best of three bonus scales for each case, chosen on the same seeds; the
three scales were chosen on others. The best actions are not in the net of the kernel agents. The notes count the cases
in which Kernel-UCBVI collects more, and those in which it collects significantly less (95 %, Student's t of paired
differences).

    python benchmarks/continuous.py [--episodes 2000] [--seeds 8] [--first-seed 1] [--workers 2] [--only oil]
        [--agents Ada]
"""

import argparse
import concurrent.futures
import itertools
import multiprocessing
import time

import gymnasium as gym
import numpy as np

import kernelrl as krl
from _common import report
from kernelrl.agents.evaluation import t_interval

CASES = {
    f"oil {form} {steepness}": ("kernelrl/Oil-v0", {"form": form, "steepness": steepness})
    for form, steepness in itertools.product(("laplace", "quadratic", "noise"), (1, 10, 50))
} | {
    f"ambulance {arrivals} {alpha}": ("kernelrl/Ambulance-v0", {"arrivals": arrivals, "alpha": alpha})
    for arrivals, alpha in itertools.product(("beta", "uniform", "shifting"), (0.0, 0.25, 1.0))
}
SCALES = {"AdaptiveQL": (0.03, 0.1, 0.3), "AdaMB": (0.25, 0.75, 1.5)}
AGENTS = {
    "KernelUCBVI": ("KernelUCBVI", {}),
    "GreedyKernelUCBVI": ("GreedyKernelUCBVI", {}),
    **{f"{name} {scale}": (name, {"bonus_scale": scale}) for name, scales in SCALES.items() for scale in scales},
}
EVALUATION = 1000


def run(case, label, episodes, seed):
    """Collected, deployed (both divided by V*) and processor seconds."""
    name, options = CASES[case]
    env, (cls, settings) = gym.make(name, **options), AGENTS[label]
    best = krl.envs.solve(env).start_value
    agent = getattr(krl, cls)(**settings)
    agent.fit(env, 1, seed=seed, progress=False)  # compiles
    agent, before = getattr(krl, cls)(**settings), time.process_time()
    collected = agent.fit(env, episodes, seed=seed, progress=False).returns.mean() / best
    seconds = time.process_time() - before
    return collected, agent.evaluate(env, EVALUATION).mean / best, seconds


def row_of(case, label, values):
    """What is reported of an agent's runs (n, 3)."""
    low, high = t_interval(values[:, 0])
    return {
        "case": case, "agent": label, "collected": 100 * values[:, 0].mean(),
        "±": 50 * (high - low) if np.isfinite(high) else 0.0, "deployed": 100 * values[:, 1].mean(),
        "worst": 100 * values[:, 1].min(), "seconds": values[:, 2].mean(),
    }  # fmt: skip


def note_of(found, cases, best, rival):
    """In how many cases Kernel-UCBVI collects more than a rival with its best scales, and in which less."""
    less = []
    for case in cases:
        difference = found[case, "KernelUCBVI"][:, 0] - found[case, best[case, rival]][:, 0]
        if difference.mean() <= 0:
            less.append(case + (" (significantly)" if t_interval(difference)[1] < 0 else ""))
    return (
        f"Kernel-UCBVI collects more than {rival} with its best scale in {len(cases) - len(less)} of {len(cases)} "
        f"cases. Less in: {', '.join(less) or 'none'}."
    )


def main():
    """Run all, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="part of the name of a case")
    parser.add_argument("--agents", default="", help="part of the name of an agent")
    given = parser.parse_args()
    cases = [case for case in CASES if given.only in case]
    labels = [label for label in AGENTS if given.agents in label]
    names = dict.fromkeys(AGENTS[label][0] for label in labels)
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    found, best = {}, {}
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(given.workers, mp_context=context) as pool:
        for case in cases:
            futures = {
                label: [pool.submit(run, case, label, given.episodes, seed) for seed in seeds] for label in labels
            }
            for label, waiting in futures.items():
                found[case, label] = np.array([future.result() for future in waiting])
    for case in cases:
        for name in names:
            own = [label for label in labels if AGENTS[label][0] == name]
            best[case, name] = max(own, key=lambda label: found[case, label][:, 0].mean())
    rows = [row_of(case, label, found[case, label]) for (case, _), label in best.items()]
    rivals = [name for name in names if name in SCALES and "KernelUCBVI" in names]
    notes = [note_of(found, cases, best, rival) for rival in rivals]
    title = f"Continuous actions, {given.episodes} episodes, {given.seeds} seeds from {given.first_seed}"
    report("continuous", title, rows, notes)


if __name__ == "__main__":
    main()
