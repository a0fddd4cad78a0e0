"""Colours, dashes and markers by a label's place in the experiment: distinct for colour-blind readers and in grey."""

from typing import NamedTuple

__all__ = ["ACTION_COLOURS", "OPTIMUM", "Line", "line_of"]

# Okabe and Ito's colours; those that are hard to see on white are last or left out.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# plotly's name and matplotlib's pattern, in line widths
DASHES = (
    ("solid", "-"),
    ("6px,3px", (0, (5, 2.5))),
    ("2px,4px", (0, (1.6, 1.6))),
    ("9px,3px,2px,3px", (0, (7, 2.5, 1.6, 2.5))),
    ("12px,4px", (0, (10, 3))),
)
OPTIMUM = "#555555"  # the optimal policy's line, thin and solid
MARKERS = "osD^vPX*"
# Of actions, whose areas meet in maps: each has a lightness of its own, the first four far apart.
ACTION_COLOURS = ("#0B3C6F", "#F6E27A", "#B4432E", "#5AB4C8", "#6A3D7C", "#E8A0B8", "#5C8F3A", "#141414")


class Line(NamedTuple):
    """How a label is drawn everywhere."""

    colour: str
    dash: str
    pattern: object
    marker: str


def line_of(index: int) -> Line:
    """The style of label number `index`; colours, dashes and markers repeat after different numbers of labels."""
    dash, pattern = DASHES[index % len(DASHES)]
    return Line(COLOURS[index % len(COLOURS)], dash, pattern, MARKERS[index % len(MARKERS)])
