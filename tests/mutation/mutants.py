"""Small errors, put into the code of a module one at a time."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from types import CodeType
from typing import NamedTuple

PACKAGE = Path(__file__).parents[2] / "rhale_stats"

OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
# The same with the boundary on the other side, and the opposite.
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
NAMES = {"left": "right", "right": "left"}
for _one, _other in (
    *(("min", "max"), ("minimum", "maximum"), ("nanmin", "nanmax"), ("argmin", "argmax")),
    *(("fmin", "fmax"), ("any", "all"), ("floor", "ceil"), ("zeros", "ones")),
    *(("zeros_like", "ones_like"), ("cumsum", "cumprod"), ("sum", "prod")),
):
    NAMES |= {_one: _other, _other: _one}
DROPPED = {"abs", "sqrt", "square", "exp", "log", "sorted", "reversed"}
# What is for readers only: their words are compared where pages and tables are tested.
FOR_READERS = (ast.Raise, ast.Assert, ast.JoinedStr)
WORDS = {"warn"}
CONDITIONS = (ast.If, ast.IfExp, ast.While)
ALREADY = (ast.Compare, ast.BoolOp, ast.UnaryOp)


class Mutant(NamedTuple):
    """One small error: where it is, and what it makes of the code."""

    path: str  # in the package: "arrays/moments.py"
    function: str  # "Stretches.sums"
    number: int  # among those of the module
    lines: range  # any of them runs with it
    text: str  # "total [+ → -] weight"

    @property
    def place(self) -> str:
        return f"{self.path}:{self.lines.start}"


def _function(name: str) -> ast.expr:
    return ast.parse(name, mode="eval").body


def replacements(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    """The errors that can stand in place of a node."""
    match node:
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            texts = (ast.JoinedStr, ast.Dict)
            if not any(
                isinstance(side, texts)
                or (isinstance(side, ast.Constant) and isinstance(side.value, str))
                for side in (left, right)
            ):
                yield ast.BinOp(left, OPERATORS[type(op)](), right)
        case ast.Compare(left, [op], [right]):
            for other in COMPARISONS[type(op)]:
                yield ast.Compare(left, [other()], [right])
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.And() if isinstance(op, ast.Or) else ast.Or(), values)
        case ast.UnaryOp(ast.Not() | ast.USub() | ast.Invert(), operand):
            yield operand
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            yield ast.Constant(type(value)({0: 1, 1: 0}.get(value, value + 1)))
        case ast.Constant("left" | "right" as side):
            yield ast.Constant(NAMES[side])
        case ast.Slice(lower, upper, step) if lower or upper:
            if lower is None:
                yield ast.Slice(ast.Constant(1), upper, step)
            elif not isinstance(lower, ast.Constant):
                yield ast.Slice(ast.BinOp(lower, ast.Add(), ast.Constant(1)), upper, step)
            if upper is None:
                yield ast.Slice(lower, ast.Constant(-1), step)
            elif not isinstance(upper, ast.Constant):
                yield ast.Slice(lower, ast.BinOp(upper, ast.Sub(), ast.Constant(1)), step)
        case ast.Call(function, arguments, keywords):
            yield from _calls(function, arguments, keywords)
        case ast.AugAssign(target, op, value):
            yield ast.Pass()
            if type(op) in OPERATORS:
                yield ast.AugAssign(target, OPERATORS[type(op)](), value)
    if isinstance(parent, CONDITIONS) and node is parent.test and not isinstance(node, ALREADY):
        yield ast.UnaryOp(ast.Not(), node)


def _calls(
    function: ast.expr, arguments: list[ast.expr], keywords: list[ast.keyword]
) -> Iterator[ast.AST]:
    match function:
        case ast.Attribute(value, name, _) if name in NAMES:
            yield ast.Call(ast.Attribute(value, NAMES[name], ast.Load()), arguments, keywords)
        case ast.Name(name, _) if name in NAMES:
            yield ast.Call(ast.Name(NAMES[name], ast.Load()), arguments, keywords)
    match function:
        case ast.Attribute(ast.Name("np" | "math"), name, _) | ast.Name(name, _):
            if name in DROPPED and len(arguments) == 1:
                yield arguments[0]
            if name == "where" and len(arguments) == 3:
                yield ast.Call(function, [arguments[0], *arguments[:0:-1]], keywords)


class _Place(NamedTuple):
    parent: ast.AST
    field: str
    index: int | None
    lines: range
    statement: ast.stmt

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def _is_left_out(node: ast.AST) -> bool:
    match node:
        case ast.Call(ast.Name(name)) if name in WORDS:
            return True
        case ast.keyword("strict"):  # of zip: an assertion
            return True
    return isinstance(node, FOR_READERS)


def _places(node: ast.AST, statement: ast.stmt) -> Iterator[tuple[_Place, ast.AST]]:
    """Every node below a node with its place, but for annotations and what is for readers."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "args", "ctx") and isinstance(
            node, ast.FunctionDef | ast.AnnAssign
        ):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else ((None, value),):
            if not isinstance(child, ast.AST) or _is_left_out(child):
                continue
            of = child if isinstance(child, ast.stmt) else statement
            spans = child if hasattr(child, "lineno") else node
            if not hasattr(of, "body") and hasattr(of, "lineno"):
                spans = of  # all lines of a statement that holds no others
            lines = range(spans.lineno, (spans.end_lineno or spans.lineno) + 1)
            yield _Place(node, field, index, lines, of), child
            yield from _places(child, of)


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions and methods by name; what is inside a function belongs to it."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner


