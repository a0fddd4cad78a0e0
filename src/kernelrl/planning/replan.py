"""When an algorithm plans: before each episode, also after each step, or when the data of a pair have doubled."""

__all__ = ["DOUBLING", "EACH_EPISODE", "EACH_STEP", "REPLAN"]

REPLAN = ("episode", "step", "doubling")  # as users write it; compiled code compares the numbers below
EACH_EPISODE, EACH_STEP, DOUBLING = range(len(REPLAN))
