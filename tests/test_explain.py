"""`agent.explain`: estimate and bonus add up to Q, and what it lists is what they rest on."""

from __future__ import annotations

import json
import math
import warnings

import gymnasium as gym
import numpy as np
import pytest
from typer.testing import CliRunner

import kernelrl as krl
from kernelrl.cli import app
from small_envs import Chain
from test_interface import AGENTS, H, make, make_env
from user_functions import only_right_of_half

STATES = [[0.1, 0.1], [0.33, 0.2], [1.7, 0.9]]
ALL = 10**6


def trained(agent, env=None, episodes=30):
    """By the Python driver, so that no code is compiled for these environments alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few episodes are not meant to teach much
        agent.fit(env or make_env(), episodes, seed=7, driver="python", progress=False)
    return agent


@pytest.mark.parametrize("variant", AGENTS)
def test_it_adds_up(variant):
    """In the environment's units, for every agent: estimate + bonus = q_values, and the rest is what can be read."""
    agent = trained(make(variant))
    for x in STATES:
        for h in (0, H - 1):
            found = agent.explain(x, h).as_dict()
            q, actions = agent.q_values([x], h)[0], found["actions"]
            for a, row in enumerate(actions):
                assert row["q"] == (q[a] if math.isfinite(q[a]) else None)
                if row["bonus"] is not None and row["q"] is not None:
                    assert row["estimate"] + row["bonus"] == pytest.approx(q[a], abs=1e-9)
            if hasattr(agent, "bonuses"):
                read = agent.bonuses([x], h)[0]
                if not (found["evidence"]["kind"] == "representatives" and found["evidence"]["reading"] == "blend"):
                    assert [row["bonus"] for row in actions] == pytest.approx(read.tolist())
                assert [row["count"] for row in actions] == pytest.approx(agent.counts([x], h)[0].tolist())
            assert found["value"] == pytest.approx(agent.values([x], h)[0])
            assert found["value"] <= found["cap"] + 1e-9
            assert [row["is_deployed"] for row in actions].index(True) == agent.act(x, h) == found["deployed"]["action"]
            if variant != "RandomAgent" and "automatic" not in variant:
                assert agent.choose(x, h) in found["learning"]["actions"]
            json.dumps(found, allow_nan=False)
            assert found["learning"]["why"] and str(agent.explain(x, h)).count("\n") >= 6


def last_step(agent, row, C, got):
    """What the estimate is at the last step: C and the sum of weighted rewards, in the environment's units."""
    low, width = agent.rewards.low, agent.rewards.width
    mapped = (got - low * (C - agent.regularization)) / width / C
    return mapped * width + low


def test_samples_are_what_the_estimate_rests_on():
    """At the last step r̂ = Σw·r/C, from all samples that are listed; C = β + Σw."""
    agent = trained(make("KernelUCBVI"))
    agent.begin_episode()  # so that the last plan has all data
    for x in STATES:
        found = agent.explain(x, H - 1, nearest=ALL).as_dict()
        assert len(found["evidence"]["nearest"]) == found["evidence"]["number"] == 30 * H
        assert [s["distance"] for s in found["evidence"]["nearest"]] == sorted(
            s["distance"] for s in found["evidence"]["nearest"]
        )
        for a, row in enumerate(found["actions"]):
            own = [s for s in found["evidence"]["nearest"] if s["action"] == a]
            C = agent.regularization + sum(s["weight"] for s in own)
            assert row["count"] == pytest.approx(C)
            got = sum(s["weight"] * s["reward"] for s in own)
            assert row["estimate"] == pytest.approx(last_step(agent, row, C, got), abs=1e-9)


def test_representatives_are_what_the_estimate_rests_on():
    """The same with counts and mean rewards at representatives."""
    agent = trained(krl.KernelUCBVI(bandwidth=0.1, representatives=0.05, reading="nearest"))
    agent.begin_episode()
    for state in agent.explain(STATES[1], 0, nearest=4).as_dict()["evidence"]["nearest"]:
        found = agent.explain(state["state"], H - 1, nearest=ALL).as_dict()
        near = found["evidence"]["nearest"]
        assert near[0]["share"] == 1.0 and near[0]["weights"] == pytest.approx([1.0] * 4)
        for a, row in enumerate(found["actions"]):
            C = agent.regularization + sum(v["weights"][a] * v["counts"][a] for v in near)
            got = sum(v["weights"][a] * v["counts"][a] * (v["mean_rewards"][a] or 0.0) for v in near)
            assert row["count"] == pytest.approx(C)
            assert row["estimate"] == pytest.approx(last_step(agent, row, C, got), abs=1e-6)


