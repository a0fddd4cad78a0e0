"""A policy on a controller: a water tank learns in simulation, and its policy runs as C, compiled without a library.

The agent learns to keep the tank of `examples/tank.py` near its goal. `agent.export` writes `tank.h`: tables and one
function, `tank_act`. The program below is what a controller would run: it reads the level, asks for the valve and sends
it back. Here the simulator stands for the sensor and the valve, on the other end of a pipe. The same episodes are then
played by `agent.act`.

    python examples/controller.py
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from gymnasium.wrappers import TimeLimit

import kernelrl as krl
from tank import TankEnv

STEPS, EPISODES = 30, 200
PROGRAM = """\
#include <stdio.h>
#include "tank.h"

int main(void)
{
    double level[TANK_STATE_SIZE];
    int step;
    while (scanf("%d %lf", &step, level) == 2) {
        printf("%d\\n", tank_act(level, step));
        fflush(stdout);
    }
    return 0;
}
"""


def build(agent: krl.Agent, folder: Path) -> Path:
    """Export the policy and compile the controller's program."""
    print(agent.export(folder / "tank.h", name="tank", labels=TankEnv.action_names))
    (folder / "main.c").write_text(PROGRAM)
    program = folder / "controller"
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Os"]
    subprocess.run(["cc", *flags, str(folder / "main.c"), "-o", str(program), "-lm"], check=True)
    return program


def mean_return(env: TimeLimit, valve: object, episodes: int) -> float:
    """The mean return when `valve(level, step)` chooses."""
    total = 0.0
    for episode in range(episodes):
        state, _ = env.reset(seed=episode)
        over, step = False, 0
        while not over:
            state, reward, terminated, truncated, _ = env.step(valve(state, step))  # type: ignore[operator]
            total, over, step = total + float(reward), terminated or truncated, step + 1
    return total / episodes


def main(learning: int = 500, episodes: int = EPISODES) -> tuple[float, float]:
    """Learn, export, compile, and play both; return the two mean returns."""
    env = TimeLimit(TankEnv(), STEPS)
    agent = krl.KernelUCBVI()
    agent.fit(env, learning, seed=0)
    with tempfile.TemporaryDirectory() as name:
        program = build(agent, Path(name))
        with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdin is not None and running.stdout is not None
            to, back = running.stdin, running.stdout

            def ask(level: object, step: int) -> int:
                print(step, repr(float(level[0])), file=to, flush=True)  # type: ignore[index]
                return int(back.readline())

            on_controller = mean_return(env, ask, episodes)
            to.close()
    in_python = mean_return(env, agent.act, episodes)
    print(f"mean return of {episodes} episodes: {on_controller:.3f} in C, {in_python:.3f} by act")
    return on_controller, in_python


if __name__ == "__main__":
    if shutil.which("cc") is None:
        sys.exit("there is no C compiler, cc")
    main()
