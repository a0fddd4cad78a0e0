"""The examples' own bonus, kernels, metric and schedule: by both drivers, in experiments, and what is said of mistakes.

`algorithms/test_own_parts_against_naive.py` compares what they compute with the equations.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, NamedTuple

import gymnasium as gym
import numba
import numpy as np
import pytest

import kernelrl as krl
from experiment_parts import call
from kernelrl.agents.guarantees import TheoryProblem
from kernelrl.agents.registry import registered
from kernelrl.experiments.config import read_experiment
from kernelrl.experiments.objects import build_agent
from kernelrl.reporting import tables
from kernelrl.theory.bonuses import Problem, joint_table
from kernelrl.theory.kernel_constants import check_kernel
from listening import LISTEN
from prepared import Prepared
from test_cache import edit, result_of, start_user

sys.path.append(str(Path(__file__).resolve().parent.parent / "examples"))

from own_bonus import LogBonus
from own_kernel import RationalForm, RationalQuadratic, Wendland
from own_metric import Walled
from own_schedule import Stages

only_compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled with the JIT disabled")
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SPACES = gym.spaces.Box(0.0, 1.0, (2,), np.float64), gym.spaces.Discrete(2)
OWN = {
    "bandwidth": Stages((0.2, 0.1), every=8),
    "kernel": Wendland(),
    "metric": Walled(1.0, 0.5),
    "bonus": LogBonus(0.05),
}
TABLES = {
    "bandwidth": '{name = "stages", from = "own_schedule", bandwidths = [0.2, 0.1], every = 8}',
    "kernel": '{name = "wendland", from = "own_kernel"}',
    "metric": '{name = "walled", from = "own_metric", wall = 1.0, detour = 0.5}',
    "bonus": '{name = "log", from = "own_bonus", scale = 0.05}',
}
EXPERIMENT = """
name = "own"
episodes = 12
seeds = 1
environment = {id = "kernelrl/TwinRooms-v0"}

[[agents]]
label = "mine"
agent = "KernelUCBVI"
""" + "\n".join(f"{name} = {table}" for name, table in TABLES.items())


def started(agent, horizon=3):
    agent.start(*SPACES, horizon, seed=0)
    return agent


# ------------------------------------------------------------------------------------------------------------ they work


@pytest.mark.parametrize("driver", ["compiled", "python"])
def test_both_drivers_and_files(driver, tmp_path):
    """By either driver, in parts and through a file, with a bandwidth that changes in between."""
    whole, agent = krl.KernelUCBVI(**OWN), krl.KernelUCBVI(**OWN)
    history = whole.fit("kernelrl/TwinRooms-v0", 12, seed=3, driver="compiled")
    agent.fit("kernelrl/TwinRooms-v0", 7, seed=3, driver=driver)
    agent.save(tmp_path / "agent.krl")
    loaded = krl.load(tmp_path / "agent.krl")
    assert {name: getattr(loaded, name) for name in OWN} == OWN and loaded.model.store.reps.merge == 0.2
    assert loaded.fit("kernelrl/TwinRooms-v0", 5, driver=driver).returns.tolist() == history.returns[7:].tolist()
    states = np.random.default_rng(0).random((5, 2))
    for name in ("counts", "bonuses", "q_values", "values"):
        assert getattr(loaded, name)(states, 4).tolist() == getattr(whole, name)(states, 4).tolist()
    assert loaded.model.settings.bonus.samples.tolist() == [220]  # what the last plan has seen


def test_experiments_and_reports(tmp_path):
    """By the command line, in processes that know of the modules from the experiment's file only."""
    for name in ("own_bonus", "own_kernel", "own_metric", "own_schedule"):
        (tmp_path / f"{name}.py").write_text((EXAMPLES / f"{name}.py").read_text())
    (tmp_path / "own.toml").write_text(EXPERIMENT)
    made = build_agent(read_experiment(tmp_path / "own.toml").agents[0])
    assert {name: getattr(made, name) for name in OWN} == OWN
    done = call("run", tmp_path / "own.toml", "--out", tmp_path / "results")
    assert done.returncode == 0, done.stderr
    run = tmp_path / "results/runs/mine/seed-0"
    stored = json.loads((run / "run.json").read_text())["configuration"]["hyper_parameters"]
    assert stored["bonus"] == {"name": "log", "from": "own_bonus", "scale": 0.05}
    curve = SimpleNamespace(label="mine", place=0, runs=[SimpleNamespace(seed=0, path=run)])
    page = tables.hyper_parameters(SimpleNamespace(curves=[curve]))
    for said in (
        "stages(bandwidths=[0.2, 0.1], every=8)",
        "wendland()",
        "walled(wall=1.0, detour=0.5)",
        "log(scale=0.05)",
    ):
        assert f" = {said}" in page


