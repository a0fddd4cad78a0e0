"""What the baselines learn beside rlberry 0.1's: total reward of 20,000 episodes, correction by correction.

rlberry runs one seed (its UCBVI takes minutes), kernelrl several. Each row below "as the authors ran it" takes back one
of their departures from the text; the last takes back all.

    python benchmarks/baseline_learning.py [--episodes 20000] [--seeds 4] [--only UCBVI]
"""

import argparse

import numpy as np

import kernelrl as krl
from _common import environment, report
from peers import Peer, install

CORRECTIONS = {
    "OptQL": [{"bonus": "simplified"}, {"ties": "random"}],
    "AdaptiveQL": [{"split": "after"}, {"bonus": "simplified"}, {"ties": "random"}],
    "UCBVI": [{"caps": "remaining"}, {"bonus": "simplified"}, {"ties": "random"}],
}


def total(make, episodes, seeds):
    """Total rewards by seed."""
    return np.array([make().fit(environment(), episodes, seed=s, progress=False).returns.sum() for s in range(seeds)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--only", choices=CORRECTIONS, action="append")
    options = parser.parse_args()
    install()
    rows = []
    for name in options.only or CORRECTIONS:
        cls = getattr(krl, name)
        peer = Peer(name).play(options.episodes)[1]
        rows.append(
            {"agent": name, "setting": "rlberry 0.1", "total reward": peer, "standard deviation": "–", "seeds": 1}
        )
        settings = [("as the authors ran it", lambda cls=cls: cls.preset("as-run"))]
        for change in CORRECTIONS[name]:
            label = "but " + ", ".join(f"{key}={value}" for key, value in change.items())
            settings.append((label, lambda cls=cls, change=change: cls.preset("as-run", **change)))
        settings.append(("as in the text", lambda cls=cls: cls.preset("text")))
        for label, make in settings:
            rewards = total(make, options.episodes, options.seeds)
            spread = f"{rewards.std(ddof=1):.4g}"
            rows.append({
                "agent": name, "setting": label, "total reward": float(rewards.mean()), "standard deviation": spread,
                "seeds": len(rewards),
            })  # fmt: skip
    report("baseline_learning", f"Total reward in {options.episodes} episodes of TwinRooms", rows)


if __name__ == "__main__":
    main()
