"""Exploration bonuses: `Simplified`, `Full` and `Joint` for the kernel agents, and what one of your own is made of."""

from kernelrl.bonuses.interface import lower_value, value
from kernelrl.bonuses.smoothed import Bonus, Full, Joint, Simplified

__all__ = ["Bonus", "Full", "Joint", "Simplified", "lower_value", "value"]