def _head(statement: ast.stmt) -> str:
    """A statement on one line, without the statements that it holds."""
    if hasattr(statement, "body"):
        statement = deepcopy(statement)
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            if hasattr(statement, field):
                setattr(statement, field, [])
    return " ".join(ast.unparse(statement).split())


AROUND = 32
TOKENS = re.compile(r"[\w.]+|\*\*|//|<<|>>|[-+*/%<>=!&|^]=|\s|.")


def _difference(old: str, new: str) -> str:
    """``total [+ → -] weight``: what differs, and a few words on either side."""
    one, other = TOKENS.findall(old), TOKENS.findall(new)
    shorter = min(len(one), len(other))
    start = next((i for i in range(shorter) if one[i] != other[i]), shorter)
    most = shorter - start
    end = next((i for i in range(most) if one[-1 - i] != other[-1 - i]), most)
    before, after = "".join(one[:start]), "".join(one[len(one) - end :])
    here, there = ("".join(some[start : len(some) - end]).strip() for some in (one, other))
    before = f"…{before[-AROUND:]}" if len(before) > AROUND else before
    after = f"{after[:AROUND]}…" if len(after) > AROUND else after
    return f"{before}[{here} → {there}]{after}"


def _visit(
    path: str, visit: Callable[[Mutant, ast.Module], bool | None], package: Path = PACKAGE
) -> None:
    """Call ``visit`` with every mutant of a module and the tree that has it, until it says stop."""
    tree = ast.parse((package / path).read_text(encoding="utf-8"))
    number = 0
    for name, function in _functions(tree):
        for place, node in list(_places(function, function)):
            for new in list(replacements(node, place.parent)):
                statement = place.statement
                old_text = _head(statement)
                place.put(ast.fix_missing_locations(ast.copy_location(new, node)))
                changed = new if isinstance(new, ast.stmt) else statement
                mutant = Mutant(
                    path, name, number, place.lines, _difference(old_text, _head(changed))
                )
                stop = visit(mutant, tree)
                place.put(node)
                number += 1
                if stop:
                    return


def mutants_of(path: str, package: Path = PACKAGE) -> list[Mutant]:
    """All mutants of a module."""
    every: list[Mutant] = []
    _visit(path, lambda mutant, _: every.append(mutant), package)
    return every


def compiled(mutant: Mutant, package: Path = PACKAGE) -> CodeType:
    """The code of the function of a mutant, with its error."""
    codes: list[CodeType] = []

    def compile_it(one: Mutant, tree: ast.Module) -> bool:
        if one.number == mutant.number:
            codes.append(
                compile(ast.fix_missing_locations(tree), str(package / mutant.path), "exec")
            )
        return bool(codes)

    _visit(mutant.path, compile_it, package)
    for part in mutant.function.split("."):
        codes.append(
            next(
                code
                for code in codes[-1].co_consts
                if isinstance(code, CodeType) and code.co_name == part
            )
        )
    return codes[-1]
