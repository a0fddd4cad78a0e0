"""Colours, dashes and markers by a label's place in the experiment: distinct for colour-blind readers and in grey."""

from typing import Any, NamedTuple

from matplotlib.colors import to_rgb

__all__ = ["ACTION_COLOURS", "DARK_INK", "LIGHT_INK", "OPTIMUM", "Line", "contrast", "ink_on", "line_of"]

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
LIGHT_INK, DARK_INK = "#ffffff", "#000000"  # of text on a colour: one of them always has a contrast of 4.5
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


def luminance(colour: Any) -> float:
    """How much light a colour sends, from 0 to 1 (relative luminance of sRGB)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: Any, second: Any) -> float:
    """The contrast of two colours, from 1 to 21; text should have 4.5."""
    darker, lighter = sorted((luminance(first), luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def ink_on(colour: Any) -> str:
    """The ink that is easier to read on a colour."""
    return max(LIGHT_INK, DARK_INK, key=lambda ink: contrast(ink, colour))
