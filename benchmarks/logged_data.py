"""A million logged transitions of TwinRooms, on representatives: `learn_from`, and the same rows by `observe`.

Rows are those of a random agent. Processor time of `learn_from` in all, of which the checks of the rows, and in
microseconds per row; for `observe` called from Python for each row, it is measured on a part of them, with one plan in
the end as `learn_from` makes it. Code was compiled before. The last column is the largest memory of a process that only
does this, beyond what it had with the table.

    python benchmarks/logged_data.py [--rows 1000000]
"""

import argparse
import json
import subprocess
import sys
import time

import kernelrl as krl
from _common import environment, report, resident_megabytes
from kernelrl.agents.rows import rows_of
from kernelrl.agents.tables import read_table

H, PART = 20, 100_000
AGENTS = {
    "KernelUCBVI, bandwidth 0.05, merged within 0.05": lambda: krl.KernelUCBVI(bandwidth=0.05, representatives=0.05),
    "KernelUCBVI, nothing set": krl.KernelUCBVI,
    "GreedyKernelUCBVI, merged within 0.05": lambda: krl.GreedyKernelUCBVI(bandwidth=0.05, representatives=0.05),
    "GreedyKernelUCBVI, nothing set": krl.GreedyKernelUCBVI,
    "UCBVI, 20 by 10 cells": lambda: krl.UCBVI(bins=(20, 10)),
}


def table_of(rows):
    """The transitions of a random agent."""
    agent = krl.RandomAgent(reward_range=(0, 1))
    return agent.fit(environment(), -(-rows // H), seed=0, progress=False, transitions=True).transitions.head(rows)


def one_by_one(agent, table):
    """`observe` for each row, and a plan."""
    env = environment()
    agent.start(env.observation_space, env.action_space, H, 0)
    states, nexts = (table.select(f"{name}_0", f"{name}_1").to_numpy() for name in ("state", "next_state"))
    rest = table.select("action", "reward", "step", "terminated").iter_rows()
    agent.begin_episode()
    for x, y, (a, r, h, ends) in zip(states, nexts, rest, strict=True):
        agent.observe(x, a, r, y, h, ends)
    agent.end_episode()
    agent.begin_episode()


def cpu(function, *arguments, **options):
    """Processor time of a call."""
    start = time.process_time()
    function(*arguments, **options)
    return time.process_time() - start


def measure(name, rows):
    """One row of the result."""
    make, env, table = AGENTS[name], environment(), table_of(rows)
    for few in (table.head(2000), table.head(2000)):
        make().learn_from(few, env=env, seed=0, progress=False)
        one_by_one(make(), few)
    agent, before = make(), resident_megabytes()
    seconds = cpu(agent.learn_from, table, env=env, seed=0, progress=False)
    memory = resident_megabytes() - before
    checks = cpu(lambda: rows_of(agent, read_table(table)))
    part = table.head(min(PART, rows))
    each = cpu(one_by_one, make(), part) / len(part)
    return {
        "agent": name, "rows": len(table), "seconds": seconds, "checks": checks,
        "µs per row": 1e6 * seconds / len(table), "by observe": 1e6 * each, "ratio": each * len(table) / seconds,
        "MB": memory,
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", help="measure this agent and print JSON")
    given = parser.parse_args()
    if given.only:
        print(json.dumps(measure(given.only, given.rows)))
        return
    command = [sys.executable, __file__, "--rows", str(given.rows), "--only"]
    run = [subprocess.run([*command, name], check=True, capture_output=True, text=True).stdout for name in AGENTS]
    report("logged_data", "Learning from logged transitions of TwinRooms", [json.loads(said) for said in run])


if __name__ == "__main__":
    main()
