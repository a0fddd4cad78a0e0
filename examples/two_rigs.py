"""Two devices at once: the heated plate of device_loop.py and a second, slower one, learnt from by one agent.

While one plate is still heating, the other may already need its next action. Each has an episode of its own, with a
handle (`agent.open_episode()`); an action whose result has not come yet counts as a visit for the other plate, so that
the two do not try the same. Results come in any order. The loop saves after every step; it may be killed at any line
and started again.

    python examples/two_rigs.py agent.krl plate-1.json plate-2.json      (again, after Ctrl-C or a kill, to go on)
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import kernelrl as krl
from device_loop import GOAL, STEPS, Plate, load_or_start
from kernelrl.agents.rigs import OpenEpisode


def episode_on(plate: Plate) -> int | None:
    """The number of the episode that the plate was started for last; the plate remembers it."""
    return int(json.loads(plate.path.read_text())[0][0]) if plate.path.exists() else None


def handle_for(agent: krl.Agent, plate: Plate, plates: list[Plate], episodes: int) -> OpenEpisode | None:
    """The open episode of that plate; a new one if it has none; None if there are enough."""
    number = episode_on(plate)
    if number in agent.open_episodes:
        return agent.open_episode_number(number)
    free = set(agent.open_episodes) - {episode_on(other) for other in plates}
    if free:  # opened and saved, but not begun before the program was killed
        return agent.open_episode_number(min(free))
    if agent.episodes + len(agent.open_episodes) < episodes:
        return agent.open_episode()
    return None


def learn(path: Path, plates: list[Plate], episodes: int, make: Callable[[], krl.Agent] = krl.KernelUCBVI) -> krl.Agent:
    """Learn for that many episodes in all, or go on with them; the agent is in the file at `path`."""
    agent = load_or_start(path, make)
    while agent.episodes < episodes:
        busy = []
        for plate in plates:
            handle = handle_for(agent, plate, plates, episodes)
            if handle is not None:
                state = handle.episode.state
                handle.choose([plate.start(handle.number)] if state is None else state)
                busy.append((plate, handle))
        agent.save(path)  # before the plates get their actions
        plate, handle = who_is_ready(agent, busy)
        tell(plate, handle)
        agent.save(path)
    return agent


def who_is_ready(agent: krl.Agent, busy: list[tuple[Plate, OpenEpisode]]) -> tuple[Plate, OpenEpisode]:
    """Wait for a plate; here the second one takes three times as long as the first."""
    told = STEPS * agent.episodes + sum(agent.open_episode_number(n).episode.step for n in agent.open_episodes)
    return busy[-1] if told % 4 == 3 else busy[0]


def tell(plate: Plate, handle: OpenEpisode) -> None:
    """Tell the agent what the plate has measured."""
    episode = handle.episode
    after = plate.move(handle.number, episode.step, episode.action)
    handle.observe(-abs(after - GOAL), [after])
    if handle.episode.over:
        handle.end()


if __name__ == "__main__":
    names = [Path(name) for name in (sys.argv[1:] or ["agent.krl", "plate-1.json", "plate-2.json"])]
    learnt = learn(names[0], [Plate(name) for name in names[1:]], 50)
    print("From 20 degrees the heating is", learnt.act([20.0], 0))
