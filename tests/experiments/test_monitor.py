"""Monitored runs: the same numbers as without, and how far values were below V*, from the file to the report."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import polars
import pytest
from matplotlib.figure import Figure

import kernelrl as krl
from experiment_parts import RANDOM, write_toml
from kernelrl import experiments
from kernelrl.envs import optimal
from kernelrl.experiments.config import AgentEntry, ExperimentError, read_experiment
from kernelrl.experiments.learning import learn
from kernelrl.experiments.objects import build_agent, optimal_values
from kernelrl.experiments.plan import Plan
from kernelrl.reporting import learnt, page, report_of, summary
from plain import plain
from stored_jobs import store_and_jobs

EPISODES = 60
# A bonus so small that values fall below V* soon.
GREEDY = """
[[agents]]
label = "{}"
agent = "GreedyKernelUCBVI"
bandwidth = 0.05
representatives = 0.1
bonus = "simplified"
bonus_scale = 0.001
reading = "nearest"
"""
MONITORED = GREEDY.format("watched") + "monitor = true\n"
RANDOM = RANDOM + "reward_range = [0, 1]\n"  # so that its values are the highest there can be
WATCHED_RANDOM = RANDOM.replace('"random"', '"<watched> random"') + "monitor = true\n"


@pytest.fixture(scope="module", autouse=True)
def coarse():
    """Coarse optimal values, which are had sooner."""
    patch, solve = pytest.MonkeyPatch(), optimal.solve
    patch.setattr(optimal, "solve", lambda env: solve(env, 0.05))
    patch.setattr(summary, "solve", lambda env: solve(env, 0.05))
    patch.setattr(learnt, "EVALUATION_EPISODES", 5)
    yield
    patch.undo()


def plan(folder, agents, episodes=EPISODES, seeds=2):
    """A store and the jobs of its runs."""
    return store_and_jobs(read_experiment(write_toml(folder / "a.toml", agents, episodes, seeds)), folder / "out")


def finish(jobs):
    for job in jobs:
        assert list(learn(job, Path(job.path), lambda: False))[-1]["kind"] == "finished"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished experiment of monitored and other runs, not to be changed."""
    store, jobs = plan(tmp_path_factory.mktemp("monitor"), MONITORED + GREEDY.format("alone") + WATCHED_RANDOM + RANDOM)
    finish(jobs)
    return store


def test_monitoring_changes_nothing(made):
    frame = experiments.load(made.path).drop("seconds")
    assert frame.columns[-2:] == ["below", "shortfall"]
    for watched, alone in (("watched", "alone"), ("<watched> random", "random")):
        mine, others = frame.filter(label=watched), frame.filter(label=alone)
        assert len(mine) == len(others) == 2 * EPISODES
        same = ["seed", "episode", "return", "steps", "value"]
        assert mine.select(same).equals(others.select(same))
        assert mine["below"].null_count() == mine["shortfall"].null_count() == 0
        assert others["below"].null_count() == others["shortfall"].null_count() == len(others)
        x = [[0.2, 0.2], [1.5, 0.5]]
        assert made.run(watched, 1).agent().values(x, 4).tolist() == made.run(alone, 1).agent().values(x, 4).tolist()


def test_columns_are_what_fit_says(made):
    history = made.run("watched", 1).history()
    assert history.schema["below"] == polars.Int64 and history.schema["shortfall"] == polars.Float64
    assert made.run("alone", 1).history().columns == ["episode", "return", "steps", "seconds", "value"]
    env = gym.make("kernelrl/TwinRooms-v0", goal=(0.3, 0.3), radius=0.3)
    agent = plain(krl.GreedyKernelUCBVI)(bandwidth=0.05, representatives=0.1, bonus_scale=0.001)
    optimism = agent.fit(env, EPISODES, seed=1, monitor=optimal.solve(env)).optimism
    gaps = (optimism.optimal - optimism.values).reshape(EPISODES, 20)
    assert history["below"].to_list() == (gaps > 1e-9).sum(axis=1).tolist()
    assert history["shortfall"].to_list() == np.where(gaps > 1e-9, gaps, 0).max(axis=1).tolist()
    assert 0 < history["below"].sum() < 20 * EPISODES and history["shortfall"].min() == 0
    random = made.run("<watched> random", 0).history()  # whose values are the highest there can be
    assert random["below"].sum() == 0 and random["shortfall"].max() == 0


