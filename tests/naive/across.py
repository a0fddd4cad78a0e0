"""The statistics over several problems, written out one number at a time."""

import itertools
import math

import numpy as np


def interquartile_mean(scores):
    every = sorted(x for problem in scores for x in problem)
    cut = int(0.25 * len(every))
    kept = every[cut : len(every) - cut]
    return sum(kept) / len(kept)


def optimality_gap(scores):
    every = [x for problem in scores for x in problem]
    return sum(max(0.0, 1.0 - x) for x in every) / len(every)


def profile(scores, threshold):
    """Each problem counts the same, however many runs it has."""
    return sum(sum(x > threshold for x in problem) / len(problem) for problem in scores) / len(scores)


def improvement(first, second):
    total = 0.0
    for X, Y in zip(first, second, strict=True):
        wins = [1.0 if x > y else 0.5 if x == y else 0.0 for x in X for y in Y]
        total += sum(wins) / len(wins)
    return total / len(first)


def reached(until, episodes):
    return sum(sum(k <= episodes for k in problem) / len(problem) for problem in until) / len(until)


def bootstrap(statistic, samples, drawn):
    """The 2.5 % and 97.5 % points of `statistic(*samples)` with the seeds `drawn`, (B, n_p) of each problem.

    Each of `samples` is one agent's numbers, a list of one list for each problem.
    """
    again = []
    for b in range(len(drawn[0])):
        chosen = [[[problem[i] for i in drawn[p][b]] for p, problem in enumerate(sample)] for sample in samples]
        again.append(statistic(*chosen))
    return quantile(again, 0.025), quantile(again, 0.975)


def quantile(values, q):
    """Between the two nearest of the sorted values, by their distances."""
    values, place = sorted(values), q * (len(values) - 1)
    below = math.floor(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (place - below) * (values[above] - values[below])


def episodes_until(fractions, level, window):
    out = []
    for run in fractions:
        first = math.inf
        for k in range(len(run), window - 1, -1):
            if np.mean(run[k - window : k]) >= level - 1e-12:
                first = k
        out.append(first)
    return out


def exchange_p_value(first, second):
    """All ways to divide the runs of each problem between two agents: the share as far from 1/2 as what is seen."""
    divisions = []
    for X, Y in zip(first, second, strict=True):
        both = [*X, *Y]
        chosen = list(itertools.combinations(range(len(both)), len(X)))
        divisions.append([([both[i] for i in c], [both[i] for i in range(len(both)) if i not in c]) for c in chosen])
    seen = abs(improvement(first, second) - 0.5)
    ways = list(itertools.product(*divisions))
    far = [abs(improvement(*zip(*way, strict=True)) - 0.5) >= seen - 1e-9 for way in ways]
    return sum(far) / len(ways)
