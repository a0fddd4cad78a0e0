"""`Agent.explain`: why an agent plays what it plays in a state, as an object with a table, a dict and a figure.

For each action, in the environment's units of reward,

    q = estimate + bonus        the optimistic value by which the agent chooses while it learns (`q_values`)
    deployed                    the value that `act` maximises

Values of a state are min(R_h, max q), where R_h, the cap, is the most that the steps left can bring.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelrl.agents.checks import whole_number
from kernelrl.agents.masking import allowed_at

if TYPE_CHECKING:
    from kernelrl.agents.base import Agent

__all__ = ["Explanation", "explain"]

Floats = npt.NDArray[np.float64]
HEAD = ["action", "q", "estimate", "bonus", "count", "deployed", ""]
MOST_ROWS = 12  # actions in a table
MOST_NAMES = 4  # actions in a sentence
MOST_COUNTS = 4  # columns of counts of representatives
CLOSE = 1e-9  # relative to the range of values: differences below are ties


@dataclass(frozen=True)
class Explanation:
    """Why an agent plays what it plays: `print` it, or take `as_dict()` or `figure()`."""

    content: dict[str, Any]
    """What `as_dict` returns."""
    lines: Any = None
    """For a figure of states of one dimension: states (n,) and q (n, A)."""

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain dicts, lists, texts and numbers; what is not known is None."""
        copied: dict[str, Any] = json.loads(json.dumps(self.content))
        return copied

    def __str__(self) -> str:
        found = self.content
        state = ", ".join(f"{s:.6g}" for s in found["state"])
        lines = [f"{found['agent']} in ({state}) at step {found['step']} of {found['horizon']}", ""]
        lines += aligned(HEAD, self._rows())
        lines += ["", f"learning: {found['learning']['why']}", f"deployed: {found['deployed']['why']}"]
        value, cap = found["value"], found["cap"]
        if value is not None:
            lines.append(f"value {value:.6g}; at most {cap:.6g} can be collected in the steps left")
        lines += found["notes"]
        return "\n".join([*lines, *self._evidence()])

    def shown(self) -> list[dict[str, Any]]:
        """The actions of the table and of the figure: all, or the best and the one that is deployed."""
        actions: list[dict[str, Any]] = self.content["actions"]
        if len(actions) <= MOST_ROWS:
            return actions
        best = sorted(actions, key=optimistic_value, reverse=True)[: MOST_ROWS - 1]
        return [a for a in actions if a in best or a["is_deployed"]]

    def _rows(self) -> list[list[str]]:
        rows = []
        for a in self.shown():
            plays = [what for what in ("learning", "deployed") if a[f"is_{what}"]]
            known = ["not allowed"] if not a["allowed"] else ["never tried"] if a["tried"] is False else []
            said = ", ".join([*plays, *known])
            name = named(a["action"]) + (f" {a['label']}" if a["label"] else "")
            rows.append([name, *(number(a[key]) for key in HEAD[1:-1]), said])
        left = len(self.content["actions"]) - len(rows)
        return [*rows, [f"({left} more)", *[""] * len(HEAD[1:])]] if left else rows

    def _evidence(self) -> list[str]:
        evidence = self.content["evidence"]
        if not evidence:
            return []
        if evidence["kind"] == "cells":
            return ["", evidence["text"]]
        actions, columns = self.content["actions"], self._counted()
        counts = "counts" if len(columns) == len(actions) else f"counts of {names(actions[a] for a in columns)}"
        of_samples = evidence["kind"] == "samples"
        head = ["state", "distance", *(("weight", "action", "reward") if of_samples else ("share", "weight", counts))]
        rows = []
        for row in evidence["nearest"]:
            where = [f"({', '.join(f'{s:.4g}' for s in row['state'])})", number(row["distance"])]
            if of_samples:
                rows.append([*where, number(row["weight"]), str(row["action"]), number(row["reward"])])
            else:
                counted = " ".join(number(row["counts"][a]) for a in columns)
                rows.append([*where, number(row["share"]), number(max(row["weights"])), counted])
        title = f"nearest {len(rows)} of {evidence['number']:,} {evidence['kind']}, read: {evidence['reading']}"
        return ["", title, *aligned(head, rows)]

    def _counted(self) -> list[int]:
        """The actions whose counts are listed: all, or of many those that are played."""
        actions: list[dict[str, Any]] = self.content["actions"]
        if len(actions) <= MOST_COUNTS:
            return list(range(len(actions)))
        learning = [a for a, action in enumerate(actions) if action["is_learning"]][:1]
        return sorted({*learning, *(a for a, action in enumerate(actions) if action["is_deployed"])})

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def figure(self) -> Any:
        """A matplotlib figure: what the actions are worth, and where the data are; for one or two dimensions."""
        from kernelrl.agents.explained_figure import draw

        return draw(self)


def optimistic_value(action: dict[str, Any]) -> float:
    """q of an action; where none is stated, it is infinite, or the action is not allowed and never played."""
    if action["q"] is None:
        return math.inf if action["is_learning"] else -math.inf
    return float(action["q"])


def number(value: float | None) -> str:
    """A number in a table."""
    return "–" if value is None else f"{value:.4g}"


def named(action: Any) -> str:
    """An action in a table."""
    return f"({', '.join(f'{a:.4g}' for a in action)})" if isinstance(action, list) else str(action)


def names(actions: Iterable[dict[str, Any]]) -> str:
    """Actions in a sentence: the first few, and how many more there are."""
    found = [named(a["action"]) for a in actions]
    more = len(found) - MOST_NAMES
    return ", ".join(found) if more <= 0 else f"{', '.join(found[:MOST_NAMES])} and {more} more"


