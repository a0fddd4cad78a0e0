"""Arrays of one's own: joblib hands large ones to its workers as files mapped into memory, which are read-only.

Compiled code writes into arrays, and a read-only one is another type, for which everything would be compiled again.
"""

from typing import Any

import numpy as np

__all__ = ["owned"]

PACKAGE = __name__.partition(".")[0]


def owned(part: Any, seen: dict[int, Any] | None = None) -> Any:
    """The same, with plain copies of arrays that are read-only or of another class, such as memory maps.

    It looks into tuples, and it changes lists, dicts and objects of this package's classes in place. `seen` has what
    it has looked at, by its identity, with what came of it.
    """
    seen = {} if seen is None else seen
    if id(part) not in seen:
        seen[id(part)] = part, part  # kept, so that nothing else gets its identity
        seen[id(part)] = part, owned_now(part, seen)
    return seen[id(part)][1]


def owned_now(part: Any, seen: dict[int, Any]) -> Any:
    """The same for something that has not been looked at."""
    if isinstance(part, np.ndarray):
        return part if type(part) is np.ndarray and part.flags.writeable else np.array(part)
    if isinstance(part, tuple):
        parts = [owned(each, seen) for each in part]
        if all(new is old for new, old in zip(parts, part, strict=True)):
            return part
        return part._replace(**dict(zip(part._fields, parts, strict=True))) if hasattr(part, "_fields") else (*parts,)
    if type(part) is list:
        part[:] = [owned(each, seen) for each in part]
    elif type(part) is dict:
        part.update({name: owned(each, seen) for name, each in part.items()})
    elif any(cls.__module__.partition(".")[0] == PACKAGE for cls in type(part).__mro__) and not isinstance(part, type):
        owned(getattr(part, "__dict__", {}), seen)
    return part
