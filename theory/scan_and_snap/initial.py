"""Initial logits as a prior, Section 5: flows that start on both sides of a tie of two distinct tokens of a class.

The proof is `theory.scan_and_snap.proofs.initial_values`. A token l' of the smaller probability leads from
z_l'(0) - z_l(0) = ln(P_l/P_l') on, and a lead grows in the theory flow.

Source: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Section 5, "Initial value as prior information".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dynamics import Layer
from dynamics.support import checks
from theory.statements import Runs

OFF = 0.05  # initial distance from a tie, in ln(f_l'/f_l)


def threshold(p: Any, other: Any) -> Any:
    """z_l(0) - z_l'(0) above which token l leads l', by their probabilities in the class: ln(P_l'/P_l)."""
    return np.log(other / p)


def exponent_needed(lead: Any, wanted: Any) -> Any:
    """B_n at which the logarithm of f_l/f_l' has grown from ``lead`` to ``wanted``, if l and l' have all attention.

    A lead of r = f_l^2/f_l'^2 - 1 needs B_n = ln(r/r(0)) - ln((1 + r)/(1 + r(0)))/2.
    """
    return np.log(np.expm1(2 * wanted) / np.expm1(2 * lead)) - (wanted - lead)


def pair(setting: Any) -> tuple[int, int, int]:
    """A class, its most frequent distinct token, and the next one.

    Raises
    ------
    ValueError
        If no class has two distinct tokens.
    """
    classes = setting.classes
    for n in range(classes.n_classes):
        distinct = classes.distinct_tokens(n)
        if len(distinct) > 1:
            shares = classes.probabilities[[n]].toarray()[0, distinct]
            first, second = np.argsort(-shares, kind="stable")[:2]
            return n, int(distinct[first]), int(distinct[second])
    raise checks.reject("data", "have two distinct tokens in a class, for one to lead", "one at most")


def started(setting: Any, off: float) -> Any:
    """The setting with the second token of `pair` at ``off`` from the tie, in ln(f_l'/f_l): ahead where positive."""
    n, first, second = pair(setting)
    classes = setting.classes
    shares = classes.probabilities[[n]].toarray()[0]
    start = Layer.zeros(classes.population())
    z = np.array(start.Z)
    row = int(np.searchsorted(classes.query_tokens, classes.query[n]))
    z[row, second] = threshold(shares[second], shares[first]) + off
    return replace(setting, start=Layer(z, start.Y, None, start.multiplicity))


def leads(setting: Any, level: str, off: float, *, seed: int = 0) -> np.ndarray:
    """ln(f_l'/f_l) of the second over the first token of `pair` at the recorded times, ``off`` at the start."""
    n, first, second = pair(setting)
    shares = started(setting, off).simulate(level, seed=seed).dataset["attention"].values[:, n]
    return np.log(shares[:, second] / shares[:, first])


def wrong_leads(runs: Runs, level: str) -> float:
    """Share of (side of the tie, time after the start) at which the initial leader's lead is lost or smaller."""
    wrong = []
    for off in (-OFF, OFF):
        growth = leads(runs.setting, level, off)[1:] / off
        wrong.append(growth < 1 - 1e-7)
    return float(np.mean(wrong))
