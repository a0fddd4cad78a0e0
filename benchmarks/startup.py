"""How long a user waits: importing, and the first finished episode with an empty and with a filled compile cache.

Processor time of a separate process; the best of three, except for cold starts. With a commit, that version is measured
in the same run:

    python benchmarks/startup.py [--before COMMIT]
"""

import argparse
import tempfile

from _common import report
from _versions import run, versions

IMPORT = "import time; import {what}; print(time.process_time())"
EPISODE = """
import time, warnings, gymnasium as gym, kernelrl as krl
warnings.simplefilter("ignore")
agent = krl.{agent}.preset("text", **{options})
agent.fit(gym.make("kernelrl/TwinRooms-v0"), 1, seed=0, progress=False)
print(time.process_time())
"""
EXACT = {"representatives": None, "lipschitz": 10.0}
AGENTS = {
    "Kernel-UCBVI, representatives": ("KernelUCBVI", {}),
    "Kernel-UCBVI, exact": ("KernelUCBVI", EXACT),
    "Greedy-Kernel-UCBVI, representatives": ("GreedyKernelUCBVI", {}),
    "Greedy-Kernel-UCBVI, exact": ("GreedyKernelUCBVI", EXACT),
}


def measure(source):
    """Processor seconds by what was done."""
    found = {}
    with tempfile.TemporaryDirectory() as shared:
        for what in ("numpy", "numba", "gymnasium", "kernelrl"):
            found[f"import {what}"] = min(run(IMPORT.format(what=what), source, shared) for _ in range(3))
    for name, (agent, options) in AGENTS.items():
        with tempfile.TemporaryDirectory() as cache:
            code = EPISODE.format(agent=agent, options=options)
            found[f"{name}: first episode, cold"] = run(code, source, cache)
            found[f"{name}: first episode, from the cache"] = min(run(code, source, cache) for _ in range(3))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", help="a commit to compare with")
    with versions(parser.parse_args().before) as sources:
        measured = {name: measure(source) for name, source in sources.items()}
    rows = []
    for what, seconds in measured["now"].items():
        row = {"what": what, "seconds": seconds}
        if "before" in measured:
            row |= {"before": measured["before"][what], "now/before": seconds / measured["before"][what]}
        rows.append(row)
    report("startup", "What a user waits for, processor seconds", rows)


if __name__ == "__main__":
    main()
