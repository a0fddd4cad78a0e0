"""`check_agent`: whether an agent does what every agent promises, using only its public interface.

Each check makes agents by `make_agent()` and lets them learn in `env` for EPISODES episodes from seed SEED; equal means
equal to the last bit. The checks are functions (make_agent, env), in `AGENT_CHECKS` by name.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable

import gymnasium as gym
import numpy as np

from kernelrl.envs.making import make_environment
from kernelrl.envs.wrapping import compiled_dynamics
from kernelrl.episodes import verbs
from kernelrl.jit.stream import episode_seed
from kernelrl.testing.comparing import (
    EPISODES,
    SEED,
    Env,
    Make,
    check_equal,
    check_same,
    file_of,
    horizon_of,
    joined,
    loaded,
    read,
    read_in,
    reference,
    some_states,
    wrong,
)
from kernelrl.testing.logged import check_logged_data
from kernelrl.testing.refusals import check_refusals
from kernelrl.testing.wrappers import Breaking, BreaksError, FirstValues, Shifted, scarce_room

__all__ = ["AGENT_CHECKS", "check_agent"]


def check_agent(make_agent: Make, env: Env | str | None = None) -> None:
    """Run the interface tests of this package's own agents on an agent.

    Args:
        make_agent: makes a new agent, with the same settings each time.
        env: the environment, or its id, to learn in; by default TwinRooms with goals that are easy to find.
    """
    world = small_problem() if env is None else make_environment(env) if isinstance(env, str) else env
    for name, check in AGENT_CHECKS.items():
        try:
            check(make_agent, world)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


def small_problem() -> Env:
    """TwinRooms with goals that are easy to find."""
    return make_environment("kernelrl/TwinRooms-v0", {"goal": (0.3, 0.3), "radius": 0.3})


# -------------------------------------------------------------------------------------------------------------- checks


def check_history_and_read_outs(make_agent: Make, env: Env) -> None:
    """Shapes, types, finite numbers, actions of the space."""
    agent, history = reference(make_agent, env)
    H, space = horizon_of(agent, env), env.action_space
    if agent.episodes != EPISODES or len(history) != EPISODES or history.first_episode != 0 or history.interrupted:
        wrong(f"after {EPISODES} episodes there are {agent.episodes}, and the history has {len(history)}")
    for name, kind in (("returns", np.float64), ("lengths", np.int64), ("optimistic_values", np.float64)):
        array = getattr(history, name)
        if array.shape != (EPISODES,) or array.dtype != kind or not np.isfinite(array).all():
            wrong(f"history.{name} must be {EPISODES} finite numbers, got {array}")
    if not (history.lengths.min() >= 1 and history.lengths.max() <= H):
        wrong(f"episodes have 1 to {H} steps, got {history.lengths}")
    if np.ptp(history.returns) == 0 and np.ptp(history.lengths) == 0:
        wrong(
            f"all {EPISODES} episodes had the return {history.returns[0]:g}, so the checks would show little; "
            "check the agent in another environment, env=…"
        )
    states = some_states(env)
    A, action_kind = agent.spaces.actions, np.ndarray if isinstance(space, gym.spaces.Box) else int
    for (name, h), found in read(agent, states, range(H)).items():
        if name == "act":
            if not all(isinstance(a, action_kind) and space.contains(a) for a in found):
                wrong(f"act must give an action of {space}, of type {action_kind.__name__}, got {found} at step {h}")
            continue
        shape = (len(states),) if name == "values" else (len(states), A)
        if found.shape != shape or found.dtype != np.float64:
            wrong(f"{name} must be float64 of shape {shape}, got {found.dtype} {found.shape} at step {h}")
        if np.isnan(found).any() or (name != "q_values" and np.isinf(found).any()):  # +∞: never tried
            wrong(f"{name} must be numbers, got {found} at step {h}")


def check_seed(make_agent: Make, env: Env) -> None:
    """The same seed gives the same agent."""
    agent, history = reference(make_agent, env)
    twin, again = reference(make_agent, env)
    what = f"two agents that learnt with seed {SEED} (draw random numbers from the agent's stream only)"
    check_same(history, again, what)
    check_equal(read_in(agent, env), read_in(twin, env), what)


def check_drivers(make_agent: Make, env: Env) -> None:
    """The compiled driver and the Python driver give the same, where both are possible."""
    if compiled_dynamics(env) is None:
        return
    agents = [make_agent(), make_agent()]
    drivers = ("compiled", "python")
    one, other = (
        agent.fit(env, EPISODES, seed=SEED, driver=driver, progress=False)
        for agent, driver in zip(agents, drivers, strict=True)
    )
    check_same(one, other, "the two drivers")
    check_equal(read_in(agents[0], env), read_in(agents[1], env), "the two drivers")


def check_fit_in_parts(make_agent: Make, env: Env) -> None:
    """`fit(n)` and then `fit(m)` is `fit(n+m)`, also with the other driver and with an empty call in between."""
    agent, history = reference(make_agent, env)
    twin, other = make_agent(), "python" if compiled_dynamics(env) is not None else "auto"
    sizes = (11, 0, 6, EPISODES - 17)
    parts = [
        twin.fit(env, n, seed=SEED, driver=other if n == 6 else "auto", progress=False)
        for n in sizes
    ]  # fmt: skip
    if [part.first_episode for part in parts] != [0, 11, 11, 17] or [len(part) for part in parts] != list(sizes):
        wrong(f"the histories of calls of {sizes} episodes begin at {[part.first_episode for part in parts]}")
    what = "fit in parts and fit in one call"
    if not np.array_equal(joined(parts), history.returns):
        wrong(f"{what}: the returns differ, {joined(parts)} and {history.returns}")
    check_equal(read_in(agent, env), read_in(twin, env), what)


def check_save_and_load(make_agent: Make, env: Env) -> None:
    """An agent that was saved and loaded, started or not, continues as if nothing had happened."""
    agent, history = reference(make_agent, env)
    fresh = make_agent()
    first = loaded(file_of(fresh))
    if first is None:
        return
    if repr(first) != repr(fresh):
        wrong(f"an agent that was loaded has other settings: {first!r}, not {fresh!r}")
    parts = [first.fit(env, 13, seed=SEED, progress=False)]
    second = loaded(file_of(first))
    if second is None or second.episodes != 13:
        wrong(f"an agent that was loaded after 13 episodes is {second}, with {second and second.episodes} episodes")
    check_equal(read_in(first, env), read_in(second, env), "an agent and what was loaded of it")
    parts.append(second.fit(env, EPISODES - 13, progress=False))
    what = "an agent that was saved and loaded in between"
    if not np.array_equal(joined(parts), history.returns):
        wrong(f"{what}: the returns differ, {joined(parts)} and {history.returns}")
    check_equal(read_in(agent, env), read_in(second, env), what)


def check_pickling(make_agent: Make, env: Env) -> None:
    """A pickled agent also continues, independently of the original."""
    agent, history = reference(make_agent, env)
    first = make_agent()
    parts = [first.fit(env, 13, seed=SEED, progress=False)]
    twin = pickle.loads(pickle.dumps(first))
    first.fit(env, 5, progress=False)
    parts.append(twin.fit(env, EPISODES - 13, progress=False))
    if not np.array_equal(joined(parts), history.returns):
        wrong(f"an agent that was pickled in between has other returns: {joined(parts)}, not {history.returns}")
    check_equal(read_in(agent, env), read_in(twin, env), "an agent that was pickled in between")


def check_driving_by_hand(make_agent: Make, env: Env) -> None:
    """`begin_episode`, `choose`, `observe` and `end_episode` do what `fit` does."""
    agent, history = reference(make_agent, env)
    twin = make_agent()
    H = horizon_of(twin, env)
    twin.start(env.observation_space, env.action_space, horizon=H, seed=SEED)
    returns = []
    for k in range(EPISODES):
        x, _ = env.reset(seed=int(episode_seed(SEED, k)))
        twin.begin_episode()
        returns.append(0.0)
        for h in range(H):
            a = twin.choose(x, h)
            kind = np.ndarray if isinstance(env.action_space, gym.spaces.Box) else int
            if not (isinstance(a, kind) and env.action_space.contains(a)):
                wrong(f"choose must give an action of {env.action_space}, of type {kind.__name__}, got {a!r}")
            y, r, terminated, truncated, _ = env.step(a)
            twin.observe(x, a, float(r), y, h, terminated=bool(terminated))
            returns[k] += float(r)
            x = y
            if terminated or truncated:
                break
        twin.end_episode()
    if twin.episodes != EPISODES or not np.array_equal(returns, history.returns):
        wrong(f"driving by hand and fit: the returns differ, {returns} and {history.returns}")
    check_equal(read_in(agent, env), read_in(twin, env), "driving by hand and fit")


def check_reading(make_agent: Make, env: Env) -> None:
    """Read-outs and `act` give the same when called again, and change nothing."""
    agent, history = reference(make_agent, env)
    twin = make_agent()
    parts = [twin.fit(env, 15, seed=SEED, progress=False)]
    before, states, steps = file_of(twin), some_states(env), range(horizon_of(twin, env))
    check_equal(read(twin, states, steps), read(twin, states, steps), "read-outs, asked twice")
    repr(twin)
    if file_of(twin) != before:
        wrong("reading has changed the agent: its file differs")
    parts.append(twin.fit(env, EPISODES - 15, progress=False))
    if not np.array_equal(joined(parts), history.returns):
        wrong(f"reading has changed what is learnt: the returns are {joined(parts)}, not {history.returns}")
    check_equal(read_in(agent, env), read_in(twin, env), "an agent that was read in between")


def check_optimistic_values(make_agent: Make, env: Env) -> None:
    """`history.optimistic_values` is the agent's V_0 when an episode has begun."""
    _, history = reference(make_agent, env)
    agent = make_agent()
    asking = FirstValues(env, agent)
    agent.fit(asking, EPISODES, seed=SEED, progress=False)
    if not np.array_equal(history.optimistic_values, asking.values):
        wrong(f"history.optimistic_values is {history.optimistic_values}, but the agent says {asking.values}")