def test_blended_bonuses():
    """Σ λ_u·B_h(u): B from the counts at the representatives that are read."""
    options = {"bandwidth": 0.1, "representatives": 0.05, "bonus": krl.bonuses.Simplified(0.3, 0.2)}
    agent = trained(krl.KernelUCBVI(**options, reading="blend"))
    agent.begin_episode()
    found = agent.explain(STATES[1], 2, nearest=ALL).as_dict()
    near = [v for v in found["evidence"]["nearest"] if v["share"] > 0]
    assert len(near) > 1 and sum(v["share"] for v in near) == pytest.approx(1.0)
    bonus = np.zeros(4)
    for v in near:
        C = agent.counts([v["state"]], 2)[0]
        bonus += v["share"] * (0.3 / np.sqrt(C) + 0.2 * (H - 2) / C) * agent.rewards.width
    assert [row["bonus"] for row in found["actions"]] == pytest.approx(bonus.tolist())


def test_cells():
    """The mean reward of the cell is the estimate at the last step."""
    agent = krl.UCBVI(bins=5, bonus_scale=0.01)
    history = agent.fit(make_env(), 60, seed=7, driver="python", progress=False, transitions=True)
    agent.begin_episode()
    found = agent.explain(STATES[0], H - 1).as_dict()
    (box,) = found["evidence"]["boxes"]
    rows = history.transitions.to_dicts()
    for row in found["actions"]:
        own = [r for r in rows if r["action"] == row["action"]]
        sides = list(enumerate(zip(box["low"], box["high"], strict=True)))
        inside = [r["reward"] for r in own if all(low <= r[f"state_{j}"] < high for j, (low, high) in sides)]
        assert row["count"] == len(inside)
        if inside:
            assert row["estimate"] == pytest.approx(np.mean(inside))
        else:
            assert row["tried"] is False


def test_what_it_says():
    """Never tried, ties, caps, random actions."""
    agent = krl.UCBVI(bins=5)
    agent.start(gym.spaces.Box(0.0, 1.0, (2,), np.float64), gym.spaces.Discrete(3, start=2), H, 0)
    found = agent.explain([0.5, 0.5], 0)
    assert found.content["learning"] == {
        "actions": [2, 3, 4], "why": "one of 2, 3, 4, drawn at random: never tried here",
    }  # fmt: skip
    assert found.content["deployed"]["why"] == "2: nothing is known here, so the first action counts"
    assert "is above what can be collected: the value is capped" in str(found)
    automatic = krl.KernelUCBVI()
    automatic.start(gym.spaces.Box(0.0, 1.0, (2,), np.float64), gym.spaces.Discrete(2), H, 0)
    assert "does not use its data yet" in str(automatic.explain([0.5, 0.5], 0))
    chain = trained(krl.UCBVI(horizon=4), Chain(), 40)
    assert "state 2, one of 4" in str(chain.explain(2, 1))
    assert chain.explain(2, 1)._repr_html_().startswith("<pre>UCBVI in (2) at step 1 of 4")


def test_what_is_not_allowed():
    """It says so, by the state, and the best of the others is found by q."""
    for agent in (krl.UCBVI(bins=4, mask=only_right_of_half), krl.RandomAgent(mask=only_right_of_half)):
        trained(agent)
        for x, allowed in (([0.2, 0.1], [False, True, True, True]), ([0.9, 0.1], [True] * 4)):
            why = agent.explain(x, 0)
            actions = why.as_dict()["actions"]
            assert [action["allowed"] for action in actions] == allowed
            said = [line for line in str(why).splitlines() if line.endswith("not allowed")]
            assert len(said) == allowed.count(False) and all(line.startswith("0") for line in said)
            for action in actions:
                assert action["allowed"] or (action["q"] is None and not action["is_learning"])
            best = max((a for a in actions if a["q"] is not None), key=lambda action: action["q"])
            assert best["is_learning"]
    assert all(action["allowed"] for action in trained(krl.UCBVI(bins=4)).explain([0.2, 0.1], 0).as_dict()["actions"])
    automatic = krl.KernelUCBVI(mask=only_right_of_half)
    automatic.start(gym.spaces.Box(0.0, 1.0, (2,), np.float64), gym.spaces.Discrete(2), H, 0)
    assert "any action that is allowed, drawn at random" in str(automatic.explain([0.2, 0.5], 0))


