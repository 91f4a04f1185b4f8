"""Small wrong changes of functions: which there are, and a tree of a file with one of them.

Changed are the bodies of functions, kernels included. Left alone: types, docstrings, other text, what is said in
errors, decorators and defaults, and code that runs on import, such as the registers of statements.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

_ARITHMETIC: dict[type, tuple[type, str]] = {
    ast.Add: (ast.Sub, "+ to -"),
    ast.Sub: (ast.Add, "- to +"),
    ast.Mult: (ast.Div, "* to /"),
    ast.Div: (ast.Mult, "/ to *"),
    ast.Pow: (ast.Mult, "** to *"),
    ast.FloorDiv: (ast.Mult, "// to *"),
    ast.Mod: (ast.FloorDiv, "% to //"),
    ast.BitAnd: (ast.BitOr, "& to |"),
    ast.BitOr: (ast.BitAnd, "| to &"),
}
_BOUNDARY: dict[type, type] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_OPPOSITE: dict[type, type] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
# The same whichever argument comes first, so that a swap changes nothing.
_SYMMETRIC = {"max", "min", "maximum", "minimum", "hypot", "isclose", "allclose", "array_equal", "gcd", "dot"}


@dataclass(frozen=True)
class Mutant:
    """One change: the place-th node of the file's tree, and what is done to it."""

    file: str
    place: int
    operator: str
    line: int
    end_line: int
    function: str
    before: str
    after: str
    twin: int = 0  # of several such changes that look the same

    @property
    def name(self) -> str:
        """Stays the same where other functions of the file change."""
        key = "\0".join([self.file, self.function, self.operator, self.before, self.after, str(self.twin)])
        return hashlib.sha256(key.encode()).hexdigest()[:12]


def module_of(file: str) -> str:
    """The name under which a file of the repository is imported, wherever its distribution stands."""
    parts = Path(file).with_suffix("").parts
    top = next((place for place, name in enumerate(parts) if name.startswith("yzflow_")), 0)
    return ".".join(parts[top:]).removesuffix(".__init__")


def mutants(root: Path, file: str) -> list[Mutant]:
    """All mutants of a file."""
    tree = ast.parse((root / file).read_text())
    nodes = list(ast.walk(tree))
    place = {id(node): index for index, node in enumerate(nodes)}
    found = []
    for function, statement, node in _in_functions(tree):
        for operator, change in _changes(node):
            changed = copy.deepcopy(statement)
            twin = list(ast.walk(changed))[[id(each) for each in ast.walk(statement)].index(id(node))]
            new = change(twin)
            shown = ast.unparse(_header(_replaced(changed, twin, new)))
            found.append(
                Mutant(
                    file, place[id(node)], operator, statement.lineno, _last_line(statement), function,
                    ast.unparse(_header(copy.deepcopy(statement))), shown,
                )
            )  # fmt: skip
    seen: Counter[str] = Counter()
    numbered = []
    for each in found:
        numbered.append(replace(each, twin=seen[each.name]))
        seen[each.name] += 1
    return numbered


def mutated(root: Path, mutant: Mutant) -> ast.Module:
    """The tree of the file with the change in it."""
    tree = ast.parse((root / mutant.file).read_text())
    node = list(ast.walk(tree))[mutant.place]
    change = dict(_changes(node))[mutant.operator]
    return ast.fix_missing_locations(_replaced(tree, node, change(node)))


def _replaced(tree: ast.AST, old: ast.AST, new: ast.AST) -> ast.AST:
    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return ast.copy_location(new, old) if node is old else self.generic_visit(node)

    return Replace().visit(tree)


def _header(statement: ast.AST) -> ast.AST:
    """A compound statement without its body."""
    for field in ("body", "orelse", "finalbody"):
        if isinstance(getattr(statement, field, None), list) and not isinstance(statement, ast.Module):
            setattr(statement, field, [ast.Expr(ast.Constant(...))] if field == "body" else [])
    return statement


def _last_line(statement: ast.stmt) -> int:
    body = getattr(statement, "body", None)
    return max(statement.lineno, body[0].lineno - 1) if body else statement.end_lineno or statement.lineno


