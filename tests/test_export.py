"""`agent.export`: the C header and the JSON file do what `act` does."""

from __future__ import annotations

import ctypes
import json
import math
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium as gym
import numba
import numpy as np
import pytest
from typer.testing import CliRunner

import kernelrl as krl
from exported import COMPILER, FLAGS, compiled, played
from kernelrl.cli import app
from kernelrl.portable.plans import places_of
from kernelrl.portable.translate import TranslationError, translated
from small_envs import Chain

sys.path.append(str(Path(__file__).resolve().parent.parent / "examples"))

from own_algorithm import OptimisticQLearning
from read_policy import Policy

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
H, EPISODES, NUMBER = 8, 60, 10_000
ROOMS = {"goal": (0.3, 0.3), "radius": 0.3, "max_episode_steps": H}
EXACT = {"bandwidth": 0.1, "representatives": None, "bonus": krl.bonuses.Simplified(0.05, 0.05)}
MERGED = {"bandwidth": 0.1, "bonus": krl.bonuses.Simplified(0.05, 0.05)}
NEAREST = {**MERGED, "reading": "nearest"}
LOCAL = {"bandwidth": krl.schedules.Local(0.15, 0.05), "representatives": 0.1}
SEVERAL = {"bandwidth": krl.schedules.Bandwidths([0.15, 0.05]), "representatives": 0.1}


@numba.njit
def turned(state, out):
    """A map with a loop, a condition and functions of math; it wraps the first coordinate, which is periodic."""
    for j in range(state.size):
        out[j] = state[j]
    if out[0] >= 1.0 and not out[1] > 2.0:
        out[0] = out[0] % 1.0 + 0.1 * math.sin(2.0 * math.pi * state[0]) ** 2
    out[1] *= 1.0


AGENTS = {
    "exact": ("KernelUCBVI", EXACT),
    "exact per step": ("GreedyKernelUCBVI", {**EXACT, "stationary": False, "lipschitz": 2.0}),
    "exact compact": ("KernelUCBVI", {**EXACT, "kernel": "compact", "metric": "chebyshev"}),
    "blend": ("KernelUCBVI", MERGED),
    "nearest": ("GreedyKernelUCBVI", NEAREST),
    "nearest per step": ("KernelUCBVI", {**NEAREST, "stationary": False}),
    "interpolated": ("KernelUCBVI", {**MERGED, "lipschitz": 2.0}),
    "equal states only": ("KernelUCBVI", {**MERGED, "representatives": 0.0}),
    "manhattan in units of the box": ("KernelUCBVI", {**NEAREST, "metric": krl.metrics.Lp(1, scale="box")}),
    "p = 3": ("KernelUCBVI", {**MERGED, "metric": krl.metrics.Lp(3), "kernel": "triweight"}),
    "local": ("KernelUCBVI", {**MERGED, **LOCAL}),
    "local nearest per step": ("GreedyKernelUCBVI", {**NEAREST, **LOCAL, "stationary": False}),
    "several": ("KernelUCBVI", {**NEAREST, **SEVERAL}),
    "automatic": ("KernelUCBVI", {}),
    "automatic, greedy, nearest": ("GreedyKernelUCBVI", {"reading": "nearest", "max_representatives": 60}),
    "automatic per step": ("KernelUCBVI", {"stationary": False, "max_representatives": 60}),
    "folded": ("KernelUCBVI", {**NEAREST, "metric": krl.metrics.Folded(krl.envs.twin_rooms_fold, "euclidean")}),
    "UCBVI": ("UCBVI", {"bins": 5, "bonus_scale": 0.01}),
    "GreedyUCBVI": ("GreedyUCBVI", {"bins": (3, 2), "stationary": False, "bonus_scale": 0.01}),
    "OptQL": ("OptQL", {"bins": 5, "bonus_scale": 0.01}),
    "AdaptiveQL": ("AdaptiveQL", {"bonus_scale": 0.02}),
    "AdaMB": ("AdaMB", {"bonus_scale": 0.02}),
}


