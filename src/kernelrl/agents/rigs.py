"""Several open episodes at once, each with a handle of its own, for several devices (docs/own_loop.md).

All episodes share one agent, and what is told counts at once: while several are open, the agent is brought up to date
(`catch_up`) before it opens an episode or chooses, if anything was told since it was last, and after the last of them
has ended. Settings that change between episodes change when one of them ends, not when another opens. So neither
depends on when the others choose. A pair whose result has not been told yet is pending. For the others it counts as a
visit with the estimates unchanged, that is, only bonuses fall:

    Q'_h(x, a) = Q_h(x, a) - [B_h(x, a) - B'_h(x, a)]
    n_h(x, a)  = C'_h(x, a) - C_h(x, a)   plus the number of pending pairs that are (x, a, h) itself

where B' and C' are bonuses and counts with the pending pairs of the others as further samples, weighed as any sample.
The action is that of the learning policy, unless n > 0 there; then it is the one with the largest Q', of equal ones
that with the smallest n, of these one at random. An agent without counts or bonuses has only n.

An episode that opens while none is open draws from the agent's random stream, as a plain episode does. Any other has a
stream of its own, which its number determines. So the agent is a function of the calls and their order. They are kept
from the time on when no episode was open: an episode is abandoned by going back to that time and repeating the calls of
the others, with the actions that were taken.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelrl.agents import storage
from kernelrl.agents.episode import Episode, Running, Snapshot
from kernelrl.agents.masking import allowed_at, check_given
from kernelrl.episodes import verbs
from kernelrl.jit.handles import hand_over
from kernelrl.jit.stream import episode_seed, index_below, new_stream

if TYPE_CHECKING:
    from kernelrl.agents.base import Agent

__all__ = ["CHOOSE", "END", "OBSERVE", "OPEN", "Call", "OpenEpisode", "Rig", "Rigs", "open_episode"]

OPEN, CHOOSE, OBSERVE, END = range(4)
FIRST = 2**41  # of the streams of episodes; those of evaluations begin at 2**40
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
NOWHERE = np.zeros(0)


class Call(NamedTuple):
    """One call of a handle; what a kind of call does not have is 0 or empty."""

    kind: int
    number: int
    """Of the episode."""
    action: int = 0
    """What was chosen or done; for OPEN 1 if the episode has a stream of its own."""
    reward: float = 0.0
    terminated: bool = False
    state: Floats = NOWHERE
    """Where the action was chosen, or the next state (d,)."""
    mask: Mask | None = None


class Rig:
    """One open episode."""

    def __init__(self, number: int, stream: npt.NDArray[np.uint64] | None) -> None:
        self.number, self.stream = number, stream
        self.running: Running | None = None
        self.outside: tuple[float, float] | None = None
        self.free_steps = 0

    @property
    def pending(self) -> tuple[Floats, int, int] | None:
        """State, action and step of what has no result yet."""
        running = self.running
        if running is None or running.action is None or running.state is None:
            return None
        return running.state, running.action, running.step


class Rigs:
    """All open episodes of an agent, and the calls since the last time that there was none."""

    def __init__(self, before: Snapshot) -> None:
        self.before = before
        self.calls: list[Call] = []
        self.open: dict[int, Rig] = {}
        self.acting = False
        self.behind = True  # whether something may have been told since the agent was brought up to date

    @contextlib.contextmanager
    def act(self, agent: Agent, rig: Rig) -> Iterator[None]:
        """Within this block the agent's own calls are those of one episode."""
        stream = None if rig.stream is None else getattr(agent.model, "stream", None)
        main = None if stream is None else stream.copy()
        agent.running, agent.outside, agent.free_steps, self.acting = rig.running, rig.outside, rig.free_steps, True
        if stream is not None:
            stream[:] = rig.stream
        try:
            yield
        finally:
            stream = getattr(agent.model, "stream", None)  # the model may have been replaced
            if main is not None and stream is not None:
                rig.stream, stream[:] = stream.copy(), main
            rig.running, rig.outside, rig.free_steps = agent.running, agent.outside, agent.free_steps
            agent.outside = joined((*self.open.values(), rig))
            agent.running, agent.free_steps, self.acting = None, 0, False

    def perform(self, agent: Agent, call: Call) -> Any:
        """Make a call and note it; the result of CHOOSE is the number of the action."""
        result = None
        if call.kind == OPEN:
            self._open(agent, call)
        elif call.kind == CHOOSE:
            result = self._choose(agent, call)
            call = call._replace(action=result)
        elif call.kind == OBSERVE:
            self._observe(agent, call)
        else:
            self._end(agent, call)  # which notes the call itself
            return None
        self.calls.append(call)
        return result

    def _open(self, agent: Agent, call: Call) -> None:
        stream = new_stream(int(episode_seed(agent.seed, FIRST + call.number))) if call.action else None
        rig = Rig(call.number, stream)
        with self.act(agent, rig):
            agent.begin_episode()
        self.open[call.number], agent.numbers = rig, max(agent.numbers, call.number + 1)
        self._catch_up(agent)

    def _catch_up(self, agent: Agent) -> None:
        """Let everything count that was told, if several episodes are open."""
        if self.behind and len(self.open) > 1:
            verbs.catch_up(agent.model)
            self.behind = False

    def _choose(self, agent: Agent, call: Call) -> int:
        rig, spaces = self.open[call.number], agent.spaces
        assert rig.running is not None
        self._catch_up(agent)
        h, x = rig.running.step, call.state
        others = [other.pending for other in self.open.values() if other is not rig and other.pending is not None]
        with self.act(agent, rig):
            chosen = agent.choose(spaces.as_given(x), h, mask=call.mask)
            action = spaces.check_action(chosen)
            if others:
                action = other_action(agent, others, x, h, action, call.mask)
                rig.running.choose(x, h, call.mask, action)
        return action

    def _observe(self, agent: Agent, call: Call) -> None:
        rig, spaces = self.open[call.number], agent.spaces
        assert rig.running is not None and rig.running.state is not None
        x, y, h = spaces.as_given(rig.running.state), spaces.as_given(call.state), rig.running.step
        with self.act(agent, rig):
            agent.observe(x, spaces.action(call.action), call.reward, y, h, call.terminated)
        self.behind = True

    def _end(self, agent: Agent, call: Call) -> None:
        rig = self.open[call.number]
        try:
            with self.act(agent, rig):
                agent.end_episode()
        finally:
            if rig.running is None:  # it has ended, also if a warning was turned into an error
                self._ended(agent, call)

    def _ended(self, agent: Agent, call: Call) -> None:
        """Note that an episode has ended, and change settings if others were open."""
        self.calls.append(call)
        del self.open[call.number]
        agent.outside = joined(self.open.values())
        self.behind = True
        if self._were_several():
            agent.before_episodes(1)
            if not self.open:
                verbs.catch_up(agent.model)

    def _were_several(self) -> bool:
        """Whether more than one episode was open at a time since there was none."""
        changes = [(call.kind == OPEN) - (call.kind == END) for call in self.calls]
        return bool(np.cumsum(changes).max() > 1)

    def abandon(self, agent: Agent, number: int) -> None:
        """Make the agent what it would be without that episode, by repeating the calls of the others.

        This may take long; after Ctrl-C everything is as before.
        """
        rest = [call for call in self.calls if call.number != number]
        kept = {key: rig for key, rig in self.open.items() if key != number}
        now, known = Snapshot.of(agent), (self.calls, self.open, self.behind)
        self.before.put_back(agent)
        self.before = Snapshot.of(agent)
        self.calls, self.open, self.behind = [], {}, True
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they were given the first time
                for call in rest:
                    self._repeat(agent, call)
        except BaseException:
            now.put_back(agent)
            self.calls, self.open, self.behind = known
            raise
        for key, rig in kept.items():  # the handles keep their objects
            rig.__dict__.update(self.open[key].__dict__)
            self.open[key] = rig
        if not kept:
            agent.rigs = None

    def _repeat(self, agent: Agent, call: Call) -> None:
        """Make a call again, with the action that was taken."""
        self.perform(agent, call)
        if call.kind == CHOOSE:
            running = self.open[call.number].running
            assert running is not None
            running.action = call.action
            self.calls[-1] = call


