"""Bounded Dyck grammars: Wen, Li, Liu, Risteski, NeurIPS 2023, arXiv 2312.01429."""

from __future__ import annotations

from typing import Any

from theory.bounded_dyck import measures as checks
from theory.statements import Assumption, Check, Statement
from theory.symbolic import derivations

_PAPER = "Bounded Dyck"
_EXACT = ("closed form",)
_TRAINED = ("full flow", "SGD")
LEVELS = (*_EXACT, *_TRAINED)
_PROOFS = derivations("bounded_dyck")

NOT_EXAMINED = (
    "the lemmas behind Theorem 3 of Bounded Dyck that extend it from linear maps and ReLU networks to whole "
    "Transformer layers (Lemmas 3, 4, 8 to 14), whose formulas our text of the paper lacks."
)

_TYPES = Assumption("k >= 2, several types", lambda setting: setting.language.n_types / 2)
_DEPTH = Assumption("D >= 2, closing queries", lambda setting: setting.language.max_depth / 2)
_NO_FLOOR = (
    "LN must have no floor (C_eps = 0), as the theorem assumes: a floor sees the normaliser of softmax, which grows."
)


def _statement(number: str, title: str, text: str, printed: str, **more: Any) -> Statement:
    return Statement(_PAPER, number, title, text, printed, **more)


