"""Environments that fail at every step of an episode, in every way, with every agent (see `test_recovery`)."""

from __future__ import annotations

from pathlib import Path

import test_recovery
from soak_parts.outcome import Outcome
from test_interface import AGENTS, CLASSES, H


def run(scale: float, folder: Path) -> Outcome:
    """Every agent × every fault × every step, and every variant × an exception at every step; fewer steps if scaled."""
    outcome = Outcome()
    every = max(1, round(1 / scale))
    steps = [-1, *range(0, H, every)]
    for what, (wrong, in_reset, error, message) in test_recovery.WRONG.items():
        chosen = AGENTS if what == "exception" else [name for name in AGENTS if AGENTS[name] in CLASSES.values()]
        for variant in chosen:
            for step in steps if in_reset else steps[1:]:
                outcome.count("faults")
                words = f"{variant}, {what} at step {step}"
                outcome.attempt(words, test_recovery.check_recovery, variant, wrong, step, error, message)
    return outcome
