"""Exploration bonuses: `Simplified`, `Full` and `Joint` for the kernel agents."""

from kernelrl.bonuses.smoothed import AsRun, Full, Joint, Simplified

__all__ = ["AsRun", "Full", "Joint", "Simplified"]
