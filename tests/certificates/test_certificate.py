"""What users see of certificates: bounds, gaps, tests of the declaration, and errors that say what would work."""

from __future__ import annotations

import re
import tracemalloc

import gymnasium as gym
import numba
import numpy as np
import polars as pl
import pytest

import kernelrl as krl
from kernelrl.certifying import making, rewards
from kernelrl.certifying.sums import Offsets, Sums, relative_error
from kernelrl.experiments.certifying import logged_by
from rooms_walked import LOW, ROOMS, goal_reward, halved, table

ENV = "kernelrl/TwinRooms-v0"


def declared(reward="deterministic", **changes):
    return krl.models.Displacement(**{"rooms": ROOMS, "reward": reward, "reward_lipschitz": 10.0, **changes})


@pytest.fixture(scope="module")
def logged():
    return table(np.random.default_rng(0), 1000)


@pytest.fixture(scope="module")
def optimal():
    return krl.envs.solve(gym.make(ENV))


@pytest.fixture(scope="module")
def certificate(logged):
    return krl.certify(logged, declared(), env=ENV, reward_range=(0, 1), cell=0.02)


@pytest.mark.parametrize(
    ("reward", "variation"), [("deterministic", 0.0), ("noisy", 0.0), (goal_reward, 0.0), (goal_reward, 0.1)]
)
def test_values_of_twin_rooms_lie_inside(reward, variation, optimal):
    """V* at the centre and the corners of every cell, at every step."""
    rows = table(np.random.default_rng(1), 300, noisy=reward == "noisy")
    model = declared(reward, variation=variation)
    found = krl.certify(rows, model, env=ENV, reward_range=(0, 1), cell=0.05, progress=False)
    for h in range(20):
        for room in found.plan.cells.rooms:
            for shift in (-0.49, 0.0, 0.49):
                states = room.centres().reshape(-1, 2) + shift * room.side
                V, (lower, upper) = optimal.values(states, h), found.bounds(states, h)
                assert (lower <= V + 1e-4).all() and (V <= upper + 1e-4).all()


def test_bounds_say_something(optimal):
    """From 5,000 episodes, at the start; the reward being known."""
    rows = table(np.random.default_rng(2), 5000)
    found = krl.certify(rows, declared(goal_reward), env=ENV, cell=0.01, progress=False)
    lower, upper = found.bounds([0.1, 0.1])
    assert 0.1 < lower < optimal.values([[0.1, 0.1]], 0)[0] < upper < 8.0
    assert found.gap >= upper - lower


def test_known_means_of_noisy_rewards(logged):
    """Rewards of the data are not looked at where their mean is known."""
    rows = {**logged, "reward": 5.0 * np.random.default_rng(0).normal(size=len(logged["step"]))}
    model = declared(goal_reward)
    found = [krl.certify(data, model, env=ENV, cell=0.05).bounds([0.1, 0.1]) for data in (logged, rows)]
    assert found[0] == found[1]


def test_units(logged, certificate):
    """Rewards of other units give bounds in these units: r → 3r - 1 has V* → 3V* - (steps left)."""
    rows = {**logged, "reward": 3.0 * logged["reward"] - 1.0}
    other = krl.certify(rows, declared(reward_lipschitz=30.0), env=ENV, reward_range=(-1, 2), cell=0.02)
    states = np.array([[0.1, 0.1], [1.5, 0.5]])
    for h in (0, 7, 19):
        for mine, base in zip(other.bounds(states, h), certificate.bounds(states, h), strict=True):
            assert mine == pytest.approx(3.0 * base - (20 - h), abs=1e-9)
    assert other.gap == pytest.approx(3.0 * certificate.gap)


