"""Exploration bonuses: `Simplified`, `Full` and `Joint` for the kernel agents, and what one of your own is made of."""

from kernelrl.bonuses.interface import add_values, count, lower_value, value
from kernelrl.bonuses.problem import BonusProblem
from kernelrl.bonuses.smoothed import Bonus, Full, Joint, Simplified

__all__ = ["Bonus", "BonusProblem", "Full", "Joint", "Simplified", "add_values", "count", "lower_value", "value"]
