"""Edited files of agents, compiled and not compiled (see `edited_files`)."""

from __future__ import annotations

from pathlib import Path

import edited_files
from soak_parts.outcome import Outcome


def run(scale: float, folder: Path, count: int) -> Outcome:
    """Try `count` edits of every kind of agent, scaled."""
    outcome = Outcome()
    for name, trials in edited_files.soak(folder, max(2, round(count * scale)), seed=11).items():
        for trial in trials:
            outcome.count("files")
            outcome.count(trial.kind)
            if trial.kind not in ("refused", "works"):
                outcome.failed.append(f"{name} {trial.number}: {trial.words}: {trial.result}")
    return outcome
