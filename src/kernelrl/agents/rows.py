"""The rows of a table as an agent takes them: which columns there are, and checks like those of `Agent.observe`.

    state_0 …, next_state_0 …   one for each coordinate, or `state` and `next_state`: numbers of a Discrete space, one
                                coordinate, or arrays (n, …)
    action                      a number of a Discrete space; action_0 … for a Box
    reward, terminated
    step                        from 0; not needed by agents that pool their data over steps
    episode, truncated          allowed and not used

A bad row is an error that names its number and the column.
"""

from __future__ import annotations

import difflib
import re
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from kernelrl.agents.reward_range import RewardRange
from kernelrl.agents.spaces import Spaces
from kernelrl.agents.tables import Table, bad_value, listed
from kernelrl.episodes.checks import LARGEST

__all__ = ["Rows", "check_order", "played_actions", "rows_of"]

Floats = npt.NDArray[np.float64]
WORDS = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}  # texts that are flags


class Rows(NamedTuple):
    """Transitions in the form that compiled code takes; the fields are the arguments of `take_rows`."""

    states: Floats  # (n, d)
    actions: npt.NDArray[np.int64]  # (n,) from 0
    rewards: Floats  # (n,)
    next_states: Floats  # (n, d)
    steps: npt.NDArray[np.int64]  # (n,)
    terminated: npt.NDArray[np.bool_]  # (n,)


class Reads(Protocol):
    """What reading rows must know: a started agent knows it."""

    @property
    def spaces(self) -> Spaces:
        """States, actions and steps."""

    @property
    def rewards(self) -> RewardRange:
        """The range of rewards."""

    def needs_step(self) -> bool:
        """Whether rows need their step."""


def rows_of(agent: Reads, table: Table) -> Rows:
    """The rows of a table for a started agent, or an error that says what is wrong with the first bad one."""
    spaces, ranges, reading = agent.spaces, agent.rewards, Reading(table)
    d, axes = spaces.dimensions, 1 if spaces.net is None else spaces.net.low.size
    states, actions = reading.group("state", d), reading.group("action", axes)
    reward, next_states = reading.group("reward", 1), reading.group("next_state", d)
    ends, steps = reading.flags("terminated"), None
    needed = agent.needs_step() and spaces.horizon > 1
    if needed or "step" in reading.left:
        steps = reading.group("step", 1)
    reading.check_rest()
    check_rewards(reward, ends, ranges)
    return Rows(
        check_states(states, spaces), check_actions(actions, spaces), reward.values[:, 0].copy(),
        check_states(next_states, spaces), check_steps(steps, spaces, needed, len(ends)), ends,
    )  # fmt: skip


def played_actions(table: Table, spaces: Spaces) -> npt.NDArray[Any]:
    """The actions of a checked table as they were played, (n, d_A); (n,) numbers of a Discrete space."""
    values = Reading(table).group("action", 1 if spaces.net is None else spaces.net.low.size).values
    return values[:, 0].astype(np.int64) if spaces.net is None else np.clip(values, spaces.net.low, spaces.net.high)


class Group(NamedTuple):
    """Columns that belong together."""

    names: list[str]
    values: Floats  # (n, k)

    def check(self, good: npt.NDArray[np.bool_], wanted: Any) -> None:
        """Raise an error for the first row in which not all of `good` (n, k) hold; `wanted(j)` must be a clause."""
        if not good.all():
            i, j = np.argwhere(~good)[0]
            value = float(self.values[i, j])
            said = str(int(value)) if value.is_integer() and abs(value) < 1e15 else str(value)
            raise bad_value(int(i), self.names[j], said, wanted(int(j)))