def test_they_are_listed():
    assert registered("bonus")["log"] == "scale·√(log(1+n)/C) + R_h·β/C with n samples so far."
    assert {"wendland", "rational-quadratic"} <= set(registered("kernel"))
    assert "walled" in registered("metric") and "stages" in registered("bandwidth")


def test_stages():
    assert [Stages((0.3, 0.2, 0.1), every=2)(k) for k in (0, 1, 2, 3, 4, 5, 99)] == [0.3, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1]
    assert started(krl.KernelUCBVI(bandwidth=Stages((0.3, 0.1)))).model.store.reps.merge == 0.2


# --------------------------------------------------------------------------------------------------- kernels and theory


def test_constants_of_the_theory():
    found, kernel = check_kernel(Wendland()), Wendland()
    assert found.admissible
    assert found.C1 == pytest.approx(kernel.C1, rel=1e-6) and found.C1 <= kernel.C1
    assert found.C2 == pytest.approx(kernel.C2, rel=1e-3) and found.C2 <= kernel.C2
    assert kernel(5.0) == 0.0 and kernel(4.99) > 0.0 and kernel.reach(1e-30) == 5.0
    slow = RationalQuadratic(2.0)
    assert slow.reach(1e-30) == math.inf and not slow.admissible
    assert not check_kernel(slow).C1 <= 1e6


def test_guarantees_follow_from_the_constants():
    joint = {"bandwidth": 0.2, "lipschitz": (0.3, 0.7), "reward_range": (0, 1), "bonus": krl.bonuses.Joint(0.1)}
    agent = started(krl.KernelUCBVI(kernel=Wendland(), representatives=None, **joint))
    g, L = Wendland(), (0.3 + 0.7 * 0.51, 0.51, 0.3)
    problem = Problem(3, 2, (1.0, 1.0), 0.2, 0.01, g.C1, g.C2, L, (0.3, 0.7), True, 0.0, 2.0)
    assert np.allclose(agent.model.settings.bonus.table, joint_table(problem, 0.1, None, True), rtol=1e-12)
    with pytest.raises(ValueError, match=r"^kernel: the bonus Joint holds .*RationalQuadratic is none of them"):
        krl.KernelUCBVI(kernel=RationalQuadratic(), **joint)
    with pytest.raises(ValueError, match=r"^metric: the bonus Joint needs covering numbers"):
        krl.KernelUCBVI(metric=Walled(), **joint)


@pytest.mark.parametrize("wrong", [{"C1": 2.0}, {"C2": 0.4}, {"compiled": lambda self: RationalForm(2.0)}])
def test_wrong_claims_about_a_kernel(wrong):
    claimed = dataclass(frozen=True)(type("Claimed", (Wendland,), wrong))
    with pytest.raises(ValueError, match=r"^kernel: Claimed does not satisfy the theory's assumption with C1 = "):
        krl.KernelUCBVI(
            bandwidth=0.1, kernel=claimed(), lipschitz=1.0, reward_range=(0, 1), bonus=krl.bonuses.Joint(0.1)
        )


# ----------------------------------------------------------------------------------------------------- what is missing


class Nothing(NamedTuple):
    """Implements no verb."""

    number: float


@dataclass(frozen=True)
class Part(krl.bonuses.Bonus, krl.kernels.Kernel):
    """A bonus and a kernel that returns what it is given."""

    made: object

    def compiled(self, *arguments):
        return self.made


@dataclass(frozen=True)
class Place(krl.metrics.Metric):
    """A metric that returns what it is given, and does not check it."""

    made: object

    def check(self, low, high):
        pass

    def space(self, low, high):
        return self.made


@pytest.mark.parametrize("made", [Nothing(1.0), None, 0.5, (1.0, 2.0)], ids=repr)
@pytest.mark.parametrize(
    ("argument", "part", "said"),
    [
        ("bonus", Part, r"Part.compiled must return .* value is implemented, .*@krl.bonuses.value.implement\("),
        ("kernel", Part, r"Part.compiled must return .* weight is implemented, .*@krl.kernels.weight.implement\("),
        ("metric", Place, r"Place.space must return .*@krl.metrics.squared_distances.implement\("),
    ],
)
def test_verbs_that_are_missing(argument, part, said, made):
    with pytest.raises(TypeError, match=rf"^{argument}: {said}{'Nothing' if made == Nothing(1.0) else '…'}\)"):
        started(krl.KernelUCBVI(bandwidth=0.1, **{argument: part(made)}))


def test_methods_that_are_missing():
    for argument, bare, method in (
        ("bonus", krl.bonuses.Bonus(), r"Bonus must have a method compiled\(scale, problem\)"),
        ("kernel", krl.kernels.Kernel(), r"Kernel must have a method compiled\(\)"),
        ("metric", krl.metrics.Metric(), r"Metric must have a method space\(low, high\)"),
    ):
        with pytest.raises(NotImplementedError, match=method):
            started(krl.KernelUCBVI(bandwidth=0.1, **{argument: bare}))


