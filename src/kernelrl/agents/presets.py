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

# Every argument is spelled out, so that no default reaches a preset.
ANY: dict[str, Any] = {
    "horizon": None, "reward_range": (0.0, 1.0), "bonus": "simplified", "bonus_scale": 1.0, "mask": None,
}  # fmt: skip
KERNEL: dict[str, Any] = {
    **ANY,
    "bandwidth": 0.025,
    "regularization": 0.01,
    "kernel": "gaussian",
    "metric": "euclidean",
    "lipschitz": None,
    "stationary": True,
    "representatives": 0.05,
    "max_representatives": None,
    "reading": "nearest",
    "action_bins": "auto",
    "action_bandwidth": None,
    "action_metric": "auto",
}
# λ_r = 10 and λ_p = 1 inside a room, and so L_h = 10·R_h.
ANALYSED: dict[str, Any] = {"stationary": False, "lipschitz": (10.0, 1.0), "representatives": None}
REPLAN: dict[str, Any] = {"replan": "episode"}

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    agent: {"text": {**KERNEL, **more}, "analysed": {**KERNEL, **ANALYSED, **more}}
    for agent, more in (("KernelUCBVI", REPLAN), ("GreedyKernelUCBVI", {}))
}

# The baselines: 20 cells along each axis.
BASELINE: dict[str, Any] = {**ANY, "delta": 0.05, "total_episodes": None}
THEORY: dict[str, Any] = {"bonus": "hoeffding", "total_episodes": 50_000}
GRID: dict[str, Any] = {**BASELINE, "bins": 20}
POOLED, BY_STEP = {"stationary": True}, {"stationary": False}
# Azar et al. (2017) count N and P̂ of pairs (x, a) over all steps, and in their algorithm 2 no Q rises.
LATEST, AZAR = {**REPLAN, "minimum": False}, {**REPLAN, "minimum": True}
TARGET: dict[str, Any] = {"bonus_place": "target"}
# AdaptiveQL's metric is the maximum norm in the box scaled to [0, 1]². TwinRooms' box is 2 × 1, so states at distance D
# there are at most √((2D)² + D²) = √5·D apart by the Euclidean norm, in which L_1 = λ_r·H = 200: L = 200·√5.
PRESETS |= {
    "UCBVI": {"text": {**GRID, **POOLED, **LATEST}, "analysed": {**GRID, **THEORY, **POOLED, **AZAR}},
    "GreedyUCBVI": {"text": {**GRID, **POOLED}, "analysed": {**GRID, **THEORY, **BY_STEP}},
    "OptQL": {"text": {**GRID, **TARGET}, "analysed": {**GRID, **THEORY, **TARGET}},
    "AdaptiveQL": {
        "text": {**BASELINE, "lipschitz": None},
        "analysed": {**BASELINE, **THEORY, "lipschitz": 200.0 * math.sqrt(5.0)},
    },
}


def options(agent: str, name: str) -> dict[str, Any]:
    """The hyper-parameters of the agent's preset."""
    known = PRESETS.get(agent, {})
    if name not in known:
        raise ValueError(f"preset: {agent} has {', '.join(known) or 'none'}, not {name!r}")
    return dict(known[name])
