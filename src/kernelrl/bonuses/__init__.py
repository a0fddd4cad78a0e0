"""Exploration bonuses: `Simplified`, `Full` and `Joint` for the kernel agents."""

from kernelrl.bonuses.smoothed import Full, Joint, Simplified

__all__ = ["Full", "Joint", "Simplified"]
