"""The time of one action of the policy to deploy: `agent.policy()` in a compiled loop, and `agent.act` from Python.

Processor time in nanoseconds per call, after 300 episodes of TwinRooms, the best of five loops over 4,000 states:

    python benchmarks/policy.py
"""

import time
import warnings

import numba
import numpy as np

import kernelrl as krl
from _common import H, environment, report

AGENTS = {
    "KernelUCBVI()": lambda: krl.KernelUCBVI(),
    "KernelUCBVI(bandwidth=0.025)": lambda: krl.KernelUCBVI(bandwidth=0.025),
    'KernelUCBVI.preset("text")': lambda: krl.KernelUCBVI.preset("text"),
    'GreedyKernelUCBVI.preset("text")': lambda: krl.GreedyKernelUCBVI.preset("text"),
    'UCBVI.preset("text")': lambda: krl.UCBVI.preset("text"),
    "AdaptiveQL()": lambda: krl.AdaptiveQL(),
}


@numba.njit
def loop(policy, states, horizon, out):
    """Actions at all states (n, d), one step after the other."""
    for i in range(out.size):
        out[i] = policy(states[i], i % horizon)


def best_of(function, calls, times=5):
    """The shortest CPU time of a call of `function`, in nanoseconds for each of `calls`."""
    found = []
    for _ in range(times):
        start = time.process_time()
        function()
        found.append(time.process_time() - start)
    return 1e9 * min(found) / calls


def main():
    warnings.simplefilter("ignore")
    states, rows = np.random.default_rng(0).random((4000, 2)) * [2.0, 1.0], []
    out = np.zeros(len(states), np.int64)
    for name, make in AGENTS.items():
        agent = make()
        agent.fit(environment(), 300, seed=0, progress=False)
        policy, start = agent.policy(), time.process_time()
        loop(policy, states, H, out)
        compiling = time.process_time() - start
        act = [agent.act(x, step=i % H) for i, x in enumerate(states)]
        assert act == out.tolist()
        compiled = best_of(lambda policy=policy: loop(policy, states, H, out), len(states))
        python = best_of(lambda policy=policy: [policy(x, 3) for x in states], len(states))
        by_act = best_of(lambda agent=agent: [agent.act(x, step=3) for x in states], len(states))
        rows.append(
            {
                "agent": name, "compiled ns": compiled, "policy from Python ns": python, "act ns": by_act,
                "act/compiled": by_act / compiled, "compiling s": compiling,
            }
        )  # fmt: skip
    report("policy", "One action of the policy to deploy", rows, [])


if __name__ == "__main__":
    main()