def _in_functions(tree: ast.Module) -> Iterator[tuple[str, ast.stmt, ast.AST]]:
    """Function, statement and node of all that may be changed."""

    def statements(body: list[ast.stmt], function: str) -> Iterator[tuple[str, ast.stmt, ast.AST]]:
        for statement in body:
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                yield from statements(statement.body, f"{function}.{statement.name}" if function else statement.name)
                continue
            if function and not isinstance(statement, (ast.Import, ast.ImportFrom, ast.Assert, ast.Global)):
                yield from ((function, statement, node) for node in expressions(statement))
            for inner in ("body", "orelse", "finalbody"):
                yield from statements(getattr(statement, inner, []), function)
            for handler in getattr(statement, "handlers", []):
                yield from statements(handler.body, function)

    def expressions(statement: ast.stmt) -> Iterator[ast.AST]:
        yield statement
        for field, value in ast.iter_fields(statement):
            if field in ("body", "orelse", "finalbody", "handlers", "annotation", "targets", "target", "cases"):
                continue
            if isinstance(statement, ast.Raise):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from inside(child)

    def inside(node: ast.AST) -> Iterator[ast.AST]:
        if isinstance(node, ast.JoinedStr):
            return
        if isinstance(node, ast.BinOp) and any(_is_text(side) for side in (node.left, node.right)):
            return
        yield node
        for child in ast.iter_child_nodes(node):
            yield from inside(child)

    # Functions of classes and modules; what stands in a class itself runs on import.
    def defined(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.stmt, ast.AST]]:
        for statement in body:
            name = f"{prefix}.{getattr(statement, 'name', '')}".strip(".")
            if isinstance(statement, ast.ClassDef):
                yield from defined(statement.body, name)
            elif isinstance(statement, ast.FunctionDef):
                yield from statements(statement.body, name)

    yield from defined(tree.body, "")


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _changes(node: ast.AST) -> Iterator[tuple[str, object]]:
    """Names of the changes of a node, and what each makes of it; the node itself is changed where that is enough."""

    def put(**fields: object) -> object:
        def change(twin: ast.AST) -> ast.AST:
            new = copy.copy(twin)
            for name, value in fields.items():
                setattr(new, name, value(twin) if callable(value) and not isinstance(value, type) else value)
            return new

        return change

    if isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in _ARITHMETIC:
        other, name = _ARITHMETIC[type(node.op)]
        yield name, put(op=other())
    if isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            for kind, table in (("boundary", _BOUNDARY), ("opposite", _OPPOSITE)):
                if type(operator) in table:
                    ops = [*node.ops[:index], table[type(operator)](), *node.ops[index + 1 :]]
                    yield f"{kind} of comparison {index}", put(ops=ops)
    if isinstance(node, ast.BoolOp):
        yield "and/or", put(op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub, ast.Invert)):
        yield f"dropped {'not' if isinstance(node.op, ast.Not) else 'sign'}", lambda twin: twin.operand
    if isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
        value = node.value
        if isinstance(value, bool):
            new = not value
        elif isinstance(value, int):
            new = value + 1
        else:
            new = 2 * value if value else 1.0
        yield "constant", put(value=new)
    if isinstance(node, ast.IfExp):
        yield "swapped branches", put(body=lambda twin: twin.orelse, orelse=lambda twin: twin.body)
    if (
        isinstance(node, ast.Call)
        and len(node.args) >= 2
        and not any(isinstance(a, ast.Starred) for a in node.args[:2])
    ):
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if called not in _SYMMETRIC and ast.dump(node.args[0]) != ast.dump(node.args[1]):
            yield "swapped arguments", put(args=lambda twin: [twin.args[1], twin.args[0], *twin.args[2:]])
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "removed statement", lambda twin: ast.Pass()
    if isinstance(node, (ast.AugAssign, ast.Raise)):
        yield "removed statement", lambda twin: ast.Pass()
    if isinstance(node, ast.Assign) and all(isinstance(t, (ast.Subscript, ast.Attribute)) for t in node.targets):
        yield "removed statement", lambda twin: ast.Pass()
    if isinstance(node, ast.Break):
        yield "break/continue", lambda twin: ast.Continue()
    if isinstance(node, ast.Continue):
        yield "break/continue", lambda twin: ast.Break()
    if isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield "returned value", put(value=ast.Constant(None))


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
