r"""JoMA's statements as we state them; only the paper's abstract and others' summaries were read."""

from __future__ import annotations

from typing import Any

from theory.statements import Assumption, Check, Clause, Measure, Remark, Source, Statement
from theory.symbolic import part
from yzflow_joma import measures
from yzflow_joma.proofs import counting, joint, linear_activation, nonlinear_activation, turning
from yzflow_joma.settings import LINEAR, NONLINEAR

SOURCE = Source("as we state it", "form that we state")
_REDUCED = (LINEAR, NONLINEAR)
_FULL = ("full flow, linear", "full flow, exp", "full flow, softmax")
LEVELS = (*_REDUCED, *_FULL, "SGD")
COLUMNS = {"theory": _REDUCED, "true gradient": _FULL, "SGD": ("SGD",)}
NOT_EXAMINED = (
    "the text of the paper, which was not read: statements are our derivation of what its abstract and summaries by"
    " others say it claims; deeper layers and its experiments are left out."
)
_L, _E, _S = _FULL
# Rectified units move by short steps, with an error of the order of a step.
_SMALL = 5e-3


def _given(text: str) -> Assumption:
    return Assumption(text, lambda setting: 1.0)


_ONE_QUERY = _given("one query, gradient flow with one rate")
_FACTORS = Assumption(
    "E[g h' b b^T] = bbar E[g h' b]^T: within 5% at the start",
    lambda setting: 0.05 / max(measures.factorisation(setting.flow("softmax")), 1e-12),
)
_DRAWN = _given("one unit, zero start, v' = (mu - v) e^{v^2/2}")
_SPREAD = Assumption(
    "no mu_j is zero, and not all |mu_j| are equal",
    lambda setting: float(min(map(abs, setting.mu)) > 0 and len({abs(entry) for entry in setting.mu}) > 1),
)
_AGAIN = _given("mu = (2.5, 2) beside 15 zeros, whatever the setting's mu is")
_THREE = _given("mu = (3.14, 3.12, 0.1), whatever the setting's mu is")
_CLASSES = Assumption("classes of Scan and Snap, followed to t = 60", lambda setting: float(setting.of_classes))
_FOUND = Assumption(
    "random contexts on which a turn was found: those of seed 0, 6 tokens, softplus, to t = 1000",
    lambda setting: setting.t_end / 1000.0 if setting.activation == "softplus" and not setting.of_classes else 0.0,
)


def _one(number: str, title: str, text: str, printed: str, **more: Any) -> Statement:
    return Statement("JoMA", number, title, text, printed, **more)


def _check(name: str, levels: tuple[str, ...], measure: Measure, tolerance: float, **more: Any) -> tuple[Check, ...]:
    return (Check(name, levels, measure, tolerance=tolerance, **{"expected": levels, **more}),)