class Begun(NamedTuple):
    """A bonus that counts from 1."""

    number: Annotated[np.ndarray, krl.Field("1")]


@krl.bonuses.value.implement(Begun)
def value_of_begun(bonus, h, C, D, W2):
    return bonus.number[0]


def test_what_is_counted_begins_at_nothing():
    with pytest.raises(ValueError, match=r"^bonus: Begun.number is declared, .* nothing but 0 before any data; got"):
        started(krl.KernelUCBVI(bandwidth=0.1, bonus=Part(Begun(np.ones(1)))))


class Heavy(NamedTuple):
    """A kernel above 1."""

    number: float


@krl.kernels.weight.implement(Heavy)
def weight_of_heavy(kernel, z2):
    return kernel.number


def test_weights_are_at_most_one():
    with pytest.raises(ValueError, match=r"^kernel: weight of Heavy must be in \[0, 1\], and at distance 0 it is 1.5"):
        started(krl.KernelUCBVI(bandwidth=0.1, kernel=Part(Heavy(1.5))))


def misspelt(bonus, h, C, D, W2):
    return bonus.scael / C


def heavy_handed(kernel, z2):
    return np.sort(np.array([z2, 1.0]))[0]


def wordy(space, points, chunk, size, n, u, out):
    out[0] = "near"


@only_compiled
@pytest.mark.parametrize(
    ("argument", "part", "verb", "function"),
    [
        ("bonus", Part, krl.bonuses.value, misspelt),
        ("kernel", Part, krl.kernels.weight, heavy_handed),
        ("metric", Place, krl.metrics.squared_distances, wordy),
    ],
)
def test_what_cannot_be_compiled_is_named(argument, part, verb, function):
    class Form(NamedTuple):
        number: float

    verb.implement(Form)(function)
    said = rf"^{argument}: {verb.__name__} of Form cannot be compiled: .*test_example_parts.py"
    with pytest.raises(TypeError, match=said):
        started(krl.KernelUCBVI(bandwidth=0.1, **{argument: part(Form(1.0))}))


def test_a_problem_without_theory():
    """What a bonus is told is a class of its own, which can be made by hand to try a bonus."""
    problem = krl.bonuses.BonusProblem(
        horizon=3, actions=2, beta=0.1, sigma=0.2, stationary=False, lipschitz=np.zeros(3), rates=None, merge=0.0,
        kernel=Wendland(), metric=Walled(), width=1.0, box=(np.zeros(2), np.ones(2)),
    )  # fmt: skip
    bonus = LogBonus(2.0).compiled(0.5, problem)
    assert krl.bonuses.value(bonus, 1, 0.1, 0.0, 0.0) == pytest.approx(2.0)  # nothing was seen: R_h
    assert krl.bonuses.count(bonus, 1) and bonus.samples.tolist() == [0, 1, 0]
    assert krl.bonuses.value(bonus, 1, 1.1, 0.0, 0.0) == pytest.approx(math.sqrt(math.log(2) / 1.1) + 2 * 0.1 / 1.1)
    assert issubclass(TheoryProblem, krl.bonuses.BonusProblem)
    with pytest.raises(NotImplementedError):
        problem.joint_table(0.1, None, True)


# ---------------------------------------------------------------------------------------------------- what is no metric


class LineSpace(NamedTuple):
    """Distances of a few kinds along the first axis."""

    kind: int
    gap: float


@krl.metrics.squared_distances.implement(LineSpace)
def squares_on_a_line(space, points, chunk, size, n, u, out):
    for i in range(size):
        difference = points[chunk, 0, i] - u[0]
        if space.kind == 0:
            out[i] = difference * difference
        elif space.kind == 1:
            out[i] = max(0.0, difference)
        elif space.kind == 2:
            out[i] = difference**4
        else:
            out[i] = -abs(difference)
    for i in range(size, n):
        out[i] = math.inf


@krl.metrics.gap_squared.implement(LineSpace)
def gap_on_a_line(space, box, chunk, u):
    return space.gap


@dataclass(frozen=True)
class Line(krl.metrics.Metric):
    kind: int = 0
    gap: float = 0.0
    bounded: bool = False

    def space(self, low, high):
        return LineSpace(self.kind, self.gap)


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (Line(1), "is not symmetric"),
        (Line(2), "the triangle inequality must hold"),
        (Line(3), "is no finite number"),
        (Line(gap=0.5), "gap_squared says that it is more"),
        (Line(bounded=True), "a coordinate differs by more, so that `bounded` must be False"),
    ],
)
def test_classes_that_are_no_metrics(metric, said):
    with pytest.raises(ValueError, match=rf"^metric: .*{said}"):
        started(krl.KernelUCBVI(bandwidth=0.1, metric=metric))


