"""Small compiled functions of users, a `map(state, out)` or a `function(x, y)`, written in C.

Only what such functions usually consist of is translated: arithmetic, comparisons, conditions, `for … in range(…)`,
indices that are constants or loop variables, constants of the module, and functions of `math`. Everything else is
refused with its line. All variables but those of loops are real numbers.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["TranslationError", "translated"]

BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
FUNCTIONS = {
    "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "log", "floor", "ceil",
    "hypot", "fabs", "pow",
}  # fmt: skip
CONSTANTS = ("pi", "e", "inf", "tau")
OF_NUMPY = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "abs": "fabs", "absolute": "fabs"}


class TranslationError(ValueError):
    """A function that cannot be written in C; the message says which part."""


def translated(function: Callable[..., Any], name: str, size: int) -> str:
    """The C function `name` for a compiled function of two arrays of `size` numbers, as `Form.c_code` has them."""
    plain = getattr(function, "py_func", function)
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(plain))).body
    except (OSError, TypeError, SyntaxError, ValueError) as error:
        raise TranslationError(f"the source of {plain.__name__} cannot be read ({error})") from error
    if not isinstance(tree, ast.FunctionDef) or len(tree.args.args) != 2:
        raise TranslationError(f"{plain.__name__} is not a function of two arguments")
    return Translator(plain, [argument.arg for argument in tree.args.args], size).function(tree, name)


class Translator:
    """The translation of one function."""

    def __init__(self, function: Callable[..., Any], arrays: list[str], size: int) -> None:
        self.arrays, self.size, self.counters, self.locals = arrays, size, set[str](), set[str]()
        closure = inspect.getclosurevars(function)
        self.known = {**closure.builtins, **closure.globals, **closure.nonlocals}
        self.title = function.__name__

    def function(self, tree: ast.FunctionDef, name: str) -> str:
        """The whole function."""
        returns = any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(tree))
        lines = self.block(tree.body)
        kind, constant = ("REAL", "const ") if returns else ("void", "")
        one, two = self.arrays
        head = f"static inline {kind} {name}(const REAL *{one}_, {constant}REAL *{two}_)\n{{\n"
        declared = "".join(f"    REAL {variable}_ = 0;\n" for variable in sorted(self.locals))
        declared += "".join(f"    int {variable}_;\n" for variable in sorted(self.counters))
        return head + declared + "".join(f"    {line}\n" for line in lines) + "}\n"

    def refuse(self, node: ast.AST) -> TranslationError:
        """The error for a part that is not translated."""
        return TranslationError(f"line {getattr(node, 'lineno', 0)} of {self.title}, `{ast.unparse(node)}`")

    def is_maths(self, name: str) -> bool:
        """Whether a name of the function's module stands for `math` or NumPy."""
        found = self.known.get(name)
        return found is math or found is np

    def is_of_maths(self, name: str) -> bool:
        """Whether a name stands for the function of that name in `math`, NumPy or Python itself."""
        found = self.known.get(name)
        return found is not None and any(getattr(place, name, None) is found for place in (math, np, builtins))

    def block(self, body: list[ast.stmt]) -> list[str]:
        """The lines of several statements."""
        return [line for statement in body for line in self.statement(statement)]

    def statement(self, node: ast.stmt) -> list[str]:
        """The lines of a statement."""
        match node:
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                return []
            case ast.Assign(targets=[target], value=value):
                return [f"{self.target(target)} = {self.real(value)};"]
            case ast.AnnAssign(target=target, value=value) if value is not None:
                return [f"{self.target(target)} = {self.real(value)};"]
            case ast.AugAssign(target=target, op=op, value=value):
                read = ast.parse(ast.unparse(target), mode="eval").body
                new = ast.BinOp(left=read, op=op, right=value)
                ast.copy_location(new, node)
                return [f"{self.target(target)} = {self.real(ast.fix_missing_locations(new))};"]
            case ast.If(test=test, body=body, orelse=other):
                lines = [f"if ({self.truth(test)}) {{", *indented(self.block(body)), "}"]
                return lines + (["else {", *indented(self.block(other)), "}"] if other else [])
            case ast.For(
                target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=bounds, keywords=[]), orelse=[]
            ) if len(bounds) in (1, 2):
                self.counters.add(name)
                first, end = ("0", self.whole(bounds[0])) if len(bounds) == 1 else map(self.whole, bounds)
                loop = f"for ({name}_ = {first}; {name}_ < {end}; {name}_++) {{"
                return [loop, *indented(self.block(node.body)), "}"]
            case ast.Return(value=None):
                return ["return;"]
            case ast.Return(value=value) if value is not None:
                return [f"return {self.real(value)};"]
        raise self.refuse(node)

    def target(self, node: ast.expr) -> str:
        """What is assigned to."""
        if isinstance(node, ast.Name) and node.id not in self.arrays and node.id not in self.counters:
            self.locals.add(node.id)
            return f"{node.id}_"
        if isinstance(node, ast.Subscript):
            return self.entry(node)
        raise self.refuse(node)

    def entry(self, node: ast.Subscript) -> str:
        """An entry of an array."""
        if isinstance(node.value, ast.Name) and node.value.id in self.arrays:
            return f"{node.value.id}_[{self.whole(node.slice)}]"
        raise self.refuse(node)

    def whole(self, node: ast.expr) -> str:
        """An index or a bound: a whole number."""
        match node:
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                return str(value)
            case ast.Name(id=name) if name in self.counters:
                return f"{name}_"
            case ast.Name(id=name) if isinstance(self.known.get(name), int):
                return str(self.known[name])
            case ast.Attribute(value=ast.Name(id=name), attr="size") if name in self.arrays:
                return str(self.size)
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]) if name in self.arrays:
                return str(self.size)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op, right=right):
                return f"({self.whole(left)} {BINARY[type(op)]} {self.whole(right)})"
        raise self.refuse(node)

    def truth(self, node: ast.expr) -> str:
        """A condition."""
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in COMPARE for op in ops):
                sides = [self.either(side) for side in (left, *others)]
                parts = [f"{a} {COMPARE[type(op)]} {b}" for a, op, b in zip(sides, ops, sides[1:], strict=False)]
                return " && ".join(f"({part})" for part in parts)
            case ast.BoolOp(op=op, values=values):
                return (" && " if isinstance(op, ast.And) else " || ").join(f"({self.truth(v)})" for v in values)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"!({self.truth(operand)})"
        raise self.refuse(node)

    def either(self, node: ast.expr) -> str:
        """A side of a comparison: a truth or a number."""
        try:
            return f"({self.truth(node)})"
        except TranslationError:
            return self.real(node)

    def real(self, node: ast.expr) -> str:
        """A real number."""
        match node:
            case ast.Constant(value=bool()):
                raise self.refuse(node)
            case ast.Constant(value=int() | float() as value):
                return literal(float(value))
            case ast.Name(id=name) if name in self.locals:
                return f"{name}_"
            case ast.Name(id=name) if name in self.counters:
                return f"(REAL){name}_"
            case ast.Name(id=name) if isinstance(self.known.get(name), int | float):
                return literal(float(self.known[name]))
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if self.is_maths(name) and attr in CONSTANTS:
                return literal(getattr(math, attr))
            case ast.Subscript():
                return self.entry(node)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(-{self.real(operand)})"
            case ast.BinOp(left=left, op=op, right=right):
                return self.operation(node, self.real(left), op, self.real(right))
            case ast.IfExp(test=test, body=body, orelse=other):
                return f"(({self.truth(test)}) ? {self.real(body)} : {self.real(other)})"
            case ast.Attribute(attr="size") | ast.Call(func=ast.Name(id="len")):
                return f"(REAL){self.whole(node)}"
            case ast.Call(keywords=[]):
                return self.call(node)
        raise self.refuse(node)

    def operation(self, node: ast.expr, left: str, op: ast.operator, right: str) -> str:
        """Two numbers and a sign between them; `%` and `//` are rounded down, as in Python."""
        if type(op) in BINARY:
            return f"({left} {BINARY[type(op)]} {right})"
        if isinstance(op, ast.Pow):
            return f"({left} * {left})" if right == literal(2.0) else f"CALL(pow)({left}, {right})"
        if isinstance(op, ast.FloorDiv):
            return f"CALL(floor)({left} / {right})"
        if isinstance(op, ast.Mod):
            return f"({left} - {right} * CALL(floor)({left} / {right}))"
        raise self.refuse(node)

    def call(self, node: ast.Call) -> str:
        """A call of a function that C knows, too."""
        match node.func:
            case ast.Attribute(value=ast.Name(id=module), attr=attr) if self.is_maths(module):
                name = OF_NUMPY.get(attr, attr)
            case ast.Name(id=attr) if self.is_of_maths(attr):
                name = OF_NUMPY.get(attr, attr)
            case _:
                raise self.refuse(node)
        arguments = [self.real(argument) for argument in node.args]
        if name == "float" and len(arguments) == 1:
            return arguments[0]
        if name in ("min", "max", "minimum", "maximum") and len(arguments) >= 2:
            sign, joined = "<" if name.startswith("min") else ">", arguments[0]
            for other in arguments[1:]:
                joined = f"({other} {sign} {joined} ? {other} : {joined})"
            return joined
        if name in FUNCTIONS and len(arguments) in (1, 2):
            return f"CALL({name})({', '.join(arguments)})"
        raise self.refuse(node)


def literal(value: float) -> str:
    """A number in C."""
    if math.isinf(value):
        return "(REAL)HUGE_VAL" if value > 0 else "(-(REAL)HUGE_VAL)"
    return f"{float(value)!r}LIT"


def indented(lines: list[str]) -> list[str]:
    """Lines inside a block."""
    return [f"    {line}" for line in lines]
