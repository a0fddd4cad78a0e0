"""`refine=True` of krl.certify and agent.certify: both bounds together, and what it is refused for."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import kernelrl as krl
from naive.ramp import RampValues

RAMP = {"env": "kernelrl/Ramp-v0", "reward_range": (0, 1), "cell": 0.01, "progress": False}
SLOPE = 0.5


def table(n, seed=0):
    """Transitions of Ramp at states in the middle, so that few of them end at a wall."""
    rng = np.random.default_rng(seed)
    x, a = rng.uniform(0.3, 0.7, n), rng.integers(2, size=n)
    y = np.clip(x + np.where(a == 1, 0.2, -0.2) + 0.02 * rng.normal(size=n), 0.0, 1.0)
    return pl.DataFrame({
        "state_0": x, "action": a, "reward": SLOPE * x, "next_state_0": y, "terminated": np.zeros(n, bool),
    })  # fmt: skip


def declared(reward="deterministic", **more):
    return krl.models.Displacement(reward=reward, reward_lipschitz=SLOPE, **more)


@pytest.mark.parametrize("reward", ["deterministic", lambda x, action: SLOPE * x[:, 0]], ids=["deterministic", "known"])
@pytest.mark.parametrize("of", ["state", "state-action"])
def test_bounds_hold_and_are_tighter(reward, of):
    data, model = table(20_000), declared(reward, reward_of=of)
    refined, coarse = (krl.certify(data, model, refine=refine, **{**RAMP, "cell": 0.05}) for refine in (True, False))
    x, exact = np.linspace(0.0, 1.0, 301)[:, None], RampValues(2)
    for h in range(2):
        lower, upper = refined.bounds(x, h)
        V = exact.values(x, h)
        assert (lower <= V + 1e-9).all()
        assert (V <= upper + 1e-9).all()
    gaps = [np.subtract(*c.bounds(x)[::-1]).mean() for c in (refined, coarse)]
    assert gaps[0] < gaps[1]
    assert refined.gap <= coarse.gap
    assert (refined.kept == coarse.kept).all()
    assert refined.cells == coarse.cells


def test_never_wider_than_the_cells_at_half_of_delta():
    data, model = table(300), declared()
    refined = krl.certify(data, model, refine=True, delta=0.1, **RAMP)
    halved = krl.certify(data, model, delta=0.05, **RAMP)
    x = np.linspace(0.0, 1.0, 101)[:, None]
    (a, b), (c, d) = refined.bounds(x), halved.bounds(x)
    assert (a >= c).all()
    assert (b <= d).all()


def test_an_agent_can_refine():
    agent = krl.KernelUCBVI(reward_range=(0, 1))
    agent.fit("kernelrl/Ramp-v0", episodes=200, seed=0, progress=False)
    lower, upper = agent.certify(declared(), cell=0.02, refine=True, progress=False).bounds([0.5])
    assert 0.0 <= lower <= RampValues(2).values([[0.5]], 0)[0] <= upper <= 2.0


@pytest.mark.parametrize(
    ("model", "words"),
    [(declared(variation=0.1), "refine=True .*variation=0.1"), (declared("noisy"), 'refine=True .*reward="noisy"')],
)
def test_what_it_is_not_for(model, words):
    with pytest.raises(ValueError, match=words):
        krl.certify(table(50), model, refine=True, **RAMP)
