"""What `Agent.fit` does: it plays episodes in blocks, and does everything else between them."""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from kernelrl.agents import codec
from kernelrl.agents.callbacks import Callbacks
from kernelrl.agents.checks import whole_number
from kernelrl.agents.history import History
from kernelrl.agents.masking import check_given, name_state
from kernelrl.agents.monitor import Monitor, Watched
from kernelrl.agents.recovery import Recorded, Recovery
from kernelrl.agents.stopping import OwnGap
from kernelrl.agents.transitions import Tape
from kernelrl.console import Interrupts, Progress
from kernelrl.envs.wrapping import compiled_dynamics, compiled_horizon, is_shipped, why_not_compiled
from kernelrl.episodes import loop as rollout
from kernelrl.episodes import verbs as interface
from kernelrl.episodes.adapter import GymEnvironment
from kernelrl.episodes.masked import Masked
from kernelrl.episodes.on_net import on_net

if TYPE_CHECKING:
    from kernelrl.agents.base import Agent

__all__ = ["budget_of", "fit", "next_size"]

BLOCK_SECONDS = 0.1  # how long compiled code runs before Python handles Ctrl-C and the progress bar
Floats = npt.NDArray[np.float64]


@dataclass
class Loop:
    """The episode loop over one environment."""

    agent: Agent
    world: Any
    horizon: int
    compiled: bool
    watch: Monitor | None
    tape: Tape | None = None

    def block(self, world: Any, count: int, returns: Floats, lengths: Any, values: Floats) -> tuple[int, Any]:
        """Play at most `count` episodes; return how many were played to their end, and what then failed, or None."""
        agent, d = self.agent, self.agent.spaces.dimensions
        x, y, stream = np.zeros(d), np.zeros(d), np.zeros(4, np.uint64)
        bad, beyond = np.zeros(3), np.array([np.inf, -np.inf])
        count = agent.before_episodes(count)
        while not interface.has_room(agent.handle()):
            agent.model = interface.grow(agent.model)
        run = rollout.run_compiled if self.compiled and world is self.world else rollout.run_episodes
        model: Any = agent.handle()
        if isinstance(world, GymEnvironment | Recorded):
            model = Masked(model, functools.partial(check_given, agent), world.mask)
        if self.watch is not None and world is self.world:
            model = Watched(model, self.watch)
        if self.tape is not None and world is self.world:
            world = self.tape.around(world, count * self.horizon)
        try:
            played = run(
                model,
                world, stream, x, y, agent.seed, agent.episodes, count, self.horizon, agent.spaces.finite_box(),
                agent.rewards.for_loop(agent.spaces.horizon), returns, lengths, values, beyond, bad,
            )  # fmt: skip
        except ValueError as error:
            name_state(agent, error, x, y)
            raise
        agent.episodes += played
        values[:played] = agent.in_own_units(values[:played], 0)
        if bad[rollout.FAULT]:
            return played, fault(agent, bad, x, y)
        lowest, highest = beyond
        if lowest <= highest:
            agent.widen(float(lowest), float(highest))
        return played, None

    def again(self, world: Any, count: int) -> None:
        """Play again at most `count` episodes that were played before."""
        scrap = np.zeros(count), np.zeros(count, np.int64), np.zeros(count)
        self.tape = None  # they are recorded already
        self.block(self.world if world is None else world, count, *scrap)


def fault(agent: Agent, bad: Floats, x: Floats, y: Floats) -> Exception:
    """The error for a fault that the loop found."""
    code, reward, step = int(bad[rollout.FAULT]), float(bad[rollout.REWARD]), int(bad[rollout.STEP])
    if code == rollout.BAD_START:
        return agent.spaces.state_error("the environment's start state", x)
    if code == rollout.BAD_STATE:
        return agent.spaces.state_error(f"the environment's next state at step {step}", y)
    if code == rollout.BAD_REWARD:
        return ValueError(f"the environment's reward at step {step} must be a finite number, got {reward}")
    if code == rollout.BAD_RANGE:
        return agent.rewards.outside_error(reward)
    return agent.rewards.end_error()


