"""Writing figures to files, on two cores if there are two.

Drawing takes longer than everything else in a report. Half of the figures are sent to a second process, which runs this
file as a script: it imports only matplotlib and nothing of this package, so it starts quickly.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["STYLE", "save", "save_all"]

STYLE: Any = {
    "font.size": 9, "axes.titlesize": 9.5, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.alpha": 0.25, "grid.linewidth": 0.6, "legend.frameon": False, "svg.hashsalt": "kernelrl",
    "savefig.dpi": 200, "axes.formatter.limits": (-3, 4),
}  # fmt: skip
FORMATS = ("png", "pdf", "svg")


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure in every format; without dates, so that the same data give the same files."""
    paths = paths_of(stem)
    with matplotlib.rc_context(STYLE):
        for axes in every_axes(figure.axes):
            # No title is above ticks, so none has to make room for them; looking for that is a sixth of the time.
            axes.set_title(axes.get_title(), y=1.0)
        if (layout := figure.get_layout_engine()) is not None:
            layout.execute(figure)
        figure.set_layout_engine(None)  # the layout is done; it would be computed again for each format
        for path in paths:
            metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(path.suffix[1:])
            figure.savefig(path, metadata=metadata)
    return paths


def every_axes(axes: Iterable[Any]) -> Iterator[Axes]:
    """The axes, and those inside them, such as colour bars."""
    for one in axes:
        yield one
        yield from every_axes(one.child_axes)


def save_all(figures: dict[str, Figure], out: Path) -> dict[str, list[Path]]:
    """Write all figures into the folder `out`; return the files of each."""
    stems = {name: out / name for name in figures}
    elsewhere = list(figures)[1::2] if (os.cpu_count() or 1) > 1 else []
    process = start([(figures[name], stems[name]) for name in elsewhere])
    for name in figures:
        if name not in elsewhere:
            save(figures[name], stems[name])
    if process is None or process.wait() != 0:  # an error will show again here
        for name in elsewhere:
            save(figures[name], stems[name])
    return {name: paths_of(stem) for name, stem in stems.items()}


def paths_of(stem: Path) -> list[Path]:
    """The files of a figure."""
    return [stem.with_name(f"{stem.name}.{suffix}") for suffix in FORMATS]


def start(work: list[tuple[Figure, Path]]) -> subprocess.Popen[bytes] | None:
    """A process that saves these figures, or None if none can be started."""
    try:
        content = pickle.dumps(work)
        process = subprocess.Popen(
            [sys.executable, "-P", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, pickle.PicklingError, AttributeError, TypeError):
        return None
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as stream:  # if it has ended, its status says so
        stream.write(content)
    return process


if __name__ == "__main__":
    for figure, stem in pickle.load(sys.stdin.buffer):
        save(figure, stem)
