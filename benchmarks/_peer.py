"""The peer's side of `peers.py`: agents of rlberry 0.1 on its TwinRooms. It runs in its own virtual environment.

It reads commands from standard input, one JSON list per line, ["make", name, seed] or ["play", episodes], and answers
each with a JSON object on standard output.
"""

import json
import sys
import time
import types
import warnings

warnings.simplefilter("ignore")
answers, sys.stdout = sys.stdout, sys.stderr  # what the package prints is not an answer

import numpy as np  # noqa: E402
import rlberry.exploration_tools.typing  # noqa: E402
from rlberry.agents import AdaptiveQLAgent, OptQLAgent, RSKernelUCBVIAgent, UCBVIAgent  # noqa: E402
from rlberry.envs.benchmarks.generalization.twinrooms import TwinRooms  # noqa: E402
from rlberry.wrappers.discretize_state import DiscretizeStateWrapper  # noqa: E402

rlberry.exploration_tools.typing.torch = types.SimpleNamespace(Tensor=())  # torch is not installed, but used
H, BINS = 20, 20
SHARED = {"n_episodes": 10**6, "gamma": 1.0, "horizon": H}


def make(name):
    """An agent with the paper's settings."""
    if name == "KernelUCBVI":
        agent = RSKernelUCBVIAgent(
            TwinRooms(), kernel_type="gaussian", bandwidth=0.025, min_dist=0.05, max_repr=500, beta=0.01, **SHARED
        )
    elif name == "AdaptiveQL":
        agent = AdaptiveQLAgent(TwinRooms(), **SHARED)
    else:
        agents = {"OptQL": OptQLAgent, "UCBVI": UCBVIAgent}
        agent = agents[name](DiscretizeStateWrapper(TwinRooms(), BINS), **SHARED)
    agent._rewards, agent._cumul_rewards = np.zeros(SHARED["n_episodes"]), np.zeros(SHARED["n_episodes"])
    agent.writer = None  # it would print
    return agent


def main():
    agent = None
    for line in sys.stdin:
        command = json.loads(line)
        if command[0] == "make":
            agent = make(command[1])
            agent.env.reseed(command[2])
            answer = {}
        else:
            start = time.process_time()
            returns = [agent._run_episode() for _ in range(command[1])]
            answer = {"seconds": time.process_time() - start, "reward": float(np.sum(returns))}
            answer["representatives"] = int(getattr(agent, "M", None) or 0)
        print(json.dumps(answer), file=answers, flush=True)


main()
