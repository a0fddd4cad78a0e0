"""Whether an agent learns from a table what it learns from its rows one by one."""

from __future__ import annotations

from kernelrl.agents.base import Agent
from kernelrl.agents.rows import Rows, rows_of
from kernelrl.agents.tables import read_table
from kernelrl.episodes import verbs
from kernelrl.testing.comparing import EPISODES, SEED, Env, Make, check_equal, check_same, read_in, reference, wrong

__all__ = ["check_logged_data"]


def check_logged_data(make_agent: Make, env: Env) -> None:
    """`fit` records transitions without a change; `learn_from` takes them, like `observe` for each.

    An algorithm with an `end_episode` learns from tables only if it implements `catch_up`.
    """
    agent, twin = make_agent(), make_agent()
    _, history = reference(make_agent, env)
    recorded = make_agent().fit(env, EPISODES, seed=SEED, progress=False, driver="python", transitions=True)
    check_same(history, recorded, "fit with and without transitions=True")
    twin.get_ready(env, SEED)
    cls = type(twin.model)
    if verbs.end_episode.is_implemented(cls) and not verbs.catch_up.is_implemented(cls):
        return
    rows = rows_of(twin, read_table(recorded.transitions))
    if agent.learn_from(recorded.transitions, env=env, seed=SEED, progress=False) != len(rows.rewards):
        wrong(f"learn_from must take in all {len(rows.rewards)} rows")
    if agent.episodes != 0:
        wrong(f"rows of a table are not episodes, but learn_from has counted {agent.episodes}")
    take_one_by_one(twin, rows)
    check_equal(read_in(agent, env), read_in(twin, env), "learn_from and observe for each row")


def take_one_by_one(agent: Agent, rows: Rows) -> None:
    """What `learn_from` does, by the agent's public methods."""
    spaces, (low, high) = agent.spaces, agent.rewards.limits
    outside = rows.rewards[(rows.rewards < low) | (rows.rewards > high)]
    if outside.size:
        agent.widen(float(outside.min()), float(outside.max()))
    agent.before_rows()
    for x, a, r, y, h, ends in zip(*rows, strict=True):
        action = spaces.action(int(a))
        agent.observe(x.reshape(spaces.shape), action, float(r), y.reshape(spaces.shape), int(h), bool(ends))
    agent.outside, agent.free_steps = None, 0
    agent.after_rows()
