"""What is seen in each table and figure, in a sentence or two; nothing that the intervals do not support.

Agents that do not have all problems are not ranked with the others: their problems may be easier.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kernelrl.reporting.across.overview import REACH, Overview
from kernelrl.reporting.across.statistics import Estimate

__all__ = [
    "about_efficiency", "about_improvement", "about_means", "about_memory", "about_profiles", "about_seeds",
    "about_table", "about_time", "geometric_mean", "listed", "megabytes", "number", "percent", "two_figures",
    "with_interval",
]  # fmt: skip


def listed(names: Sequence[str]) -> str:
    """Names in a row: "a, b and c"; with semicolons if there are commas in them."""
    comma = "; " if any("," in name for name in names) else ", "
    return names[0] if len(names) == 1 else f"{comma.join(names[:-1])} and {names[-1]}"


def number(value: float, digits: int = 2) -> str:
    """A fraction or a probability."""
    text = f"{value:,.{digits}f}"
    return text.replace("-", "−") if text.strip("-0.") else text.removeprefix("-")


def with_interval(estimate: Estimate) -> str:
    """A number with its interval, if it has one."""
    if math.isnan(estimate.low):
        return number(estimate.value)
    return f"{number(estimate.value)} [{number(estimate.low)}, {number(estimate.high)}]"


def percent(share: float) -> str:
    """A share in percent."""
    return f"{100 * share:.0f} %"


def two_figures(value: float) -> str:
    """A time or a size, with two figures."""
    return f"{value:,.0f}" if value >= 10 else f"{float(f'{value:.2g}'):g}"


def megabytes(size: float) -> str:
    """A size in megabytes; nobody compares small ones."""
    return two_figures(size) if size >= 0.1 else "< 0.1"


def problems_in(count: int) -> str:
    """A number of problems."""
    return f"{count} problem{'s' if count != 1 else ''}"


def about_seeds(overview: Overview) -> str:
    """How far the intervals can be trusted."""
    n = overview.least_seeds
    if n == 1:
        return (
            "Where an agent has one seed on a problem there are no intervals, and no difference can be told from noise."
        )
    if n < 10:
        return (
            f"With {n} seeds per problem the bootstrap's intervals are too narrow: in simulations with six "
            "problems they held in 79 % of cases with 2 seeds, in 87 % with 3 and in 92 % with 5, not in 95 %."
        )
    return ""


def about_table(overview: Overview) -> str:
    """On how many problems each agent is the best, or not told from the best."""
    if len(overview.labels) == 1:
        return f"{overview.labels[0]} is the only agent, so there is nothing to compare."
    m = len(overview.problems)
    best, good = (
        {
            label: sum(overview.cells[p.label, label].place in places for p in overview.problems_of(label))
            for label in overview.labels
        }
        for places in (("best",), ("best", "close"))
    )
    order = sorted(overview.labels, key=lambda label: (-good[label], -best[label]))
    told = [label for label in order if good[label]]
    counts = [
        f"{label} on {good[label]}{f' of {problems_in(m)}' if i == 0 else ''}"
        + (f" (the best on {best[label]})" if best[label] else "")
        for i, label in enumerate(told)
    ]
    cells = overview.cells
    if all(cell.place in ("best", "") for cell in cells.values()):
        most = f"{told[0]} has the highest mean on {best[told[0]]} of {problems_in(m)}"
        return f"{most}. With so few seeds nothing can be said about differences."
    none = [label for label in order if not good[label]]
    said = f"Agents that are the best or not significantly worse than the best: {listed(counts)}"
    said += f"; on none {listed(none)}." if none else "."
    few = overview.least_seeds
    return f"{said} With {few} seeds only large differences can be detected." if 1 < few < 5 else said


def about_means(overview: Overview) -> str:
    """Who has the highest interquartile mean, and from whom it is apart."""
    ranked = sorted(overview.everywhere, key=lambda label: -overview.means[label].value)
    parts = []
    if not ranked:
        parts.append("No agent has finished runs on every problem, so these means are of different problems.")
    elif len(ranked) == 1:
        parts.append(f"{ranked[0]} has an interquartile mean of {with_interval(overview.means[ranked[0]])}.")
    else:
        best = overview.means[ranked[0]]
        said = f"{ranked[0]} has the highest interquartile mean, {with_interval(best)}"
        known = [label for label in ranked[1:] if not math.isnan(overview.means[label].high)]
        apart = [label for label in known if round(overview.means[label].high, 2) < round(best.low, 2)]  # as shown
        near = [label for label in known if label not in apart]
        if math.isnan(best.low) or not known:
            said += "; without intervals it is not known whether others differ from it by more than noise"
        elif len(known) < len(ranked) - 1:
            unknown = [label for label in ranked[1:] if label not in known]
            said += f"; its interval lies above {those_of(apart)}" if apart else ""
            said += f"; it overlaps {those_of(near)}" if near else ""
            said += f"; of {listed(unknown)} there is no interval"
        elif not near:
            said += "; its interval lies above those of all others"
            said += " that have every problem" if len(ranked) < len(overview.labels) else ""
        elif not apart:
            said += f"; its interval overlaps {those_of(near)}, so this order may be noise"
        else:
            said += f"; its interval lies above {those_of(apart)} and overlaps {those_of(near)}"
        parts.append(f"{said}.")
    parts += fewer(overview)
    return " ".join(parts)


def those_of(names: Sequence[str]) -> str:
    """The intervals of some agents."""
    return f"{'that' if len(names) == 1 else 'those'} of {listed(names)}"


def fewer(overview: Overview) -> list[str]:
    """Agents that do not have all problems, those with the same problems together, beside the reference on these."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for label in overview.labels:
        if label not in overview.everywhere and overview.everywhere:
            groups.setdefault(tuple(p.label for p in overview.problems_of(label)), []).append(label)
    said = []
    for problems, labels in groups.items():
        numbers = listed([f"{label} ({with_interval(overview.means[label])})" for label in labels])
        verb, they = ("has", "it is") if len(labels) == 1 else ("have", "they are")
        text = f"{numbers} {verb} finished runs on {len(problems)} of {len(overview.problems)} problems"
        if labels[0] in overview.alike:
            text += f", where {overview.reference} has {with_interval(overview.alike[labels[0]])}"
        said.append(f"{text}; {they} not ranked with the others.")
    return said


