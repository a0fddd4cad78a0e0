"""The largest value among the actions that a mask allows."""

from __future__ import annotations

import numpy as np


def best(q, mask, x) -> float:
    """max {q[a] : mask(x, a)}; of all actions if there is no mask, or if it allows nothing at x."""
    allowed = np.ones(len(q), bool) if mask is None else np.array([bool(mask(x, a)) for a in range(len(q))])
    return np.asarray(q)[allowed if allowed.any() else ~allowed].max()