def check_growing(make_agent: Make, env: Env) -> None:
    """The length of the arrays changes no result."""
    agent, history = reference(make_agent, env)
    if not verbs.grow.is_implemented(type(agent.model)):
        return  # they are as long as they will ever be
    twin, parts = make_agent(), []
    grown: list[type] = []
    for n in (1, 9, EPISODES - 10):
        with scarce_room(grown):
            parts.append(twin.fit(env, n, seed=SEED, driver="python", progress=False))
    assert grown, "arrays were not made longer"
    if not np.array_equal(joined(parts), history.returns):
        wrong(f"with longer arrays the returns are {joined(parts)}, not {history.returns}")
    check_equal(read_in(agent, env), read_in(twin, env), "an agent with longer arrays")


def check_failing_environment(make_agent: Make, env: Env) -> None:
    """After an error in the middle of an episode the agent is as before that episode, and can continue."""
    agent, history = reference(make_agent, env)
    twin, broken = make_agent(), Breaking(env)
    try:
        twin.fit(broken, EPISODES, seed=SEED, progress=False)
        wrong("the environment's error did not come out of fit")
    except BreaksError as error:
        played = error.history  # type: ignore[attr-defined]
    what = "after an error of the environment"
    if twin.episodes != 11 or not np.array_equal(played.returns, history.returns[:11]):
        wrong(f"{what} in episode 12 there are {twin.episodes} episodes, with returns {played.returns}")
    before = make_agent()
    before.fit(env, 11, seed=SEED, progress=False)
    check_equal(read_in(before, env), read_in(twin, env), f"before that episode and {what}")
    rest = twin.fit(broken, EPISODES - 11, progress=False)
    if not np.array_equal(rest.returns, history.returns[11:]):
        wrong(f"{what} the returns are {rest.returns}, not {history.returns[11:]}")
    check_equal(read_in(agent, env), read_in(twin, env), what)