def test_read_outs(certificate, logged):
    lower, upper = certificate.bounds([0.1, 0.1])
    assert isinstance(lower, float) and 0.0 <= lower <= upper <= 20.0
    several = certificate.bounds([[0.1, 0.1], [1.1, 0.1]])
    assert several[0].shape == (2,) and several[1][0] == upper
    assert certificate.gap == pytest.approx(max(several[1] - several[0]))
    assert certificate.kept.sum() < 20_000 and certificate.censored.sum() <= certificate.kept.sum()
    assert np.allclose(certificate.cells, [[0.95 / 48, 0.02]] * 2)
    with pytest.raises(ValueError, match="lies in none of the rooms"):
        certificate.bounds([1.0, 0.5])
    with pytest.raises(ValueError, match="step must be one of"):
        certificate.bounds([0.1, 0.1], 20)
    again = krl.certify(
        logged, declared(), horizon=20, actions=4, reward_range=(0, 1), cell=0.02
    )  # without the environment
    assert again.bounds([0.1, 0.1]) == (lower, upper)


def test_single_precision(logged, certificate):
    """States that were stored with fewer digits give nearly the same bounds."""
    rows = {**logged, **{name: logged[name].astype(np.float32) for name in ("state", "next_state")}}
    again = krl.certify(rows, declared(), env=ENV, reward_range=(0, 1), cell=0.02)
    assert again.bounds([0.1, 0.1]) == pytest.approx(certificate.bounds([0.1, 0.1]), abs=0.05)


def test_declaration():
    """Flags a drift that halves in one region from 60 episodes, and not the right declaration."""
    for seed in range(5):
        right, wrong = (table(np.random.default_rng(seed), 60, *other) for other in ((), (halved,)))
        found = [krl.certify(rows, declared(), env=ENV, reward_range=(0, 1), cell=0.05) for rows in (right, wrong)]
        assert found[0].check_declaration() and found[0].check_declaration().reason == ""
        checked = found[1].check_declaration()
        assert not checked.holds and "displacements by action" in checked.reason


def test_a_law_that_changes_with_the_step():
    """States are the same at all steps, so that regions of states show nothing."""
    rng, step = np.random.default_rng(4), np.tile(np.arange(4), 1000)
    x = rng.uniform(0.3, 0.7, (4000, 1))
    rows = {"state": x, "action": np.zeros(4000), "reward": x[:, 0], "terminated": 0, "step": step}
    model = krl.models.Displacement(rooms=[((0.0,), (1.0,))], reward_lipschitz=1.0)
    for late, holds in ((0.1, True), (0.08, False)):
        rows["next_state"] = x + np.where(step == 3, late, 0.1)[:, None] + 0.01 * rng.normal(size=x.shape)
        found = krl.certify(rows, model, horizon=4, actions=1, reward_range=(0, 1), cell=0.1).check_declaration()
        assert found.holds == holds and ("step 3" in found.reason) != holds


def test_rows_must_be_in_order_of_time(logged):
    given = {"model": declared(), "env": ENV, "reward_range": (0, 1), "cell": 0.1}
    rows = {**logged, "terminated": np.zeros(20_000), "episode": np.repeat(np.arange(1000), 20)}
    some = {name: column[:400] for name, column in rows.items()}
    twice = {name: np.concatenate([some[name], rows[name][400:800]]) for name in rows}  # a second run may follow
    twice["episode"] = np.tile(some["episode"], 2)
    beside = np.argsort(np.tile(np.arange(200), 2), kind="stable")  # two devices in turn
    for fine in (some, twice, {name: column[beside] for name, column in some.items()}):
        assert krl.certify(fine, **given).gap <= 20.0
    swapped = np.arange(400)
    swapped[[25, 26]] = 26, 25
    wrong = {name: column[swapped] for name, column in some.items()}
    with pytest.raises(ValueError, match=r"row 26 .* is step 5 of its episode, and row 25, before it, step 6"):
        krl.certify(wrong, **given)
    assert krl.certify(wrong, ignore=["episode"], **given).gap <= 20.0