STATEMENTS = (
    _one(
        "Theorem 1",
        "Joint dynamics of attention and hidden layer",
        "Along gradient flow, attention logits follow the squares of the hidden layer's weights: exactly for linear and"
        " exp attention, and for softmax where a moment factorises.",
        r"z - \tfrac12\sum_k\left(v_k^2 - \|v_k\|^2\bar b\right) = \text{const}",
        assumptions=(_ONE_QUERY,),
        errata=(
            Remark(
                "The factorisation is a strong condition: the moment is a symmetric matrix, so that it makes every"
                " unit's gradient a multiple of the one vector bbar."
            ),
        ),
        clauses=(
            Clause(
                "linear attention",
                r"z^2 - \sum_k v_k^2 = \text{const}",
                prove=part(joint.derive, "linear"),
                checks=_check("drift of z^2 - sum v^2", (_L,), measures.invariant, _SMALL),
            ),
            Clause(
                "exp attention",
                r"z - \tfrac12\sum_k v_k^2 = \text{const}",
                prove=part(joint.derive, "exp"),
                checks=_check("drift of z - sum v^2/2", (_E,), measures.invariant, _SMALL),
            ),
            Clause(
                "softmax",
                r"z - \tfrac12\sum_k\left(v_k^2 - \|v_k\|^2\bar b\right) = \text{const}",
                prove=part(joint.derive, "softmax"),
                checks=(
                    *_check("drift for softmax", (_S,), measures.softmax_invariant, 0.05),
                    *_check("drift without bbar's term", (_S,), measures.invariant, 0.05, expected=()),
                ),
                assumptions=(_FACTORS,),
            ),
            Clause(
                "how far softmax drifts without that",
                r"\frac{d}{dt}\left(z_l - \tfrac12\sum_k\left(v_{kl}^2 - \|v_k\|^2\bar b_l\right)\right) ="
                r" -E\left[(b_l - \bar b_l)\sum_kg_kh'_kv_k\cdot b\right]",
                prove=part(joint.derive, "drift", prose=(joint.TRIANGLE,)),
                checks=_check("rate of the drift against that mean", (_S,), measures.drift_rate, 1e-9),
            ),
        ),
    ),
    _one(
        "Linear activation",
        "Attention that becomes sparse and stays so (our name)",
        "With a linear activation, a stationary gradient Delta and exp attention, one unit from zero has a closed form:"
        " the largest entry blows up while the others are finite.",
        r"\sqrt{\pi/2}\,\mathrm{erf}(v_j/\sqrt2) = \Delta_j t, \qquad t_\infty = \sqrt{\pi/2}/\Delta_{\max}",
        assumptions=(_given("one unit, zero start, E[g x] constant"),),
        prove=linear_activation.derive,
        checks=_check("erf against Delta t", _REDUCED[:1], measures.linear_form, 1e-6, claim="linear_form"),
    ),
    _one(
        "Nonlinear activation",
        "Salient entries converge faster (our name)",
        "With a nonlinear activation, entry j goes to mu_j, and ln(1/delta_j) grows at the rate exp(v_j^2/2): one at"
        " the start, exp(mu_j^2/2) in the end. The ratio of two is near its limit R once t is large against the delays:"
        " it is R (1 + (tau_k - tau_j)/t + ..).",
        r"t = \int_0^{v_j}\frac{e^{-s^2/2}}{\mu_j - s}ds, \quad"
        r" \frac{\ln(1/\delta_j)}{\ln(1/\delta_k)}\to e^{(\mu_j^2-\mu_k^2)/2}",
        assumptions=(_DRAWN,),
        clauses=(
            Clause(
                "closed form",
                r"t = \int_0^{v}\frac{e^{-s^2/2}}{\mu - s}ds",
                prove=part(nonlinear_activation.derive, "integral"),
                checks=_check("the integral against t", _REDUCED[1:], measures.nonlinear_form, 1e-5),
            ),
            Clause(
                "rates",
                r"\frac{d}{dt}\ln\frac1\delta = e^{v^2/2}",
                prove=part(nonlinear_activation.derive, "rate", "ratio", "early", prose=("the limit by l'Hopital",)),
            ),
            Clause(
                "how near, and when",
                r"\ln\frac1\delta = e^{\mu^2/2}(t - \tau) + o(1), \quad"
                r" \tau = \int_0^\mu\frac{e^{-s^2/2} - e^{-\mu^2/2}}{\mu - s}ds",
                checks=_check("ln(1/delta) late", _REDUCED[1:], measures.late_form, 1e-3),
            ),
        ),
    ),
    _one(
        "First sparse, then dense",
        "The entropy of attention falls and rises again (our name)",
        "Under the nonlinear activation the entropy of softmax(v^2/2) starts at ln C, falls, and rises again to that of"
        " mu. It never turns if all nonzero |mu_j| are equal. Zeros decide the rest: below a number of them, which has"
        " a closed form, attention becomes denser in the end, above it sparser, and with many it never turns. Without"
        " zeros it turns exactly once for two sizes; three entries can turn three times, and no number of turns is the"
        " largest.",
        r"\dot H = -\mathrm{Cov}_p(u, \dot u), \qquad u = v^2/2",
        assumptions=(_DRAWN,),
        clauses=(
            Clause(
                "rate of the entropy",
                r"\dot H = -\mathrm{Cov}_p(u, \dot u)",
                prove=part(turning.derive, "slope", "softmax"),
                checks=_check("integral of the rate", _REDUCED[1:], measures.turning_rate, 0.02),
            ),
            Clause(
                "it turns",
                prove=part(turning.derive, "start", "in the end", "late", prose=(turning.SLOWEST, turning.ZERO)),
                checks=_check("falls, then rises", _REDUCED[1:], measures.turning, 0.0, claim="turns_once"),
                assumptions=(_SPREAD,),
            ),
            Clause(
                "where it does not",
                r"|\mu_j|\in\{0, m\}",
                prove=part(turning.derive, "equal entries", "one size and zeros"),
            ),
            Clause(
                "zeros that it turns with",
                r"Z < \sum_j\left(\tfrac{\mu_j^2}{\mu_1^2} - 1\right)e^{\mu_j^2/2}: \text{ it rises in the end;"
                r" above, it falls};\quad \mu_1 \text{ the least } |\mu_j| > 0",
                prove=part(turning.derive, "threshold", "late", "in the end", prose=(turning.SLOWEST, turning.ZERO)),
            ),
            Clause(
                "zeros that it never turns with",
                r"Z \ge \sum_{|\mu_j| > \mu_1}\left(\tfrac{\mu_j^2}{\mu_1^2}e^{\mu_j^2} - 1\right)e^{\mu_j^2/2}",
                prove=part(turning.derive, "threshold", "bound", prose=(turning.BETWEEN,)),
            ),
            Clause(
                "sparse, dense, sparse",
                r"\mu = (2.5, 2, 0, \ldots, 0),\ Z = 15: \text{ it falls, rises and falls again}",
                checks=_check("falls, rises, falls", _REDUCED[1:], measures.sparse_again, 0.0),
                assumptions=(_AGAIN,),
            ),
            Clause(
                "between which times",
                r"w_j = v_j(\mu_j - v_j)e^{v_j^2/2}, \quad w_j = w_k \text{ at one time } t_{jk}; \text{ without zeros"
                r" it falls before the first and rises after the last: two sizes turn once}",
                prove=part(counting.derive, "pair", prose=(counting.AHEAD, counting.ONCE)),
                checks=_check("pairs whose speeds are level elsewhere", _REDUCED[1:], measures.level_speeds, 0.0),
            ),
            Clause(
                "zeros that it rises with at a time",
                r"\dot H > 0 \Leftrightarrow Z < R(t) ="
                r" \frac{\sum e^uu\,\sum e^uw}{\sum e^uuw} - \sum e^u \text{ over } \mu_j \ne 0, \quad w = \dot u",
                prove=part(counting.derive, "zeros"),
                checks=_check("times at which it does otherwise", _REDUCED[1:], measures.rising, 0.0),
            ),
            Clause(
                "three entries, three turns",
                r"\mu = (3.14, 3.12, 0.1): \text{ it falls, rises, falls and rises}",
                checks=_check("falls, rises, falls, rises", _REDUCED[1:], measures.three_turns, 0.0),
                assumptions=(_THREE,),
            ),
            Clause(
                "no largest number of turns",
                r"\text{for every } n \text{ some } \mu \text{ without zeros turns } n \text{ times or more}",
                prove=part(counting.derive, "added", "pair", prose=(counting.AHEAD, counting.ONCE, counting.LATER)),
            ),
            Clause(
                "where it ends",
                r"H\to H(\mathrm{softmax}(\mu^2/2))",
                checks=_check("entropy at the end", _REDUCED[1:], measures.end_entropy, 1e-3),
            ),
        ),
    ),
    _one(
        "In training",
        "Sparse, then dense, or sparse to the end: it depends on the data (our question)",
        "In a trained one-layer transformer with residual link and hidden layer, the entropy of attention falls to the"
        " end of what was followed on Scan and Snap's classes; on random contexts it can fall and rise again.",
        r"\dot H(\mathrm{softmax}(z)) < 0\text{ on the classes; on some random contexts it changes its sign}",
        assumptions=(_ONE_QUERY,),
        errata=(
            Remark(
                "The reduced flow draws entries to a fixed mu. That this is why the entropy rises in training, where"
                " it does, was not examined."
            ),
        ),
        clauses=(
            Clause(
                "on classes",
                r"H(\mathrm{softmax}(z))\text{ falls as far as it was followed}",
                checks=_check("no rise of the entropy", (_S, "SGD"), measures.rise, 0.01, expected=(_S,)),
                assumptions=(_CLASSES,),
            ),
            Clause(
                "on random contexts",
                checks=_check("falls, then rises in training", (_S, "SGD"), measures.turning, 0.0, expected=(_S,)),
                assumptions=(_FOUND,),
            ),
        ),
    ),
)

# <!-- numbers
# typed: 5% 2 2.5 15 3.14 3.12 0.1 60 6 1000 (settings of the checks, as their code has them)
# -->
