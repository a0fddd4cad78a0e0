"""A loop of one's own: learning on a device that cannot be handed over as an environment.

The device is a heated plate. Each move sets the heating (off, low or high) for a while; then the temperature is read.
The loop saves the agent after every step. It may be killed at any line and started again: it goes on where it was, also
in the middle of an episode, and the agent is the same to the last bit as if nothing had happened.

    python examples/device_loop.py plate.krl plate.json 50      (again, after Ctrl-C or a kill, to go on)

Two rules make this work:

1. The chosen action is saved before the device gets it. After a kill `agent.episode.action` says what was chosen.
2. Moves have numbers, and the device carries out each number once. After a kill the loop cannot know whether the last
   move was made; it sends the move again, and the device answers with what it has measured then. A device without such
   a memory must be asked for its state, or the episode is begun again after `agent.abandon_episode()`.
"""

import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path

import gymnasium as gym

import kernelrl as krl

STEPS, GOAL = 4, 60.0
TEMPERATURES = gym.spaces.Box(0.0, 100.0, (1,))
HEATINGS = gym.spaces.Discrete(3)


class Plate:
    """A plate whose temperature outlives this program, and which remembers its last move: here both are in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def start(self, episode: int) -> float:
        """Let the plate cool down for that episode, once; return the temperature."""
        return self._once([episode, 0], lambda _: 20.0)

    def move(self, episode: int, step: int, heating: int) -> float:
        """Heat for a while, once; return the temperature."""
        return self._once([episode, step + 1], lambda before: before + 20.0 * heating - 0.3 * (before - 20.0))

    def _once(self, number: list[int], change: Callable[[float], float]) -> float:
        last, before = json.loads(self.path.read_text()) if self.path.exists() else ([], 20.0)
        if number == last:  # this was done before the program was killed
            return float(before)
        after = min(max(change(before) + 2.0 * math.sin(37.0 * sum(number)), 0.0), 100.0)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps([number, after]))
        os.replace(part, self.path)
        return after


def load_or_start(path: Path, make: Callable[[], krl.Agent]) -> krl.Agent:
    """The agent in the file at `path`, or a new one that is ready to learn."""
    if path.exists():
        return krl.load(path)
    agent = make()
    agent.start(TEMPERATURES, HEATINGS, STEPS, seed=0)
    return agent


def learn(path: Path, plate: Plate, episodes: int, make: Callable[[], krl.Agent] = krl.KernelUCBVI) -> krl.Agent:
    """Learn for that many episodes in all, or go on with them; the agent is in the file at `path`."""
    agent = load_or_start(path, make)
    while agent.episodes < episodes:
        if agent.episode is None:
            agent.begin_episode()
        play(agent, path, plate)
        agent.end_episode()
        agent.save(path)
    return agent


def play(agent: krl.Agent, path: Path, plate: Plate) -> None:
    """Play the open episode to its end, from the step where it is."""
    number = agent.episodes
    while (episode := agent.episode) is not None and not episode.over:
        step = episode.step
        state = [plate.start(number)] if episode.state is None else episode.state
        heating = agent.choose(state, step)  # the same again, if it had been chosen and saved
        agent.save(path)
        after = plate.move(number, step, heating)
        agent.observe(state, heating, -abs(after - GOAL), [after], step)
        agent.save(path)


if __name__ == "__main__":
    file, device, number = sys.argv[1:] or ["plate.krl", "plate.json", "50"]
    learnt = learn(Path(file), Plate(Path(device)), int(number))
    print("From 20 degrees the heating is", learnt.act([20.0], 0))
