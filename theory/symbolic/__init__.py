"""Symbolic proofs of the papers' statements, from the model's definition.

A proof is a function that takes every formula that the paper claims as a keyword argument, by default the right one,
and derives the same from the definition of the model, so that anyone can put a mistake in and see it refuted. A module
of ``theory/<paper>/proofs`` has one, ``derive``, for a statement or a few together, from that of the layer
(`theory.symbolic.model`) or from a statement proved in another module, which its docstring then names.

>>> from sympy import Symbol, integrate
>>> from theory.symbolic import Derivation
>>> x = Symbol("x", positive=True)
>>> def derive(*, area=lambda side: side**2 / 2):
...     return Derivation("Triangle", {"area": integrate(x, (x, 0, x)) - area(x)}, sizes={})
>>> str(derive().label)
'proved for all sizes'
>>> derive(area=lambda side: side**2).failures()
['area']
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import sympy
from sympy.logic.boolalg import Boolean

from dynamics.support import checks
from theory.symbolic.decide import has_sign, vanishes
from theory.trust import Label, Trust

__all__ = ["Claim", "Derivation", "Scalar", "joined", "part"]

# A claimed formula, as a function of symbols; and what it takes where an integer may stand for an expression.
Claim: TypeAlias = Callable[..., Any]
Scalar: TypeAlias = sympy.Expr | int
# The two kinds of expressions that decide a statement, as in `Derivation`.
Vanishing: TypeAlias = dict[str, sympy.Expr]
Signed: TypeAlias = dict[str, tuple[sympy.Expr, str]]


@dataclass(frozen=True)
class Derivation:
    """A statement, the expressions that decide it, and how one gets there.

    Attributes
    ----------
    statement : str
        Its name in the paper, or ours.
    vanishing : dict of str to sympy.Expr
        By name, what must be identically zero: for all sizes, if it has indices (`theory.symbolic.indexed`) or is made
        of matrix symbols.
    signed : dict of str to (sympy.Expr, str)
        By name, what must satisfy "> 0", ">= 0", "< 0" or "<= 0" under the assumptions on its symbols.
    steps : tuple of str
        The derivation to read, one step each, with LaTeX between dollar signs.
    scope : str
        The sizes for which the expressions prove the statement, in a sentence that may tell its parts apart, with LaTeX
        as in the steps.
    sizes : dict of str to tuple
        The same as data: the sizes, by symbol, at which an expression that the statement needs was written out.
        Empty where the expressions are for all sizes. ``{"(K, M)": ((2, 3), (3, 4))}`` for sizes that go together.
        There is no label without it: nothing is proved for all sizes because nobody said otherwise.
    prose : tuple of str
        What is argued in words beside the expressions: an induction, a limit, a quoted theorem.
    """

    statement: str
    vanishing: Vanishing
    signed: Signed = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    scope: str = ""
    sizes: dict[str, tuple] | None = None
    prose: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checks.attributes(self, str, "statement", "scope")
        checks.attributes(self, Mapping, "vanishing", "signed")
        checks.attributes(self, Mapping, "sizes", optional=True)
        checks.attributes(self, [str], "steps", "prose")
        if not self.vanishing and not self.signed:  # what holds of nothing would be proved
            raise checks.reject("vanishing", "hold an expression where `signed` has none", "none")
        for name, value in self.vanishing.items():
            truth = isinstance(value, Boolean) and not isinstance(value, sympy.Expr)  # a symbol is both
            if value is None or truth or isinstance(value, (str, bool)):
                raise checks.reject("vanishing", f"hold an expression for {name!r}", checks.brief(value))

    @property
    def claim(self) -> Label:
        """Label of the statement if its expressions hold, without deciding them.

        Raises
        ------
        ValueError
            If `sizes` was not given.
        """
        if self.sizes is None:
            raise ValueError(f"`sizes` must name those that {self.statement} was written out at, or be empty for all")
        trust = Trust.PROVED_AT_SIZES if self.sizes else Trust.PROVED
        return Label(trust, self.sizes, self.prose)

    @cached_property
    def label(self) -> Label:
        """Label of the statement with its `failures`; the expressions are decided when it is first asked for."""
        return dataclasses.replace(self.claim, failures=tuple(self.failures()))

    def failures(self) -> list[str]:
        """Names of the expressions that do not hold, or that exact algebra cannot decide."""
        wrong = [name for name, expression in self.vanishing.items() if not vanishes(expression)]
        return wrong + [name for name, (expression, sign) in self.signed.items() if not has_sign(expression, sign)]


@dataclass(frozen=True, eq=False)
class _Part:
    """Part of a derivation, as `part` returns it: called, it derives."""

    prove: Callable[..., Derivation]
    names: tuple[str, ...]
    sizes: Mapping[str, tuple]
    prose: tuple[str, ...]

    def __call__(self, **claims: Any) -> Derivation:
        derivation = self.prove(**claims) if claims else derived(self.prove)
        kept = {name for name in (*derivation.vanishing, *derivation.signed) if name.startswith(self.names)}
        for start in self.names:
            if not any(name.startswith(start) for name in kept):
                raise ValueError(
                    f"`names` must begin those of expressions, but {derivation.statement} has no {start!r}"
                )
        return dataclasses.replace(
            derivation,
            vanishing={name: value for name, value in derivation.vanishing.items() if name in kept},
            signed={name: value for name, value in derivation.signed.items() if name in kept},
            sizes=dict(self.sizes),
            prose=self.prose,
        )


def part(
    prove: Callable[..., Derivation], *names: str, sizes: Mapping[str, tuple] | None = None, prose: tuple[str, ...] = ()
) -> Callable[..., Derivation]:
    """The proof of one clause, out of a derivation that proves more.

    Parameters
    ----------
    prove : callable
        The whole derivation.
    *names : str
        How the names of the expressions that this clause rests on begin.
    sizes : mapping, optional
        The sizes of this part, as in `Derivation`. Default: none, for all sizes.
    prose : tuple of str
        What is argued in words in this part.

    Returns
    -------
    callable
        As ``prove``, and takes the same claims. Called without any, it derives the whole only once for all its parts.
    """
    made = _Part(checks.function("prove", prove), names, {} if sizes is None else sizes, prose)
    checks.attributes(made, [str], "names", "prose")
    checks.attributes(made, Mapping, "sizes")
    return made


def joined(*parts: Vanishing | tuple[Vanishing, Signed]) -> tuple[Vanishing, Signed]:
    """The expressions of several parts of a proof, as one pair: those that vanish, and those that have a sign.

    Parameters
    ----------
    *parts : mapping, or pair of mappings
        Name -> expression: those that vanish, or these and those that have a sign.

    Raises
    ------
    ValueError
        If two parts give one name to different expressions, one of which would be lost, or a part is neither.
    """
    vanishing: Vanishing = {}
    signed: Signed = {}
    for given in parts:
        both = given if isinstance(given, tuple) and len(given) == 2 else (given, {})
        for found, more in zip((vanishing, signed), both, strict=True):
            checks.instance("parts", more, Mapping, rule="be mappings of names to expressions, or pairs of them")
            if twice := set(found) & set(more):
                raise ValueError(f"`parts` must have a name for each expression, but two have {sorted(twice)[0]!r}")
            found.update(more)
    return vanishing, signed


def whole(prove: Callable[..., Derivation]) -> Callable[..., Derivation]:
    """The derivation that a part is of; any other is whole itself."""
    return prove.prove if isinstance(prove, _Part) else prove


@functools.cache
def derived(prove: Callable[..., Derivation]) -> Derivation:
    """The derivation of a proof, made and decided once for all audits and pages of a process."""
    return checks.instance("prove", prove(), Derivation, rule="return a Derivation")


def derivations(package: str) -> dict[str, Callable[..., Derivation]]:
    """The function ``derive`` of every module in a package of proofs, by the module's name."""
    proofs = importlib.import_module(package)
    names = sorted(module.name for module in pkgutil.iter_modules(proofs.__path__) if not module.name.startswith("_"))
    return {name: importlib.import_module(f"{package}.{name}").derive for name in names}
