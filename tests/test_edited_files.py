"""Edited files: loading them gives an error that names the file, or an agent that works; never a crash or a hang.

KERNELRL_EDITS is how many are tried of each kind of agent; `make soak` tries thousands, by `edited_files.soak`.
"""

from __future__ import annotations

import os
import time

import pytest

import edited_files
from edited_files import AGENTS, attempt, edits, train, try_edits, use, write

COUNT = int(os.environ.get("KERNELRL_EDITS", "24"))


@pytest.mark.parametrize("name", AGENTS)
def test_refused_or_works(name, tmp_path):
    path = tmp_path / "agent.krl"
    train(name, path)
    assert use(path, tmp_path / "again.krl") == "works"  # which compiles what the children need
    trials = try_edits(path, tmp_path, 0, COUNT)
    bad = [f"{t.number}: {t.words}: {t.result}" for t in trials if t.kind not in ("refused", "works")]
    assert not bad, "\n".join(bad)
    assert COUNT < 20 or {t.kind for t in trials} == {"refused", "works"}


def test_a_file_as_it_is(tmp_path):
    """What the edits are written with changes nothing by itself."""
    path = tmp_path / "agent.krl"
    train("ucbvi", path)
    first = next(iter(edits(path, 0, 1)))
    write(tmp_path / "edited.krl", first.header, first.arrays)
    again = next(iter(edits(path, 0, 5)))
    assert first.words == again.words != []


def test_crashes_and_hangs_are_noticed(tmp_path, monkeypatch):
    for what, found in (
        (os.abort, "crashed"),
        (lambda: os._exit(3), "crashed"),
        (lambda: 1 / 0, "failed: ZeroDivisionError"),
        (lambda: time.sleep(600), "hangs"),
    ):
        monkeypatch.setattr(edited_files, "SECONDS", 0.5 if found == "hangs" else 300)
        monkeypatch.setattr(edited_files, "use", lambda *_, what=what: what())
        assert attempt(tmp_path, tmp_path).startswith(found)
