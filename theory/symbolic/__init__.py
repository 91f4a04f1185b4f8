"""Symbolic proofs of the papers' statements, a module each or for a few together, from the model's definition.

Scan and Snap: Tian, Wang, Chen, Du (NeurIPS 2023, arXiv 2305.16380). Modules ``dyck_..``: Wen, Li, Liu, Risteski
(NeurIPS 2023, arXiv 2312.01429). Modules ``averaging_..``: Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896).

A module states what the paper claims as functions of symbols, and has a function ``derive``, which derives the same
from the definition of the layer (`theory.symbolic.model`), or from a statement proved in another module, which its
docstring then names. ``derive`` takes every claimed formula as a keyword argument, by default the right one, so that
anyone can put a mistake in and see it refuted:

>>> from theory.scan_and_snap.proofs import transition
>>> transition.derive().failures()
[]
>>> transition.derive(peak=lambda m, w: w).failures()
['gamma at the peak']
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import sympy

from theory.symbolic.decide import has_sign, vanishes

__all__ = ["Derivation", "derivations", "rooms"]


@dataclass(frozen=True)
class Derivation:
    """A statement, the expressions that decide it, and how one gets there.

    Attributes
    ----------
    statement : str
        Its name in the paper, or ours.
    vanishing : dict of str to sympy.Expr
        By name, what must be identically zero.
    signed : dict of str to (sympy.Expr, str)
        By name, what must satisfy "> 0", ">= 0", "< 0" or "<= 0" under the assumptions on its symbols.
    steps : tuple of str
        The derivation to read, one step each, with LaTeX between dollar signs.
    scope : str
        The sizes for which the expressions prove the statement.
    """

    statement: str
    vanishing: dict[str, sympy.Expr]
    signed: dict[str, tuple[sympy.Expr, str]] = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    scope: str = ""

    def failures(self) -> list[str]:
        """Names of the expressions that do not hold, or that exact algebra cannot decide."""
        wrong = [name for name, expression in self.vanishing.items() if not vanishes(expression)]
        return wrong + [name for name, (expression, sign) in self.signed.items() if not has_sign(expression, sign)]


def rooms() -> list[str]:
    """The papers: the folders of `theory` that hold a module ``statements``."""
    folder = Path(__file__).parents[1]
    return sorted(path.parent.name for path in folder.glob("*/statements.py"))


def derivations(paper: str) -> dict[str, Callable[..., Derivation]]:
    """The function ``derive`` of every module in ``theory/<paper>/proofs``, by the module's name."""
    proofs = importlib.import_module(f"theory.{paper}.proofs")
    names = sorted(module.name for module in pkgutil.iter_modules(proofs.__path__) if not module.name.startswith("_"))
    return {name: importlib.import_module(f"{proofs.__name__}.{name}").derive for name in names}
