"""The codec for hyper-parameters: agents' files, experiments' files and reports write and read the same tables.

A hyper-parameter that is an object in Python is a table with a `name`. It is the same table in the header of a `.krl`
file, in the configuration of a run (both JSON) and in the file of an experiment (TOML):

    metric = {name = "lp", p = 2.0, scale = "box"}
    metric = {name = "folded", map = "kernelrl.envs:twin_rooms_fold"}
    bonus = {name = "joint", delta = 0.1, episodes = 5000}
    bandwidth = {name = "power", start = 0.05, minimum = 0.012, exponent = 0.25}
    lipschitz = {name = "recursion", reward = 10.0, transition = 1.0}     # the tuple (λ_r, λ_p)
    metric = {name = "weighted", from = "my_metrics", weights = [1.0, 2.0]}

The name comes from the registry (see `kernelrl.agents.registry`), and the other keys are the fields of the class. In
the table of a user's own class `from` is the module that registers it. Values that JSON or TOML lacks are written as

    "none", "inf", "-inf"                               None and the infinities
    {name = "tuple", items = [0.0, 1.0]}                a tuple, where a list would mean something else
    {name = "function", function = "module:function"}   a function
    {name = "text", text = "none"}                      a string that would be read as one of the words above

A list is read as a tuple if the field is annotated as a tuple, and a string as "module:function" if the field is
annotated as a Callable. Importing runs code, so the caller of `decode` decides what may be imported (see `Imports`).
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kernelrl.agents.registry import AS_TUPLE, KEYS, KINDS, NAMES, REGISTRY, kind_of, parts_of, path_of, registered
from kernelrl.arguments import is_auto
from kernelrl.imports import import_module, imported, no_such

__all__ = ["Imports", "decode", "describe", "encode", "encode_all", "function_path", "needs_code", "text"]

Field = dataclasses.Field[Any]
WORDS = {"none": None, "inf": math.inf, "-inf": -math.inf}
FORMS = {"tuple": "items", "function": "function", "text": "text"}  # tables that are not objects, and their one key


# ------------------------------------------------------------------------------------------------------------- writing


def encode_all(values: Mapping[str, Any]) -> dict[str, Any]:
    """Hyper-parameters by name, in a form for JSON and TOML."""
    return {argument: encode(argument, value) for argument, value in values.items()}


def encode(argument: str, value: Any) -> Any:
    """The hyper-parameter `argument` in a form for JSON and TOML."""
    return encode_as(kind_of(argument), argument, value)


def encode_as(kind: str | None, argument: str, value: Any) -> Any:
    """Like `encode`, where objects of that kind are expected; errors name `argument`."""
    if isinstance(value, tuple) and (cls := AS_TUPLE.get(kind)) and len(value) == len(parts_of(cls)):
        value = cls(*value)
    if type(value) in NAMES:
        return encode_object(kind, argument, value)
    if dataclasses.is_dataclass(value):
        raise ValueError(
            f"{argument}: {value!r} cannot be saved, since its class is not registered; decorate the class with "
            f'@krl.register("{kind or KINDS[0]}", "…")'
        )
    if callable(value):
        return {"name": "function", "function": function_path(argument, value)}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, tuple):
        return {"name": "tuple", "items": [encode_as(kind, argument, item) for item in value]}
    if isinstance(value, list):
        return [encode_as(kind, argument, item) for item in value]
    return encode_plain(argument, value)


def encode_plain(argument: str, value: Any) -> Any:
    """None, a number or a string."""
    if value is None:
        return "none"
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            raise ValueError(f"{argument}: nan is not a value and cannot be saved")
        return str(value)
    if isinstance(value, str) and value in WORDS:
        return {"name": "text", "text": value}
    if isinstance(value, bool | int | float | str):
        return value
    raise ValueError(
        f"{argument}: {value!r} cannot be saved; allowed are numbers, texts, None, lists and tuples of these, "
        "functions with a name, and objects of registered classes (krl.register)"
    )


def encode_object(expected: str | None, argument: str, value: Any) -> dict[str, Any]:
    """The table of an object of a registered class; it names the kind unless that is the expected one."""
    cls, (kind, name) = type(value), NAMES[type(value)]
    table: dict[str, Any] = {"name": name} if kind == expected else {"kind": kind, "name": name}
    if cls.__module__.partition(".")[0] != "kernelrl":
        table["from"] = cls.__module__
    for part, field in parts_of(cls).items():
        item = getattr(value, part)
        if takes_function(field) and callable(item) and type(item) not in NAMES:
            table[part] = function_path(argument, item)
        else:
            item = as_lists(item) if takes_tuple(field) else item
            table[part] = encode_as(kind_of(part), argument, item)
    return table


def function_path(argument: str, function: Any) -> str:
    """`module:name` of a function."""
    plain = getattr(function, "py_func", function)
    if not hasattr(plain, "__qualname__"):
        raise ValueError(
            f"{argument}: {function!r} cannot be saved, since it has no name to import it by; give a plain function, "
            "or an object of a registered class (krl.register)"
        )
    return path_of(plain)


def alternatives(field: Field) -> set[str]:
    """The words of a field's annotation, given as a string or an object, without what is in brackets."""
    said, before = str(field.type), ""
    while said != before:
        said, before = re.sub(r"\[[^\[\]]*\]", "", said), said
    return set(re.findall(r"\w+", said))