STATEMENTS = (
    _statement(
        "Equation 13",
        "Insertion law",
        "n matched pairs before the last bracket add n delta to the sum before LN, delta that of their states alone.",
        "(12)-(13): LN(u_0 + n (u(q, open(i, d')) + u(q, close(i, d' - 1))))",
        assumptions=(_DEPTH,),
        prove=_PROOFS["theorem1"],
        checks=(Check("features after 1000 pairs", _TRAINED, checks.insertion_law, tolerance=1e-9, expected=_TRAINED),),
    ),
    _statement(
        "Theorem 1, necessity",
        "Balance is necessary",
        "A layer that is right at every length has delta = 0, hence logits whose difference within a pair is the same "
        "for all closing queries of depth 1 to D - 1.",
        "(14) implies (11): Z[q, open(i, d')] - Z[q, close(i, d' - 1)] does not depend on q",
        assumptions=(_TYPES, _DEPTH),
        prove=_PROOFS["theorem1"],
        errata=(
            "(11) leaves out closing queries of depth 0, where all brackets are matched, and open queries, which name "
            "the last unmatched type: neither is constrained.",
        ),
        checks=(
            Check(
                "||LN(u_n) - LN(delta)|| <= 2 ||u_0|| / (n ||delta||)",
                _TRAINED,
                checks.forgetting,
                tolerance=1e-9,
                expected=_TRAINED,
            ),
        ),
    ),
    _statement(
        "Theorem 1, sufficiency",
        "Balance is sufficient",
        "Under (11) a value matrix and a network exist that give the exact distribution at every length: V_close = "
        "-exp(c) V_open, c the difference of (11).",
        "(11), encodings linearly independent, and a network of 6 layers",
        corrected="(11), all 2 k D encodings jointly independent, and 3 layers of weights",
        assumptions=(_DEPTH,),
        prove=_PROOFS["stack"],
        errata=(
            "The proof inverts the matrix of all encodings, so that all 2 k D must be independent together. (20) and "
            "(21) do not qualify: their ranks are 8 and 6 of 16 at k = 2, D = 4.",
            _NO_FLOOR,
            "Three layers of weights are enough (theory.balance.exact_head).",
        ),
        checks=(
            Check(
                "distribution after prefixes to length 6 and of 500",
                _EXACT,
                checks.exact_predictions,
                tolerance=1e-10,
                expected=_EXACT,
            ),
        ),
    ),
    _statement(
        "Balance of values",
        "What (14) says of V (not in the paper)",
        "(14) holds exactly when (11) does and V_close = -exp(c) V_open, c the difference of (11).",
        "(14): u(q, open(i, d')) + u(q, close(i, d' - 1)) = 0",
        assumptions=(_TYPES, _DEPTH),
        prove=_PROOFS["theorem1"],
        checks=(Check("violation under both", _EXACT, checks.values_violation, tolerance=1e-10, expected=_EXACT),),
    ),
    _statement(
        "Corollary 1",
        "Uniform attention",
        "A Transformer with uniform attention in both layers and a starting token is exact at any length.",
        "no positions, causal mask and START",
        assumptions=(_DEPTH,),
        prove=_PROOFS["uniform"],
        errata=("Its second layer needs embedding (19), or another with jointly independent encodings.",),
        checks=(
            Check(
                "distribution after prefixes to length 6 and of 500",
                _EXACT,
                checks.uniform_predictions,
                tolerance=1e-10,
                expected=_EXACT,
            ),
        ),
    ),
    _statement(
        "Theorem 2",
        "Approximate balance",
        "A near-optimal layer with a Lipschitz head cannot let a pair add more than a share of 1/N of the sum.",
        "(18): S_{d,d',i,j} <= C P_{d,j} / N",
        corrected="S <= P (1 + 2 gamma / tau) / n for n pairs, gamma-Lipschitz heads and outputs tau apart",
        assumptions=(_TYPES, _DEPTH),
        prove=_PROOFS["theorem2"],
        errata=("The constant is explicit; twice that where the stack does not reach depth d' - 1.",),
        checks=(
            Check(
                "features of two stacks at most 2 P / (n S - P) apart",
                _TRAINED,
                checks.separation,
                tolerance=1e-9,
                expected=_TRAINED,
            ),
        ),
    ),
    _statement(
        "Corollary 2",
        "Weight decay",
        "As the regularisation of a minimiser goes to zero, so does its loss, and with it S / P at each length.",
        "lim S_{d,d',i,j} N / P_{d,j} bounded as lambda goes to 0",
        assumptions=(_TYPES, _DEPTH),
        prove=_PROOFS["theorem2"],
    ),
    _statement(
        "Lemma 2",
        "Linear maps inside random networks",
        "Pruning a random 2-layer ReLU network of width O(d log(d / eps)) approximates any linear map of norm one.",
        "after Theorem 1 of Pensia et al. 2020",
        checks=(
            Check(
                "certificates fall by half or more for every two n",
                _EXACT,
                checks.subset_sum_rate,
                tolerance=0.0,
                expected=_EXACT,
            ),
        ),
    ),
    _statement(
        "Theorem 3",
        "Any layer inside random networks",
        "A random Transformer of twice the layers, wide enough, can be pruned to any given one.",
        "an eps-approximation with probability 1 - delta",
        errata=("It needs width for weights above one: a sum of n products reaches n/8 on average.",),
        checks=(
            Check(
                "wrong closing brackets of a pruned perfect layer, n = 26",
                _EXACT,
                checks.pruned_layer,
                tolerance=0.0,
                expected=_EXACT,
            ),
        ),
        not_examined=("whole Transformer layers (Lemmas 3, 4, 8 to 14), whose formulas our text of the paper lacks",),
    ),
    _statement(
        "Corollary 3",
        "One matrix does not tell the function",
        "Two prunings of one random model can agree on a weight matrix and compute different functions.",
        "T_1 and T_2 coincide on the pruned W and approximate any two Transformers",
        checks=(
            Check(
                "error in units of the functions' distance",
                _EXACT,
                checks.one_matrix,
                tolerance=0.02,
                expected=_EXACT,
            ),
        ),
    ),
    _statement(
        "Proposition 1",
        "Attention may not matter",
        "For any key and query matrices, values exist with which the output does not depend on attention.",
        "W_V = 0",
        prove=_PROOFS["uniform"],
        checks=(Check("features under other logits", _EXACT, checks.no_attention, tolerance=1e-12, expected=_EXACT),),
    ),
)
