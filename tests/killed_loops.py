"""Kills of a loop that saves: at every line of its file."""

from __future__ import annotations

import sys


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
