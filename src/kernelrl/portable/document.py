"""A portable policy as a file: a C99 header, or JSON (docs/export.md says what is in it)."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.portable.forms import Form, Table, smallest_type

__all__ = ["FORMAT", "PolicyFile"]

FORMAT = 1  # of JSON files
PER_LINE = 100  # characters
TYPES = {"uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t", "int32": "int32_t"}
MATHS = r"\b(?:sqrt|pow|exp|log|floor|ceil|hypot|fabs|a?sin|a?cos|a?tan2?|sinh|cosh|tanh|HUGE_VAL)f?\b"
LARGEST = float(np.finfo(np.float32).max)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PolicyFile:
    """Everything that stands in the file of a policy."""

    form: Form
    about: dict[str, str]
    """What the head of the file says, by name: agent, environment, …"""
    low: Floats
    """(d,) the box of states."""
    high: Floats
    horizon: int
    actions: int
    first_action: int
    """The number of the first Discrete action."""
    axes: tuple[Floats, ...] | None
    """For continuous actions the values along each axis, of whose combinations the last axis runs fastest."""
    steps: tuple[int, ...] | None
    """The steps that are kept; None: all."""
    labels: tuple[str, ...] = ()
    """What the actions are called."""

    def rows(self) -> list[int]:
        """(H,) the row of tables for each step: the last step that is kept and not later, or the first one."""
        kept = np.array(self.steps if self.steps is not None else range(self.horizon))
        found: list[int] = np.maximum(np.searchsorted(kept, np.arange(self.horizon), side="right") - 1, 0).tolist()
        return found

    def tables(self) -> dict[str, Table]:
        """All arrays by name."""
        found: dict[str, Table] = {"low": self.low, "high": self.high}
        if self.steps is not None:
            found["rows"] = smallest_type(self.rows())
        for j, axis in enumerate(self.axes or ()):
            found[f"action_{j}"] = axis
        return {**found, **self.form.tables()}

    def bytes(self, precision: str = "double") -> int:
        """How much memory the tables take."""
        real = 4 if precision == "float" else 8
        return sum(
            table.size * (real if table.dtype == np.float64 else table.itemsize) for table in self.tables().values()
        )

    # -------------------------------------------------------------------------------------------------------------- C

    def header(self, name: str, precision: str = "double") -> str:
        """The C99 header; all names in it begin with `name`."""
        code = re.sub(r"(?<=\d)LIT\b", "f" if precision == "float" else "", self._functions())
        code = re.sub(r"CALL\((\w+)\)", r"\1f" if precision == "float" else r"\1", code)
        code = re.sub(r"\bREAL\b", precision, code).replace("@", f"{name}_")  # the name last: it may contain the others
        guard = f"{name.upper()}_POLICY_H"
        maths = sorted(set(re.findall(MATHS, code)))
        includes = ["stddef.h", "stdint.h"] + ["string.h"] * ("memcpy(" in code) + ["math.h"] * bool(maths)
        tables = "\n".join(c_table(name, key, table, precision) for key, table in self.tables().items())
        content = f"0x{zlib.crc32((name + tables + code).encode()):08x}u"
        clash = f"two policies are called {name.upper()}: export one of them with another name (case does not count)"
        return "\n".join([
            self._comment(name, precision, maths), f"#ifndef {guard}", f"#define {guard} {content}", "",
            *(f"#include <{file}>" for file in includes), "",
            "#if defined(__clang__)", "#pragma STDC FP_CONTRACT OFF", "#endif", "",
            f"#define {name.upper()}_STATE_SIZE {len(self.low)}", f"#define {name.upper()}_ACTIONS {self.actions}",
            f"#define {name.upper()}_HORIZON {self.horizon}",
            *([f"#define {name.upper()}_ACTION_SIZE {len(self.axes)}"] if self.axes is not None else []), "",
            tables, code, f"#elif {guard} != {content}", f'#error "{clash}"', f"#endif /* {guard} */", "",
        ])  # fmt: skip

    def _comment(self, name: str, precision: str, maths: list[str]) -> str:
        """The head of the file."""
        size = self.bytes(precision)
        act = f"{name}_act(state, step)" if self.axes is None else f"{name}_act(state, step, action)"
        lines = ["A policy, written by kernelrl. Do not edit: export it again.", ""]
        lines += [f"{key}: {value}" for key, value in self.about.items()]
        lines += [f"look-up: {self.form.described()}", f"tables: {size:,} bytes", f"numbers: {precision}"]
        if self.labels:
            shown = ", ".join(f"{self.first_action + a} {label}" for a, label in enumerate(self.labels))
            lines.append(f"actions: {shown}")
        if self.steps is not None:
            lines.append(f"steps: {', '.join(map(str, self.steps))}; others play the last one before them")
        uses = f"It needs math.h: {', '.join(maths)} (link with -lm)." if maths else "It needs no library."
        lines += [
            "", f"{act}: steps count from 0; from the horizon on the policy is that of the last step.",
            "States are moved into the box; a coordinate that is not a number counts as the lowest of its axis.",
            "No memory is allocated, nothing is written but the result: it may be called from anywhere.", uses,
        ]  # fmt: skip
        if precision == "double":
            lines += [
                "Sums may differ from the library's in their last digits: of actions that are equally good",
                "to 15 digits another one may be taken.",
            ]
        else:
            lines += ["In single precision actions may differ from the library's where two are almost equally good."]
        text = "\n".join(f" * {in_comment(line)}".rstrip() for line in lines)
        return f"/*\n{text}\n */"

    def _functions(self) -> str:
        d, last = len(self.low), self.horizon - 1
        row = "@rows[step]" if self.steps is not None else "step"
        choice = f"""\
