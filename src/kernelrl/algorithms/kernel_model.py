"""The verbs that the models of both kernel algorithms have in common: they embed states and ask the plan.

Such a model has `settings`, `store`, `plan` and `scratch` (3, …): HERE an embedded state, NEXT an embedded next state,
Q of each action.
"""

from kernelrl.episodes.verbs import grow, has_room, read_bonuses, read_counts, read_q
from kernelrl.geometry.metrics import embed
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

__all__ = ["HERE", "NEXT", "Q", "implement_shared_verbs"]

HERE, NEXT, Q = range(3)  # of `scratch`


def implement_shared_verbs(cls):
    """Implement these verbs for the class of a model."""
    checks(cls)(check_parts)
    completes(cls)(completed)
    has_room.implement(cls)(room)
    grow.implement_plain(cls)(with_longer_arrays)
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
    return plan_room(model.plan, model.settings, model.store)


def with_longer_arrays(model):
    plan, store = grown(model.plan, model.settings, model.store)
    return model._replace(plan=plan, store=store)


def q_of(model, state, h, out):
    x = model.scratch[HERE, : state.size]
    embed(model.settings.space, state, x)
    q_at(model.plan, model.settings, model.store, UPPER, x, h, out)


def counts_of(model, state, h, out):
    x = model.scratch[HERE, : state.size]
    embed(model.settings.space, state, x)
    counts_at(model.plan, model.settings, model.store, x, h, out)


def bonuses_of(model, state, h, out):
    x = model.scratch[HERE, : state.size]
    embed(model.settings.space, state, x)
    bonuses_at(model.plan, model.settings, model.store, x, h, out)
