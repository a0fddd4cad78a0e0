"""`stand_in`: Stable-Baselines3 is what tests/stand_ins has, in this process and in those that it starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

STAND_INS = Path(__file__).parent.parent / "stand_ins"
MODULES = ("torch", "stable_baselines3")


@pytest.fixture
def stand_in(monkeypatch):
    monkeypatch.syspath_prepend(STAND_INS)
    real = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in MODULES}
    for name in real:
        monkeypatch.delitem(sys.modules, name)
    yield
    for name in MODULES:
        sys.modules.pop(name, None)
