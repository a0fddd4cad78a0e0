"""The problems of an experiment, and the scale on which returns of different problems are compared.

An experiment has one `[environment]` or several `[[environments]]`; each is a problem. What reads a store uses

    store = kernelrl.experiments.open_store(DIR)
    store.several                  whether the experiment's file has `[[environments]]`
    store.problems                 the problems, a list of `Problem` in the order of the file
    store.runs()                   all runs, each with `problem` (a label), `label` and `seed`
    store.only(LABEL)              the same store as if that problem's environment were the experiment's only one: its
                                   `experiment` has `environment` and `episodes`, its `runs()` are those of the problem
    kernelrl.experiments.load(DIR) all histories in one table; its first column is `problem`

    problem.label                  unique; for one `[environment]` it is Gymnasium's id
    problem.environment            {"id": …, keyword arguments}
    problem.episodes               how many episodes each run has, if `steps` is None
    problem.steps                  after how many steps a run ends, with the episode in which they are reached; or None
    problem.make()                 the environment, or a ValueError that says why it cannot be made
    problem.horizon                steps of an episode, at most; None if there is no limit
    problem.optimal                V* by `kernelrl.envs.solve`, or None; `problem.no_optimal` is a sentence on why
    problem.best, problem.worst    the ends of the scale: `best` of the file or else V* at the start (None if neither is
                                   known), `worst` of the file or else 0
    problem.fraction(returns)      (return - worst)/(best - worst), where the scale is known and best > worst; else None

For one `[environment]`, and where the file does not give `best`, the fraction with worst = 0 is the return over V*.
Values are computed when they are first asked for, and kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import gymnasium as gym
    from numpy.typing import ArrayLike, NDArray

    from kernelrl.envs.optimal import OptimalValues
    from kernelrl.envs.outcomes import OutcomeValues

__all__ = ["OF_PROBLEMS", "Problem", "problems_of"]

OF_PROBLEMS = ("label", "episodes", "steps", "best", "worst")  # keys of [[environments]] besides the environment's own


@dataclass(frozen=True)
class Problem:
    """One environment of an experiment."""

    label: str
    environment: dict[str, Any]
    """Gymnasium's id and keyword arguments."""
    episodes: int
    steps: int | None = None
    given_best: float | None = field(default=None, repr=False)
    """`best` as the file has it."""
    given_worst: float | None = field(default=None, repr=False)

    def make(self) -> gym.Env[Any, Any]:
        """The environment; a ValueError says why it cannot be made."""
        from kernelrl.envs.making import make_environment

        return make_environment(
            self.environment["id"], {key: value for key, value in self.environment.items() if key != "id"}
        )

    @cached_property
    def horizon(self) -> int | None:
        """The time limit of the environment; None if it has none or cannot be made here."""
        from kernelrl.envs.wrapping import time_limit

        try:
            return time_limit(self.make())
        except ValueError:
            return None

    @cached_property
    def _solved(self) -> tuple[OptimalValues | OutcomeValues | None, str]:
        """V* and "", or None and why."""
        from kernelrl.envs.optimal import motion_of, solve
        from kernelrl.envs.sampled import SampledValues

        try:
            env = self.make()
        except ValueError as error:
            return None, f"The environment cannot be made here, so its optimal value is not known: {error}."
        if motion_of(env) is None:
            return None, (
                "The optimal value of this environment is not known: it declares no motion(). `kernelrl solve` may "
                "estimate it."
            )
        try:
            found = solve(env)
            assert not isinstance(found, SampledValues)  # which are of environments without a motion
            return found, ""
        except (ValueError, RuntimeError) as error:
            return None, f"The optimal value cannot be computed: {error}."

    @property
    def optimal(self) -> OptimalValues | OutcomeValues | None:
        """V*, or None if `kernelrl.envs.solve` cannot compute it."""
        return self._solved[0]

    @property
    def no_optimal(self) -> str:
        """A sentence that says why there is no V*; empty if there is one."""
        return self._solved[1]

    @property
    def worst(self) -> float:
        """The return that counts as 0."""
        return 0.0 if self.given_worst is None else self.given_worst

    @property
    def best(self) -> float | None:
        """The return that counts as 1, if it is known."""
        if self.given_best is not None:
            return self.given_best
        return None if self.optimal is None else float(self.optimal.start_value)

    def fraction(self, returns: ArrayLike) -> NDArray[Any] | None:
        """Returns on the scale from 0, `worst`, to 1, `best`; None without a scale."""
        import numpy as np

        if self.best is None or self.best <= self.worst:
            return None
        scaled: NDArray[Any] = (np.asarray(returns, np.float64) - self.worst) / (self.best - self.worst)
        return scaled


def problems_of(experiment: dict[str, Any]) -> list[Problem]:
    """The problems of an experiment as it is stored."""
    if "environments" not in experiment:
        return [Problem(experiment["environment"]["id"], experiment["environment"], experiment["episodes"])]
    return [
        Problem(
            table["label"], {key: value for key, value in table.items() if key not in OF_PROBLEMS},
            table.get("episodes", experiment["episodes"]), table.get("steps"), table.get("best"), table.get("worst"),
        )
        for table in experiment["environments"]
    ]  # fmt: skip
