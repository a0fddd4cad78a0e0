"""The baselines compared with those of rlberry 0.1: total reward of 20,000 episodes of TwinRooms.

rlberry runs one seed (its UCBVI takes minutes), kernelrl several, as in the text (preset "text"). rlberry differs from
the text: no bonus exceeds the cap, the lowest of equally good actions is taken, UCBVI's values are capped at H at every
step, and AdaptiveQL splits a ball before it is updated.

    python benchmarks/baseline_learning.py [--episodes 20000] [--seeds 4] [--only UCBVI]
"""

import argparse

import numpy as np

import kernelrl as krl
from _common import environment, report
from peers import Peer, install

BASELINES = ("OptQL", "AdaptiveQL", "UCBVI")


def total(name, episodes, seed):
    """Total reward of one run of kernelrl."""
    agent = getattr(krl, name).preset("text")
    return float(agent.fit(environment(), episodes, seed=seed, progress=False).returns.sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--only", choices=BASELINES, action="append")
    options = parser.parse_args()
    install()
    rows = []
    for name in options.only or BASELINES:
        peer = Peer(name).play(options.episodes)[1]
        rows.append(
            {"agent": name, "setting": "rlberry 0.1", "total reward": peer, "standard deviation": "–", "seeds": 1}
        )
        rewards = np.array([total(name, options.episodes, seed) for seed in range(options.seeds)])
        rows.append({
            "agent": name, "setting": "as in the text", "total reward": float(rewards.mean()),
            "standard deviation": f"{rewards.std(ddof=1):.4g}", "seeds": len(rewards),
        })  # fmt: skip
    report("baseline_learning", f"Total reward in {options.episodes} episodes of TwinRooms", rows)


if __name__ == "__main__":
    main()
