"""Symbolic proofs of the papers' statements, from the model's definition.

A proof is a function that derives the paper's formulas from the definition of the model. Each claimed formula is a
keyword argument, whose default is right: pass a mistake, and see it refuted. Each module of ``theory/<paper>/proofs``
has one proof, ``derive``, for one statement or a few together. It starts from the layer's definition
(`theory.symbolic.model`), or from a statement proved in another module; its docstring then names that module.

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
import re
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

# A claimed formula, as a function of symbols; and an argument of such a function: an expression or an integer.
Claim: TypeAlias = Callable[..., Any]
Scalar: TypeAlias = sympy.Expr | int
# The two kinds of deciding expressions, as in `Derivation`.
Vanishing: TypeAlias = dict[str, sympy.Expr]
Signed: TypeAlias = dict[str, tuple[sympy.Expr, str]]


@dataclass(frozen=True)
class Derivation:
    """A proof of a statement: the expressions that decide it, and the steps of the derivation.

    Attributes
    ----------
    statement : str
        The statement's name in the paper, or our name.
    vanishing : dict of str to sympy.Expr
        Expressions by name that must be identically zero. An expression with indices (`theory.symbolic.indexed`) or of
        matrix symbols must vanish for all sizes.
    signed : dict of str to (sympy.Expr, str)
        Expressions by name that must satisfy "> 0", ">= 0", "< 0" or "<= 0" under the assumptions on their symbols.
    steps : tuple of str
        The steps of the derivation for a reader, with LaTeX between dollar signs.
    scope : str
        The proved sizes in a sentence, for each part of the statement, with LaTeX as in the steps.
    sizes : dict of str to tuple
        The proved sizes as data, by symbol; empty if the expressions are for all sizes.
        ``{"(K, M)": ((2, 3), (3, 4))}`` is for sizes that go together. Required for a label: silence never counts as a
        proof for all sizes.
    prose : tuple of str
        Steps in words beside the expressions: an induction, a limit, a quoted theorem.
    proves : tuple of str
        Numbers of further statements that rest on it, beside those that `statement` names. A proof of another statement
        counts for none.
    """

    statement: str
    vanishing: Vanishing
    signed: Signed = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    scope: str = ""
    sizes: dict[str, tuple] | None = None
    prose: tuple[str, ...] = ()
    proves: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checks.attributes(self, str, "statement", "scope")
        checks.attributes(self, Mapping, "vanishing", "signed")
        checks.attributes(self, Mapping, "sizes", optional=True)
        checks.attributes(self, [str], "steps", "prose", "proves")
        if not self.vanishing and not self.signed:  # a proof without expressions would always pass
            raise checks.reject("vanishing", "hold an expression where `signed` has none", "none")
        for name, value in self.vanishing.items():
            truth = isinstance(value, Boolean) and not isinstance(value, sympy.Expr)  # a symbol is both
            if truth or not isinstance(value, (sympy.Basic, sympy.MatrixBase)):  # a number of Python has no claim in it
                raise checks.reject("vanishing", f"hold an expression for {name!r}", checks.brief(value))

    def is_of(self, number: str) -> bool:
        """True if it is a proof of the statement with this number: `statement` names it, or `proves` does.

        >>> proof = Derivation("Lemmas 8 to 10", {"one": sympy.Symbol("x")}, proves=("Remark 3",))
        >>> [number for number in ("Lemma 8", "Lemma 9", "Lemma 11", "Remark 3") if proof.is_of(number)]
        ['Lemma 8', 'Lemma 9', 'Remark 3']
        """
        return checks.instance("number", number, str) in self.proves or _named(number, self.statement)

    @property
    def claim(self) -> Label:
        """Label that the statement gets if its expressions hold; they are not decided here.

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
        """Label of the statement with its `failures`; the first access decides the expressions."""
        return dataclasses.replace(self.claim, failures=tuple(self.failures()))

    def failures(self) -> list[str]:
        """Names of the expressions that are wrong, or that exact algebra cannot decide."""
        wrong = [name for name, expression in self.vanishing.items() if not vanishes(expression)]
        return wrong + [name for name, (expression, sign) in self.signed.items() if not has_sign(expression, sign)]


@dataclass(frozen=True, eq=False)
class _Part:
    """The proof of one clause, as `part` returns it; a call derives the clause's expressions."""

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
    """The proof of one clause, cut from a derivation that proves more.

    Parameters
    ----------
    prove : callable
        The whole derivation.
    *names : str
        Prefixes of names: the clause rests on the expressions whose names begin with one of them.
    sizes : mapping, optional
        The sizes of the clause, as in `Derivation`. Default: none, for all sizes.
    prose : tuple of str
        Steps of the clause in words.

    Returns
    -------
    callable
        A proof with the claims of ``prove`` as arguments. Without arguments, all parts share one whole derivation.
    """
    made = _Part(checks.function("prove", prove), names, {} if sizes is None else sizes, prose)
    checks.attributes(made, [str], "names", "prose")
    checks.attributes(made, Mapping, "sizes")
    return made


def joined(*parts: Vanishing | tuple[Vanishing, Signed]) -> tuple[Vanishing, Signed]:
    """The expressions of several parts of a proof as one pair, (vanishing, signed), as in `Derivation`.

    Parameters
    ----------
    *parts : mapping, or pair of mappings
        The vanishing expressions of a part, or its pair (vanishing, signed).

    Raises
    ------
    ValueError
        If two parts use one name, or a part is neither a mapping nor a pair of mappings.
    """
    vanishing: Vanishing = {}
    signed: Signed = {}
    for entry in parts:
        both = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, {})
        for known, more in zip((vanishing, signed), both, strict=True):
            checks.instance("parts", more, Mapping, rule="be mappings of names to expressions, or pairs of them")
            if twice := set(known) & set(more):
                raise ValueError(f"`parts` must have a name for each expression, but two have {sorted(twice)[0]!r}")
            known.update(more)
    return vanishing, signed


def _named(number: str, text: str) -> bool:
    """Whether a text names a statement by its words, or in a list such as "Lemmas 8 and 9", or the whole of it."""
    words, sought = (re.findall(r"\w+", one.lower()) for one in (text, number))
    if len(sought) > 2 and sought[1].isdigit():
        sought = sought[:2]
    if any(words[i : i + len(sought)] == sought for i in range(len(words))):
        return True
    for kind, listed in re.findall(r"(\w+)s ((?:\d+(?:, | and | to )?)+)", text.lower()):
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", listed):
            if any(sought == [kind, str(place)] for place in range(int(first), int(last or first) + 1)):
                return True
    return False


def whole(prove: Callable[..., Derivation]) -> Callable[..., Derivation]:
    """The whole derivation behind a part; any other proof is whole itself."""
    return prove.prove if isinstance(prove, _Part) else prove


@functools.cache
def derived(prove: Callable[..., Derivation]) -> Derivation:
    """The derivation of a proof, made and decided once per process."""
    return checks.instance("prove", prove(), Derivation, rule="return a Derivation")


def derivations(package: str) -> dict[str, Callable[..., Derivation]]:
    """The function ``derive`` of every module in a package of proofs, by the module's name."""
    proofs = importlib.import_module(package)
    names = sorted(module.name for module in pkgutil.iter_modules(proofs.__path__) if not module.name.startswith("_"))
    return {name: importlib.import_module(f"{package}.{name}").derive for name in names}
