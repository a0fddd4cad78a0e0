"""`kernelrl theory`: tables for people, one JSON object for programs."""

from __future__ import annotations

import json

import gymnasium as gym

from kernelrl.cli.theory import theory
from kernelrl.theory import summarise

TWIN = "kernelrl/TwinRooms-v0"


def test_json_is_one_object(capsys):
    theory(TWIN, episodes=5000, json=True)
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out) == json.loads(json.dumps(summarise(TWIN, episodes=5000)))


def test_tables(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    theory(TWIN, episodes=5000, bandwidth=0.025)
    out = capsys.readouterr().out
    for word in ("simplified", "printed", "corrected", "joint", "1,000,000", "second order", "says nothing", "10^"):
        assert word in out
    (row,) = (line for line in out.splitlines() if "below cap from" in line)
    assert [cell.strip() for cell in row.split("│")[2:7]] == ["10", "never", "never", "100", "100"]


def test_unknown_constants_are_said_to_be(capsys):
    gym.register("theory-tests/Line-v0", entry_point="small_envs:Line", max_episode_steps=5)
    try:
        theory("theory-tests/Line-v0", 1000)
        assert "log K is used" in " ".join(capsys.readouterr().out.split())
    finally:
        del gym.registry["theory-tests/Line-v0"]
