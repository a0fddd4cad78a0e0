"""A schedule of one's own: a list of bandwidths, each for so many episodes.

A schedule is a function of the number k of episodes played so far that returns σ_k; a class of them can be saved and
named in experiments' files. It is plain Python: nothing of it is compiled.

    python examples/own_schedule.py
"""

from dataclasses import dataclass

import kernelrl as krl


@krl.register("bandwidth", "stages")
@dataclass(frozen=True)
class Stages:
    """Each bandwidth for `every` episodes, and the last one for all that follow."""

    bandwidths: tuple[float, ...]
    every: int = 500

    def __post_init__(self) -> None:
        if not self.bandwidths or min(self.bandwidths) <= 0.0:
            raise ValueError(f"Stages: bandwidths must be numbers above 0, got {self.bandwidths}")

    def __call__(self, k: int) -> float:
        """σ_k."""
        return self.bandwidths[min(k // self.every, len(self.bandwidths) - 1)]

    @property
    def minimum(self) -> float:
        """Twice this is the merge distance of representative states, unless the agent is given one."""
        return min(self.bandwidths)


def main() -> None:
    for bandwidth in (0.1, 0.025, Stages((0.1, 0.05, 0.025))):
        agent = krl.GreedyKernelUCBVI(bandwidth=bandwidth, representatives=0.05)
        history = agent.fit("kernelrl/TwinRooms-v0", 3_000, seed=0)
        print(f"{bandwidth!s:55} {history.returns.sum():8.1f} collected in 3,000 episodes")


if __name__ == "__main__":
    main()
