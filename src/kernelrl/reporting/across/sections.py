"""The parts of the overview: of each its sentence, charts, figure and table, and how its numbers are computed."""

from __future__ import annotations

from dataclasses import dataclass

from kernelrl.reporting.across import sentences, tables
from kernelrl.reporting.across.overview import REACH, Overview
from kernelrl.reporting.across.statistics import REPLICATIONS

__all__ = ["Section", "sections_of"]


@dataclass(frozen=True)
class Section:
    """One part of the overview."""

    key: str
    title: str
    seen: str
    """What is seen, in words."""
    how: str
    """How it is computed."""
    charts: tuple[str, ...] = ()
    rows: bool = False
    """Whether the charts have one row per agent, and therefore no legend."""
    figure: str = ""
    """The name of the figure's files."""
    alt: str = ""
    table: tables.Table | None = None


def sections_of(overview: Overview) -> list[Section]:
    """All parts, in order."""
    interval = f"Intervals: stratified bootstrap over seeds, 95 %, {REPLICATIONS:,} draws."
    found = [
        Section(
            "results", "Problems and agents", sentences.about_table(overview), RESULTS,
            table=tables.scores_table(overview), figure="problems", alt="Fraction of the ceiling, problems by agents",
        ),
        Section(
            "means", "Interquartile mean", sentences.about_means(overview), f"{MEANS} {interval}", ("means",), True,
            "means", "Interquartile mean of each agent with its interval",
        ),
        Section(
            "profiles", "Performance profiles", sentences.about_profiles(overview), f"{PROFILES} {interval}",
            ("profiles",), False, "profiles", "Share of runs above each fraction of the ceiling",
        ),
        Section(
            "efficiency", "Sample efficiency", sentences.about_efficiency(overview), f"{EFFICIENCY} {interval}",
            ("learning", "reached"), False, "efficiency",
            "Fraction of the ceiling while agents learn, and runs that reached nine tenths of it",
            tables.episodes_table(overview),
        ),
        Section(
            "time", "Learning time", sentences.about_time(overview), TIME, ("time",), True, "time",
            "Seconds of learning of each agent, one dot per problem", tables.time_table(overview),
        ),
        Section("memory", "Memory", sentences.about_memory(overview), MEMORY, table=tables.memory_table(overview)),
    ]  # fmt: skip
    if overview.improvements:
        improvement = Section(
            "improvement", "Probability of improvement", sentences.about_improvement(overview),
            f"{IMPROVEMENT} {interval}", ("improvement",), True, "improvement",
            f"Probability that a run of {overview.reference} is better than one of each other agent",
            tables.improvement_table(overview),
        )  # fmt: skip
        found.insert(3, improvement)
    return found


RESULTS = (
    "The fraction of the ceiling, (mean return − worst) / (best − worst) over all episodes of learning (where runs "
    "have a number of steps, over all steps: each episode counts by its length): mean over seeds, in brackets "
    "Student's 95 % interval of the mean. 1 is the best policy from the first episode on. ★ is the highest mean of a "
    "problem; ≈ is not significantly worse (paired t test over common seeds, corrected by Holm's method for all "
    "comparisons with the best in this table). – means no finished run. The interquartile mean and the optimality "
    "gap, the mean of max(0, 1 − fraction), are over all runs of all problems that an agent has, with stratified "
    "bootstrap intervals over seeds."
)
MEANS = (
    "The mean fraction of the ceiling over the runs of all problems, without the lowest and the highest quarter of the "
    "runs."
)
PROFILES = (
    "For each fraction τ the share of an agent's runs that collected more, each problem counting the same. Bands are "
    "pointwise."
)
IMPROVEMENT = (
    "The probability that a run of the one agent collects more than a run of the other on the same problem, ties as a "
    "half, mean over the problems that both have. ▲ and ▼: the interval excludes 1/2, and if runs are "
    "exchanged at random between the two agents, the probability is as far from 1/2 in less than 5 % of cases. Each "
    "statement holds by itself; they are not corrected for their number."
)
EFFICIENCY = (
    f"A run has reached {sentences.percent(REACH)} when the mean of its recent episodes is first at least that part of "
    "the ceiling. Recent episodes are the last fiftieth of a run's number of episodes, but at least 20, or a fifth "
    "where there are fewer than 100. The table has the median over seeds; runs that never got there count as later "
    "than all others, and where the median is one of them it says “not reached”. Curves on the left are interquartile "
    "means of recent fractions after equal shares of each problem's episodes; those on the right count runs, each "
    "problem the same. Bands are pointwise."
)
MEMORY = (
    "Megabytes of what an agent keeps at the end of a run, the most of all seeds: its data and its plan. Python, "
    "libraries and machine code come on top, about 300 MB. Of agents of other libraries it is not known."
)
TIME = (
    "Seconds of learning for 1,000 episodes, mean over seeds, without compiling. Episodes of different problems have "
    "different lengths, so compare within a problem."
)