def takes_function(field: Field) -> bool:
    """Whether a string in that field is "module:function": the annotation is a Callable, perhaps or None."""
    return "Callable" in (words := alternatives(field)) and "str" not in words


def takes_tuple(field: Field) -> bool:
    """Whether lists in that field are tuples."""
    return "tuple" in alternatives(field) and "list" not in str(field.type)


def as_lists(value: Any) -> Any:
    """Tuples, also nested ones, as lists."""
    return [as_lists(item) for item in value] if isinstance(value, tuple) else value


def as_tuples(value: Any) -> Any:
    """Lists, also nested ones, as tuples."""
    return tuple(as_tuples(item) for item in value) if isinstance(value, list) else value


# ------------------------------------------------------------------------------------------------------------- reading


class Imports:
    """What `decode` may import: here anything that a table names, for tables that the user wrote."""

    def function(self, argument: str, path: str) -> Any:
        """The function "module:function"."""
        try:
            return imported(path)
        except ValueError as error:
            raise ValueError(f"{argument}: {error}") from error

    def module(self, argument: str, kind: str, name: str, module: str) -> None:
        """Import the module that registers the class of that kind and name."""
        try:
            import_module(module)
        except ValueError as error:
            raise ValueError(f"{argument}: from: {error}") from error


def decode(argument: str, value: Any, imports: Imports | None = None) -> Any:
    """The hyper-parameter `argument` from its encoded form; an error names it and what is allowed."""
    return decode_as(kind_of(argument), argument, value, imports or Imports())


def decode_as(kind: str | None, argument: str, value: Any, imports: Imports) -> Any:
    """Like `decode`, where objects of that kind are expected; errors name `argument`."""
    if isinstance(value, str):
        return WORDS.get(value, value)
    if isinstance(value, list):
        return [decode_as(kind, argument, item, imports) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("name"), str) and value["name"] in FORMS:
        return decode_form(kind, argument, value, imports)
    return decode_object(class_of(kind, argument, value, imports), argument, value, imports)


def decode_object(cls: type[Any], argument: str, table: dict[str, Any], imports: Imports) -> Any:
    """An object of that class from its table."""
    given = {part: item for part, item in table.items() if part not in KEYS}
    parts = parts_of(cls)
    check_parts(
        f"{argument}: {table['name']}", given, parts, (part for part, field in parts.items() if is_required(field))
    )
    values = {part: decode_part(argument, parts[part], item, imports) for part, item in given.items()}
    try:
        made = cls(**values)
    except Exception as error:  # a class of the user's own may raise anything
        raise ValueError(f"{argument}: {error}") from error
    return dataclasses.astuple(made) if cls in AS_TUPLE.values() else made


def decode_form(kind: str | None, argument: str, table: dict[str, Any], imports: Imports) -> Any:
    """A tuple, a function or a string from its table."""
    name = table["name"]
    key = FORMS[name]
    check_parts(f"{argument}: {name}", [part for part in table if part != "name"], (key,), (key,))
    content = table[key]
    if name == "function":
        return function_of(argument, content, imports)
    if name == "tuple":
        if not isinstance(content, list):
            raise ValueError(f"{argument}: a tuple has a list of items, got {content!r}")
        return tuple(decode_as(kind, argument, item, imports) for item in content)
    if not isinstance(content, str):
        raise ValueError(f"{argument}: text must be a text, got {content!r}")
    return content