def fit(
    agent: Agent, env: gym.Env[Any, Any], budget: Budget, seed: int | None, driver: str, progress: bool | None,
    until: OwnGap | None, monitor: Any, transitions: bool, callbacks: Callbacks,
) -> History:  # fmt: skip
    """Play the episodes of `budget` in `env`; start the agent first if needed."""
    watch = None if monitor is None else Monitor(monitor, agent.episodes, agent.in_own_units)
    if watch is not None and driver == "compiled":
        raise ValueError('monitor: looking at each choice needs the Python driver; leave driver="compiled" out')
    dynamics = dynamics_of(env, driver if watch is None else "python")
    agent.get_ready(env, seed)
    recovery = recovery_for(agent, env, dynamics)
    if dynamics is None:
        assert recovery is not None
        world: Any = GymEnvironment(env, agent.spaces.check_state, agent.spaces.action, [None], recovery.records)
        loop = Loop(agent, world, agent.spaces.horizon, False, watch)
    else:
        world = on_net(dynamics, agent.spaces.net)
        loop = Loop(agent, world, compiled_horizon(env, agent.spaces.horizon), True, watch)
    needed = None if until is None else until.get_ready(agent)
    tape = loop.tape = Tape(agent.spaces) if transitions and needed is None else needed
    episodes = budget.most
    returns, lengths, values = np.zeros(episodes), np.zeros(episodes, np.int64), np.zeros(episodes)
    first, done, size, began, stop = agent.episodes, 0, 1, time.perf_counter(), False

    def so_far() -> History:
        """For callbacks: without what takes long to make."""
        return History(first, returns[:done].copy(), lengths[:done].copy(), values[:done].copy(), passed())

    def passed() -> float:
        return time.perf_counter() - began

    def history(interrupted: bool = False) -> History:
        optimism = None if watch is None else watch.result(first + done)
        return History(
            first, returns[:done].copy(), lengths[:done].copy(), values[:done].copy(), passed(),
            interrupted=interrupted, stopped=stop, optimism=optimism,
            gap=None if until is None or math.isinf(until.gap) else until.gap,
            transitions=tape.frame(first, lengths[:done]) if transitions and tape is not None else None,
            certificate=None if until is None else until.certificate,
        )  # fmt: skip

    def left() -> int:
        return budget.left(done, int(lengths[:done].sum()), loop.horizon)

    with Interrupts() as interrupts, Progress(progress, type(agent).__name__, episodes, returns) as bar:
        while left() and not interrupts.asked and not stop and (until is None or not until.reached):
            due = size if until is None else until.left(agent.episodes)
            before, whole = time.perf_counter(), False
            try:
                count = min(size, due, left(), callbacks.left(agent.episodes) or size)
                agent.check_episodes(count)
                played, wrong = loop.block(loop.world, count, returns[done:], lengths[done:], values[done:])
                done += played
                if wrong is not None:
                    raise wrong
                whole, seconds = True, time.perf_counter() - before
                if until is not None and played == due:
                    until.look(agent, lengths[:done])
                stop = ask(callbacks, agent, so_far, recovery)
            except BaseException as error:
                done = agent.episodes - first  # whole episodes of an unfinished block also count
                if recovery is not None and not whole:
                    recovery.restore(agent, first + done, loop.again)
                agent.recovery = None
                tell(error, history)
                raise
            if recovery is not None:
                recovery.learnt(agent, seconds)
            if loop.compiled:
                size = next_size(max(1, played), seconds)
            bar.update(done, budget.done(done, int(lengths[:done].sum())))
        try:
            if until is not None and not interrupts.asked:
                until.look_at_end(agent, lengths[:done])
            stop = ask(callbacks, agent, so_far, recovery, end=True) or stop
        except BaseException as error:
            tell(error, history)
            raise
        if first == 0 and not left():
            bar.say(lambda: what_was_chosen(agent))
    agent.recovery = recovery if recovery is not None and recovery.worth_keeping else None
    return history(interrupted=left() > 0 and interrupts.asked)