ONLY_IN_C = (  # the reader in plain Python has not all of it
    "exact compact", "p = 3", "local", "local nearest per step", "several", "folded", "automatic per step",
)  # fmt: skip


def trained(name, env=None, episodes=EPISODES, **options):
    """By the Python driver, so that no code is compiled for these environments alone."""
    agent = name(**options) if callable(name) else getattr(krl, name)(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few episodes are not meant to teach much
        world = env or gym.make("kernelrl/TwinRooms-v0", **ROOMS)
        agent.fit(world, episodes, seed=0, driver="python", progress=False)
    return agent


def asked(agent, n=NUMBER, seed=0):
    """States anywhere in the box, states that were visited or are on its edges, and steps past the horizon, too."""
    rng, low, high = np.random.default_rng(seed), *np.clip(agent.spaces.finite_box(), -4.0, 4.0)
    states = low + rng.random((n, low.size)) * (high - low)
    states[::5] = low + rng.integers(0, 9, states[::5].shape) / 8 * (high - low)
    if agent.spaces.discrete:
        states = np.floor(states)
    return states, rng.integers(0, agent.spaces.horizon + 3, n)


def differing(agent, path, name="kernelrl", precision="double", **options):
    """For how many of NUMBER states and steps the header and `act` disagree."""
    done = agent.export(path, name=name, precision=precision, **options)
    play = compiled(path, name, precision, 0 if agent.spaces.net is None else len(agent.spaces.net.bins))
    states, steps = asked(agent)
    found, wanted = play(states, steps), played(agent, states, steps)
    assert len(np.unique(wanted, axis=0)) > 1
    return done, int((found != wanted.astype(found.dtype)).reshape(len(states), -1).any(axis=1).sum())


@needs_compiler
@pytest.mark.parametrize("variant", AGENTS)
def test_c_is_act(variant, tmp_path):
    name, options = AGENTS[variant]
    agent = trained(name, **options)
    done, wrong = differing(agent, tmp_path / "policy.h")
    assert wrong == 0
    assert done.bytes == agent.export(tmp_path / "policy.json").bytes
    states, steps = asked(agent, 200, seed=1)
    wanted = played(agent, states, steps)
    assert [agent.predict(x, int(h))[0] for x, h in zip(states, steps, strict=True)] == wanted.tolist()
    if variant not in ONLY_IN_C:
        policy = Policy(tmp_path / "policy.json")
        assert [policy(x.tolist(), int(h)) for x, h in zip(states, steps, strict=True)] == wanted.tolist()


@pytest.mark.parametrize("variant", ["nearest", "UCBVI", "AdaptiveQL"])
def test_json_is_act_at_ten_thousand_states(variant, tmp_path):
    name, options = AGENTS[variant]
    agent = trained(name, **options)
    agent.export(tmp_path / "policy.json")
    policy, (states, steps) = Policy(tmp_path / "policy.json"), asked(agent)
    found = [policy(x, h) for x, h in zip(states.tolist(), steps.tolist(), strict=True)]
    assert found == played(agent, states, steps).tolist()


@needs_compiler
@pytest.mark.parametrize("name", ["AdaptiveQL", "AdaMB", "KernelUCBVI"])
def test_continuous_actions(name, tmp_path):
    agent = trained(name, "kernelrl/Oil-v0", 200)
    _, wrong = differing(agent, tmp_path / "policy.h", name="oil")
    assert wrong == 0
    assert "void oil_act(const double *state, int step, double *action)" in (tmp_path / "policy.h").read_text()
    if name == "KernelUCBVI":  # local bandwidths, which the reader in plain Python has not
        return
    agent.export(tmp_path / "policy.json")
    policy, (states, steps) = Policy(tmp_path / "policy.json"), asked(agent, 200)
    found = np.array([policy(x.tolist(), int(h)) for x, h in zip(states, steps, strict=True)])
    np.testing.assert_array_equal(found, played(agent, states, steps))


@needs_compiler
def test_discrete_states_and_actions_that_begin_elsewhere(tmp_path):
    class Late(Chain):
        """Chain with actions 3, 4."""

        def __init__(self):
            super().__init__(box=False, slip=0.1)
            self.action_space = gym.spaces.Discrete(self.action_space.n, start=3)

        def step(self, action):
            return super().step(action - 3)

    agent = trained("UCBVI", Late(), 300, horizon=H, reward_range=(0.0, 1.0))
    _, wrong = differing(agent, tmp_path / "policy.h")
    assert wrong == 0
    assert set(played(agent, *asked(agent)).tolist()) == {3, 4}


@needs_compiler
def test_single_precision_differs_only_where_two_are_almost_equal(tmp_path):
    agent = trained("KernelUCBVI")
    agent.export(tmp_path / "policy.h", precision="float")
    states, steps = asked(agent)
    states = states.astype(np.float32).astype(np.float64)
    found = compiled(tmp_path / "policy.h", real="float")(states, steps)
    wanted = played(agent, states, steps)
    for i in np.flatnonzero(found != wanted):
        q = agent.deployed_q(states[i : i + 1], int(min(steps[i], H - 1)))[0]
        assert q[wanted[i]] - q[found[i]] < 1e-5
    assert (found != wanted).sum() < NUMBER / 100


@needs_compiler
def test_some_steps_only(tmp_path):
    """Others play the last one before them."""
    for options, name in ((EXACT, "KernelUCBVI"), ({**EXACT, "stationary": False}, "KernelUCBVI"), ({}, "AdaptiveQL")):
        agent = trained(name, **options)
        whole = agent.export(tmp_path / "policy.h").bytes
        assert agent.export(tmp_path / "policy.h", steps=[1, 4]).bytes < whole
        states, steps = asked(agent)
        found = compiled(tmp_path / "policy.h")(states, steps)
        kept = np.where(steps < 4, 1, 4)
        assert np.array_equal(found, played(agent, states, kept))
    assert (
        agent.export(tmp_path / "a.h", steps=H).bytes == whole == agent.export(tmp_path / "b.h", steps=range(H)).bytes
    )
    assert (tmp_path / "a.h").read_text() == (tmp_path / "b.h").read_text()
    for wrong in (0, H + 1, [], [H], [0.5], "all"):
        with pytest.raises(ValueError, match="steps must be steps among 0 … 7"):
            agent.export(tmp_path / "c.h", steps=wrong)


@needs_compiler
def test_any_state(tmp_path):
    """What is outside the box counts as the nearest inside, NaN as the lowest; steps below 0 as 0."""
    agent = trained("OptQL", bins=5)
    agent.export(tmp_path / "policy.h")
    play, policy = compiled(tmp_path / "policy.h"), agent.policy()
    states = np.array([[5.0, 0.2], [-1.0, 0.2], [1.0, np.nan], [np.inf, -np.inf], [0.3, 0.4]])
    steps = np.array([0, 1, 2, 3, -5])
    inside = [[2.0, 0.2], [0.0, 0.2], [1.0, 0.0], [2.0, 0.0], [0.3, 0.4]]
    assert play(states, steps).tolist() == [policy(x, max(0, int(h))) for x, h in zip(inside, steps, strict=True)]
    unbounded = trained("GreedyKernelUCBVI", "CartPole-v1", 20, horizon=10)
    unbounded.export(tmp_path / "cart.h")
    assert compiled(tmp_path / "cart.h")(np.full((1, 4), np.nan), [0])[0] in (0, 1)


@needs_compiler
def test_from_cpp_and_twice_in_one_program(tmp_path):
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    trained("KernelUCBVI", **MERGED).export(tmp_path / "one.h", name="one")
    trained("KernelUCBVI", **EXACT).export(tmp_path / "two.h", name="two")
    source = tmp_path / "both.cpp"
    calls = "double x[2] = {0.5, 0.5};\nreturn one_act(x, 0) + two_act(x, 0) > 6;"
    source.write_text(f'#include "one.h"\n#include "one.h"\n#include "two.h"\nint main() {{ {calls} }}\n')
    flags = ["-std=c++11", *FLAGS[1:]]
    subprocess.run([compiler, *flags, str(source), "-o", str(tmp_path / "both")], check=True)
    subprocess.run([tmp_path / "both"], check=True)


def test_head_of_the_file(tmp_path):
    agent = trained("KernelUCBVI", **NEAREST)
    done = agent.export(tmp_path / "policy.h", name="tank", labels=["right", "left", "up", "down */"])
    text = (tmp_path / "policy.h").read_text()
    head = text[: text.index("*/")]
    for part in ("agent: KernelUCBVI", "environment: kernelrl/TwinRooms-v0", "horizon: 8 steps", "0 right, 1 left",
                 f"tables: {done.bytes:,} bytes", f"{agent.number_of_representatives} representative states",
                 krl.__version__, "math.h: sqrt" if "sqrt" in text else "It needs no library"):  # fmt: skip
        assert part in head, part
    assert "TANK_POLICY_H" in text and "kernelrl_" not in text and "malloc" not in text
    grid = trained("UCBVI", bins=4)
    grid.export(tmp_path / "grid.h")
    assert "It needs no library" in (tmp_path / "grid.h").read_text()
    assert "math.h" not in (tmp_path / "grid.h").read_text()
    assert str(grid.export(tmp_path / "no.h", write=False)).endswith("tables of 200 bytes")
    assert not (tmp_path / "no.h").exists()


HOSTILE = ("/* a */", "*\\\n/ int x;", "*??/\n/ int x;", "a??/", "\u202e", "\0\r\n*/", "**//**", "\ud800", "é", "a\\")


@needs_compiler
@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_fits_into_the_comment(text, tmp_path):
    agent = trained("UCBVI", bins=3)
    agent.export(tmp_path / "policy.h", labels=[text] * 4, environment=text)
    compiled(tmp_path / "policy.h")
    agent.export(tmp_path / "policy.json", labels=[text] * 4, environment=text)
    assert json.loads((tmp_path / "policy.json").read_text())["labels"] == [text] * 4


@needs_compiler
@pytest.mark.parametrize("name", ["SPLIT", "REAL", "CALL", "sqrt"])
def test_any_name_compiles(name, tmp_path):
    """Also one that contains what stands for something else in the code's templates."""
    trained("KernelUCBVI", **MERGED).export(tmp_path / "policy.h", name=name, precision="float")
    compiled(tmp_path / "policy.h", name=name, real="float")


@needs_compiler
@pytest.mark.parametrize("names", [("kernelrl", "kernelrl"), ("tank", "Tank")])
def test_two_policies_of_one_name_do_not_compile(names, tmp_path):
    """Else the second would be left out without a word, and the first played in its place."""
    trained("UCBVI", bins=3).export(tmp_path / "one.h", name=names[0])
    trained("UCBVI", bins=4).export(tmp_path / "two.h", name=names[1])
    source = tmp_path / "both.c"
    source.write_text('#include "one.h"\n#include "two.h"\n')
    done = subprocess.run([COMPILER, *FLAGS, "-c", str(source), "-o", str(tmp_path / "o")], capture_output=True)
    assert done.returncode and b"two policies are called" in done.stderr


@needs_compiler
def test_states_whose_distances_overflow(tmp_path):
    """They have no nearest representative; the first one counts, in the library, too."""
    agent = krl.KernelUCBVI()
    agent.fit("CartPole-v1", 20, seed=0, progress=False)
    agent.export(tmp_path / "policy.h", max_bytes=None, steps=[0, 100, 499])
    states = np.array([[0.0, sign * size, 0.0, 0.0] for size in (1e100, 1e155, 1e300) for sign in (-1, 1)])
    for h in (0, 100, 499):
        steps = np.full(len(states), h)
        np.testing.assert_array_equal(compiled(tmp_path / "policy.h")(states, steps), played(agent, states, steps))


def test_json_file(tmp_path):
    agent = trained("KernelUCBVI", **MERGED)
    agent.export(tmp_path / "policy.json", steps=[0, 3], environment="rooms")
    file = json.loads((tmp_path / "policy.json").read_text())
    assert file["format"] == 1 and file["kind"] == "representatives" and file["about"]["environment"] == "rooms"
    assert file["tables"]["rows"]["values"] == [0, 0, 0, 1, 1, 1, 1, 1]
    assert file["tables"]["points"]["shape"] == [agent.number_of_representatives, 2]


def test_too_large(tmp_path):
    agent = trained("KernelUCBVI")
    with pytest.raises(ValueError, match=r"max_bytes: the tables take [\d,]+ bytes, more than 1,000; the largest, val"):
        agent.export(tmp_path / "policy.h", max_bytes=1000)
    size, single = (agent.export(tmp_path / "a.h", write=False, precision=p).bytes for p in ("double", "float"))
    with pytest.raises(ValueError, match=rf'max_bytes={size}; precision="float" .* steps=range.*reading="nearest"'):
        agent.export(tmp_path / "policy.h", max_bytes=single)
    with pytest.raises(ValueError) as error:
        agent.export(tmp_path / "policy.h", max_bytes=single - 1)
    assert "float" not in str(error.value)  # what is said to work does
    every = int(re.search(rf"steps=range\(0, {H}, (\d)\)", str(error.value))[1])
    assert agent.export(tmp_path / "a.h", write=False, steps=range(0, H, every), max_bytes=single - 1).bytes < single
    assert not list(tmp_path.iterdir())
    agent.export(tmp_path / "policy.h", max_bytes=None)


def test_refusals(tmp_path):
    path = tmp_path / "policy.h"
    with pytest.raises(RuntimeError, match="has not been started"):
        krl.UCBVI(bins=3).export(path)
    for agent in (krl.UCBVI(bins=3), krl.OptQL(bins=3), krl.AdaptiveQL(), krl.KernelUCBVI(), krl.KernelUCBVI(**EXACT)):
        agent.start(gym.spaces.Box(0.0, 1.0, (2,), np.float64), gym.spaces.Discrete(2), H, 0)
        with pytest.raises(ValueError, match="has no data that count yet"):
            agent.export(path)
    with pytest.raises(ValueError, match="a RandomAgent has learnt nothing"):
        trained("RandomAgent").export(path)
    agent = trained("UCBVI", bins=3)
    for wrong, match in (
        ({"path": None}, 'path must be a path, such as "policy.h"; got None'),
        ({"path": 3}, 'path must be a path, such as "policy.h"; got 3'),
        ({"write": "no"}, "write must be True or False, got 'no'"),
        ({"path": tmp_path / "policy.c"}, r"path: must end with .h \(C\) or .json"),
        ({"name": "3d"}, "name: names in C begin with it"),
        ({"precision": "half"}, "precision"),
        ({"path": tmp_path / "a.json", "precision": "float"}, '"float" is for C'),
        ({"max_bytes": 0}, "max_bytes"),
        ({"labels": ["one"]}, "labels: give one for each of 4"),
        ({"labels": "abcd"}, "labels: give a list of texts"),
        ({"labels": 4}, "labels: give a list of texts"),
        ({"path": tmp_path / "no" / "a.h"}, "there is no folder"),
    ):
        with pytest.raises((TypeError, ValueError, FileNotFoundError), match=match):
            agent.export(**{"path": path, **wrong})
    assert not list(tmp_path.iterdir())


@needs_compiler
def test_own_algorithms(tmp_path):
    """One that says how its policy is looked up is exported; others are told what to do."""
    agent = trained(OptimisticQLearning, "kernelrl/Ramp-v0", 200)
    _, wrong = differing(agent, tmp_path / "policy.h")
    assert wrong == 0

    class Other(krl.OptQL, abstract=True):
        def deployed_actions(self, states, step):
            return np.zeros(len(states), np.int64)

    with pytest.raises(TypeError, match="Other has its own policy to deploy; write a method policy_form"):
        trained(Other, bins=3).export(tmp_path / "other.h")

    class Silent(OptimisticQLearning, abstract=True):
        policy_form = krl.Agent.policy_form

    with pytest.raises(TypeError, match="Silent does not say how its policy is looked up"):
        trained(Silent, "kernelrl/Ramp-v0", 5).export(tmp_path / "other.h")


# ------------------------------------------------------------------------------------------------- functions of users


@needs_compiler
def test_functions_of_metrics_are_translated(tmp_path):
    code = translated(turned, "turned", 2).replace("REAL", "double").replace("LIT", "")
    code = re.sub(r"CALL\((\w+)\)", r"\1", code).replace("static inline ", "")
    (tmp_path / "turned.c").write_text(f"#include <math.h>\n{code}")
    library = tmp_path / "turned.so"
    flags = [flag for flag in FLAGS if flag != "-pedantic"]
    subprocess.run([COMPILER, *flags, "-shared", "-fPIC", tmp_path / "turned.c", "-o", library, "-lm"], check=True)
    function = ctypes.CDLL(str(library)).turned
    for state in np.random.default_rng(0).random((500, 2)) * [3.0, 3.0]:
        wanted, found = np.zeros(2), np.zeros(2)
        turned.py_func(state, wanted)
        function(*(array.ctypes.data_as(ctypes.c_void_p) for array in (state, found)))
        np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-14)


