"""How often the intervals of reports over several problems hold the truth, in simulated experiments, normal scores."""

import numpy as np

from _common import report
from kernelrl.reporting.across.statistics import improvement, interquartile_mean

EXPERIMENTS, DRAWS = 1000, 500


def main():
    rows = []
    for problems in (1, 3, 6, 12):
        for seeds in (2, 3, 5, 10, 20):
            held = np.zeros(2)
            for experiment in range(EXPERIMENTS):
                rng = np.random.default_rng([problems, seeds, experiment])
                first, second = ([rng.normal(size=seeds) for _ in range(problems)] for _ in range(2))
                mean = interquartile_mean(first, DRAWS)
                better = improvement(list(zip(first, second, strict=True)), DRAWS)
                held += mean.low <= 0 <= mean.high, better.low <= 0.5 <= better.high
            shares = dict(zip(("interquartile mean", "probability of improvement"), held / EXPERIMENTS, strict=True))
            rows.append({"problems": problems, "seeds": seeds, **{name: float(v) for name, v in shares.items()}})
    report("intervals", "Share of 95 % intervals of the stratified bootstrap that hold the truth", rows)


if __name__ == "__main__":
    main()