@dataclass(frozen=True)
class Budget:
    """How long a call of `fit` goes on: a number of episodes, or until the episode in which `steps` are reached."""

    episodes: int | None
    steps: int | None

    @property
    def most(self) -> int:
        """The largest number of episodes, each of which has a step."""
        return self.episodes if self.episodes is not None else self.steps or 0

    def left(self, played: int, steps: int, horizon: int) -> int:
        """How many episodes may follow before this is asked again: only the last can reach the number of steps."""
        if self.episodes is not None:
            return self.episodes - played
        missing = (self.steps or 0) - steps
        return max(1, missing // horizon) if missing > 0 else 0

    def done(self, played: int, steps: int) -> int:
        """What a bar shows, of `most`."""
        return played if self.episodes is not None else min(steps, self.most)


def budget_of(episodes: Any, steps: Any) -> Budget:
    """The budget from the arguments of `fit`."""
    if (episodes is None) == (steps is None):
        both = "both were given" if steps is not None else "neither was given"
        raise TypeError(f"fit: give a number of episodes, or steps=…, a number of steps; {both}")
    if steps is not None:
        return Budget(None, whole_number("steps", steps, 0))
    return Budget(whole_number("episodes", episodes, 0), None)


def tell(error: BaseException, history: Callable[[], History]) -> None:
    """Give an error the history of the episodes before it."""
    with contextlib.suppress(AttributeError, TypeError):
        error.history = history()  # type: ignore[attr-defined]


def ask(
    callbacks: Callbacks, agent: Agent, history: Callable[[], History], recovery: Recovery | None, end: bool = False
) -> bool:
    """Call the callbacks that are due; return whether to stop."""
    stream = getattr(agent.model, "stream", None)
    before = None if stream is None else stream.copy()
    stop = callbacks.call(agent, history, end)
    if recovery is not None and before is not None and not np.array_equal(before, agent.model.stream):
        recovery.learnt(agent, math.inf)  # a callback drew random numbers, which playing again would not
    return stop


def what_was_chosen(agent: Agent) -> str:
    """The settings that the agent chose itself, in one line; empty if there are none."""
    given = {name: getattr(agent, name) for name in agent.hyper_parameters}
    chosen = codec.left_to_agent(given, agent.settings_used())
    return f"{type(agent).__name__} chose {codec.describe(codec.encode_all(chosen), digits=4)}" if chosen else ""


def recovery_for(agent: Agent, env: gym.Env[Any, Any], dynamics: Any) -> Recovery | None:
    """What can bring the agent back to its last whole episode, or None where nothing can go wrong.

    Environments of this package do not fail, so recovery is needed only if the range of rewards is strict or excludes
    0, or if a mask might allow nothing. A short call of `fit` reuses the copy of the call before it.
    """
    kept, agent.recovery = agent.recovery, None
    if dynamics is None:
        return Recovery(agent, compiled=False) if kept is None else kept
    if is_shipped(env) and agent.rewards.holds_zero and not agent.rewards.strict and agent.mask is None:
        return None
    return Recovery(agent, compiled=True)


def dynamics_of(env: gym.Env[Any, Any], driver: str) -> Any:
    """The compiled dynamics to use, or None for the Python driver."""
    if driver not in ("auto", "python", "compiled"):
        raise ValueError(f'driver must be "auto", "python" or "compiled", got {driver!r}')
    dynamics = None if driver == "python" else compiled_dynamics(env)
    if driver == "compiled" and dynamics is None:
        raise ValueError(
            "driver: only a krl.envs.CompiledEnv, wrapped in nothing but Gymnasium's TimeLimit, OrderEnforcing and "
            f'PassiveEnvChecker, runs compiled, but {why_not_compiled(env)}; {env} needs driver="python"'
        )
    return dynamics


def next_size(size: int, seconds: float) -> int:
    """How many episodes, or rows, to take next, for about BLOCK_SECONDS, when `size` of them took `seconds`."""
    return max(1, min(4 * size, int(size * BLOCK_SECONDS / max(seconds, 1e-9))))
