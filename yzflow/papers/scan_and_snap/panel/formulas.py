"""Formulas of the panel and of the statements' pages, in JavaScript: the claims that the proofs decide."""

from __future__ import annotations

import json
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING

from theory.scan_and_snap.statements import assumptions as of
from yzflow.pages.files import formulas

if TYPE_CHECKING:
    from theory.symbolic import Claim

# Assumptions whose margins the sliders move; in this setting the others hold.
ASSUMPTIONS = {
    "large": of.LARGE_VOCABULARY,
    "four": of.FOUR_TOKENS,
    "slow": of.SLOW_ENOUGH,
    "enough": of.FAST_ENOUGH,
    "bounded": of.BOUNDED_RATE,
    "fast": of.FAST_DECODER,
    "many": of.MANY_TOKENS,
    "upper": of.UPPER,
    "lower": of.LOWER,
    "weak": of.SMALL_OVERLAP[0],
    "close": of.SMALL_OVERLAP[1],
}


@cache
def script() -> str:
    """Claims, margins by the names in `ASSUMPTIONS`, and by these names the register's texts."""
    texts = json.dumps({name: assumption.text for name, assumption in ASSUMPTIONS.items()})
    return "\n".join([formulas("claims", claims()), formulas("margins", margins()), f"yzflow.assumptions = {texts};"])


def claims() -> dict[str, tuple[Claim, str]]:
    """Claims and their arguments."""
    import sympy as sp

    from theory.scan_and_snap.proofs import lemma5, lemma6, lemma7, lemma8_9, slowdown, theorem1, theorem3, theorem4

    return {
        "step": (lemma5.step, "M h etaY"),
        "stepGap": (lemma7.bound, "M etaY"),
        "gamma": (theorem1.gamma, "M h"),
        "beta": (theorem1.beta, "M K rho"),
        "accumulated": (theorem4.accumulated, "M K etaY etaZ h"),
        # (45) at the margin 1 + w, where gamma is largest.
        "peakTime": (lambda m, k, eta, w: k * lemma6.implicit(m, (1 + w) / m, eta, 0) / (m * eta), "M K etaY w"),
        "lateBound": (lambda m, k, eta, t: lemma8_9.late_bound(m, eta * t / k), "M K etaY t"),
        "speedConstant": (lambda k, rho: theorem4.speed_constant(k, 1, sp.sqrt(rho)), "K rho"),
        "exponent": (theorem4.exponent, "total c0"),
        "growthBounds": (theorem3.bounds, "share exponent"),
        "lateMargin": (lambda k, eta_y, eta_z: theorem4.late_margin(k, eta_y / eta_z), "K etaY etaZ"),
        "slowdown": (slowdown.slowdown, "M K rho"),
    }


def margins() -> dict[str, tuple[Claim, str]]:
    """Margins of `ASSUMPTIONS`, and their arguments."""
    import sympy as sp

    def margin(assumption):
        def claim(m, k, eta_y, eta_z, rho):
            classes = SimpleNamespace(vocab_size=m, n_classes=k)
            return assumption.margin(SimpleNamespace(classes=classes, eta_y=eta_y, eta_z=eta_z, overlap=rho))

        return claim

    found = {name: margin(assumption) for name, assumption in ASSUMPTIONS.items()}
    # Of equal overlaps, for two classes or more: E has the eigenvalues (K - 1) rho and -rho.
    found["upper"] = lambda m, k, eta_y, eta_z, rho: 1 / (k * (k - 1) * rho)
    found["lower"] = lambda m, k, eta_y, eta_z, rho: rho * sp.sqrt(m) / 6
    return {name: (claim, "M K etaY etaZ rho") for name, claim in found.items()}
