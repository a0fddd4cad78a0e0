"""What a user may write with types checked: `make lint` runs mypy --strict on it, and `test_types.py` runs it."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import numpy.typing as npt

import kernelrl as krl

Floats = npt.NDArray[np.float64]


def metrics() -> list[krl.metrics.Lp]:
    box = krl.metrics.Lp(2.0, scale="box")
    folded = krl.metrics.Folded(krl.envs.twin_rooms_fold, box, defect=0.0)
    own: krl.metrics.Lp = krl.metrics.resolve_metric("chebyshev")
    inverse: Floats = box.inverse_scale(np.zeros(2), np.ones(2))
    assert inverse.shape == (2,) and folded.bounded
    return [box, own]


def kernels() -> float:
    power: krl.kernels.Kernel = krl.kernels.ExponentialPower(3.0)
    known = krl.kernels.resolve_kernel("gaussian")
    total: float = power.g4 + known.reach(1e-9) + krl.kernels.Compact().C1
    return total


def bonuses() -> tuple[krl.bonuses.Bonus, ...]:
    return krl.bonuses.Simplified(root=0.05, count=0.01), krl.bonuses.Full(delta=0.1), krl.bonuses.Joint(episodes=100)


def theory() -> float:
    answer = krl.theory.summarise("kernelrl/Ramp-v0", 100)
    problem = krl.theory.Problem(
        horizon=2, actions=2, widths=(1.0,), sigma=0.1, beta=0.01, C1=1.0, C2=1.0, lipschitz=(1.0, 0.5),
        constants=(0.5, 1.0), pooled=True,
    )  # fmt: skip
    rate: float = krl.theory.regret.regret_exponent(0.2, 2, 2)
    cover: float = krl.theory.covering.log_box_covering((1.0, 2.0), 0.1)
    assert problem.horizon == answer["horizon"]
    return rate + cover


def agents(env: gym.Env[Floats, int]) -> float:
    bandwidth = krl.schedules.Power(start=0.2, minimum=0.05, exponent=0.2)
    agent = krl.KernelUCBVI(bandwidth=bandwidth, kernel="compact", metric="manhattan", bonus=bonuses()[0])
    history: krl.History = agent.fit(env, 2, seed=0)
    values: Floats = agent.values(np.zeros((1, 1)), 0)
    action: int = agent.act([0.5], 1)
    others: list[krl.Agent] = [
        krl.UCBVI(bins=3),
        krl.GreedyUCBVI(bins=3),
        krl.OptQL(bins=3),
        krl.AdaptiveQL(),
        krl.AdaMB(),
    ]
    return float(history.returns.sum() + values[0] + action + len(others))


if __name__ == "__main__":
    metrics(), kernels(), theory()
    print(agents(gym.make("kernelrl/Ramp-v0")))
