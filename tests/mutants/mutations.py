"""What is changed in a function: one operator, constant, condition, statement, result or order of arguments.

Only bodies of functions are changed, as the warm process replaces the code of functions that are imported already: not
constants of modules, defaults of arguments, decorators, annotations and texts.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import types
from collections.abc import Iterator
from pathlib import Path

OTHER = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult},
    **{ast.FloorDiv: ast.Mult, ast.Mod: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd},
    **{ast.LShift: ast.RShift, ast.RShift: ast.LShift},
}
DELETED = (ast.Expr, ast.Assign, ast.AugAssign, ast.Raise, ast.Continue, ast.Break, ast.Assert)


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change of one function, and the code that the function has then."""

    file: Path
    lines: range
    function: str
    first_line: int
    change: str
    code: types.CodeType

    @property
    def name(self) -> str:
        """What the list of survivors calls it: no line numbers, which change with every edit."""
        return f"{self.file.stem}.{self.function}: {self.change}"


def mutants(file: Path) -> Iterator[Mutant]:
    """Yield every mutant of a module."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    functions = {(code.co_qualname, code.co_firstlineno) for code in _codes(_compiled(tree, file))}
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            child.above = node  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or _function(node) is not None:
            continue  # what is inside of another function is changed with it
        for inner in (each for part in node.body for each in ast.walk(part)):
            for changed in _changes(inner):
                statement, before, after = _statement(inner), _text(inner), _text(changed)
                around = inner.above if isinstance(inner, ast.Break | ast.Continue) else statement  # type: ignore[attr-defined]
                where = "" if around is inner else f", in: {_text(around)}"
                lines = range(statement.lineno, inner.end_lineno + 1)
                mutated = _replaced(tree, inner, changed)
                for code in _codes(_compiled(mutated, file)):
                    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                    if code.co_name == node.name and code.co_firstlineno == first:
                        assert (code.co_qualname, first) in functions
                        change = f"{before} → {after}{where}"
                        yield Mutant(file, lines, code.co_qualname, first, change, code)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in the place of a node."""
    if _skipped(node):
        return
    match node:
        case ast.Compare(ops=[first, *rest]) if type(first) in OTHER:
            yield _with(node, ops=[OTHER[type(first)](), *rest])
        case ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.AugAssign(op=op) if type(op) in OTHER:
            yield _with(node, op=OTHER[type(op)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Constant(value=bool(value)):
            yield _with(node, value=not value)
        case ast.Constant(value=int(value) | float(value)):
            yield _with(node, value=value + 1)
            yield _with(node, value=value - 1)
        case ast.Return(value=value) if value is not None and not _is_none(value):
            yield _with(node, value=ast.Constant(None))
        case ast.Call(args=[first, second, *rest]) if ast.dump(first) != ast.dump(second) and not any(
            isinstance(each, ast.Starred) for each in (first, second)
        ):
            yield _with(node, args=[second, first, *rest])
        case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Compare | ast.UnaryOp):
            yield _with(node, test=ast.UnaryOp(ast.Not(), test))
    if isinstance(node, DELETED) and not _is_text(node):
        yield ast.Pass()


def _skipped(node: ast.AST) -> bool:
    """Return whether a node is part of an annotation, a text that is put together, or an error that is raised."""
    while (above := getattr(node, "above", None)) is not None:
        if isinstance(above, ast.AnnAssign | ast.arg) and node is above.annotation:
            return True
        if isinstance(above, ast.arguments | ast.Raise | ast.JoinedStr) or isinstance(node, ast.JoinedStr):
            return True
        node = above
    return False


def _function(node: ast.AST) -> ast.AST | None:
    """Return the function around a node."""
    while (node := getattr(node, "above", None)) is not None:
        if isinstance(node, ast.FunctionDef):
            return node
    return None


def _statement(node: ast.AST) -> ast.stmt:
    """Return the statement that a node is part of."""
    while not isinstance(node, ast.stmt):
        node = node.above  # type: ignore[attr-defined]
    return node


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _replaced(tree: ast.Module, node: ast.AST, changed: ast.AST) -> ast.Module:
    """Return the tree with `changed` in the place of `node`; only the nodes above it are copied."""
    while (above := getattr(node, "above", None)) is not None:
        fields = {}
        for name, value in ast.iter_fields(above):
            if isinstance(value, list):
                fields[name] = [changed if each is node else each for each in value]
            else:
                fields[name] = changed if value is node else value
        node, changed = above, _with(above, **fields)
    return changed  # type: ignore[return-value]


def _compiled(tree: ast.Module, file: Path) -> types.CodeType:
    return compile(ast.fix_missing_locations(tree), str(file), "exec", dont_inherit=True)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield each
            yield from _codes(each)


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).splitlines()[0].split())
    return text if len(text) <= 90 else f"{text[:60]} … {text[-27:]}"


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