def aligned(head: list[str], rows: list[list[str]]) -> list[str]:
    """The lines of a table; the first and the last column are texts."""
    widths = [max(len(row[j]) for row in [head, *rows]) for j in range(len(head))]
    texts, lines = (0, len(head) - 1), []
    for row in [head, *rows]:
        cells = [t.ljust(w) if j in texts else t.rjust(w) for j, (t, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return lines


def explain(agent: Agent, state: npt.ArrayLike, step: int, nearest: int) -> Explanation:
    """What `agent.explain` returns."""
    agent.check_started()
    spaces, most = agent.spaces, whole_number("nearest", nearest, 0)
    x, h = spaces.check_state("state", state), spaces.check_step(step)
    given = x.reshape(1, *spaces.shape)
    q = agent.q_values(given, h)[0]
    bonus = agent.explained_bonuses(x, h)
    counts = np.asarray(agent.counts(given, h))[0] if hasattr(agent, "counts") else None  # type: ignore[attr-defined]
    worth = agent.deployed_worth(x, h)
    played = int(agent.deployed_actions(x[None], h)[0])
    tried = None if counts is None else agent.tried(x, h, counts)
    scale = agent.rewards.width * (spaces.horizon - h)
    allowed = allowed_at(agent, x[None])[0]
    if not allowed.all():  # what is not allowed is worth nothing
        q, worth = np.where(allowed, q, -np.inf), None if worth is None else np.where(allowed, worth, -np.inf)
    best = np.flatnonzero(q >= q.max() - CLOSE * scale) if np.isfinite(q.max()) else np.flatnonzero(q == q.max())
    actions = [
        {
            "action": plain(spaces.action(a)), "label": agent.action_names[a] if agent.action_names else None,
            "q": finite(q[a]), "estimate": None if bonus is None else finite(q[a] - bonus[a]),
            "bonus": None if bonus is None else finite(bonus[a]),
            "count": None if counts is None else finite(counts[a]),
            "deployed": None if worth is None else finite(worth[a]), "tried": None if tried is None else bool(tried[a]),
            "allowed": bool(allowed[a]), "is_learning": a in best, "is_deployed": a == played,
        }
        for a in range(spaces.actions)
    ]  # fmt: skip
    value, cap = float(agent.values(given, h)[0]), float(agent.in_own_units(spaces.horizon - h, h))
    content = {
        "agent": type(agent).__name__, "state": x.tolist(), "step": h, "horizon": spaces.horizon, "actions": actions,
        "value": finite(value), "cap": cap,
        "learning": {"actions": [actions[a]["action"] for a in best], "why": why_learning(agent, actions, best)},
        "deployed": {"action": actions[played]["action"], "why": why_deployed(actions, played, worth, scale)},
        "evidence": agent.evidence_at(x, h, most), "notes": notes(agent, float(q.max()), value, cap, scale),
    }  # fmt: skip
    return Explanation(content, lines_of(agent, h) if x.size == 1 else None)


def lines_of(agent: Agent, h: int) -> Any:
    """States along a box of one dimension, and q there."""
    low, high = agent.spaces.low[0], agent.spaces.high[0]
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    states = np.arange(low, high + 1.0) if agent.spaces.discrete else np.linspace(low, high, 201)
    return states, agent.q_values(states.reshape(-1, *agent.spaces.shape), h)


def finite(value: Any) -> float | None:
    """A number, or None if it is infinite or not known."""
    return float(value) if math.isfinite(value) else None


def plain(action: Any) -> Any:
    """An action as JSON."""
    return np.asarray(action).reshape(-1).tolist() if isinstance(action, np.ndarray) else int(action)


def why_learning(agent: Agent, actions: list[dict[str, Any]], best: npt.NDArray[np.int64]) -> str:
    """Why the learning policy plays what it plays."""
    if agent.plays_at_random():
        some = "any action" if all(action["allowed"] for action in actions) else "any action that is allowed"
        return f"{some}, drawn at random: it does not use its data yet"
    said = names(actions[a] for a in best)
    untried = all(actions[a]["tried"] is False for a in best)
    if len(best) == 1:
        return f"{said}, which was never tried here" if untried else f"{said}, the largest q"
    what = "never tried here" if untried else "equally large q"
    return f"one of {said}, drawn at random: {what}"


def why_deployed(actions: list[dict[str, Any]], played: int, worth: Floats | None, scale: float) -> str:
    """Why the policy to deploy plays what it plays."""
    name = named(actions[played]["action"])
    if worth is None:
        return name
    best = np.flatnonzero(worth >= worth[played] - CLOSE * scale)
    if len(best) == 1:
        with_bonus = actions[played]["q"] is not None and worth[played] == actions[played]["q"]
        return f"{name}, the largest {'q' if with_bonus else 'value without bonus'}"
    others, first = names(actions[a] for a in best if a != played), played == best[0]
    if all(actions[a]["tried"] is False for a in best):
        return f"{name}: nothing is known here" + (", so the first action counts" if first else "")
    return f"{name}: as good as {others}" + (", and ties go to the first" if first else "")


def notes(agent: Agent, best: float, value: float, cap: float, scale: float) -> list[str]:
    """Where the cap or an earlier value acts."""
    found = []
    if best > cap + CLOSE * scale:
        found.append(f"the largest q, {best:.6g}, is above what can be collected: the value is capped")
    if value < min(best, cap) - 1e-6 * scale:
        found.append(f"the value, {value:.6g}, is below the largest q: values only fall, and an earlier one was lower")
    return found + agent.explained_notes()