def test_classes_that_are_metrics():
    for metric in (Line(), Walled(0.5, 0.3), Walled(0.5, 0.0)):
        metric.check(np.zeros(2), np.ones(2))
    with pytest.raises(ValueError, match=r"^metric: .*the triangle inequality must hold"):
        Walled(0.5, -0.1).check(np.zeros(2), np.ones(2))


# ------------------------------------------------------------------------------------------------------- edited files

RUN = (
    """
import json
import numpy as np
import kernelrl as krl
from own_bonus import LogForm
from own_kernel import RationalForm, WendlandForm
from own_metric import WalledSpace

"""
    + LISTEN
    + """

event.register("numba:compile", Listener())
form, out = LogForm(1.0, 0.5, 3, True, np.zeros(1, np.int64)), np.zeros(1)
krl.bonuses.count(form, 0)
krl.metrics.squared_distances(WalledSpace(0.5, 0.25), np.full((1, 1, 1), 0.75), 0, 1, 1, np.zeros(1), out)
weights = [krl.kernels.weight(kernel, 6.25) for kernel in (WendlandForm(5.0), RationalForm(1.0))]
print(json.dumps([krl.bonuses.value(form, 0, 1.5, 0.0, 0.0), *weights, out[0], form.samples.tolist(), compiled]))
"""
)
EDITS = (  # file, old text, new text, which result, what it becomes
    ("own_bonus.py", "(bonus.horizon - h)", "(bonus.horizon + h)", None, None),  # another file, the same result
    ("own_bonus.py", "math.log(1.0 + n)", "math.log(2.0 + n)", 0, math.sqrt(math.log(3.0) / 1.5) + 1.0),
    ("own_bonus.py", "else h] += 1", "else h] += 2", 0, math.sqrt(math.log(4.0) / 1.5) + 1.0),
    ("own_kernel.py", "(1.0 + 4.0 * t) if", "(1.0 + 2.0 * t) if", 1, 0.5**4 * 2.0),
    ("own_kernel.py", "(1.0 + 0.5 * z2", "(1.0 + 1.0 * z2", 2, 1.0 / 7.25),
    ("own_metric.py", "+ space.detour) ** 2", "+ 2.0 * space.detour) ** 2", 3, 1.25**2),
)


@only_compiled
def test_an_edited_file_is_compiled_again(tmp_path):
    for name in ("own_bonus.py", "own_kernel.py", "own_metric.py"):
        (tmp_path / name).write_text((EXAMPLES / name).read_text())
    (tmp_path / "run.py").write_text(RUN)
    right = [math.sqrt(math.log(2.0) / 1.5) + 1.0, 0.5**4 * 3.0, 1.0 / 4.125, 1.0]
    samples = [1]
    with Prepared(tmp_path) as prepared:
        for file, old, new, which, becomes in ((None,) * 5, *EDITS):
            if file is not None:
                edit(tmp_path / file, old, new)
            if which is not None:
                right[which] = becomes
                samples = [2] if "+= 2" in new else samples
            (*found, counted), _ = prepared.run()
            assert found == pytest.approx(right, rel=1e-12) and counted == samples, (file, old)
    (*found, counted), compiled_again = result_of(start_user(tmp_path))
    assert found == pytest.approx(right, rel=1e-12) and compiled_again == []


class Uncounted(NamedTuple):
    """A bonus whose counter is not declared."""

    counts: np.ndarray


@krl.bonuses.value.implement(Uncounted)
def uncounted_value(bonus, h, C, D, W2):
    return 1.0 / C


@krl.bonuses.count.implement(Uncounted)
def uncounted_count(bonus, h):
    bonus.counts[0] += 1
    return False


class NotANumber(NamedTuple):
    """A bonus that is not a number at the last step."""

    horizon: int


@krl.bonuses.value.implement(NotANumber)
def value_that_is_not_a_number(bonus, h, C, D, W2):
    return math.nan if h == bonus.horizon - 1 else 1.0 / C


@dataclass(frozen=True)
class Mistaken(krl.bonuses.Bonus):
    """Makes one of these."""

    counts: bool

    def compiled(self, scale, problem):
        return Uncounted(np.zeros(1, np.int64)) if self.counts else NotANumber(problem.horizon)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        (
            True,
            "^bonus: count of Uncounted is implemented, but no array of it is declared, so what it counts would not",
        ),
        (False, "^bonus: value of NotANumber is not a number at step 7 and count 0.01"),
    ],
)
def test_bonuses_that_would_go_wrong_later(counts, said):
    with pytest.raises(ValueError, match=said):
        krl.KernelUCBVI(bonus=Mistaken(counts), bandwidth=0.1).start(*SPACES, 8, 0)
