"""Trees of boxes that are halved along every axis (`kernelrl.geometry.dyadic`), as a portable policy.

Only the order of values matters to a policy, so a leaf has the rank of its value among those of its step: nothing is
lost, ties included. A node is one number: that of the first of its 2^d children, or -1 - rank for a leaf. The digits
of a coordinate u in [0, 1] are those of ⌊u·2^30⌋; the digits of all coordinates at one depth choose the child.

    Trees        a tree of the box of states for each step and action; the first node of row and action is row·A + a
    JointTrees   a tree of states and actions for each step; the action is the centre of the best leaf that contains
                 the state, a number in a net (see `kernelrl.algorithms.balls`)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from kernelrl.geometry.dyadic import DIGITS
from kernelrl.portable.forms import Form, Table

__all__ = ["JointTrees", "Trees", "ranked_nodes"]

Floats = npt.NDArray[np.float64]


def ranked_nodes(
    child: npt.NDArray[np.int32], value: Floats, groups: list[list[int]], parts: int
) -> npt.NDArray[np.int32]:
    """(n,) the nodes of trees whose first ones are `groups`, one list for each step; these come first, in order.

    `child` and `value` are those of all nodes; each node that is divided has `parts` children.
    """
    roots = [root for group in groups for root in group]
    order, nodes = list(roots), []
    step = [h for h, group in enumerate(groups) for _ in group]
    leaves: list[list[int]] = [[] for _ in groups]
    position = 0
    while position < len(order):
        first = int(child[order[position]])
        if first >= 0:
            nodes.append(len(order))
            order += range(first, first + parts)
            step += [step[position]] * parts
        else:
            nodes.append(-1)
            leaves[step[position]].append(position)
        position += 1
    found = np.array(nodes, np.int32)
    for of_step in leaves:
        _, rank = np.unique(value[[order[i] for i in of_step]], return_inverse=True)
        found[of_step] = -1 - rank.reshape(-1)
    return found


@dataclass(frozen=True, eq=False)
class Trees(Form):
    """A tree of the box of states for each step and action."""

    low: Floats
    """(d,) the lowest state."""
    inverse: Floats
    """(d,) 1/width of the box."""
    child: npt.NDArray[np.int32]
    """(n,) the first child of each node, or -1."""
    value: Floats
    """(n,) the value of each leaf."""
    trees: int
    """How many trees a step has: A. The first node of a tree has the number step·trees + action."""
    steps: tuple[int, ...]
    """The steps that are kept."""
    axes: int = 0
    """The number of axes of actions, where boxes are of states and actions."""
    finest: int = 0
    """The depth of the smallest of these boxes."""
    kind: ClassVar[str] = "trees"

    def at_steps(self, steps: list[int]) -> Self:
        """The form with the tables of these steps only."""
        return replace(self, steps=tuple(self.steps[h] for h in steps))

    def nodes(self) -> npt.NDArray[np.int32]:
        """The nodes as one number each."""
        groups = [[h * self.trees + a for a in range(self.trees)] for h in self.steps]
        return ranked_nodes(self.child, self.value, groups, 1 << (len(self.low) + self.axes))

    def tables(self) -> dict[str, Table]:
        """Its arrays by name."""
        return {
            "origin": np.asarray(self.low, np.float64), "per_width": np.asarray(self.inverse, np.float64),
            "nodes": self.nodes(),
        }  # fmt: skip

    def numbers(self) -> dict[str, Any]:
        """Its other parts by name."""
        return {"digits": DIGITS, "trees": self.trees}

    def described(self) -> str:
        """What it is."""
        return f"{len(self.steps) * self.trees:,} trees of boxes with {self.nodes().size:,} nodes"

    def smaller(self) -> str:
        """What would make its tables smaller."""
        return "fewer episodes, or an agent on a coarse grid, such as UCBVI(bins=…)"

    def locate(self) -> str:
        """C: digits of the state."""
        d = len(self.low)
        return f"""\
    uint32_t place[{d}];
    int j;
    (void)step;
    for (j = 0; j < {d}; j++) {{
        REAL u = (x[j] - @origin[j]) * @per_width[j] * {2**DIGITS}.0LIT;
        place[j] = u >= {2**DIGITS - 1}.0LIT ? {2**DIGITS - 1}u : (uint32_t)u;
    }}
"""

    def c_code(self) -> str:
        """The C functions."""
        d = len(self.low)
        return f"""\
static inline int @number(const REAL *x, int row, int step)
{{
    int32_t best = 0;
    int a, found = 0;
{self.locate()}\
    for (a = 0; a < {self.trees}; a++) {{
        int32_t node = @nodes[(size_t)row * {self.trees}u + (size_t)a];
        int k = {DIGITS};
        while (node >= 0) {{
            size_t half = 0;
            k--;
            for (j = 0; j < {d}; j++)
                half = 2u * half + ((place[j] >> k) & 1u);
            node = @nodes[(size_t)node + half];
        }}
        if (a == 0 || -1 - node > best) {{
            best = -1 - node;
            found = a;
        }}
    }}
    return found;
}}
"""


@dataclass(frozen=True, eq=False)
class JointTrees(Trees):
    """A tree of the joint box of states and actions for each step."""

    kind: ClassVar[str] = "joint trees"

    def numbers(self) -> dict[str, Any]:
        """Its other parts by name."""
        return {"digits": DIGITS, "axes": self.axes, "finest": self.finest}

    def c_code(self) -> str:
        """The C functions."""
        d, last = len(self.low), 2 << self.finest
        room, middle = self.finest * 2**self.axes + 1, 0
        for _ in range(self.axes):
            middle = middle * (last + 1) + last // 2
        return f"""\
static inline int @number(const REAL *x, int row, int step)
{{
    int32_t nodes[{room}], centres[{room}], best = -1, found = 0;
    int depths[{room}], left = 1, i;
{self.locate()}\
    nodes[0] = @nodes[row];
    depths[0] = 0;
    centres[0] = {middle};
    while (left > 0) {{
        int32_t node, centre;
        int depth;
        size_t half = 0;
        left--;
        node = nodes[left];
        depth = depths[left];
        centre = centres[left];
        if (node < 0) {{
            if (-1 - node > best) {{
                best = -1 - node;
                found = centre;
            }}
            continue;
        }}
        for (j = 0; j < {d}; j++)
            half = 2u * half + ((place[j] >> ({DIGITS - 1} - depth)) & 1u);
        for (i = 0; i < {1 << self.axes}; i++) {{
            int32_t shift = (int32_t)1 << ({self.finest - 1} - depth), factor = 1, moved = centre;
            for (j = 0; j < {self.axes}; j++) {{
                moved += (i >> j) & 1 ? factor * shift : -(factor * shift);
                factor *= {last + 1};
            }}
            nodes[left] = @nodes[(size_t)node + (half << {self.axes}) + (size_t)i];
            depths[left] = depth + 1;
            centres[left] = moved;
            left++;
        }}
    }}
    return (int)found;
}}
"""
