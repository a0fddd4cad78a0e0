"""`kernelrl solve`: a table for people, one JSON object for programs, and what it refuses."""

from __future__ import annotations

import json

import gymnasium as gym
import pytest

import kernelrl as krl
from kernelrl.cli.solve import optimal_values, solve
from kernelrl.envs import optimal

TWIN = "kernelrl/TwinRooms-v0"


def test_what_is_printed(capsys):
    expected = krl.envs.solve(gym.make(TWIN)).start_value
    solve(TWIN, 1e-3, json=True)
    out = capsys.readouterr().out
    answer = json.loads(out)
    assert out.count("\n") == 1
    assert answer["start_value"] == expected
    assert [start["state"] for start in answer["starts"]] == [[0.1, 0.1], [1.1, 0.1]]
    solve(TWIN, 1e-3, json=False)
    assert f"{expected:.4f}" in capsys.readouterr().out


def test_what_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="env: there is no environment"):
        optimal_values("kernelrl/Nowhere-v0", 1e-3)
    monkeypatch.setattr(optimal, "MOST_POINTS", 200**2)
    with pytest.raises(ValueError, match="was not reached"):  # which the command line shows without a traceback
        optimal_values(TWIN, 1e-9)
