"""Every agent of the package on problems whose optimal value is known: what share of the optimum it collects.

The kernel agents have nothing set. Each baseline has the best of its three settings, found on seeds CHOOSING; all are
reported on other seeds. `collected` is the total reward of K episodes over K·V*, mean with a 95 % interval (Student's
t), and `deployed` that of the policy to deploy over V*, with the lowest seed: after K episodes, and after K/4. `loss`
is by how much of V* the policy got worse from K/4 to K, mean over seeds, with its upper 95 % bound. V* is that of the
problem's own actions.

    python benchmarks/problems.py [--seeds 4] [--workers 2] [--only TwinRooms] [--agent KernelUCBVI]
"""

import argparse
import concurrent.futures
import multiprocessing
import warnings

import gymnasium as gym
import numpy as np

import kernelrl as krl
from _common import report
from kernelrl.agents.evaluation import t_interval

CHOOSING = (100, 101)
EVALUATION = 1000
PROBLEMS = {  # arguments of gym.make, episodes
    "TwinRooms": ({"id": "kernelrl/TwinRooms-v0"}, 5000),
    "SquareWorld, 30 steps": ({"id": "kernelrl/SquareWorld-v0", "max_episode_steps": 30}, 1000),
    "PBall2D 2": ({"id": "kernelrl/PBall2D-v0", "level": 2}, 1500),
    "PBall2D 3": ({"id": "kernelrl/PBall2D-v0", "level": 3}, 1500),
    "Oil, 11 actions": ({"id": "kernelrl/Oil-v0", "form": "laplace", "steepness": 10, "actions": 11}, 1000),
    "Ambulance, 11 actions": ({"id": "kernelrl/Ambulance-v0", "arrivals": "beta", "actions": 11}, 1000),
}
GRIDS = [{"bins": 10, "bonus_scale": 0.1}, {"bins": 20, "bonus_scale": 0.1}, {"bins": 20, "bonus_scale": 0.01}]
AGENTS = {
    "KernelUCBVI": [{}],
    "GreedyKernelUCBVI": [{}],
    "UCBVI": GRIDS,
    "GreedyUCBVI": GRIDS,
    "OptQL": [{"bins": 10, "bonus_scale": 0.1}, {"bins": 10, "bonus_scale": 0.01}, {"bins": 20, "bonus_scale": 0.01}],
    "AdaptiveQL": [{"bonus_scale": 0.1}, {"bonus_scale": 0.03}, {"bonus_scale": 0.01}],
    "RandomAgent": [{}],
}  # fmt: skip
RANGE = (0.0, 1.0)  # of the rewards of all these problems; the kernel agents find out themselves


def run(name, settings, problem, seed, evaluates=True):
    """Total reward, the deployed policy's mean return after a quarter of the episodes and at the end, and seconds."""
    made, K = PROBLEMS[problem]
    env, own = gym.make(**made), {} if name.startswith(("Kernel", "GreedyKernel")) else {"reward_range": RANGE}
    agent, reward, taken, deployed = getattr(krl, name)(**settings, **own), 0.0, 0.0, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a policy that got worse is what this measures
        for part in (K // 4, K - K // 4):
            history = agent.fit(env, part, seed=seed, progress=False)
            reward, taken = reward + float(history.returns.sum()), taken + history.seconds
            deployed.append(agent.evaluate(env, EVALUATION).mean if evaluates else 0.0)
    return reward, *deployed, taken


def row(problem, name, settings, found, optimum):
    """The row of an agent, from (seeds, 4) results."""
    reward, early, last, taken = np.array(found).T
    share = reward / (PROBLEMS[problem][1] * optimum)
    low, high = t_interval(share)
    loss = (early - last) / optimum
    return {
        "problem": problem, "agent": name, "setting": ", ".join(f"{k} {v}" for k, v in settings.items()) or "none",
        "seeds": len(found), "collected": float(share.mean()), "± (95 %)": float(high - low) / 2,
        "deployed": float(last.mean() / optimum), "its lowest": float(last.min() / optimum),
        "at K/4": float(early.mean() / optimum), "loss": float(loss.mean()), "loss, at most": t_interval(loss)[1],
        "seconds": float(taken.mean()),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", choices=PROBLEMS, action="append")
    parser.add_argument("--agent", choices=AGENTS, action="append")
    options = parser.parse_args()
    agents = {name: AGENTS[name] for name in options.agent or AGENTS}
    problems, rows = options.only or list(PROBLEMS), []
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(options.workers, context) as pool:
        tried = {
            (problem, name, i): [pool.submit(run, name, settings, problem, seed, False) for seed in CHOOSING]
            for problem in problems
            for name, choices in agents.items()
            if len(choices) > 1
            for i, settings in enumerate(choices)
        }
        for problem in problems:
            optimum, runs = krl.envs.solve(gym.make(**PROBLEMS[problem][0])).start_value, {}
            for name, choices in agents.items():
                totals = [
                    sum(future.result()[0] for future in tried.get((problem, name, i), ())) for i in range(len(choices))
                ]
                chosen = choices[int(np.argmax(totals))]
                seeds = range(1, 1 + options.seeds)
                runs[name] = chosen, [pool.submit(run, name, chosen, problem, seed) for seed in seeds]
            for name, (chosen, futures) in runs.items():
                rows.append(row(problem, name, chosen, [future.result() for future in futures], optimum))
                print(rows[-1], flush=True)
    report("problems", "Shares of the optimal value", rows)


if __name__ == "__main__":
    main()