def decode_part(argument: str, field: Field, item: Any, imports: Imports) -> Any:
    """A field of an object."""
    if takes_function(field) and not isinstance(item, dict | list) and item != "none":
        return function_of(argument, item, imports)
    value = decode_as(kind_of(field.name), argument, item, imports)
    return as_tuples(value) if takes_tuple(field) else value


def function_of(argument: str, path: Any, imports: Imports) -> Any:
    """The function that a table names."""
    if not isinstance(path, str):
        raise ValueError(f"{argument}: a function is named by module:name, got {path!r}")
    return imports.function(argument, path)


def class_of(expected: str | None, argument: str, table: dict[str, Any], imports: Imports) -> type[Any]:
    """The registered class that a table names."""
    kind, name, module = table.get("kind", expected), table.get("name"), table.get("from")
    if "kind" in table and kind not in KINDS:
        raise ValueError(f"{argument}: " + no_such("kind", str(kind), KINDS))
    if kind is None:
        raise ValueError(f"{argument}: a table is not allowed here, got {table}")
    if not isinstance(name, str):
        raise ValueError(f"{argument}: a table needs a name, one of {', '.join(registered(kind))}; got {table}")
    if not isinstance(module, str | None):
        raise ValueError(f"{argument}: from must be the name of a module, got {module!r}")
    if module is not None and name not in REGISTRY[kind]:
        imports.module(argument, kind, name, module)
        if name not in REGISTRY[kind]:
            raise ValueError(
                f'{argument}: the module {module} registers no {kind} "{name}"; decorate its class with '
                f'@krl.register("{kind}", "{name}")'
            )
    if name not in REGISTRY[kind]:
        own = f'{{name = "{name}", from = "module"}}'
        raise ValueError(
            f"{argument}: {no_such('name', name, registered(kind))}; or, for a class of your own, {own}, where the "
            "module registers it"
        )
    return REGISTRY[kind][name]


def is_required(field: Field) -> bool:
    """Whether a field has no default."""
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def check_parts(where: str, given: Iterable[str], allowed: Iterable[str], required: Iterable[str]) -> None:
    """Raise ValueError unless the keys of a table are allowed and none is missing."""
    for part in given:
        if part not in allowed:
            raise ValueError(f"{where}: " + no_such("key", part, allowed))
    for part in required:
        if part not in given:
            raise ValueError(f"{where}: {part} is missing")


def needs_code(argument: str, value: Any) -> bool:
    """Whether an encoded hyper-parameter contains a user's own function or class."""
    if isinstance(value, list):
        return any(needs_code(argument, item) for item in value)
    if not isinstance(value, dict):
        return False
    name, kind = value.get("name"), value.get("kind", kind_of(argument))
    if "from" in value or name == "function":
        return True
    if isinstance(name, str) and kind in KINDS and name in REGISTRY[kind]:
        if any(takes_function(field) and part in value for part, field in parts_of(REGISTRY[kind][name]).items()):
            return True
    return any(needs_code(part, item) for part, item in value.items())


# ----------------------------------------------------------------------------------------------------------- rendering


def left_to_agent(given: Mapping[str, Any], used: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the hyper-parameters in use that were given as "auto" and have been chosen; encoded or not."""
    return {name: value for name, value in used.items() if is_auto(given.get(name)) and not is_auto(value)}


def describe(tables: Mapping[str, Any], digits: int | None = None) -> str:
    """Encoded hyper-parameters for people: `bandwidth = 0.1, metric = lp(p=2.0, scale="box")`.

    With `digits`, numbers are rounded to so many.
    """
    return ", ".join(f"{argument} = {text(table, digits=digits)}" for argument, table in tables.items())


def text(value: Any, quoted: bool = True, digits: int | None = None) -> str:
    """One encoded hyper-parameter for people: objects as calls, strings in quotation marks if `quoted`."""
    if isinstance(value, dict):
        name = value.get("name")
        if name == "tuple" and isinstance(value.get("items"), list):
            items = [text(item, quoted, digits) for item in value["items"]]
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        if name == "text":
            return json.dumps(value.get("text"), ensure_ascii=False)
        parts = (f"{part}={text(item, quoted, digits)}" for part, item in value.items() if part not in KEYS)
        return f"{name or ''}({', '.join(parts)})"
    if isinstance(value, list):
        return f"[{', '.join(text(item, quoted, digits) for item in value)}]"
    if isinstance(value, str) and (value in WORDS or not quoted):
        return value
    if isinstance(value, float):
        return str(value) if digits is None else f"{value:.{digits}g}"
    return json.dumps(value, ensure_ascii=False)