class Reading:
    """The columns of a table, from which needed ones are taken one after another."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.left = dict(table.columns)

    def group(self, name: str, k: int) -> Group:
        """The column of that name, if it holds `k` numbers in each row, or the `k` columns name_0 ….

        One column stands for either: `state` or `state_0`.
        """
        names = [f"{name}_{j}" for j in range(k)]
        given = [other for other in self.left if re.fullmatch(rf"{name}(_\d+)?", other)]
        if name not in given and (missing := [one for one in names if one not in given]):
            raise self.missing(name if k == 1 else missing[0], name, k)
        if len(given) > (1 if name in given else k):
            wanted = f"{k} columns, {names[0]} … {names[-1]}, or one, {name}, with {k} numbers in each row"
            wanted = wanted if k > 1 else f"one column, {name} or {names[0]}"
            raise ValueError(f"table: {name} must be {wanted}; got {listed(given)}")
        if name in given:
            values = as_numbers(name, self.left.pop(name))
            values = values.reshape(len(values), -1)
            if values.shape[1] != k:
                instead = f"{name}_0 … {name}_{k - 1}, or arrays of shape (n, {k})"
                raise ValueError(
                    f"table: column {name} has {values.shape[1]} numbers in each row, not {k}; give {instead}"
                )
            return Group([name] * k, np.ascontiguousarray(values))
        parts = [as_numbers(one, self.left.pop(one)) for one in names]
        for one, part in zip(names, parts, strict=True):
            if part.ndim > 1:
                raise ValueError(f"table: column {one} must have one number in each row, got {part.shape[1:]}")
        return Group(names, np.ascontiguousarray(np.column_stack(parts)))

    def flags(self, name: str) -> npt.NDArray[np.bool_]:
        """The column of that name as booleans; 0, 1 and the texts true and false are accepted."""
        column = self.left.get(name)
        if column is not None and column.dtype.kind == "U" and column.ndim == 1:
            words = np.char.lower(np.char.strip(column))
            known = np.isin(words, list(WORDS))
            if not known.all():
                raise bad_value(int(np.argmin(known)), name, repr(str(column[~known][0])), "it must be true or false")
            self.left[name] = np.array([WORDS[word] for word in words])
        found = self.group(name, 1)
        found.check((found.values == 0.0) | (found.values == 1.0), lambda j: "it must be true or false")
        return np.asarray(found.values[:, 0] == 1.0)

    def missing(self, wanted: str, name: str, k: int) -> ValueError:
        """The error for a column that is not there."""
        if wanted in self.table.ignored:
            return ValueError(f'ignore: the column "{wanted}" is needed; take it out of the columns to ignore')
        close = difflib.get_close_matches(wanted, self.table.unknown(), 1)
        guess = f' (did you mean "{close[0]}"? rename it)' if close else ""
        why = {
            "terminated": "; False in every row if no episode ends before its time limit",
            "step": "; the step of the episode, from 0: this agent's values depend on it",
        }.get(name, f"; {name} has {k} columns here" if k > 1 else "")
        if name == "next_state":
            why += "; where each row is one measurement, that of the row after it in the same episode"
        elif not self.table.columns:
            why += "; docs/logged_data.md turns a log with names of its own into such a table"
        return ValueError(
            f'table: the column "{wanted}" is missing{guess}{why}; the table has {listed(self.table.names)}'
        )

    def check_rest(self) -> None:
        """Reject columns that are not known."""
        if unknown := self.table.unknown():
            raise ValueError(
                f"table: unknown columns {listed(unknown)}; leave them out, or give ignore={unknown}; known are "
                "state_0 …, action (or action_0 …), reward, next_state_0 …, terminated, step, episode and truncated"
            )


def is_number(text: str) -> bool:
    """Whether a text is a number as it stands in tables; Python's own 1_000 does not."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def as_numbers(name: str, column: npt.NDArray[Any]) -> Floats:
    """A column as float64, or an error that names the first row that is not a number."""
    if column.dtype.kind == "U":
        texts = column.reshape(-1).tolist()
        bad = next((i for i, text in enumerate(texts) if not is_number(text)), None)
        if bad is not None:
            numbers = "; give each action a number, from 0" if name == "action" else ""
            raise bad_value(bad * len(column) // len(texts), name, repr(texts[bad]), f"it must be a number{numbers}")
        raise ValueError(
            f"table: column {name} holds texts, not numbers; convert it, for instance with a cast to float"
        )
    return np.asarray(column, np.float64)


# --------------------------------------------------------------------------------------------------- checks of the rows


def check_states(states: Group, spaces: Spaces) -> Floats:
    """The states, clipped by at most the rounding to float32."""
    x, low, high, slack = states.values, spaces.low, spaces.high, spaces.slack
    states.check(np.isfinite(x), lambda j: "it must be a finite number")
    if spaces.discrete:
        whole = (x == np.floor(x)) & (x >= low) & (x <= high)
        states.check(whole, lambda j: f"it must be one of {low[0]:.0f} … {high[0]:.0f}")
    inside = (x >= low - slack) & (x <= high + slack)
    states.check(inside, lambda j: f"it must lie in the state space, from {low[j]} to {high[j]}")
    return np.clip(x, low, high)


def check_actions(actions: Group, spaces: Spaces) -> npt.NDArray[np.int64]:
    """The numbers of the actions, from 0; for continuous ones those of the nearest in the net."""
    a, net = actions.values, spaces.net
    if net is not None:
        low, high = net.low, net.high
        actions.check(net.inside(a), lambda j: f"it must lie in the action space, from {low[j]} to {high[j]}")
        return net.numbers(a)
    first, last = spaces.first_action, spaces.first_action + spaces.actions - 1
    good = (a == np.floor(a)) & (a >= first) & (a <= last)
    actions.check(good, lambda j: f"it must be one of {first} … {last}")
    return a[:, 0].astype(np.int64) - first


def check_rewards(reward: Group, ends: npt.NDArray[np.bool_], ranges: Any) -> None:
    """Rewards are finite and, where the range is a promise, inside it; terminations need a range that includes 0."""
    r = reward.values
    reward.check(abs(r) < LARGEST, lambda j: "it must be a finite number")
    floor, ceiling = ranges.limits
    outside = (r < floor) | (r > ceiling)
    if ranges.strict and outside.any():
        i = int(np.argmax(outside[:, 0]))
        raise ValueError(f"table: row {i} (the first is 0), column reward: {ranges.outside_error(float(r[i, 0]))}")
    if ends.any() and not ranges.holds_zero:
        raise ValueError(f"table: row {int(np.argmax(ends))} (the first is 0), column terminated: {ranges.end_error()}")


def check_steps(steps: Group | None, spaces: Spaces, needed: bool, n: int) -> npt.NDArray[np.int64]:
    """The steps; those of a table without them count as the last one, so that no row is taken for a start."""
    H = spaces.horizon
    if steps is None:
        return np.full(n, H - 1, np.int64)
    h = steps.values
    remedy = "" if needed else '; this agent pools its data over steps, so ignore=["step"] takes rows of any step'
    steps.check((h == np.floor(h)) & (h >= 0) & (h < H), lambda j: f"it must be one of 0 … {H - 1}{remedy}")
    return h[:, 0].astype(np.int64)


def check_order(episode: Any, rows: Rows, low: Floats, high: Floats) -> None:
    """Raise ValueError where rows are in no order of time, or are there twice; states lie between `low` and `high`.

    They are in no order where a later step of an episode comes before an earlier one. A number of an episode may occur
    again, from step 0 on, since several runs may follow each other.
    """
    steps = rows.steps
    try:
        number = np.unique(np.asarray(episode), return_inverse=True)[1].reshape(-1)
    except (TypeError, ValueError):  # not numbers, nor texts: the column is not needed
        return
    order = np.argsort(number, kind="stable")
    if len(order) != len(steps):
        return
    same, h = number[order][1:] == number[order][:-1], steps[order]
    back = same & (h[1:] <= h[:-1]) & (h[1:] > 0)
    if back.any():
        at = int(np.argmax(np.where(back, -order[1:], -len(order))))
        raise ValueError(
            f"table: row {order[at + 1]} (the first is 0) is step {h[at + 1]} of its episode, and row {order[at]}, "
            f"before it, step {h[at]}. Rows must be in order of time: which of them count depends on what was seen "
            'before. Sort them by episode and step; if they are in order, give ignore=["episode"]'
        )
    if (same & (h[1:] == 0)).any():
        starts = np.flatnonzero(np.append(True, ~same | (h[1:] == 0)))
        check_once(rows, np.split(order, starts[1:]), number, low, high)


def check_once(rows: Rows, episodes: list[Any], number: Any, low: Floats, high: Floats) -> None:
    """Raise ValueError where an episode, or the beginning of one, is there again with the same number and values.

    Steps that end at the border of the state space may be the same by chance.
    """
    values = np.column_stack([rows.states, rows.actions, rows.rewards, rows.next_states, rows.steps])
    inside = np.asarray(((rows.next_states > low) & (rows.next_states < high)).all(axis=1))
    alike: dict[tuple[int, bytes], list[Any]] = {}  # episodes with the same first step that ends inside
    for own in episodes:
        if not inside[own].any():
            continue
        others = alike.setdefault((int(number[own[0]]), values[own[np.argmax(inside[own])]].tobytes()), [])
        for other in others:
            if all(np.array_equal(values[i], values[j]) for i, j in zip(own, other, strict=False)):
                raise ValueError(
                    f"table: the episode that begins at row {own[0]} (the first is 0) is the one at row {other[0]} "
                    "again: it has the same number, states, actions and rewards. Bounds would take it for more samples "
                    "than there are, and be too tight. Take out what is there twice, for example by unique() of the "
                    "frame; if these are two independent runs that went the same way, give their episodes different "
                    "numbers"
                )
        others.append(own)