def check_first_action(make_agent: Make, env: Env) -> None:
    """Discrete actions that are numbered from another start give the same run."""
    if isinstance(env.action_space, gym.spaces.Box):
        return
    agent, history = reference(make_agent, env)
    twin, shifted = make_agent(), Shifted(env)
    check_same(history, twin.fit(shifted, EPISODES, seed=SEED, progress=False), "actions that begin at another number")
    found = {
        key: [a - 5 for a in value] if key[0] == "act" else value
        for key, value in read_in(twin, shifted).items()
    }  # fmt: skip
    check_equal(read_in(agent, env), found, "actions that begin at another number")


AGENT_CHECKS: dict[str, Callable[[Make, Env], None]] = {
    "history and read-outs": check_history_and_read_outs,
    "seed": check_seed,
    "drivers": check_drivers,
    "fit in parts": check_fit_in_parts,
    "save and load": check_save_and_load,
    "pickling": check_pickling,
    "driving by hand": check_driving_by_hand,
    "reading": check_reading,
    "optimistic values": check_optimistic_values,
    "growing": check_growing,
    "failing environment": check_failing_environment,
    "refusals": check_refusals,
    "first action": check_first_action,
    "logged data": check_logged_data,
}
"""What `check_agent` does, by name: functions (make_agent, env)."""
