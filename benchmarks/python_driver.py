"""The time of a step of the Python driver on CartPole, besides the environment's own, and where it is spent.

Processor time in microseconds per step, Greedy-Kernel-UCBVI on representatives, the best of three runs. With a commit,
that version is measured in the same run:

    python benchmarks/python_driver.py [--before COMMIT]
"""

import argparse
import tempfile

from _common import report
from _versions import run, versions

CODE = """
import cProfile, json, pstats, time, warnings
import gymnasium as gym, kernelrl as krl, numpy as np
warnings.simplefilter("ignore")
env = gym.make("CartPole-v1")
make = lambda: krl.GreedyKernelUCBVI.preset(
    "text", bandwidth=0.5, representatives=0.5, bonus_scale=0.1, horizon=100, reward_range="auto"
)
make().fit(env, 2, seed=0, progress=False)
fits, alone = [], []
for _ in range(3):
    start = time.process_time()
    history = make().fit(env, 300, seed=1, progress=False)
    steps = int(history.lengths.sum())
    fits.append((time.process_time() - start) / steps)
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(2, size=steps).tolist()
    start = time.process_time()
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    alone.append((time.process_time() - start) / steps)
profile = cProfile.Profile()
profile.runcall(make().fit, env, 300, seed=1, progress=False)
parts = {}
for (file, line, name), (calls, _, own, *_) in pstats.Stats(profile).stats.items():
    place = file.rpartition("kernelrl/")[2] if "kernelrl/" in file else "others"
    place = "environment" if "gymnasium" in file else place
    parts[place] = parts.get(place, 0.0) + own
total = float(history.returns.sum())
print(json.dumps({"fit": min(fits), "environment": min(alone), "returns": total, "parts": parts}))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", help="a commit to compare with")
    rows, notes, parts = [], [], {}
    with versions(parser.parse_args().before) as sources, tempfile.TemporaryDirectory() as cache:
        for name, source in sources.items():
            found = run(CODE, source, cache)
            above = 1e6 * (found["fit"] - found["environment"])
            rows.append(
                {
                    "version": name, "µs per step": 1e6 * found["fit"], "environment": 1e6 * found["environment"],
                    "above it": above, "total return": found["returns"],
                }
            )  # fmt: skip
            parts[name] = found["parts"]
    if len(rows) == 2:
        notes.append(f"now/before, above the environment: {rows[1]['above it'] / rows[0]['above it']:.2f}")
    whole = sum(parts["now"].values())
    largest = sorted(parts["now"].items(), key=lambda part: -part[1])[:8]
    notes.append("Where it goes (shares under a profiler): " + ", ".join(f"{p} {t / whole:.0%}" for p, t in largest))
    report("python_driver", "A step of the Python driver over CartPole", rows, notes)


if __name__ == "__main__":
    main()