def test_no_row_may_be_there_twice(logged):
    """A copy of some episodes is an error that says where; steps at the border may be the same by chance."""
    given = {"model": declared(), "env": ENV, "reward_range": (0, 1), "cell": 0.1}
    rows = pl.DataFrame({
        "episode": np.repeat(np.arange(1000), 20), "step": logged["step"], "state": logged["state"],
        "action": logged["action"], "reward": logged["reward"], "next_state": logged["next_state"],
        "terminated": np.zeros(20_000, bool),
    })  # fmt: skip
    some = rows.head(400)
    for copied, first in ((some, 0), (some[40:60], 40), (some[40:45], 40)):
        with pytest.raises(ValueError, match=rf"begins at row 400 .* is the one at row {first} again.*unique"):
            krl.certify(pl.concat([some, copied]), **given)
    other = some.with_columns(pl.col("episode") + 1000)
    assert krl.certify(pl.concat([some, other]), **given).gap <= 20.0  # as the message says
    corner = some.head(1).with_columns(state=np.zeros((1, 2)), next_state=np.zeros((1, 2)), action=np.ones(1))
    assert krl.certify(pl.concat([corner, corner, some[20:]], how="vertical_relaxed"), **given).gap <= 20.0


def test_noisy_rewards_that_contradict_their_slope():
    rows = table(np.random.default_rng(5), 1000, noisy=True)
    with pytest.raises(ValueError, match=r"reward_lipschitz: near .* mean rewards differ by more"):
        krl.certify(rows, declared("noisy", reward_lipschitz=0.0), env=ENV, reward_range=(0, 1), cell=0.1)


def test_a_variation_that_is_too_small():
    """Displacements of +0.1 on the left and of -0.1 on the right, and a reward that tells where one is."""
    rng = np.random.default_rng(6)
    x = rng.uniform(0.2, 0.8, (40_000, 1))
    y = x + np.where(x < 0.5, 0.1, -0.1)
    rows = {"state": x, "action": np.zeros(len(x)), "reward": x[:, 0], "next_state": y, "terminated": 0}
    given = {"horizon": 3, "actions": 1, "cell": 0.01}
    line = {"rooms": [((0.0,), (1.0,))], "reward": lambda x, a: x[:, 0], "reward_lipschitz": 1.0}
    with pytest.raises(ValueError, match=r"variation: bounds from near and from far samples .* 0.05 is too small"):
        krl.certify(rows, krl.models.Displacement(variation=0.05, **line), **given)
    assert krl.certify(rows, krl.models.Displacement(variation=1.0, **line), **given).gap > 0.0


def test_of_agents():
    """From the transitions of an agent with automatic settings; others record them."""
    agent = krl.KernelUCBVI()
    history = agent.fit(ENV, 60, seed=0, transitions=True, progress=False)
    model = declared()
    with pytest.raises(ValueError, match="reward_range: bounds need"):
        agent.certify(declared("noisy"))
    found = agent.certify(model, cell=0.05, reward_range=(0, 1))
    same = krl.certify(history.transitions, model, env=ENV, reward_range=(0, 1), cell=0.05)
    assert found.bounds([0.1, 0.1]) == same.bounds([0.1, 0.1]) and found.gap == same.gap
    gap = found.policy_gap(agent, ENV, episodes=50)
    assert gap.bound >= gap.mean_gap and (gap.upper_values == found.bounds([0.1, 0.1])[1]).any()
    other = krl.KernelUCBVI.preset("text")
    other.fit(ENV, 1, seed=0, progress=False)
    with pytest.raises(ValueError, match=r"fit\(…, transitions=True\).*agent.certify\(model, transitions="):
        other.certify(model)


def test_of_the_recorded_transitions_of_an_agent():
    """An agent that keeps none takes them back, with the range of rewards that it was given."""
    agent = krl.KernelUCBVI.preset("text")
    recorded = agent.fit(ENV, 60, seed=0, transitions=True, progress=False).transitions
    assert agent.reward_range == (0.0, 1.0)
    found = agent.certify(declared(), cell=0.05, transitions=recorded)
    known, own = (krl.certify(recorded, declared(), env=ENV, reward_range=r, cell=0.05) for r in ((0, 1), None))
    assert found.reward_range == (0.0, 1.0) and found.bounds([0.1, 0.1]) == known.bounds([0.1, 0.1])
    assert own.reward_range[1] > 1.0  # which a table does not carry
    with pytest.raises(ValueError, match="is the one at row 0 again"):
        agent.certify(declared(), cell=0.05, transitions=pl.concat([recorded, recorded]))
    with pytest.raises(ValueError, match=r"row 0 .* reward"):
        agent.certify(declared(), cell=0.05, transitions=recorded.with_columns(reward=pl.lit(2.0)))


