"""Sums over indices with symbolic ranges, for proofs of identities of vectors and matrices for all sizes.

An index runs from 1 to a size, a symbol: ``j = index("j", M)``. Entries are sympy's ``IndexedBase``, and sums are
``total(summand, j, ..)``. sympy differentiates by an entry at a generic index, which gives Kronecker deltas. `contract`
brings the result to a normal form, by these rules and no others:

- products of sums are expanded; a sum of terms without the summed index becomes a product with its size;
- a delta of a summed index is summed; a free delta equates its two indices in the factors beside it;
- a function f of a free delta d becomes f(0) + d (f(1) - f(0));
- a sum cancels against its own inverse power;
- factors without a common summed index are separated, and summed indices are renamed.

An index that is a function of another index, such as the token at a position, is made by `chosen`. Each index has its
range: a delta of two indices with different ranges is never summed.

>>> from sympy import IndexedBase, KroneckerDelta, Symbol
>>> M, a = size("M"), IndexedBase("a")
>>> j, k = index("j", M), index("k", M)
>>> contract(total((KroneckerDelta(j, k) - 1 / M) * a[k], k))
a[j] - Sum(a[s0_M_0], (s0_M_0, 1, M))/M
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import mpmath
import sympy as sp

__all__ = ["chosen", "contract", "entries", "index", "is_indexed", "plain", "size", "total", "value_at"]


def size(name: str) -> sp.Symbol:
    """The size of a range."""
    return sp.Symbol(name, integer=True, positive=True)


def index(name: str, top: sp.Symbol) -> sp.Idx:
    """An index from 1 to ``top``."""
    return sp.Idx(name, (1, top))


def entries(name: str, **assumptions: bool) -> sp.IndexedBase:
    """Vectors, matrices and so on, real unless ``assumptions`` says more."""
    return sp.IndexedBase(name, **(assumptions or {"real": True}))


class Chosen(sp.Function):
    """An index as a function of another index: its name, its range, whether it is injective, and its argument."""

    is_integer = True


def chosen(name: str, top: sp.Symbol, *, injective: bool = False) -> Callable[[Any], Chosen]:
    """A function from indices to indices up to ``top``, such as the token at a position or the query of a class."""
    return lambda argument: Chosen(sp.Symbol(name), top, sp.Integer(injective), argument)


def total(summand: Any, *indices: sp.Idx) -> sp.Expr:
    """The sum over the whole ranges of ``indices``."""
    return sp.Sum(sp.sympify(summand), *((one, 1, one.upper) for one in indices))


def is_indexed(expression: sp.Basic) -> bool:
    """Whether an expression has sums or indices."""
    return isinstance(expression, sp.Basic) and expression.has(sp.Sum, sp.Indexed, sp.KroneckerDelta, sp.Idx)


def contract(expression: Any) -> sp.Expr:
    """The normal form: a sum of products, whose factors are entries, deltas, and sums of such products."""
    expression = sp.sympify(expression)
    return _contract(expression) if is_indexed(expression) else expression


@lru_cache(maxsize=20_000)
def _contract(expression: sp.Expr) -> sp.Expr:
    return sp.Add(*(_normal(bound, factors) for bound, factors in _terms(expression)))


_Term = tuple[tuple[sp.Idx, ...], tuple[sp.Expr, ...]]
_FRESH = itertools.count()


def _terms(expression: sp.Expr) -> list[_Term]:
    """Products under summed indices that add up to ``expression``; no two share a summed index."""
    if not is_indexed(expression):
        return [((), (expression,))]
    if isinstance(expression, sp.Add):
        return [term for part in expression.args for term in _terms(part)]
    if isinstance(expression, sp.Mul):
        return _product([_terms(part) for part in expression.args])
    if isinstance(expression, sp.Sum):
        summand, fresh = expression.function, []
        # Rename from the inner sum outwards: an outer sum may use the same letter.
        for variable in expression.variables:
            fresh.append(sp.Idx(f"_{next(_FRESH)}", (1, variable.upper)))
            summand = summand.xreplace({variable: fresh[-1]})
        return [((*fresh, *bound), factors) for bound, factors in _terms(summand)]
    if isinstance(expression, sp.Pow) and expression.exp.is_Integer and expression.exp > 0:
        if not isinstance(expression.base, sp.Indexed):
            # Expand each factor anew, so that each gets its own indices.
            return _product([_terms(expression.base) for _ in range(int(expression.exp))])
    elif isinstance(expression, sp.Pow) or (isinstance(expression, sp.Function) and not _is_index(expression)):
        return _function(expression)
    return [((), (_injective(expression),))]


def _is_index(expression: sp.Basic) -> bool:
    return isinstance(expression, (Chosen, sp.KroneckerDelta, sp.Idx))


def _product(parts: list[list[_Term]]) -> list[_Term]:
    return [
        (sum((bound for bound, _ in term), ()), sum((factors for _, factors in term), ()))
        for term in itertools.product(*parts)
    ]


def _injective(expression: sp.Expr) -> sp.Expr:
    """A delta of two values of an injective index function becomes the delta of the arguments."""
    if isinstance(expression, sp.KroneckerDelta):
        first, second = expression.args
        alike = isinstance(first, Chosen) and isinstance(second, Chosen) and first.args[:3] == second.args[:3]
        if alike and first.args[2] == 1:
            return _injective(sp.KroneckerDelta(first.args[3], second.args[3]))
    return expression


def _function(expression: sp.Expr) -> list[_Term]:
    """Terms of a power or a function: its argument is contracted, and each free delta is taken out."""
    where = 0  # the base of a power, the argument of a function
    if isinstance(expression, sp.Pow) and is_indexed(expression.exp):
        raise ValueError(f"`expression` must have no index in an exponent but that of exp, but got {expression}")
    inside = contract(expression.args[where])
    deltas = [one for one in inside.atoms(sp.KroneckerDelta) if _is_free(one, inside)]
    if deltas:
        delta = min(deltas, key=str)
        off, on = (_with_delta(inside, delta, value) for value in (0, 1))
        if isinstance(expression, sp.exp):
            off, on = _collected(off), _collected(on)
        rest = expression.args[where + 1 :]
        without = expression.func(off, *rest)
        return _terms(without) + _product([[((), (delta,))], _terms(expression.func(on, *rest) - without)])
    if isinstance(expression, sp.exp):
        return [((), tuple(sp.exp(part) for part in sp.Add.make_args(_collected(inside))))]
    whole = expression.func(inside, *expression.args[where + 1 :])
    return [((), sp.Mul.make_args(whole))]


def _collected(inside: sp.Expr) -> sp.Expr:
    """A sum with reduced index-free factors, so that equal exponents look alike."""
    sums: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(inside):
        plain_factors: list[sp.Expr] = []
        rest: list[sp.Expr] = []
        for factor in sp.Mul.make_args(term):
            (rest if is_indexed(factor) else plain_factors).append(factor)
        key = sp.Mul(*rest)
        sums[key] = sums.get(key, sp.Integer(0)) + sp.Mul(*plain_factors)
    return sp.expand(sp.Add(*(sp.cancel(factor) * key for key, factor in sums.items())), deep=False)


def _is_free(delta: sp.KroneckerDelta, inside: sp.Expr) -> bool:
    bound = {one for part in inside.atoms(sp.Sum) for one in part.variables}
    return not delta.atoms(sp.Idx) & bound


def _with_delta(inside: sp.Expr, delta: sp.KroneckerDelta, value: int) -> sp.Expr:
    """Replace a delta by its value; if the value is 1, also replace one index by the other."""
    first, second = delta.args
    changed = inside.xreplace({delta: sp.Integer(value)})
    return contract(changed.xreplace({second: first}) if value else changed)


def _normal(bound: tuple[sp.Idx, ...], factors: tuple[sp.Expr, ...]) -> sp.Expr:
    """Normal form of one product under summed indices: sum deltas, cancel inverse powers, rename indices."""
    product = sp.Mul(*factors)
    factors = sp.Mul.make_args(product)
    if product == 0:
        return sp.Integer(0)
    for delta in (one for one in factors if isinstance(one, sp.KroneckerDelta)):
        others = sp.Mul(*(one for one in factors if one != delta))
        for gone, kept in (delta.args, delta.args[::-1]):
            if gone in bound and _range(gone) == _range(kept) and not kept.has(gone):
                left = tuple(one for one in bound if one != gone)
                return _again(left, others.xreplace({gone: kept}))
        kept, gone = sorted(delta.args, key=lambda one: (isinstance(one, Chosen), str(one)))
        equated = others.xreplace({gone: kept}) if not kept.has(gone) else others
        if equated != others:
            return _again(bound, delta * equated)
    cancelled = _cancel(bound, factors)
    if cancelled is not None:
        return _again(*cancelled)
    return _named(bound, factors)


def _range(one: sp.Expr) -> sp.Expr:
    return one.upper if isinstance(one, sp.Idx) else one.args[1]


def _again(bound: tuple[sp.Idx, ...], product: sp.Expr) -> sp.Expr:
    return sp.Add(*(_normal((*bound, *more), factors) for more, factors in _terms(product)))


def _cancel(bound: tuple[sp.Idx, ...], factors: tuple[sp.Expr, ...]) -> tuple[tuple[sp.Idx, ...], sp.Expr] | None:
    """Replace a factor S^q and the summands of S by S^(q + 1), if S is a sum over one index."""
    for power in factors:
        if not (isinstance(power, sp.Pow) and isinstance(power.base, sp.Sum)):
            continue
        for one in bound:
            inside = [factor for factor in factors if factor.has(one)]
            if power in inside or not inside or _range(one) != power.base.limits[0][2]:
                continue
            if len(power.base.limits) == 1 and _named((one,), tuple(inside)) == power.base:
                outside = sp.Mul(*(factor for factor in factors if factor not in inside and factor != power))
                # Keep the power of the sum: it is not multiplied out.
                raised = power.base ** (power.exp + 1)
                return tuple(kept for kept in bound if kept != one), sp.Mul(outside, raised)
    return None


def _named(bound: tuple[sp.Idx, ...], factors: tuple[sp.Expr, ...]) -> sp.Expr:
    """Product of one sum for each group of factors with common summed indices.

    The names of indices say their depth of nesting, so that no sum captures an inner index.
    """
    outside = [factor for factor in factors if not factor.atoms(sp.Idx) & set(bound)]
    groups: list[tuple[set[sp.Idx], list[sp.Expr]]] = []
    for factor in factors:
        own = factor.atoms(sp.Idx) & set(bound)
        if not own:
            continue
        touched = [group for group in groups if group[0] & own]
        groups = [group for group in groups if group not in touched]
        merged = set().union(own, *(group[0] for group in touched))
        groups.append((merged, [*(one for group in touched for one in group[1]), factor]))
    used = set().union(*(group[0] for group in groups)) if groups else set()
    sizes = [one.upper for one in bound if one not in used]
    sums = [_named_group(sorted(own, key=str), tuple(inside)) for own, inside in groups]
    return sp.Mul(*outside, *sizes, *sums)


def _named_group(own: list[sp.Idx], factors: tuple[sp.Expr, ...]) -> sp.Expr:
    depth = 1 + max((_depth(one) for factor in factors for one in factor.atoms(sp.Idx)), default=-1)
    product = sp.Mul(*factors)
    orders = []
    for order in itertools.permutations(own):
        names: dict[sp.Idx, sp.Idx] = {}
        for one in order:
            rank = sum(other.upper == one.upper for other in names)
            names[one] = sp.Idx(f"s{depth}_{one.upper}_{rank}", (1, one.upper))
        orders.append((product.xreplace(names), sorted(names.values(), key=str)))
    summand, indices = min(orders, key=lambda one: str(one[0]))
    return total(summand, *indices)


def _depth(one: sp.Idx) -> int:
    head = str(one.label).split("_")[0]
    return int(head[1:]) if head[:1] == "s" and head[1:].isdigit() else -1


def plain(expression: Any) -> sp.Expr:
    """The normal form with a symbol for every entry, delta, sum and exponential; if it is zero, so is the expression.

    Bases of square roots become squares of symbols.
    """
    expression = contract(expression)
    names: dict[sp.Expr, sp.Symbol] = {}

    def name(atom: sp.Expr) -> sp.Symbol:
        return names.setdefault(atom, sp.Dummy(f"g{len(names)}"))

    def rewrite(one: sp.Expr) -> sp.Expr:
        if isinstance(one, (sp.Sum, sp.Indexed, sp.KroneckerDelta)):
            return name(one)
        if isinstance(one, sp.exp):
            number, rest = one.args[0].as_coeff_Add()
            parts = (part.as_coeff_Mul() for part in sp.Add.make_args(rest))
            return sp.exp(number) * sp.Mul(*(name(sp.exp(part)) ** factor for factor, part in parts))
        return one.func(*map(rewrite, one.args)) if one.args else one

    result = rewrite(expression)
    roots = {
        power.base: sp.Dummy(f"r{number}") ** 2
        for number, power in enumerate(sorted(result.atoms(sp.Pow), key=str))
        if power.exp.is_Rational and power.exp.q == 2 and power.base.is_Symbol
    }
    # Replace half powers of the new squares explicitly: (r^2)^(1/2) is r by the choice of r.
    return result.replace(
        lambda one: isinstance(one, sp.Pow) and one.base in roots, lambda one: roots[one.base].base ** (2 * one.exp)
    ).xreplace(roots)


def value_at(
    expression: sp.Expr,
    sizes: Mapping[str, int],
    seed: int = 0,
    *,
    at: Mapping[sp.Idx, int] | None = None,
    given: Mapping[str, Callable[..., Any]] | None = None,
) -> mpmath.mpf:
    """Value of an expression at explicit sizes, computed independently of `contract`.

    Parameters
    ----------
    sizes
        Sizes by name; default 3.
    seed
        Seed of the random entries, symbols, chosen indices and free indices; with 0 all free indices are 1.
    at
        Values of free indices.
    given
        Functions by name, in place of random values: entries and chosen indices as functions of their indices, which
        count from 1, and symbols as functions without arguments.

    Raises
    ------
    ValueError
        If the expression has other parts than sums, entries, powers, exp and log.
    """
    return _Instance(sizes, seed, given or {}).value(expression, at or {})


class _Instance:
    """Sizes and the values of the entries, for `value_at`."""

    def __init__(self, sizes: Mapping[str, int], seed: int, given: Mapping[str, Callable[..., Any]]):
        self.sizes, self.seed, self.given = sizes, seed, given
        self.sums: dict[Any, mpmath.mpf] = {}

    def value(self, one: Any, at: Mapping[sp.Idx, int]) -> Any:
        if isinstance(one, sp.Sum):
            return self.sum(one, at)
        if isinstance(one, sp.Idx):
            return at[one] if one in at else 1 + (self.draw(one) % self.size(one.upper) if self.seed else 0)
        if isinstance(one, sp.NumberSymbol):
            return mpmath.mpf(str(sp.N(one, mpmath.mp.dps + 5)))
        if isinstance(one, sp.Rational):
            return mpmath.mpf(one.p) / one.q
        if isinstance(one, sp.Symbol):
            if one.is_integer:
                return mpmath.mpf(self.size(one))
            return self.entry(str(one))
        if isinstance(one, Chosen):
            return self.chosen(one, self.value(one.args[3], at))
        if isinstance(one, sp.Indexed):
            return self.entry(str(one.base), *(int(self.value(part, at)) for part in one.indices))
        if isinstance(one, (sp.KroneckerDelta, sp.Add, sp.Mul, sp.Pow, sp.exp, sp.log)):
            return self.function(one, [self.value(part, at) for part in one.args])
        raise ValueError(f"`expression` must be made of sums, entries, powers, exp and log, but got {one}")

    def function(self, one: Any, parts: list[Any]) -> mpmath.mpf:
        if isinstance(one, sp.KroneckerDelta):
            return mpmath.mpf(parts[0] == parts[1])
        if isinstance(one, sp.Add):
            return mpmath.fsum(parts)
        if isinstance(one, sp.Mul):
            return mpmath.fprod(parts)
        if isinstance(one, sp.exp):
            return mpmath.exp(*parts)
        return mpmath.power(*parts) if isinstance(one, sp.Pow) else mpmath.log(*parts)

    def sum(self, one: sp.Sum, at: Mapping[sp.Idx, int]) -> mpmath.mpf:
        key = one, tuple((name, at[name]) for name in _free(one) if name in at)
        if key not in self.sums:
            ranges = [range(1, self.size(limit[2]) + 1) for limit in one.limits]
            places = (dict(zip(one.variables, where, strict=True)) for where in itertools.product(*ranges))
            self.sums[key] = mpmath.fsum(self.value(one.function, {**at, **place}) for place in places)
        return self.sums[key]

    def chosen(self, one: Chosen, argument: int) -> int:
        name, top, injective, _ = one.args
        if str(name) in self.given:
            return int(self.given[str(name)](argument))
        return argument if injective else 1 + self.draw(name, argument) % self.size(top)

    def entry(self, name: str, *place: int) -> mpmath.mpf:
        if name in self.given:
            return mpmath.mpf(float(self.given[name](*place)))
        return mpmath.mpf(5000 + self.draw(name, *place) % 10_007) / 10_007  # from 0.5 to 1.5

    def size(self, symbol: sp.Symbol) -> int:
        return self.sizes.get(str(symbol), 3)

    def draw(self, *key: object) -> int:
        name = repr((self.seed, *map(str, key))).encode()
        return int.from_bytes(hashlib.blake2b(name, digest_size=6).digest(), "big")


@lru_cache(maxsize=20_000)
def _free(one: sp.Sum) -> tuple[sp.Idx, ...]:
    return tuple(sorted(one.atoms(sp.Idx) - set(one.variables), key=str))