@needs_compiler
def test_c_code_in_place_of_a_translation(tmp_path):
    agent = trained("KernelUCBVI", **AGENTS["folded"][1])
    code = "out[0] = state[0] >= 1.0 ? state[0] - 1.0 : state[0];\nout[1] = state[1];"
    _, wrong = differing(agent, tmp_path / "own.h", map_code=code)
    assert wrong == 0 and "out[1] = state[1];" in (tmp_path / "own.h").read_text()


SHIFT = 0.25


def test_what_is_not_translated_is_named():
    def calls(x, out):
        out[0] = np.linalg.norm(x)
        out[1] = 0.0

    def slices(x, out):
        out[:] = x

    def fine(x, y):
        return max(abs(x[0] - y[0]), SHIFT) if x[0] < y[0] <= 1.0 or len(x) == 2 else -(math.pi**0.5)

    with pytest.raises(TranslationError, match=r"line 2 of calls, `np.linalg.norm\(x\)`"):
        translated(calls, "@f", 2)
    with pytest.raises(TranslationError, match="of slices"):
        translated(slices, "@f", 2)
    assert "@f(const REAL *x_, const REAL *y_)" in translated(fine, "@f", 2)


def test_a_class_of_metrics_is_refused():
    from own_metric import Walled

    with pytest.raises(ValueError, match="metric: Walled is a class whose distances cannot be written in C"):
        places_of(None, Walled(), 2, None)


# ----------------------------------------------------------------------------------------------------- command line


def test_command_line(tmp_path):
    agent = trained("UCBVI", bins=4)
    agent.save(tmp_path / "agent.krl")
    run = CliRunner().invoke
    done = run(app, ["export", str(tmp_path / "agent.krl"), str(tmp_path / "policy.h"), "--name", "tank", "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["bytes"] == 200 and said["kind"] == "grid" and "tank_act" in (tmp_path / "policy.h").read_text()
    done = run(app, ["export", str(tmp_path / "agent.krl"), str(tmp_path / "p.json"), "--steps", "0,3", "--dry-run"])
    assert done.exit_code == 0 and "Not written" in done.stdout and not (tmp_path / "p.json").exists()


# ---------------------------------------------------------------------------------------------------------- an example


@needs_compiler
def test_the_controller_of_the_example(capsys):
    """The simulator gets the same from the C program as from `act`, to the last bit."""
    import controller

    on_controller, in_python = controller.main(learning=60, episodes=20)
    assert on_controller == in_python
    assert "representative states, tables of" in capsys.readouterr().out
