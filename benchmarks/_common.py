"""What the benchmarks share: the setting, timing, the table and the JSON file."""

import json
import resource
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
from rich.console import Console
from rich.table import Table

import _history
import kernelrl as krl
from kernelrl.episodes import verbs

H = 20
SETTING = {"bandwidth": 0.025, "regularization": 0.01, "representatives": None, "reward_range": (0, 1)}
LIPSCHITZ = [10.0 * (H - h) for h in range(H)]  # L_h = 10·(H-h+1) with steps from 1
RESULTS = Path(__file__).resolve().parent.parent / "results"


def environment():
    """TwinRooms as in the paper."""
    return gym.make("kernelrl/TwinRooms-v0")


def agent(cls, stationary):
    """An exact agent with the benchmarks' settings; its code was compiled in a separate run."""
    make, setting = getattr(krl, cls).preset, {**SETTING, "lipschitz": LIPSCHITZ, "stationary": stationary}
    make("text", **setting).fit(environment(), 3, seed=1, progress=False)
    return make("text", **setting)


def after_random_episodes(agent, episodes):
    """The agent after random episodes of TwinRooms, the same for every agent, and ready for the next one."""
    env, rng = environment().unwrapped, np.random.default_rng(0)
    agent.start(env.observation_space, env.action_space, H, 0)
    for k in range(episodes):
        agent.begin_episode()
        x, _ = env.reset(seed=k)
        for h in range(H):
            action = int(rng.integers(4))
            y, reward, *_ = env.step(action)
            agent.observe(x, action, reward, y, h)
            x = y
        agent.end_episode()
    agent.begin_episode()
    return agent


def plan_seconds(agent):
    """CPU time of one plan."""
    handle, before = agent.handle(), time.process_time()
    for _ in range(5):
        verbs.begin_episode(handle)
    return (time.process_time() - before) / 5


def seconds(function, *arguments):
    """The wall-clock time of a call, and its result."""
    start = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - start, result


def resident_megabytes():
    """The largest amount of memory this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(name, title, rows, notes=()):
    """Print `rows` (dictionaries with the same keys), write them to results/NAME.json and add them to the history."""
    table = Table(title=title, title_justify="left")
    for column in rows[0]:
        table.add_column(column, justify="left" if isinstance(rows[0][column], str) else "right")
    for row in rows:
        table.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()))
    console = Console(width=140)
    console.print(table)
    for note in notes:
        console.print(note)
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"{name}.json"
    content = {"benchmark": title, "machine": _history.machine(), "rows": rows, "notes": list(notes)}
    file.write_text(json.dumps(content, indent=2))
    _history.append(name, title, rows)
    console.print(f"Written to {file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file}")
