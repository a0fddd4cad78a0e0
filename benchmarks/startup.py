"""How long a user waits: importing, and the first finished episode with an empty and with a filled compile cache.

Every figure is the wall-clock time of a process of its own; the best of several, but for the cold start.

    python benchmarks/startup.py
"""

import os
import subprocess
import sys
import tempfile
import time

from _common import report

EPISODE = """
import gymnasium as gym, kernelrl as krl
agent = krl.{agent}(bandwidth=0.025, representatives=None, lipschitz=10.0)
agent.fit(gym.make("kernelrl/TwinRooms-v0"), 1, seed=0, driver="{driver}", progress=False)
"""


def wait(code, cache, times=3):
    """The shortest wall-clock time of `python -c code`."""
    environment = {**os.environ, "XDG_CACHE_HOME": cache}
    measured = []
    for _ in range(times):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True)
        measured.append(time.perf_counter() - start)
    return min(measured)


def main():
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        for label, code in (
            ("python -c pass", "pass"),
            ("import numpy", "import numpy"),
            ("import numba", "import numba"),
            ("import gymnasium", "import gymnasium"),
            ("import kernelrl", "import kernelrl"),
            ("import kernelrl, name an agent", "import kernelrl; kernelrl.KernelUCBVI"),
        ):
            rows.append({"what": label, "seconds": wait(code, cache), "cache": "–"})
        for agent in ("GreedyKernelUCBVI", "KernelUCBVI"):
            for driver in ("compiled", "python"):
                code = EPISODE.format(agent=agent, driver=driver)
                what = f"{agent}: first episode, {driver} driver"
                cold = "empty" if driver == "compiled" else "has the other driver's"
                rows.append({"what": what, "seconds": wait(code, cache, 1), "cache": cold})
                rows.append({"what": what, "seconds": wait(code, cache), "cache": "filled"})
    warm = max(row["seconds"] for row in rows if row["cache"] == "filled")
    importing = next(row["seconds"] for row in rows if row["what"] == "import kernelrl")
    notes = [
        f"longest warm start: {warm:.2f} s (aim: 2 s on an idle core)",
        f"import kernelrl: {importing:.2f} s (aim: 1 s on an idle core)",
    ]
    report("startup", "What a user waits for", rows, notes)


if __name__ == "__main__":
    main()