def about_profiles(overview: Overview) -> str:
    """Whether one agent's profile is above all others, and where its band is apart from theirs."""
    labels = overview.everywhere or overview.labels
    at = telling(overview, labels)
    order = sorted(labels, key=lambda label: -overview.profiles[label].value[at])
    above = [label for label in order if overview.profiles[label].value[at]]
    none = [label for label in order if label not in above]
    shares = [f"{percent(overview.profiles[label].value[at])} of the runs of {label}" for label in above]
    if none:
        shares.append(f"none of {listed(none)}")
    said = f"More than {percent(overview.thresholds[at])} of the ceiling was collected by {listed(shares)}."
    if not above:
        values = np.array([overview.profiles[label].value for label in labels])
        nobody = int(np.argmax((values == 0).all(axis=0)))
        said = f"No run collected more than {percent(overview.thresholds[nobody])} of the ceiling."
    if len(overview.everywhere) < 2:
        return said
    values = np.array([overview.profiles[label].value for label in labels])
    top = [i for i in range(len(labels)) if (values[i] >= values - 1e-12).all()]
    if len(top) != 1:
        return f"{said} Profiles cross, so the order of agents depends on the threshold."
    best = labels[top[0]]
    others = np.array([overview.profiles[label].high for label in labels if label != best])
    apart = (overview.profiles[best].low > others.max(axis=0)).mean()
    said += f" The profile of {best} is nowhere below another"
    if math.isnan(overview.profiles[best].low[0]):
        return f"{said}."
    return f"{said}, and its band is apart from all others' at {percent(apart)} of the thresholds."


def telling(overview: Overview, labels: Sequence[str]) -> int:
    """The place of a round threshold that tells most of the profiles of `labels` apart; of several the widest apart."""
    places = [int(np.abs(overview.thresholds - round_one).argmin()) for round_one in (0.9, 0.75, 0.5, 0.25, 0.1)]
    values = np.array([overview.profiles[label].value for label in labels])
    return max(places, key=lambda at: (np.unique(values[:, at].round(2)).size, float(np.ptp(values[:, at]))))