def test_memory(logged):
    with pytest.raises(MemoryError, match=r"cell=1e-06: .* GB may be taken; cell=.* fits"):
        krl.certify(logged, declared(), env=ENV, reward_range=(0, 1), cell=1e-6)


def test_memory_with_a_variation(monkeypatch):
    """Many pieces and radii are refused where what they take is not there, and not where there is much more."""
    rng = np.random.default_rng(0)
    x, a = rng.uniform(0.1, 0.9, (20_000, 2)), rng.integers(4, size=20_000)
    y = np.clip(x + 0.2 * rng.uniform(-1.0, 1.0, x.shape), 0.0, 1.0)
    rows = {"state": x, "action": a, "reward": 0.5 * x[:, 0], "next_state": y, "terminated": 0}
    model = krl.models.Displacement(
        [((0.0, 0.0), (1.0, 1.0))], variation=0.1, reward=lambda x, a: 0.5 * x[:, 0], reward_lipschitz=0.5
    )
    given = {"horizon": 3, "actions": 4, "reward_range": (0, 1), "cell": 0.01}
    tracemalloc.start()
    try:
        krl.certify(rows, model, **given)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    monkeypatch.setattr(making, "SHARE", 1.0)
    monkeypatch.setattr(making, "available_memory", lambda: taken)
    with pytest.raises(MemoryError, match=r"with variation=0.1, .* GB more; .* a larger cell takes less"):
        krl.certify(rows, model, **given)
    monkeypatch.setattr(making, "available_memory", lambda: 4.0 * taken)
    krl.certify(rows, model, **given)


@pytest.mark.parametrize("reward", ["deterministic", goal_reward])
@pytest.mark.parametrize("refine", [False, True])
def test_the_side_that_is_said_to_fit_does(reward, refine, monkeypatch):
    problem = making.Problem(np.zeros(2), np.array([2.0, 1.0]), 4, 0, 20, (0.0, 1.0))
    for size in np.geomspace(1e8, 1e10, 40):
        monkeypatch.setattr(making, "available_memory", lambda size=size: size)
        with pytest.raises(MemoryError, match="fits") as refused:
            making.check_cells(declared(reward), problem, 1e-4, refine)
        fits = float(re.search(r"cell=(\S+) fits", str(refused.value)).group(1))
        making.check_cells(declared(reward), problem, fits, refine)


def test_a_function_is_asked_in_slabs(monkeypatch):
    """Bounds do not depend on how many places a function is asked for at once, and these are few."""
    cells, asked = making.divide(declared().boxes(np.zeros(2), np.ones(2)), 0.07, np.zeros(2)), []

    def reward(x, action):
        asked.append(len(x))
        return goal_reward(x, action)

    found = []
    for most in (10**9, 1000):
        monkeypatch.setattr(rewards, "AT_ONCE", most)
        asked.clear()
        found.append(rewards.known_rewards(cells, reward, [0], 10.0, 0.0, 1.0, 0.0))
        assert max(asked) <= most
    for one, other in zip((*found[0].lower, *found[0].upper), (*found[1].lower, *found[1].upper), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_a_function_that_depends_on_the_action(logged):
    """It is an error where it was not declared, as bounds would be those of one action's rewards."""

    def moving(x, action):
        return goal_reward(x) * (action != 2)

    given = {"env": ENV, "reward_range": (0, 1), "cell": 0.1}
    with pytest.raises(ValueError, match=r'reward_of="state" says .* for the action 0 and 0 for 2; declare'):
        krl.certify(logged, declared(moving), **given)
    assert krl.certify(logged, declared(moving, reward_of="state-action"), **given).gap > 0.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rooms": []}, "rooms must be a list of boxes"),
        ({"rooms": [((0, 0), (1, 0))]}, "low < high"),
        ({"rooms": [((0, 0), (1, 1)), ((0.5, 0), (2, 1))]}, "touch or overlap"),
        ({"variation": -1}, "variation must be a finite number"),
        ({"reward": "random"}, "reward must be"),
        ({"reward_lipschitz": None}, "reward_lipschitz is needed"),
        ({"reward_of": "action"}, "reward_of must be one of"),
    ],
)
def test_declarations_that_cannot_be(changes, message):
    with pytest.raises(ValueError, match=message):
        declared(**changes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 2}, "delta must be"),
        ({"cell": 0}, "cell must be"),
        ({"reward_range": (0, 0.5)}, "row .* has the reward .*, outside"),
        ({"model": declared(rooms=None, reward_lipschitz=0.1)}, "reward_lipschitz: near .* differ by more"),
        ({"model": declared(rooms=[((0, 0), (0.95, 1))])}, "lies in none of the rooms"),
        ({"model": declared(rooms=[(0, 2)])}, "states have 2 coordinates"),
        ({"env": None}, "env: give an environment"),
        ({"model": declared(lambda x, a: np.zeros(3))}, "must return"),
        ({"model": declared(lambda x, a: goal_reward(x) * 2)}, "outside reward_range"),
    ],
)
def test_data_that_cannot_be(options, message, logged):
    given = {"model": declared(), "env": ENV, "reward_range": (0, 1), "cell": 0.05, **options}
    with pytest.raises(ValueError, match=message):
        krl.certify(logged, **given)


