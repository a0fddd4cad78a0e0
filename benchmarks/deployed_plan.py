"""The plan of the policy to deploy of exact agents: processor time of the first `act` after learning.

If a commit is given, also with that version of the package, and then the largest difference of Q at 500 states and all
steps. The agent is exact Greedy-Kernel-UCBVI; the plan depends on its data only.

    python benchmarks/deployed_plan.py [--samples 100000] [--before COMMIT]
"""

import argparse
import tempfile

import numpy as np

from _common import H, report
from _versions import ROOT, run, versions

CODE = """
import json, sys, time
import numpy as np
sys.path.insert(0, {benchmarks!r})
import _common
state = np.array([0.5, 0.5])
warm = _common.agent("GreedyKernelUCBVI", stationary={stationary})
warm.fit(_common.environment(), 2, seed=0, progress=False)
warm.act(state, step=0)
agent = _common.agent("GreedyKernelUCBVI", stationary={stationary})
agent.fit(_common.environment(), {episodes}, seed=0, progress=False)
start = time.process_time()
agent.act(state, step=0)
spent = time.process_time() - start
states = np.random.default_rng(0).random((500, 2)) * [2.0, 1.0]
q = [agent.deployed_q(states, h).tolist() for h in range(_common.H)]
print(json.dumps([spent, _common.resident_megabytes(), q]))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--before", help="a commit to compare with")
    options = parser.parse_args()
    rows = []
    with versions(options.before) as sources, tempfile.TemporaryDirectory() as cache:
        for stationary in (True, False):
            setting = {"benchmarks": str(ROOT / "benchmarks"), "stationary": stationary}
            code = CODE.format(**setting, episodes=options.samples // H)
            found = {name: run(code, source, f"{cache}/{name}") for name, source in sources.items()}
            row = {"data": "pooled" if stationary else "per step", "samples": options.samples // H * H}
            row |= {f"{name}, CPU s": result[0] for name, result in found.items()}
            row |= {"peak memory, MB": found["now"][1]}
            if "before" in found:
                row["times faster"] = found["before"][0] / found["now"][0]
                row["largest difference"] = float(np.abs(np.array(found["before"][2]) - found["now"][2]).max())
            rows.append(row)
    notes = ["to reach with 100,000 samples: 20 s, differences of at most 1e-6"]
    report("deployed_plan", "The plan of the policy to deploy of exact agents on TwinRooms", rows, notes)


if __name__ == "__main__":
    main()
