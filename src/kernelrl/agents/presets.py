"""Two ways to build an algorithm of the paper's experiment.

`krl.KernelUCBVI.preset(name, **changes)`, and likewise for the other agents, where `name` is

    "text"       as in the paper's section 6: bonus 1/√C + R_h/C, values capped at R_h, Euclidean metric, data pooled
                 over the steps, no interpolation; a grid of 20 × 20 cells for the baselines
    "analysed"   as in the theorems: data per step and Lipschitz interpolation; for the baselines the bonuses of their
                 analyses and data per step, except that UCBVI pools its data and takes the minimum with its earlier Q,
                 as Azar et al. do; it learns far more slowly

`changes` replaces or adds hyper-parameters, so that each difference can be tried separately:
`KernelUCBVI.preset("text", stationary=False)`.

The authors' own program differs from the text; `benchmarks/as_run.py` is a copy of it.
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["PRESETS", "options"]

KERNEL = {"bandwidth": 0.025, "regularization": 0.01, "representatives": 0.05}
# λ_r = 10 and λ_p = 1 inside a room, and so L_h = 10·R_h.
ANALYSED = {"stationary": False, "lipschitz": (10.0, 1.0), "representatives": None}

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    agent: {"text": KERNEL, "analysed": {**KERNEL, **ANALYSED}} for agent in ("KernelUCBVI", "GreedyKernelUCBVI")
}

# The baselines: 20 cells along each axis.
GRID: dict[str, Any] = {"bins": 20}
THEORY: dict[str, Any] = {"bonus": "hoeffding", "total_episodes": 50_000}
# Azar et al. (2017) count N and P̂ of pairs (x, a) over all steps, and in their algorithm 2 no Q rises.
AZAR: dict[str, Any] = {"stationary": True, "minimum": True}
COUNTING: dict[str, dict[str, Any]] = {
    "text": GRID,
    "analysed": {**GRID, **THEORY, "stationary": False},
}
# AdaptiveQL's metric is the maximum norm in the box scaled to [0, 1]². TwinRooms' box is 2 × 1, so states at distance D
# there are at most √((2D)² + D²) = √5·D apart by the Euclidean norm, in which L_1 = λ_r·H = 200: L = 200·√5.
PRESETS |= {
    "UCBVI": {**COUNTING, "analysed": {**GRID, **THEORY, **AZAR}},
    "GreedyUCBVI": COUNTING,
    "OptQL": {"text": GRID, "analysed": {**GRID, **THEORY}},
    "AdaptiveQL": {"text": {}, "analysed": {**THEORY, "lipschitz": 200.0 * math.sqrt(5.0)}},
}


def options(agent: str, name: str) -> dict[str, Any]:
    """The hyper-parameters of the agent's preset."""
    known = PRESETS.get(agent, {})
    if name not in known:
        raise ValueError(f"preset: {agent} has {', '.join(known) or 'none'}, not {name!r}")
    return {"reward_range": (0.0, 1.0), **known[name]}