def test_ends_and_walls_that_were_not_declared(logged):
    given = {"model": declared(), "env": ENV, "reward_range": (0, 1), "cell": 0.05}
    ends = np.zeros(len(logged["step"]))
    ends[30] = 1
    with pytest.raises(ValueError, match="terminated: row 30"):
        krl.certify({**logged, "terminated": ends}, **given)
    jump = logged["next_state"].copy()
    jump[7] = LOW[1] if logged["state"][7, 0] < 1 else LOW[0]
    with pytest.raises(ValueError, match=r"row 7 .* from room"):
        krl.certify({**logged, "next_state": jump}, **given)
    with pytest.raises(TypeError, match="Discrete actions"):
        krl.certify(logged, declared(), env="kernelrl/Oil-v0")
    with pytest.raises(TypeError, match="model must be a declaration"):
        krl.certify(logged, "rooms", env=ENV)
    with pytest.raises(ValueError, match=r"^progress must be True, False or None, got 'x'"):
        krl.certify(logged, declared(), env=ENV, progress="x")
    agent = krl.RandomAgent()
    agent.fit(ENV, 1, seed=0, progress=False)
    with pytest.raises(ValueError, match=r"^progress must be True, False or None, got 'x'"):
        agent.certify(declared(), progress="x")


@pytest.mark.parametrize("shape", [(40,), (13, 20), (5, 6, 7)])
def test_rounding_of_sums_is_within_its_bound(shape):
    """Against sums of whole numbers, which are exact; the bound is not much too large either."""
    rng = np.random.default_rng(0)
    places = rng.integers(-4, 5, size=(30, len(shape)))
    places = np.unique(places, axis=0)
    counts = rng.integers(1, 10**5, size=len(places)).astype(float)
    sums = Sums(Offsets(places, counts), shape)
    field = rng.integers(0, 2**20, size=(2, *sums.needed)).astype(float)
    found, error = sums(field)
    exact = np.zeros((2, *shape))
    for place, count in zip(places - sums.low, counts, strict=True):
        exact += count * field[(slice(None), *(slice(p, p + m) for p, m in zip(place, shape, strict=True)))]
    off = np.abs(found - exact).reshape(2, -1).max(axis=1)
    assert (off <= error).all() and (error < 1e-9 * exact.reshape(2, -1).max(axis=1)).all()
    with pytest.raises(ValueError, match="factors 2, 3 and 5"):
        relative_error((7,))


def test_agents_with_masks_are_refused():
    """Bounds are on the best value of all actions, and theirs is that of the allowed ones."""
    agent = krl.RandomAgent(mask=numba.njit(lambda state, action: action != 1))
    agent.fit(ENV, 3, seed=0, progress=False)
    for call in (
        lambda: agent.certify(declared(), cell=0.1),
        lambda: agent.fit(ENV, 1, until_gap=1.0, model=declared(), cell=0.1),
        lambda: logged_by(agent),
    ):
        with pytest.raises(ValueError, match="certify: the agent has a mask"):
            call()