def joined(rigs: Iterable[Rig]) -> tuple[float, float] | None:
    """The lowest and the highest reward outside the range in all of these episodes."""
    found = [rig.outside for rig in rigs if rig.outside is not None]
    return (min(low for low, _ in found), max(high for _, high in found)) if found else None


def other_action(
    agent: Agent, pending: list[tuple[Floats, int, int]], x: Floats, h: int, action: int, mask: Mask | None
) -> int:
    """The action at `x` with the pending pairs of the others as visits; without them it is `action`."""
    q, fall, n = with_visits(agent, pending, x, h)
    if n[action] == 0.0:
        return action
    allowed = allowed_at(agent, x[None], None if mask is None else mask[None])[0]
    best = allowed & (q - fall == (q - fall)[allowed].max())
    best &= n == n[best].min()
    numbers = np.flatnonzero(best)
    stream = getattr(agent.model, "stream", None)
    if numbers.size == 1 or stream is None:
        return int(numbers[0])
    return int(numbers[index_below(stream, numbers.size)])


def with_visits(
    agent: Agent, pending: list[tuple[Floats, int, int]], x: Floats, h: int
) -> tuple[Floats, Floats, Floats]:
    """Q_h(x, ·), by how much the bonuses fall if pending pairs are visits, and n_h(x, ·); all (A,)."""
    model = storage.copied(agent.model)
    reward = min(max(0.0, agent.rewards.low), agent.rewards.high)  # any: bonuses and counts do not depend on it
    for state, action, step in pending:
        while not verbs.has_room(hand_over(model)):
            model = verbs.grow(model)
        verbs.observe(hand_over(model), state, action, reward, state, step, False)
    verbs.catch_up(model)
    now, then = agent.handle(), hand_over(model)
    q, counts, bonuses, counts_then, bonuses_then = (
        agent.read_model(source, verb, x[None], h)[0]
        for source, verb in (
            (now, verbs.READ_Q), (now, verbs.READ_COUNTS), (now, verbs.READ_BONUSES), (then, verbs.READ_COUNTS),
            (then, verbs.READ_BONUSES),
        )
    )  # fmt: skip
    fall = np.nan_to_num(np.maximum(bonuses - bonuses_then, 0.0))
    n = np.nan_to_num(np.maximum(counts_then - counts, 0.0))
    for state, action, step in pending:
        n[action] += step == h and np.array_equal(state, x)
    return np.nan_to_num(q), fall, n


