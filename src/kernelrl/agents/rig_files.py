"""Several open episodes in the file of an agent.

The header has `rigs`: the agent before the calls, without arrays, and what is known of each open episode. Arrays whose
names begin with BEFORE are those of the model before the calls; RIGS + CALLS, (n, SHOWN + d) or (n, SHOWN + d + A) with
masks, has one row for each call: KIND … MASKED, the state, the mask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelrl.agents.archive import BEFORE, RIGS, Archive
from kernelrl.agents.episode import Running, Snapshot
from kernelrl.agents.restoring import FIXED, read_beyond, restore
from kernelrl.agents.rigs import CHOOSE, END, OBSERVE, OPEN, Call, Rig, Rigs

if TYPE_CHECKING:
    from kernelrl.agents.base import Agent

__all__ = ["arrays_of_rigs", "restore_rigs", "to_store"]

KIND, NUMBER, ACTION, REWARD, ENDS, PLACED, MASKED, SHOWN = range(8)
CALLS = "calls"
Floats = npt.NDArray[np.float64]


def to_store(rigs: Rigs) -> dict[str, Any]:
    """What is written into the header."""
    episodes = [
        {
            "number": rig.number, "stream": None if rig.stream is None else rig.stream.tolist(),
            "outside": rig.outside, "free_steps": rig.free_steps,
        }
        for rig in rigs.open.values()
    ]  # fmt: skip
    return {"before": rigs.before.state, "episodes": episodes, "behind": rigs.behind}


def arrays_of_rigs(rigs: Rigs, agent: Agent) -> dict[str, npt.NDArray[Any]]:
    """The arrays to save, by name."""
    d, actions = agent.spaces.dimensions, agent.spaces.actions
    width = actions if any(call.mask is not None for call in rigs.calls) else 0
    rows = np.zeros((len(rigs.calls), SHOWN + d + width))
    for row, call in zip(rows, rigs.calls, strict=True):
        row[:SHOWN] = (
            call.kind, call.number, call.action, call.reward, call.terminated, call.state.size > 0,
            call.mask is not None,
        )  # fmt: skip
        if call.state.size:
            row[SHOWN : SHOWN + d] = call.state
        if call.mask is not None:
            row[SHOWN + d :] = call.mask
    return {RIGS + CALLS: rows, **dict(rigs.before.arrays())}


def restore_rigs(agent: Agent, twin: Agent, found: dict[str, Any], archive: Archive) -> None:
    """Give an agent that was restored its open episodes; `twin`, a new one, becomes what it was before the calls."""
    check_types("rigs", found, {"before": dict, "episodes": list, "behind": bool})
    restore(twin, found["before"], archive, BEFORE)
    for key in FIXED:
        if agent.stored[key] != twin.stored[key]:
            raise ValueError(f"rigs: {key} was {twin.stored[key]!r} and is {agent.stored[key]!r}")
    archive.check_names([CALLS], RIGS)
    rigs = Rigs(Snapshot.of(twin))
    rigs.calls, rigs.behind = read_calls(agent, archive.read(RIGS + CALLS)), found["behind"]
    ended = 0
    for i, call in enumerate(rigs.calls):
        try:
            follow(rigs, call, agent.spaces.horizon)
        except (KeyError, ValueError):
            raise ValueError(f"rigs: call {i} cannot have been made") from None
        ended += call.kind == END
    if not rigs.open or [episode.get("number") for episode in found["episodes"]] != list(rigs.open):
        raise ValueError(f"rigs: the calls leave episodes {list(rigs.open)} open")
    if agent.episodes != twin.episodes + ended:
        raise ValueError(f"rigs: there were {twin.episodes} episodes, {ended} ended, and there are {agent.episodes}")
    for episode, rig in zip(found["episodes"], rigs.open.values(), strict=True):
        read_rig(rig, episode)
    agent.rigs = rigs


def check_types(where: str, found: Any, kinds: dict[str, Any]) -> None:
    """Raise ValueError unless `found` has these keys, with values of these types, and no others."""
    if not isinstance(found, dict) or found.keys() != kinds.keys():
        raise ValueError(f"{where} must have {', '.join(kinds)}, got {found!r:.200}")
    for key, kind in kinds.items():
        if kind is not None and type(found[key]) is not kind:
            raise ValueError(f"{where}: {key} must be of type {kind.__name__}, got {found[key]!r:.200}")


def read_rig(rig: Rig, episode: Any) -> None:
    """What the calls do not say about an open episode."""
    check_types("rigs: an episode", episode, {"number": int, "stream": None, "outside": None, "free_steps": int})
    words, free = episode["stream"], episode["free_steps"]
    if (words is None) != (rig.stream is None):
        raise ValueError(f"rigs: episode {rig.number} must have {'no ' if words is not None else 'a '}stream")
    if words is not None:
        good = isinstance(words, list) and len(words) == 4
        if not good or not all(type(word) is int and 0 <= word < 2**64 for word in words) or not any(words):
            raise ValueError(f"rigs: a stream is four words, not all 0, got {words!r:.200}")
        rig.stream = np.array(words, np.uint64)
    if not 0 <= free <= 2**53:
        raise ValueError(f"rigs: free_steps is {free}, which is outside what is possible")
    rig.outside, rig.free_steps = read_beyond(episode["outside"]), free


def read_calls(agent: Agent, rows: Any) -> list[Call]:
    """The calls, with all their numbers checked one by one."""
    spaces, calls = agent.spaces, []
    d, A = spaces.dimensions, spaces.actions
    if rows.dtype != np.float64 or rows.ndim != 2 or rows.shape[1] not in (SHOWN + d, SHOWN + d + A):
        raise ValueError(f"rigs: calls have the shape {rows.shape} and the type {rows.dtype}")
    if not np.isfinite(rows).all():
        raise ValueError("rigs: calls hold numbers that are not finite")
    for i, row in enumerate(rows):
        whole, flags = row[[KIND, NUMBER, ACTION]], row[[ENDS, PLACED, MASKED]]
        most = np.array([END, 2**53, max(1, A - 1)])
        if (
            (whole != np.floor(whole)).any()
            or (whole < 0).any()
            or (whole > most).any()
            or not np.isin(flags, (0, 1)).all()
        ):
            raise ValueError(f"rigs: call {i} is {row[:SHOWN].tolist()}")
        kind, number, action = (int(value) for value in whole)
        placed = kind in (CHOOSE, OBSERVE)
        if row[PLACED] != placed or (row[MASKED] and (kind != CHOOSE or rows.shape[1] == SHOWN + d)):
            raise ValueError(f"rigs: call {i} is {row[:SHOWN].tolist()}")
        if abs(row[REWARD]) > 1e99 or (kind != OPEN and action >= A):
            raise ValueError(f"rigs: call {i} is {row[:SHOWN].tolist()}")
        place = row[SHOWN : SHOWN + d].reshape(1, *spaces.shape)
        state = spaces.check_states(place, f"rigs: state of call {i}")[0] if placed else np.zeros(0)
        mask = spaces.check_mask(row[SHOWN + d :].astype(np.int64), f"rigs: mask of call {i}") if row[MASKED] else None
        calls.append(Call(kind, number, action, float(row[REWARD]), bool(row[ENDS]), state, mask))
    return calls


def follow(rigs: Rigs, call: Call, horizon: int) -> None:
    """Note a call without making it; KeyError or ValueError if it cannot have come here."""
    if call.kind == OPEN:
        if call.number in rigs.open or (rigs.open and not call.action):
            raise ValueError
        rig = Rig(call.number, np.zeros(4, np.uint64) if call.action else None)
        rig.running, rigs.open[call.number] = Running(before=rigs.before), rig
        return
    running = rigs.open[call.number].running
    assert running is not None
    if call.kind == CHOOSE:
        forbidden = call.mask is not None and not call.mask[call.action]
        if running.over or running.action is not None or forbidden:
            raise ValueError
        running.choose(call.state, running.step, call.mask, call.action)
    elif call.kind == OBSERVE:
        if running.action is None:
            raise ValueError
        running.observe(call.state, running.step, call.terminated, horizon)
    else:
        del rigs.open[call.number]