def about_improvement(overview: Overview) -> str:
    """Against which agents the reference is better or worse, and where nothing is decided."""
    first = overview.reference
    rows = {b: entry for (a, b), entry in overview.improvements.items() if a == first}
    if not rows:
        return f"There is no agent that has runs on the same problems and seeds as {first}."
    groups: dict[str, list[str]] = {"better": [], "worse": [], "open": []}
    for label, entry in rows.items():
        p = entry.probability
        text = f"{label} ({with_interval(p)}{over(overview, entry.problems)})"
        groups["open" if not entry.decided else "better" if p.value > 0.5 else "worse"].append(text)
    parts = []
    if groups["better"]:
        parts.append(f"A run of {first} is more likely better than not against {listed(groups['better'])}.")
    if groups["worse"]:
        parts.append(f"A run of {first} is more likely worse than not against {listed(groups['worse'])}.")
    if groups["open"]:
        parts.append(f"Nothing is decided between {first} and {listed(groups['open'])}.")
    return " ".join(parts)


def over(overview: Overview, problems: int) -> str:
    """The number of problems, where it is not all."""
    return "" if problems == len(overview.problems) else f" on {problems_in(problems)}"


def about_efficiency(overview: Overview) -> str:
    """How many runs came to the level at all, and after how many episodes half of them had."""
    parts, never = [], []
    order = sorted(overview.labels, key=lambda label: -overview.reached[label].value[-1])
    for label in order:
        curve = overview.reached[label].value
        if curve[-1] == 0:
            never.append(label)
            continue
        half = overview.episodes[np.argmax(curve >= 0.5)] if curve[-1] >= 0.5 else math.inf
        when = f", half of all within {half:,.0f} episodes" if math.isfinite(half) else ""
        where = over(overview, len(overview.problems_of(label)))
        parts.append(f"{percent(curve[-1])} of the runs of {label}{where}{when}")
    if not parts:
        return f"No run reached {percent(REACH)} of the ceiling."
    said = f"{percent(REACH)} of the ceiling was reached by {'; '.join(parts)}."
    return f"{said} None of the runs of {listed(never)} did." if never else said


def about_time(overview: Overview) -> str:
    """The fastest and the slowest on the problems that all have."""
    shared = [p for p in overview.problems if all(label in p.runs for label in overview.labels)]
    if not shared:
        return "No problem has runs of all agents, so their times are of different problems."
    means = {
        label: geometric_mean([overview.cells[p.label, label].seconds for p in shared]) for label in overview.labels
    }
    order = sorted(means, key=lambda label: means[label])
    where = f"the {len(shared)} problems that all agents have"
    if len(shared) == 1:
        where = (
            f"{shared[0].label}, the only problem that all agents have"
            if len(overview.problems) > 1
            else (shared[0].label)
        )
    fast, slow = order[0], order[-1]
    said = f"On {where}, 1,000 episodes take {fast} {two_figures(means[fast])} s of learning"
    if len(order) > 1:
        said += f" and {slow} {two_figures(means[slow])} s"
        said += f", {two_figures(means[slow] / means[fast])} times as long" if means[fast] > 0 else ""
    return f"{said} (geometric means over problems)." if len(shared) > 1 else f"{said}."


def about_memory(overview: Overview) -> str:
    """Where each agent is largest."""
    parts = []
    for label in overview.labels:
        sizes = {p.label: overview.cells[p.label, label].megabytes for p in overview.problems_of(label)}
        if math.isnan(sum(sizes.values())):
            continue
        where = max(sizes, key=lambda name: sizes[name])
        on = f", on {where}" if len(sizes) > 1 else ""
        parts.append(f"{label} {megabytes(sizes[where])} MB{on}")
    return f"Most memory at the end of a run: {'; '.join(parts)}." if parts else "It is not known of these agents."


def geometric_mean(values: Sequence[float]) -> float:
    """0 if one is 0."""
    return float(np.exp(np.mean(np.log(values)))) if min(values) > 0 else 0.0