# ------------------------------------------------------------------------------------------------------------- handles


def open_episode(agent: Agent) -> OpenEpisode:
    """Open one more episode."""
    agent.check_episodes(1 + len(agent.open_episodes))
    rigs = agent.rigs or Rigs(Snapshot.of(agent))
    number = max(agent.episodes + len(rigs.open), agent.numbers)
    agent.rigs = rigs
    try:
        rigs.perform(agent, Call(OPEN, number, action=int(len(rigs.open) > 0)))
    except BaseException:
        if not rigs.open:
            agent.rigs = None
        raise
    return OpenEpisode(agent, rigs.open[number])


class OpenEpisode:
    """One of several open episodes of an agent: `agent.open_episode()`, or `agent.open_episode_number(…)`."""

    def __init__(self, agent: Agent, rig: Rig) -> None:
        self._agent, self._rig = agent, rig

    @property
    def number(self) -> int:
        """Its number, by which it is found after loading."""
        return self._rig.number

    @property
    def episode(self) -> Episode:
        """Where it is: step, state, the chosen action whose result is not known yet, and whether it is over."""
        return self._here()[1].shown(self._agent)

    def __repr__(self) -> str:
        rigs = self._agent.rigs
        alive = rigs is not None and rigs.open.get(self.number) is self._rig
        return f"OpenEpisode({self.number}, {self.episode if alive else 'ended'})"

    def _here(self) -> tuple[Rigs, Running]:
        """All open episodes and this one, or an error if it has ended."""
        rigs, running = self._agent.rigs, self._rig.running
        if rigs is None or rigs.open.get(self.number) is not self._rig or running is None:
            raise RuntimeError(
                f"episode {self.number} has ended or was abandoned; agent.open_episode() opens another, and "
                "agent.open_episodes are those that are open"
            )
        return rigs, running

    def choose(self, state: npt.ArrayLike, mask: npt.ArrayLike | None = None) -> Any:
        """The action of the learning policy in `state`; the pending actions of other episodes count as visits.

        Asking again for the same state and mask gives the same action until its result is told.
        """
        (rigs, running), spaces = self._here(), self._agent.spaces
        x = spaces.check_state("state", state)
        allowed = None if mask is None else check_given(self._agent, mask, "mask", x)
        if running.over:
            raise RuntimeError(f"choose: episode {self.number} is over; call end()")
        if running.action is not None:
            again = running.chosen(x, running.step, allowed)
            if again is None:
                raise RuntimeError(
                    f"choose: episode {self.number} waits for the result of its action at step {running.step}; tell it "
                    "by observe(reward, next_state), or abandon()"
                )
            return spaces.action(again)
        return spaces.action(rigs.perform(self._agent, Call(CHOOSE, self.number, state=x, mask=allowed)))

    def observe(
        self, reward: float, next_state: npt.ArrayLike, terminated: bool = False, *, action: Any = None
    ) -> None:
        """Tell the result of the chosen action, or of another `action` that was taken in its place."""
        (rigs, running), agent = self._here(), self._agent
        if running.action is None:
            raise RuntimeError(f"observe: nothing was chosen in episode {self.number}; call choose(state) first")
        a = running.action if action is None else agent.spaces.check_action(action)
        y, r, ends = agent.check_result(reward, next_state, terminated)
        rigs.perform(agent, Call(OBSERVE, self.number, a, r, ends, y))

    def end(self) -> None:
        """End the episode, after any step; an action whose result was not told is not learnt from."""
        rigs, _ = self._here()
        try:
            rigs.perform(self._agent, Call(END, self.number))
        finally:
            if not rigs.open:
                self._agent.rigs = None

    def abandon(self) -> None:
        """Make the agent what it would be if this episode had never begun."""
        rigs, _ = self._here()
        rigs.abandon(self._agent, self.number)
