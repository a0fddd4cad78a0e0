"""Plans on representatives that Python makes step by step, with something in between."""

from kernelrl.jit.compile import compiled
from kernelrl.jit.handles import hand_over
from kernelrl.planning.backward import find_targets, find_values, prepare
from kernelrl.planning.smoothed import forget
from kernelrl.stores.merged import count_waiting

__all__ = ["InSteps"]


@compiled
def begin(planned):
    """Before the first step of a plan on representatives."""
    count_waiting(planned.settings, planned.store)
    prepare(planned.plan, planned.settings, planned.store)


@compiled
def targets_of_step(planned, side, h):
    """`find_targets` for Python."""
    find_targets(planned.plan, planned.settings, planned.store, side, h)


@compiled
def values_of_step(planned, side, h):
    """`find_values` for Python."""
    find_values(planned.plan, planned.settings, planned.store, side, h)


class InSteps:
    """A plan on representatives that Python makes step by step."""

    def __init__(self, planned):
        forget(planned.plan)
        self.planned, self.handle = planned, hand_over(planned)
        begin(self.handle)

    def finished(self):
        """The plan."""
        return self.planned


@find_targets.implement_plain(InSteps)
def targets_in_steps(plan, settings, store, side, h):
    targets_of_step(plan.handle, side, h)


@find_values.implement_plain(InSteps)
def values_in_steps(plan, settings, store, side, h):
    values_of_step(plan.handle, side, h)