def test_continuous_actions():
    for agent in (krl.AdaptiveQL(), krl.KernelUCBVI()):
        found = trained(agent, gym.make("kernelrl/Oil-v0"), 60).explain([0.3] * agent.spaces.dimensions, 1)
        played = found.as_dict()["deployed"]["action"]
        assert played == pytest.approx(agent.act([0.3] * agent.spaces.dimensions, 1).tolist())
        assert "more)" in str(found) and len(found.as_dict()["actions"]) == agent.spaces.actions


def test_figures(tmp_path):
    for agent, env, state in (
        (krl.KernelUCBVI(bandwidth=0.1), make_env(), [0.3, 0.2]),
        (krl.KernelUCBVI(bandwidth=0.1, representatives=None), gym.make("kernelrl/Ramp-v0"), [0.4]),
        (krl.AdaptiveQL(), make_env(), [0.3, 0.2]),
        (krl.UCBVI(horizon=4), Chain(), 2),
    ):
        found = trained(agent, env).explain(state, 1)
        found.figure().savefig(tmp_path / "why.png")
        assert (tmp_path / "why.png").stat().st_size > 5000
    cart = trained(krl.GreedyKernelUCBVI(horizon=10), "CartPole-v1", 5)
    with pytest.raises(ValueError, match="figure: states have 4 dimensions"):
        cart.explain([0.0] * 4, 0).figure()


def test_wrong_arguments():
    agent = trained(krl.UCBVI(bins=3))
    for wrong, match in (((STATES[0], H), "step must be one of"), (([9.0, 0.1], 0), "state must lie in the box")):
        with pytest.raises(ValueError, match=match):
            agent.explain(*wrong)
    with pytest.raises(ValueError, match="nearest"):
        agent.explain(STATES[0], 0, nearest=-1)
    with pytest.raises(RuntimeError, match="has not been started"):
        krl.UCBVI(bins=3).explain(STATES[0], 0)


def test_command_line(tmp_path):
    agent = trained(krl.KernelUCBVI(bandwidth=0.1))
    agent.save(tmp_path / "agent.krl")
    run, file = CliRunner().invoke, str(tmp_path / "agent.krl")
    done = run(app, ["explain", file, "--state", "0.3,0.2", "--step", "3", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == krl.load(file).explain([0.3, 0.2], 3).as_dict()
    done = run(app, ["explain", file, "--state", "0.3,0.2", "--figure", str(tmp_path / "why.png")])
    assert done.exit_code == 0 and "KernelUCBVI in (0.3, 0.2) at step 0 of 10" in done.stdout
    assert (tmp_path / "why.png").exists()
    with pytest.raises(ValueError, match="states have 2 numbers, got 1"):
        run(app, ["explain", file, "--state", "0.3"], catch_exceptions=False)


def test_many_actions_stay_readable():
    """Counts of representatives are those of the actions that are played, and sentences name a few actions only."""
    agent = trained(krl.KernelUCBVI(bandwidth=0.1), "kernelrl/Oil-v0")
    found = agent.explain([0.5], 2)
    text, actions = str(found), found.as_dict()["actions"]
    played = [row for row in actions if row["is_deployed"]] + [row for row in actions if row["is_learning"]][:1]
    assert len(actions) > 12 and max(map(len, text.splitlines())) < 100
    head = next(line for line in text.splitlines() if "counts of" in line)
    for row in played:
        assert f"({row['action'][0]:.4g})" in head


def test_ties_that_do_not_go_to_the_first():
    """AdaMB plays the middle of a ball, which is not the first of the actions in it."""
    agent = trained(krl.AdaMB(), "kernelrl/Oil-v0")
    for x in (0.1, 0.5, 0.9):
        found = agent.explain([x], 2).as_dict()
        why, worth = found["deployed"]["why"], [row["deployed"] for row in found["actions"]]
        first = found["actions"][worth.index(max(worth))]
        assert ("ties go to the first" in why) == (first["is_deployed"] and " as good as " in why)
        assert len(why) < 120 and len(found["learning"]["why"]) < 120


@pytest.mark.filterwarnings("error")
def test_distances_that_overflow_are_none():
    agent = trained(krl.KernelUCBVI(), "CartPole-v1", 20)
    found = agent.explain([0.0, 1e300, 0.0, 0.0], 0)
    json.dumps(found.as_dict(), allow_nan=False)
    assert found.as_dict()["evidence"]["nearest"][0]["distance"] is None and "inf" not in str(found)