def test_stopped_and_extended(made, tmp_path):
    store, (job,) = plan(tmp_path, MONITORED, episodes=20, seeds=[1])
    answers = iter([False, False, True])
    assert list(learn(job, Path(job.path), answers.__next__))[-1]["kind"] == "stopped"
    assert 0 < store.run("watched", 1).episodes < 20
    finish([replace(job, episodes=EPISODES)])
    assert store.run("watched", 1).history().drop("seconds").equals(made.run("watched", 1).history().drop("seconds"))


def test_a_label_is_monitored_from_its_first_episode_or_never(tmp_path):
    finish(plan(tmp_path, RANDOM, episodes=3, seeds=1)[1])
    with pytest.raises(ExperimentError, match=r'"random": monitor was False and is True now.*under its own label'):
        plan(tmp_path, RANDOM + "monitor = true", episodes=3, seeds=1)
    run = experiments.open_store(tmp_path / "out").run("random", 0)
    assert run.history().columns == ["episode", "return", "steps", "seconds", "value"]


def test_where_it_cannot_be(tmp_path):
    file = write_toml(tmp_path / "a.toml", RANDOM + "monitor = true\n", pause=0.0)
    with pytest.raises(ExperimentError, match=r'"random": monitor: the optimal values of .*Rooms-v0 cannot be'):
        Plan.of(read_experiment(file))
    file = write_toml(tmp_path / "a.toml", RANDOM + "monitor = true\nhorizon = 7\n")
    with pytest.raises(ExperimentError, match=r'"random": monitor: .*episodes of 20 steps, and horizon is 7'):
        Plan.of(read_experiment(file))
    with pytest.raises(ExperimentError, match=r'agents "random" monitor: .*boolean, got 1'):
        read_experiment(write_toml(tmp_path / "a.toml", RANDOM + "monitor = 1\n"))
    with pytest.raises(ExperimentError, match=r"sweep\.monitor"):
        read_experiment(write_toml(tmp_path / "a.toml", RANDOM + "[agents.sweep]\nmonitor = [true, false]\n"))


def test_units_are_the_environments():
    """Whatever rewards are mapped to inside."""
    env = gym.make("kernelrl/TwinRooms-v0", goal=(0.3, 0.3), radius=0.3)
    entry = AgentEntry(label="it", agent="RandomAgent", monitor=True, reward_range=[-1, 3])
    agent = build_agent(entry)
    agent.start(env.observation_space, env.action_space, 20, 0)
    x = np.array([[0.2, 0.2], [1.5, 0.5]])
    assert np.array_equal(optimal_values(agent, entry, env)(x, 17), optimal.solve(env).values(x, 17))


# ---------------------------------------------------------------------------------------------------------- the report


@pytest.fixture
def no_figures(monkeypatch):
    """Empty figures and no maps: they are not what is tested."""
    draw = page.draw_all
    monkeypatch.setattr(page, "draw_all", lambda *given: {name: Figure((1, 1)) for name in draw(*given)})
    monkeypatch.setattr(summary, "plane_of", lambda env, motion: None)


def test_the_report_has_it(made, tmp_path, no_figures):
    text = report_of(made, tmp_path / "report").read_text(encoding="utf-8")
    assert '<a href="#optimism">Optimism</a>' in text and '<section id="optimism"><h2>Optimism</h2>' in text
    (table,) = re.findall(r'<table id="table-optimism">.*?</table>', text, re.DOTALL)
    rows = [re.findall(r"<t[hd]>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)[1:]]
    (watched, share, worst), (random, none, zero) = rows
    assert watched.endswith(">watched") and random.endswith("&lt;watched&gt; random")
    frame = experiments.load(made.path).filter(label="watched")
    shares = frame.group_by("seed").agg(polars.col("below").sum() / polars.col("steps").sum())["below"]
    assert float(share.partition(" ")[0]) == pytest.approx(100 * shares.mean(), abs=0.0051)
    assert float(worst) == pytest.approx(frame["shortfall"].max(), rel=0.006)
    assert none.startswith("0.00 %") and zero == "0"


def test_nothing_is_said_where_nothing_was_monitored(tmp_path, no_figures):
    store, jobs = plan(tmp_path, RANDOM, episodes=3, seeds=1)
    finish(jobs)
    assert "optimism" not in report_of(store, tmp_path / "report").read_text(encoding="utf-8").partition("<script")[0]
