"""Three ways to build an algorithm of the paper's experiment.

`krl.KernelUCBVI.preset(name, **changes)`, and likewise for the other agents, where `name` is

    "text"       as the paper's section 6 has it, and right where the text is silent: bonus 1/√C + R_h/C, values capped
                 at R_h, Euclidean metric, data pooled over the steps, no interpolation; a grid of 20 × 20 cells for
                 the baselines
    "as-run"     as the authors' program ran it: see `DEPARTURES`
    "analysed"   as the theorems have it: data per step and Lipschitz interpolation, for the baselines the bonuses of
                 their analyses and data per step, except that UCBVI pools them and takes the minimum with its earlier
                 Q, as Azar et al. do; it learns far more slowly

`changes` replaces or adds hyper-parameters, so that each difference can be tried alone:
`KernelUCBVI.preset("text", caps="horizon")`.
"""

from __future__ import annotations

import math
from typing import Any

from kernelrl.geometry.metrics import Lp

__all__ = ["DEPARTURES", "PRESETS", "options"]

DEPARTURES = {
    "metric": "coordinates are divided by the box's widths (2, 1), so that σ is 0.05 in x",
    "bonus": "1/√C + (1+β)·H/C; H for an action never tried, which so ranks below one tried once far away",
    "caps": "values are capped at H at every step",
    "hindsight": "a new representative does not see the samples of its neighbours before it",
    "far": "a state far from all representatives takes its nearest one's action",
    "max_representatives": "at most 500",
}

KERNEL = {"bandwidth": 0.025, "regularization": 0.01, "representatives": 0.05}
AS_RUN = {
    "metric": Lp(2, scale="box"), "bonus": "as-run", "caps": "horizon", "hindsight": False, "far": "nearest",
    "max_representatives": 500,
}  # fmt: skip
# λ_r = 10 and λ_p = 1 inside a room, and so L_h = 10·R_h.
ANALYSED = {"stationary": False, "lipschitz": (10.0, 1.0), "representatives": None}

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    agent: {"text": KERNEL, "as-run": {**KERNEL, **AS_RUN}, "analysed": {**KERNEL, **ANALYSED}}
    for agent in ("KernelUCBVI", "GreedyKernelUCBVI")
}

# The baselines: 20 cells along each axis. The authors' UCBVI counts with H at every step, as their Kernel-UCBVI does;
# no bonus of theirs exceeds the cap; the lowest action wins a tie; their AdaptiveQL splits a ball before updating it.
# One thing we do not do: their UCBVI expects an untried action to lead anywhere with the same probability.
GRID: dict[str, Any] = {"bins": 20}
THEORY: dict[str, Any] = {"bonus": "hoeffding", "total_episodes": 50_000}
# Azar et al. (2017) count N and P̂ of pairs (x, a), whatever the step, and their algorithm 2 lets no Q rise.
AZAR: dict[str, Any] = {"stationary": True, "minimum": True}
COUNTING: dict[str, dict[str, Any]] = {
    "text": GRID,
    "as-run": {**GRID, "bonus": "capped", "caps": "horizon", "ties": "lowest"},
    "analysed": {**GRID, **THEORY, "stationary": False},
}
# AdaptiveQL's metric is the maximum norm in the box scaled to [0, 1]². TwinRooms' box is 2 × 1, so states at distance D
# there are at most √((2D)² + D²) = √5·D apart by the Euclidean norm, in which L_1 = λ_r·H = 200: L = 200·√5.
PRESETS |= {
    "UCBVI": {**COUNTING, "analysed": {**GRID, **THEORY, **AZAR}},
    "GreedyUCBVI": COUNTING,
    "OptQL": {"text": GRID, "as-run": {**GRID, "bonus": "capped", "ties": "lowest"}, "analysed": {**GRID, **THEORY}},
    "AdaptiveQL": {
        "text": {},
        "as-run": {"bonus": "capped", "split": "before", "ties": "lowest"},
        "analysed": {**THEORY, "lipschitz": 200.0 * math.sqrt(5.0)},
    },
}


def options(agent: str, name: str) -> dict[str, Any]:
    """The hyper-parameters of the agent's preset."""
    known = PRESETS.get(agent, {})
    if name not in known:
        raise ValueError(f"preset: {agent} has {', '.join(known) or 'none'}, not {name!r}")
    return {"reward_range": (0.0, 1.0), **known[name]}