static inline int @choose(const REAL *state, int step)
{{
    REAL inside[{d}];
    int j;
    for (j = 0; j < {d}; j++) {{
        inside[j] = state[j] > @low[j] ? state[j] : @low[j];
        inside[j] = inside[j] < @high[j] ? inside[j] : @high[j];
    }}
    step = step < 0 ? 0 : step > {last} ? {last} : step;
    return @number(inside, {row}, step);
}}
"""
        if self.axes is None:
            plus = f"{self.first_action} + " if self.first_action else ""
            act = f"""\
/* The action in a state of {d} numbers at a step, from 0. */
static inline int @act(const REAL *state, int step)
{{
    return {plus}@choose(state, step);
}}
"""
        else:
            lines = []
            for j in reversed(range(len(self.axes))):
                lines += [f"    action[{j}] = @action_{j}[number % {len(self.axes[j])}];"]
                lines += [f"    number /= {len(self.axes[j])};"] if j else []
            body = "\n".join(lines)
            act = f"""\
/* Writes the action in a state of {d} numbers at a step, from 0: {len(self.axes)} numbers. */
static inline void @act(const REAL *state, int step, REAL *action)
{{
    int number = @choose(state, step);
{body}
}}
"""
        return "\n".join([self.form.c_code(), choice, act])

    # ----------------------------------------------------------------------------------------------------------- JSON

    def json(self) -> str:
        """The same as one JSON object."""
        axes = None if self.axes is None else len(self.axes)
        content = {
            "format": FORMAT, "kind": self.form.kind, "about": self.about, "horizon": self.horizon,
            "actions": self.actions, "first_action": self.first_action, "action_axes": axes,
            "labels": list(self.labels), "steps": None if self.steps is None else list(self.steps),
            **self.form.numbers(),
            "tables": {
                key: {"shape": list(table.shape), "values": table.reshape(-1).tolist()}
                for key, table in self.tables().items()
            },
        }  # fmt: skip
        return json.dumps(content, allow_nan=False) + "\n"


def c_table(name: str, key: str, table: Table, precision: str) -> str:
    """An array in C."""
    kind = precision if table.dtype == np.float64 else TYPES[table.dtype.name]
    if kind == "float":  # NumPy writes as many digits as a float has
        texts = [f"{number!s}f" for number in np.clip(table, -LARGEST, LARGEST).astype(np.float32).reshape(-1)]
    else:
        texts = [str(number) for number in table.reshape(-1).tolist()]
    lines, line = [], "   "
    for text in texts:
        if len(line) + len(text) + 2 > PER_LINE:
            lines.append(line)
            line = "   "
        line += f" {text},"
    lines.append(line)
    shape = " x ".join(str(n) for n in table.shape)
    return f"static const {kind} {name}_{key}[{max(1, table.size)}] = {{ /* {shape} */\n" + "\n".join(lines) + "\n};\n"


def in_comment(text: str) -> str:
    """A line in a C comment; what could end the comment, or makes compilers warn, is spaced out or replaced by ?."""
    line = "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text).replace("??/", "?? /")
    return re.sub(r"\*(?=/)|/(?=\*)", r"\g<0> ", line)


def is_name(text: Any) -> bool:
    """Whether names in C can begin with `text`."""
    return isinstance(text, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", text) is not None
