"""Subset sums of random products, with explicit constants: the probability behind Lemmas 2, 6 and 7, our own.

Wen et al. 2023 (arXiv 2312.01429) quote it from Pensia et al. 2020. The share of targets that some subset reaches is
followed from product to product, as in Lueker (1998) and da Cunha et al. (2022); the potential (1 - v)/v is ours.
`yzflow_bounded_dyck.widths` computes with these formulas.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.model import positive

CHORD = "a convex function lies below its chord; its mean is then largest if all gains are zero or the largest possible"
MARKOV = "Markov's inequality, and the mean of a product of factors that are conditional means"
COVER = "targets that are missed by every subset and fill less than a length leave a target that is reached within it"
UNION = "the probability of a union of events is at most the sum of their probabilities"


def potential(v: sp.Expr) -> sp.Expr:
    """Potential of the share v of reached targets; at most this share is missed."""
    return (1 - v) / v


def rate(kappa: sp.Expr) -> sp.Expr:
    """Factor of the mean potential per product, if a product gains kappa v (1 - v) or more on average."""
    return 1 - kappa / 2


def gain(length: sp.Expr) -> sp.Expr:
    """kappa of products of two uniform numbers, for targets in an interval of this length below one."""
    return -length * sp.log(length) / 2


def missed(factor: sp.Expr, length: sp.Expr, accuracy: sp.Expr) -> sp.Expr:
    """Bound of the probability that a target is missed by more than ``accuracy``, at a mean potential ``factor``."""
    return 2 * (length / accuracy) ** 2 * factor


def few(n: sp.Expr, accuracy: sp.Expr) -> sp.Expr:
    """Bound of the probability that one of 2^n sums is as near to one target as ``accuracy``."""
    return 2**n * accuracy * (1 - sp.log(accuracy))


def derive(
    *,
    potential: Claim = potential,
    rate: Claim = rate,
    gain: Claim = gain,
    missed: Claim = missed,
    few: Claim = few,
) -> Derivation:
    """Shares of reached targets below and above one half, the density of products, and too few subsets."""
    g, share, length, accuracy, n = positive("g p L eta n")
    kappa = 1 / (1 + positive("k"))  # at most one
    low = 1 / (2 + g)  # a share of at most one half; 1 - low for one of at least one half
    vanishing: dict[str, sp.Expr] = {}
    signed: dict[str, tuple[sp.Expr, str]] = {}
    v = share / (1 + share)
    signed["missed is at most the potential"] = (potential(v) - (1 - v), ">= 0")
    x = sp.Symbol("x", positive=True)
    signed["potential, convex"] = (sp.diff(potential(x), x, 2), "> 0")
    # The most that a product can gain is min(v, 1 - v), and the probability of that is kappa v (1 - v) over it.
    chance = kappa * (1 - low)
    mean = (1 - chance) * potential(low) + chance * potential(2 * low)
    vanishing["mean, at most one half reached"] = mean - rate(kappa) * potential(low)
    high = 1 - low
    mean = (1 - kappa * high) * potential(high) + kappa * high * potential(sp.Integer(1))
    signed["mean, at least one half reached"] = (rate(kappa) * potential(high) - mean, ">= 0")
    # |U| V with U, V uniform: the density of a number t in (0, 1) is the integral of 1/(2 u) over t < u < 1.
    inner = 1 / (1 + length)
    density = sp.integrate(1 / (2 * x), (x, inner, 1))
    vanishing["density, gain"] = sp.expand_log(gain(inner) - inner * density, force=True)
    # Start: 0 reaches eta/2 on both sides; end: less than eta/2 missed, in the unit of the interval.
    start = accuracy / length
    vanishing["probability"] = missed(1, length, accuracy) - (1 / start) / (accuracy / (2 * length))
    near = sp.integrate(-sp.log(x) / 2, (x, 0, accuracy))
    vanishing["few, the likeliest interval"] = few(n, accuracy) - 2**n * 2 * near
    return Derivation(
        statement="Subset sums (bounded Dyck), our own",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"Let v be the share of an interval of length L that subsets of the products so far reach within $\eta/2$."
            r" One more product x reaches z if $z - x$ was reached: v gains $w = \frac1L\int (1 - f(z)) f(z - x)\,dz"
            r" \le \min(v, 1 - v)$, f being one where reached. Where the density of x is at least c on $[-L, L]$, the"
            r" mean of w is at least $\kappa v(1 - v)$, $\kappa = Lc$.",
            r"The potential $(1 - v)/v$ is convex: its mean after the product is at most that for gains 0 and $\min(v,"
            r" 1 - v)$. For $v \le 1/2$ that is exactly $(1 - \kappa/2)(1 - v)/v$, for $v \ge 1/2$ no more.",
            r"At the start $v = \eta/L$, as the empty sum reaches $\eta/2$ on both sides of zero. After n products the"
            r" mean potential is at most $(1 - \kappa/2)^n L/\eta$. If it is below $\eta/(2L)$, less than $\eta/2$ of"
            r" the interval is missed, and every target is within $\eta$ of a sum: by Markov, but for a probability of"
            r" $2(L/\eta)^2(1 - \kappa/2)^n$.",
            r"Products $|U|V$ of uniform numbers have the density $-\frac12\ln|t|$: $\kappa = -\frac12 L\ln L$, at most"
            r" $1/(2e)$, at $L = 1/e$. With U known and $s = |U| \ge L$: $\kappa = L/(2s)$.",
            r"Too few. A sum of products has a density that is no more concentrated than that of one: a given sum is"
            r" within $\eta$ of a given target with a probability of at most $\int_{-\eta}^\eta -\frac12\ln|t|\,dt ="
            r" \eta(1 - \ln\eta)$. So one of $2^n$ sums is with at most $2^n\eta(1 - \ln\eta)$.",
        ),
        scope="every number of products, every interval below one, every accuracy up to the interval's length",
        sizes={},
        prose=(CHORD, MARKOV, COVER),
        proves=("Lemma 2", "Lemma 7"),
    )
