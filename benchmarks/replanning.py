"""What planning less often costs and saves: TwinRooms as in the paper, `replan` "episode", 1.01 and "doubling".

CPU seconds, number of plans and total reward of Kernel-UCBVI (preset "text", representatives) and UCBVI (20×20 cells):

    python benchmarks/replanning.py [--episodes 50000] [--seeds 3] [--before COMMIT]

The default is 10,000 episodes of one seed. With a commit, that version is measured in the same run.
"""

import argparse
import tempfile

from _common import report
from _versions import run, versions

CODE = """
import json, time, warnings
import gymnasium as gym, kernelrl as krl
warnings.simplefilter("ignore")
env, found = gym.make("kernelrl/TwinRooms-v0"), []
for name in ("KernelUCBVI", "UCBVI"):
    for replan in ("episode", 1.01, "doubling"):
        try:
            make = lambda: getattr(krl, name).preset("text", replan=replan)
            make().fit(env, 3, seed=0, progress=False)
        except ValueError:
            continue  # an earlier version without it
        for seed in range({seeds}):
            agent, start = make(), time.process_time()
            history = agent.fit(env, {episodes}, seed=seed, progress=False)
            seconds = time.process_time() - start
            plans = int(agent.model.plan.clock[0])
            row = {{"agent": name, "replan": str(replan), "seed": seed, "seconds": seconds, "plans": plans}}
            found.append(row | {{"total reward": float(history.returns.sum())}})
print(json.dumps(found))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--before", help="a commit to compare with")
    given, rows = parser.parse_args(), []
    with versions(given.before) as sources, tempfile.TemporaryDirectory() as cache:
        for name, source in sources.items():
            for row in run(CODE.format(seeds=given.seeds, episodes=given.episodes), source, cache):
                rows.append({"version": name} | row | {"ms per plan": 1e3 * row["seconds"] / row["plans"]})
    report("replanning", f"Planning less often: {given.episodes:,} episodes of TwinRooms", rows, [])


if __name__ == "__main__":
    main()
