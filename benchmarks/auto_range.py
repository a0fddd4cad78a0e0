"""The cost of not knowing the range of rewards: reward_range="auto" compared with (0, 1), TwinRooms, total reward."""

import numpy as np

import kernelrl as krl
from _common import environment, report
from kernelrl.agents.evaluation import t_interval

SEEDS = range(4)
AGENTS = {
    "Kernel-UCBVI": (krl.KernelUCBVI, 4_000),
    "Greedy-Kernel-UCBVI": (krl.GreedyKernelUCBVI, 8_000),
    "UCBVI": (krl.UCBVI, 4_000),
    "Greedy-UCBVI": (krl.GreedyUCBVI, 8_000),
    "OptQL": (krl.OptQL, 8_000),
    "AdaptiveQL": (krl.AdaptiveQL, 8_000),
}


def main():
    rows = []
    for name, (cls, episodes) in AGENTS.items():
        for reward_range in ((0, 1), "auto"):
            totals = []
            for seed in SEEDS:
                agent = cls.preset("text", bonus_scale=0.1, reward_range=reward_range)
                totals.append(agent.fit(environment(), episodes, seed=seed, progress=False).returns.sum())
            low, high = t_interval(np.array(totals))
            row = {"agent": name, "episodes": episodes, "reward_range": str(reward_range)}
            rows.append(row | {"total reward": float(np.mean(totals)), "± (95 %)": 0.5 * (high - low)})
            print(rows[-1], flush=True)
    report("auto_range", "Total reward on TwinRooms, the range of rewards known or not (bonus scale 0.1)", rows)


if __name__ == "__main__":
    main()
