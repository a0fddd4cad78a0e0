"""Lipschitz constants L_h of the optimal Q-functions (paper, lemma 1 and appendix E.2).

With rewards λ_r-Lipschitz and V_{H+1} = 0, steps h = 1 … H (index 0 … H-1 here):

    transitions λ_p-Lipschitz in the 1-Wasserstein distance    L_h = λ_r + λ_p·L_{h+1} = Σ_{i=0}^{H-h} λ_r·λ_p^i
    transitions λ_p-Lipschitz in total variation               L_h = λ_r + λ_p·(H-h)

Total variation is ½‖·‖₁: |∫V d(μ-ν)| ≤ (sup V - inf V)·TV, and V_{h+1} lies in [0, H-h]. The first grows like λ_p^H
when λ_p > 1, the second never faster than H. The paper prints the exponent of the first as H-h' in one place and h'-h
in another, which is the same sum. If only the reward of the last step is not zero, L_h = λ_r·λ_p^{H-h} (not λ_r as
printed: take x' = 2x).

If L_1 is not known, log k can be used instead in episode k: the algorithm is optimistic once log k ≥ L_1, that is,
after e^{L_1} episodes, each of which costs at most H.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["final_reward_lipschitz", "total_variation_lipschitz", "unknown_lipschitz", "wasserstein_lipschitz"]

Floats = npt.NDArray[np.float64]


def checked(name: str, value: float) -> float:
    """`value` if it is finite and at least 0, or an error that names it."""
    if not (math.isfinite(value) and value >= 0.0):
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    return float(value)


def wasserstein_lipschitz(reward: float, transition: float, horizon: int) -> Floats:
    """L_h (H,) for rewards λ_r- and transitions λ_p-Lipschitz in the 1-Wasserstein distance."""
    reward, transition = checked("reward", reward), checked("transition", transition)
    L = np.zeros(horizon)
    following = 0.0
    for h in range(horizon - 1, -1, -1):
        L[h] = following = reward + transition * following
    return L


def total_variation_lipschitz(reward: float, transition: float, horizon: int) -> Floats:
    """L_h (H,) for transitions λ_p-Lipschitz in total variation, which is ½‖·‖₁."""
    reward, transition = checked("reward", reward), checked("transition", transition)
    return reward + transition * np.arange(horizon - 1.0, -1.0, -1.0)


def final_reward_lipschitz(reward: float, transition: float, horizon: int) -> Floats:
    """L_h (H,) where only the last step's reward is not zero."""
    reward, transition = checked("reward", reward), checked("transition", transition)
    return reward * transition ** np.arange(horizon - 1.0, -1.0, -1.0)


def unknown_lipschitz(episode: int) -> float:
    """log k, used for an unknown L_1 in episode k ≥ 1; it is large enough after e^{L_1} episodes."""
    if episode < 1:
        raise ValueError(f"episode must be at least 1, got {episode!r}")
    return math.log(episode)
