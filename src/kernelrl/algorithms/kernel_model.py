"""The verbs that the models of both kernel algorithms have in common: they embed states and ask the plan.

Such a model has `settings`, `store`, `plan`, `log` (raw transitions, where settings may still change) and `scratch`
(3, …): HERE an embedded state, NEXT an embedded next state, Q of each action. `absorb`, a verb of these models only,
learns from a transition; `observe` also logs it.
"""

from kernelrl.episodes.verbs import grow, has_room, observe, read_bonuses, read_counts, read_q
from kernelrl.jit.compile import generic
from kernelrl.jit.fields import checks, completes
from kernelrl.planning.interface import (
    bonuses_at,
    check_plan,
    complete_plan,
    counts_at,
    grown,
    plan_room,
    q_at,
)
from kernelrl.planning.sides import UPPER
from kernelrl.stores.interface import add, grown_for, has_room_for
from kernelrl.stores.samples import place, places

__all__ = ["HERE", "NEXT", "Q", "absorb", "implement_shared_verbs"]

HERE, NEXT, Q = range(3)  # of `scratch`


def implement_shared_verbs(cls):
    """Implement these verbs for the class of a model."""
    checks(cls)(check_parts)
    completes(cls)(completed)
    has_room.implement(cls)(room)
    grow.implement_plain(cls)(with_longer_arrays)
    observe.implement(cls)(log_and_absorb)
    read_q.implement(cls)(q_of)
    read_counts.implement(cls)(counts_of)
    read_bonuses.implement(cls)(bonuses_of)
    return cls


def check_parts(where, model):
    """Plan and store fit together."""
    check_plan(model.plan, model.settings, model.store, where)


def completed(model):
    """The model with the arrays that are not saved."""
    plan, store = complete_plan(model.plan, model.settings, model.store)
    return model._replace(plan=plan, store=store)


def room(model):
    settings = model.settings
    fits = not settings.logs or has_room_for(model.log, settings, settings.horizon)
    return fits and plan_room(model.plan, settings, model.store)


def with_longer_arrays(model):
    settings = model.settings
    plan, store = grown(model.plan, settings, model.store)
    log = grown_for(model.log, settings, settings.horizon) if settings.logs else model.log
    return model._replace(plan=plan, store=store, log=log)


@generic(required=True)
def absorb(model, state, action, reward, next_state, h, terminated):
    """Learn from a transition."""


def log_and_absorb(model, state, action, reward, next_state, h, terminated):
    if model.settings.logs:
        add(model.log, model.settings, state, action, reward, next_state, h, terminated)
    if model.settings.ready:
        absorb(model, state, action, reward, next_state, h, terminated)


def q_of(model, state, h, out):
    x = model.scratch[HERE, : places(model.settings, state)]
    place(model.settings, state, h, x)
    q_at(model.plan, model.settings, model.store, UPPER, x, h, out)


def counts_of(model, state, h, out):
    x = model.scratch[HERE, : places(model.settings, state)]
    place(model.settings, state, h, x)
    counts_at(model.plan, model.settings, model.store, x, h, out)


def bonuses_of(model, state, h, out):
    x = model.scratch[HERE, : places(model.settings, state)]
    place(model.settings, state, h, x)
    bonuses_at(model.plan, model.settings, model.store, x, h, out)
