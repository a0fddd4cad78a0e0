"""The verb of a policy to deploy, which agents of all kinds implement (see `kernelrl.episodes.policy`)."""

from kernelrl.jit.compile import generic, inner

__all__ = ["deployed_action", "first_largest"]


@generic(required=True)
def deployed_action(rule, state, h, q):
    """The number, from 0, of the action of a policy to deploy in the raw `state` (d,); `q` (A,) is scratch.

    `rule` is what the policy reads: values at cells, a plan, a model.
    """


@inner
def first_largest(q):
    """The first index of the largest entry."""
    best = 0
    for a in range(1, q.size):
        best = a if q[a] > q[best] else best
    return best
