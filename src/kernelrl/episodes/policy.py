"""The policy to deploy as one object that Python and users' compiled code can call: `policy(state, step)`.

A `Policy` owns a copy of all that the policy reads, a `Snapshot`: learning on does not change it. In compiled code its
type is callable, and its value is the address of the snapshot, as for models (`kernelrl.jit.handles`). What it does is
the verb `deployed_action` of the snapshot's rule.

The result is the action's number as the environment counts Discrete actions; for a Box of actions it is the row of
`policy.actions`. States outside the box of states are moved into it and steps after the last one are the last one, so
that no call reads memory which is not the policy's.
"""

import functools
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numba.extending import (
    NativeValue,
    lower_builtin,
    models,
    register_model,
    typeof_impl,
    unbox,
)

from kernelrl.episodes.verbs import read_q
from kernelrl.geometry.masks import first_allowed
from kernelrl.jit.compile import compiled, inner
from kernelrl.jit.handles import hand_over
from kernelrl.jit.numba_private import TypingError, lower_constant, signature
from kernelrl.jit.policy_verb import deployed_action

__all__ = ["Policy", "ReadQ", "new_policy"]


class ReadQ(NamedTuple):
    """The rule of most agents: the first of the actions with the largest `read_q`, among those that are allowed."""

    model: Any
    mask: Any


@deployed_action.implement(ReadQ)
def best_of_read_q(rule, state, h, q):
    read_q(rule.model, state, h, q)
    return first_allowed(rule.mask, state, q)


class Snapshot(NamedTuple):
    """What a policy reads."""

    rule: Any  # implements `deployed_action`
    low: np.ndarray  # (d,) the box of states
    high: np.ndarray
    state: np.ndarray  # (d,) scratch
    q: np.ndarray  # (A,) scratch
    horizon: int
    first: int  # number of the first action


@inner
def number_at(snapshot, h):
    """The action at `snapshot.state`, which is moved into the box."""
    state = snapshot.state
    for j in range(state.size):
        inside = state[j] if state[j] > snapshot.low[j] else snapshot.low[j]  # also what is not a number
        state[j] = inside if inside < snapshot.high[j] else snapshot.high[j]
    step = min(max(h, 0), snapshot.horizon - 1)
    return snapshot.first + deployed_action(snapshot.rule, state, step, snapshot.q)


@compiled
def act_from_python(snapshot, state, h):
    """The action in `state` (d,) at step `h`."""
    for j in range(snapshot.state.size):
        snapshot.state[j] = state[j]
    return np.int64(number_at(snapshot, h))


class Policy:
    """A snapshot of the policy to deploy: `policy(state, step)` is the number of an action.

    It is called the same way from Python and from functions compiled by numba, as an argument or as a global.
    `actions` (A, d_A) are the actions of a Box, by their numbers, else None. Two threads must not call the same policy
    at the same time.
    """

    def __init__(self, handle: Any, shape: tuple[int, ...], actions: Any) -> None:
        self.snapshot, self.shape, self.actions = handle, shape, actions

    def __call__(self, state: Any, step: int) -> int:
        """The action in `state` at `step`, from 0."""
        x = np.asarray(state, np.float64)
        if x.shape != self.shape:
            raise ValueError(f"state must have shape {self.shape}, got shape {x.shape}")
        return int(act_from_python(self.snapshot, x.reshape(-1), int(step)))

    def __reduce__(self) -> Any:
        return Policy, (self.snapshot, self.shape, self.actions)


def new_policy(rule, spaces):
    """The policy of a rule, which has arrays of its own."""
    low, high = spaces.finite_box()
    snapshot = Snapshot(
        rule, low, high, np.zeros(low.size), np.zeros(spaces.actions), spaces.horizon, int(spaces.first_action)
    )  # fmt: skip
    actions = None if spaces.net is None else spaces.net.points.copy()
    return Policy(hand_over(snapshot), spaces.shape, actions)


# --------------------------------------------------------------------------------------------------- in compiled code


class PolicyType(types.Callable):
    """The type of a policy: that of its snapshot."""

    def __init__(self, pointer, shape):
        self.pointer, self.shape = pointer, shape
        super().__init__(name=f"Policy({pointer.name} {shape})")

    @property
    def key(self):
        """What makes two of these types equal."""
        return self.pointer, self.shape

    def get_call_type(self, context, args, kws):
        """The type of a call with these types of arguments."""
        if len(args) != 2 or kws:
            raise TypingError("a policy is called as policy(state, step), without names of arguments")
        state, step = args
        number = isinstance(state, types.Number)
        fits = number if not self.shape else isinstance(state, types.Array) and state.ndim == len(self.shape)
        if not fits or not isinstance(step, types.Integer):
            what = "a number" if not self.shape else f"an array of shape {self.shape}"
            raise TypingError(f"a policy is called with a state, here {what}, and a whole number, the step")
        return signature(types.int64, state, types.int64, recvr=self)

    def get_call_signatures(self):
        """None are known in advance."""
        return (), True

    def get_impl_key(self, sig):
        """All policies are called the same way."""
        return Policy


register_model(PolicyType)(models.OpaqueModel)


@typeof_impl.register(Policy)
def typeof_policy(policy, context):
    """The type of a policy."""
    return PolicyType(numba.typeof(policy.snapshot), policy.shape)


@unbox(PolicyType)
def unbox_policy(kind, policy, c):
    """Turn the Python object into the address of its snapshot."""
    handle = c.pyapi.object_getattr_string(policy, "snapshot")
    number = c.pyapi.object_getattr_string(handle, "address")
    address = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    c.pyapi.decref(handle)
    return NativeValue(address)


in_machine_code: list[Policy] = []  # policies that are globals of compiled functions, which contain their addresses


@lower_constant(PolicyType)
def constant_policy(context, builder, kind, policy):
    """A policy that is a global of a compiled function; it is kept as long as the process lives."""
    in_machine_code.append(policy)
    return context.add_dynamic_addr(builder, policy.snapshot.address, info="policy")


@functools.cache
def call_of(dimensions):
    """A function that copies a state of so many dimensions and asks for the action."""

    def call_at_number(snapshot, state, step):
        snapshot.state[0] = state
        return np.int64(number_at(snapshot, step))

    def call_at_array(snapshot, state, step):
        if state.size != snapshot.state.size:
            raise ValueError("the state has another number of coordinates than those that the agent was started with")
        j = 0
        for coordinate in state.flat:
            snapshot.state[j] = coordinate
            j += 1
        return np.int64(number_at(snapshot, step))

    return call_at_number if dimensions == 0 else call_at_array


@lower_builtin(Policy, PolicyType, types.Any, types.Any)
def call_policy(context, builder, sig, args):
    """A call in compiled code."""
    kind, state, step = sig.args
    inside = signature(types.int64, kind.pointer, state, step)
    return context.compile_internal(builder, call_of(len(kind.shape)), inside, args)
