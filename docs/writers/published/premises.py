"""Premises of typed words: comparisons of stored values, ``room.study.falls and room.study.n > 3``."""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable
from typing import Any

from dynamics.support import checks

__all__ = ["holds"]

_QUOTED_OR_NAME = re.compile(r"""(?P<quoted>"[^"]*"|'[^']*')|(?<![\w.])[A-Za-z_]\w*(?:\.[\w-]+){2,}""")
_COMPARED = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_KINDS = {bool: "truth", int: "number", float: "number", str: "word"}
_RULE = "be made of stored names, numbers, quoted words, comparisons, and, or, not"


def holds(premise: str, find: Callable[[str], Any]) -> bool:
    """Truth of a premise about stored values.

    Parameters
    ----------
    premise : str
        Names as ``room.study.number``, numbers and quoted words; ``<``, ``<=``, ``>``, ``>=``, ``==``, ``!=``;
        ``and``, ``or``, ``not``.
    find : callable
        Name -> stored value.

    Raises
    ------
    ValueError
        If the premise has anything else or no name, a name has no stored value, what is compared is not all numbers,
        all words or all truths, or no truth value comes out.
    """
    values: dict[str, Any] = {}

    def named(match: re.Match[str]) -> str:
        if match["quoted"]:
            return match[0]
        values[key := f"_{len(values)}"] = find(match[0])
        return key

    try:
        tree = ast.parse(_QUOTED_OR_NAME.sub(named, premise).strip(), mode="eval")
        if not values:
            raise TypeError(premise)
        return _truth(_value(tree.body, values))
    except (SyntaxError, TypeError) as error:
        raise checks.reject("assert", _RULE, repr(premise)) from error


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(value)
    return value


def _value(node: ast.AST, values: dict[str, Any]) -> Any:
    match node:
        case ast.Name(id=name) if name in values:
            return values[name]
        case ast.Constant(value=int() | float() | str() as constant) if not isinstance(constant, bool):
            return constant
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _truth(_value(operand, values))
        case ast.BoolOp(op=kind, values=operands):
            truths = [_truth(_value(operand, values)) for operand in operands]
            return all(truths) if isinstance(kind, ast.And) else any(truths)
        case ast.Compare(left=left, ops=kinds, comparators=others) if {type(kind) for kind in kinds} <= set(_COMPARED):
            terms = [_value(term, values) for term in (left, *others)]
            if {_KINDS.get(type(term)) for term in terms} not in ({"truth"}, {"number"}, {"word"}):  # of one kind
                raise TypeError(terms)
            return all(
                _COMPARED[type(kind)](*pair) for kind, pair in zip(kinds, itertools.pairwise(terms), strict=True)
            )
    raise TypeError(node)
