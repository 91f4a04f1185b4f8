"""Section 5, initial values as a prior: the leader of two distinct tokens of a class, and the loser's limit.

Start: Theorem 2 (a), zdot_l = p_n f_nl^2 xi_n by eta_Z, with f_nl = P(l|n) exp(z_l)/||c~_n|| and any z(0); for the
layer's own gradient, the bag form of Lemma 1.
"""

from __future__ import annotations

import sympy as sp

from theory.scan_and_snap.proofs import lemma1, theorem2
from theory.symbolic import Claim, Derivation, joined
from theory.symbolic.indexed import entries, index
from theory.symbolic.model import positive


def threshold(p: sp.Expr, other: sp.Expr) -> sp.Expr:
    """z_l(0) - z_l'(0) above which l leads: ln(P(l'|n)/P(l|n))."""
    return sp.log(other / p)


def stop(ratio: sp.Expr) -> sp.Expr:
    """Total rise of the logit of l' if the logit of l rises without bound; ``ratio`` is (f_l'/f_l)^2 at the start."""
    return -sp.log(1 - ratio) / 2


def exponent_needed(gain: sp.Expr, wanted: sp.Expr) -> sp.Expr:
    """B_n at which a lead has grown from r(0) to ``wanted``, if the two tokens have all attention of the class."""
    return sp.log(wanted * (1 + gain) / (gain * (1 + wanted))) / 2 + sp.log(wanted / gain) / 2


def derive(*, threshold: Claim = threshold, stop: Claim = stop, exponent_needed: Claim = exponent_needed) -> Derivation:
    """The sign of a lead and of its rate, a conserved quantity, the loser's limit, and the tie in the true gradient."""
    vanishing, signed = joined(_lead(threshold), _limits(stop, exponent_needed), _true_gradient())
    return Derivation(
        statement="Section 5, initial values",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"$\frac{d}{dt}\ln\frac{f_{nl}}{f_{nl'}} = \dot z_l - \dot z_{l'} = p_n\xi_n(f_{nl}^2 - f_{nl'}^2)$: the"
            r" lead grows in its own direction, and a tie stays one. It is one where $z_l - z_{l'} ="
            r" \ln\frac{P(l'|n)}{P(l|n)}$.",
            r"$D = P(l'|n)^{-2}e^{-2z_{l'}} - P(l|n)^{-2}e^{-2z_l}$ is constant. As $z_l \to \infty$, $e^{-2z_{l'}} \to"
            r" P(l'|n)^2 D$, which is $e^{-2z_{l'}(0)}$ times $1 - f_{nl'}^2(0)/f_{nl}^2(0)$.",
            r"Two tokens with all attention: $dB_n = dz_l + dz_{l'}$, as their $f^2$ add up to one, and (11) gives"
            r" both from $r$.",
            r"In Lemma 1's gradient $\dot Y_l$ and $\dot z_l$ depend on l through $f_{nl}$ and the row $Y_l$ alone:"
            r" equal ones stay equal.",
        ),
        scope=r"any numbers of tokens and classes, any $P(\cdot|n)$ and $z(0)$",
        sizes={},
        prose=("a quantity whose rate has its own sign, and is zero with it, keeps its sign",),
    )


def _lead(threshold):
    """ln(f_l/f_l'), its rate, and its zero."""
    p, q, xi, length, weight = positive("p p' xi rho P_n")
    z, y, lead = sp.symbols("z z' s", real=True)
    f, g = p * sp.exp(z) / length, q * sp.exp(y) / length
    rate = theorem2.distinct_rate(weight, f, xi) - theorem2.distinct_rate(weight, g, xi)
    at = {z: y + threshold(p, q) + lead}
    ahead = sp.Symbol("r", positive=True)  # f^2/f'^2 - 1
    return {
        "lead: a tie at the threshold": (f - g).subs(at).subs(lead, 0),
        "lead: a tie stays one": rate.subs(at).subs(lead, 0),
        "lead: what is above the threshold": sp.expand_log(sp.log((f / g).subs(at)), force=True) - lead,
    }, {
        "lead: grows where l leads": (weight * xi * g**2 * ahead, "> 0"),
    }


def _limits(stop, exponent_needed):
    """The conserved quantity, the limit of the other token, and B_n by the lead."""
    p, q, xi, length, weight = positive("p p' xi rho P_n")
    z, y, start, other = sp.symbols("z z' z_0 z'_0", real=True)
    f, g = p * sp.exp(z) / length, q * sp.exp(y) / length

    def constant(z, y):
        return sp.exp(-2 * y) / q**2 - sp.exp(-2 * z) / p**2

    rates = {z: theorem2.distinct_rate(weight, f, xi), y: theorem2.distinct_rate(weight, g, xi)}
    along = sum(sp.diff(constant(z, y), one) * rate for one, rate in rates.items())
    ratio = (q * sp.exp(other) / (p * sp.exp(start))) ** 2
    limit = sp.exp(-2 * other) * sp.exp(sp.expand_log(-2 * stop(sp.Symbol("x")), force=True)).subs(
        sp.Symbol("x"), ratio
    )
    # With all attention of the class: r = f^2/g^2 - 1, f^2 + g^2 = 1, and dB = dz + dy.
    first, gain = positive("r_0 r")
    per_exponent = gain * 2 * (1 + gain) / (2 + gain)  # dr/dB = 2 (1 + r) (f^2 - g^2)
    return {
        "other: conserved": along,
        "other: its limit": limit - q**2 * constant(start, other),
        "exponent: starts at zero": sp.expand_log(exponent_needed(first, first), force=True),
        "exponent: its slope": sp.diff(exponent_needed(first, gain), gain) * per_exponent - 1,
    }


def _true_gradient():
    """Lemma 1's velocities of two tokens of one class whose attention and whose rows of Y are equal."""
    j, k, column = index("j", lemma1.M), index("k", lemma1.M), index("c", lemma1.M)
    f, g, r = (entries(name) for name in ("f", "g", "r"))

    def tied(difference):
        return difference.xreplace({f[k]: f[j], g[k]: g[j]})

    attention = [lemma1.bag_rate(f.__getitem__, g.__getitem__, one) for one in (j, k)]
    decoder = [lemma1.decoder_rate(f.__getitem__, r.__getitem__, one, column) for one in (j, k)]
    return {
        "true gradient: a tie stays one, attention": tied(attention[0] - attention[1]),
        "true gradient: a tie stays one, decoder": tied(decoder[0] - decoder[1]),
    }
