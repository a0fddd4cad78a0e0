"""What tests of loops of one's own share: a small problem, agents as files, and kills at every line of a loop."""

from __future__ import annotations

import os
import sys

import gymnasium as gym
import pytest

BOX, ACTIONS, H = gym.spaces.Box(0.0, 1.0, (2,)), gym.spaces.Discrete(4, start=1), 3


@pytest.fixture(autouse=True)
def no_waiting_for_disks(monkeypatch):
    """Thousands of files are written, and power cuts are the business of other tests. Importing this is enough."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def content(agent, folder):
    """The whole agent, as bytes."""
    agent.save(folder / "content.krl")
    return (folder / "content.krl").read_bytes()


def files_at_all_lines(folder, run, module):
    """The different contents of the folder, as one sees them at all lines of the module while `run` runs.

    A process that is killed at a line leaves just these files, nothing else.
    """
    found = []

    def trace(frame, event, argument):
        if event == "line":
            files = {path.name: path.read_bytes() for path in folder.iterdir()}
            if files not in found:
                found.append(files)
        return trace

    def of_the_module(frame, event, argument):
        return trace(frame, event, argument) if frame.f_code.co_filename == module.__file__ else None

    before = sys.gettrace()
    sys.settrace(of_the_module)
    try:
        run()
    finally:
        sys.settrace(before)
    return found


def check_all_lines(folder, run, module, name):
    """Check that the file `name` is the same at the end of `run(folder)`, wherever it was killed in the module's file.

    Returns the number of different files that kills leave.
    """
    whole = folder / "whole"
    whole.mkdir()
    found = files_at_all_lines(whole, lambda: run(whole), module)
    for number, files in enumerate(found):
        again = folder / str(number)
        again.mkdir()
        for file, data in files.items():
            (again / file).write_bytes(data)
        run(again)
        assert (again / name).read_bytes() == (whole / name).read_bytes(), number
    return len(found)
