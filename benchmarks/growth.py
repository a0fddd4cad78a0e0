"""How the time of an episode grows with the number of representatives.

Merge distances 0.1, 0.05, 0.03 and 0.02 on TwinRooms: once with the bandwidth at half the merge distance, so that the
number of neighbours of a representative hardly changes, and once with the bandwidth fixed at 0.025, where the work is
representatives × neighbours. Time is measured over the last quarter of the episodes, in turns.

    python benchmarks/growth.py [--episodes 4000]
"""

import argparse
import math

import kernelrl as krl
from _common import environment, report, seconds

MERGES = (0.1, 0.05, 0.03, 0.02)
BANDWIDTHS = {"half the merge distance": lambda merge: merge / 2, "0.025": lambda merge: 0.025}
TURNS = 4


def make(cls, merge, bandwidth):
    """An agent whose code is compiled."""
    make = getattr(krl, cls).preset
    make("text", bandwidth=bandwidth, representatives=merge).fit(environment(), 1, seed=1, progress=False)
    return make("text", bandwidth=bandwidth, representatives=merge)


def measure(cls, bandwidth_of, episodes):
    """One row per merge distance."""
    agents = [make(cls, merge, bandwidth_of(merge)) for merge in MERGES]
    for agent in agents:
        agent.fit(environment(), episodes - episodes // 4, seed=0, progress=False)
    spent = [0.0] * len(agents)
    for _ in range(TURNS):
        for i, agent in enumerate(agents):
            play = lambda agent=agent: agent.fit(environment(), episodes // 4 // TURNS, progress=False)  # noqa: E731
            spent[i] += seconds(play)[0]
    rows = []
    for merge, agent, time in zip(MERGES, agents, spent, strict=True):
        number = agent.number_of_representatives
        neighbours = float(agent.model.store.reps.weights.span[1, :number].mean())
        rows.append({
            "agent": cls, "merge distance": merge, "bandwidth": bandwidth_of(merge), "representatives": number,
            "neighbours": neighbours, "ms per episode": time / (episodes // 4) * 1e3,
            "ns per representative": time / (episodes // 4) / number * 1e9,
            "ns per representative × neighbour": time / (episodes // 4) / number / neighbours * 1e9,
        })  # fmt: skip
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=4000)
    episodes = parser.parse_args().episodes
    rows, notes = [], []
    for cls in ("KernelUCBVI", "GreedyKernelUCBVI"):
        for name, bandwidth_of in BANDWIDTHS.items():
            part = measure(cls, bandwidth_of, episodes)
            first, last = part[0], part[-1]
            growth = math.log(last["ms per episode"] / first["ms per episode"])
            exponent = growth / math.log(last["representatives"] / first["representatives"])
            notes.append(f"{cls}, bandwidth {name}: time grows as representatives to the power {exponent:.2f}")
            rows += part
    report("growth", f"Time of an episode of TwinRooms against representatives, {episodes} episodes", rows, notes)


if __name__ == "__main__":
    main()
