"""The settings of a kernel agent of which nothing is automatic and nothing is blended, as in the paper's section 6."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

GREEDY = {"metric": "euclidean", "bonus": "simplified", "reading": "nearest"}
KERNEL = {**GREEDY, "replan": "episode"}


def plain(agent: Any) -> Callable[..., Any]:
    """The class of a kernel agent with these defaults, those of them that it knows."""
    defaults = {name: value for name, value in KERNEL.items() if name in agent.hyper_parameters}
    return lambda **given: agent(**{**defaults, **given})
