"""Bounded Dyck grammars: Wen, Li, Liu, Risteski, NeurIPS 2023, arXiv 2312.01429."""

from __future__ import annotations

from typing import Any

from theory.bounded_dyck import measures as checks
from theory.bounded_dyck import measures_of_pruning
from theory.statements import Assumption, Check, Statement
from theory.symbolic import derivations

_PAPER = "Bounded Dyck"
_EXACT = ("closed form",)
_TRAINED = ("full flow", "SGD")
LEVELS = (*_EXACT, *_TRAINED)
COLUMNS = {"theory": _EXACT, "true gradient": _TRAINED[:1], "SGD": _TRAINED[1:]}
_PROOFS = derivations("bounded_dyck")

NOT_EXAMINED = (
    "the wording of the lemmas behind Theorems 1 and 3 of Bounded Dyck (Lemmas 3, 4, 8 to 20), whose formulas our "
    "text of the paper lacks: those of Theorem 3 are stated and derived anew, those of Theorem 1 are not needed."
)

_TYPES = Assumption("k >= 2, several types", lambda setting: setting.language.n_types / 2)
_DEPTH = Assumption("D >= 2, closing queries", lambda setting: setting.language.max_depth / 2)
_NO_FLOOR = (
    "LN must have no floor (C_eps = 0), as the theorem assumes: a floor sees the normaliser of softmax, which grows."
)


def _statement(number: str, title: str, text: str, printed: str, **more: Any) -> Statement:
    """A statement of this paper; ``printed`` and ``corrected`` are LaTeX, without dollar signs."""
    return Statement(_PAPER, number, title, text, printed, **more)


STATEMENTS = (
    _statement(
        "Equation 13",
        "Insertion law",
        "n matched pairs before the last bracket add n delta to the sum before LN, delta that of their states alone.",
        r"\mathrm{LN}\bigl(u_0 + n\,(u(q, \mathrm{open}_{i,d'}) + u(q, \mathrm{close}_{i,d'-1}))\bigr)",
        assumptions=(_DEPTH,),
        prove=_PROOFS["theorem1"],
        checks=(
            Check(
                "features after 1000 pairs",
                _TRAINED,
                checks.insertion_law,
                tolerance=1e-9,
                expected=_TRAINED,
                says="the insertion law (13)",
            ),
        ),
    ),
    _statement(
        "Theorem 1, necessity",
        "Balance is necessary",
        "In a layer that is right at every length a matched pair adds nothing, delta = 0 (14). If no value vanishes, "
        "logits within a pair then differ by the same amount for all closing queries of depth 1 to D - 1 (11).",
        r"P_\perp W_V e \ne 0 \text{ for all } e: \quad Z_{q,\mathrm{open}_{i,d'}} - Z_{q,\mathrm{close}_{i,d'-1}}"
        r" \text{ does not depend on } q",
        assumptions=(_TYPES, _DEPTH),
        prove=_PROOFS["theorem1"],
        errata=(
            "(11) leaves out closing queries of depth 0, where all brackets are matched, and open queries, which name "
            "the last unmatched type: neither is constrained.",
        ),
        checks=(
            Check(
                "layers without silent pairs that are right at every length and lack (11)",
                _EXACT,
                checks.right_without_balance,
                tolerance=0.0,
                expected=_EXACT,
            ),
        ),
    ),
    _statement(
        "Silent pairs",
        "Theorem 1 without its hypothesis (not in the paper)",
        "If values may vanish, a layer that is right at every length still has (14), but needs (11) only for the pairs "
        "whose values do not vanish. Without a residual link all pairs of level D can be silent, one type of each "
        "level from 2 to D - 1, and none of level 1. With k = D = 2 and zero values on level 2, layers are exact at"
        " every "
        "length with differences in (11) of 1.6 to 4.3 (theory.bounded_dyck.silence, four seeds).",
        r"u(q, \mathrm{open}_{i,d'}) + u(q, \mathrm{close}_{i,d'-1}) = 0; \quad \text{(11) where } P_\perp W_V e \ne 0",
        assumptions=(_TYPES, _DEPTH),
        prove=_PROOFS["theorem1"],
        checks=(
            Check(
                "layers that are right at every length without that, or wrong with it",
                _EXACT,
                checks.right_against_live_balance,
                tolerance=0.0,
                expected=_EXACT,
            ),
            Check(
                "sets of pairs, by whether a layer with these silent is right",
                _EXACT,
                checks.silent_sets,
                tolerance=0.0,
                expected=_EXACT,
                needed=True,
            ),
        ),
        argued=("which pairs may be silent at other (k, D) than (2, 2), (2, 3) and (3, 2), where every set was run",),
    ),
    _statement(
        "Theorem 1, sufficiency",
        "Balance is sufficient",
        "Under (11) a value matrix and a network exist that give the exact distribution at every length: V_close = "
        "-exp(c) V_open, c the difference of (11).",
        r"\text{(11)}, \quad \{e(i, d)\} \text{ linearly independent}, \quad g \text{ of 6 layers}",
        corrected=r"\text{(11)}, \quad \mathrm{rank}\,(e(s))_s = 2kD, \quad g \text{ of 3 layers}",
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
        "Appendix C.7",
        "With a residual link balance is not sufficient",
        "In a standard GPT layer the query's own vector joins what attention gathers, and that shrinks as the "
        "normaliser of softmax grows: with n copies of every pair the distance of two stacks falls like 1/n, unless "
        "LN projects the vectors of closing brackets off, that is, they are multiples of the all-ones vector. Then "
        "balance is what it was. The formula (49) is missing from our text and read as LN(x_q + sum c_s V_s).",
        r"\text{(11)}: \quad \sum_s c_s V_s = \frac{u_0}{z_0 + n\zeta} \to 0, \quad"
        r" n\,\|A_n - A_n'\| \to \frac{\|u_0 - u_0'\|}{\zeta}",
        assumptions=(_TYPES, _DEPTH),
        checks=(
            Check("n x distance of what is gathered, against its limit", _EXACT, checks.link_limit, None, 1e-4, _EXACT),
            Check("exponent of the distance behind a link", _EXACT, checks.link_forgets, None, 1e-3, _EXACT),
            Check(
                "change of distances without a link or along the ones",
                _EXACT,
                checks.link_projected_off,
                tolerance=1e-5,
                expected=_EXACT,
            ),
        ),
        argued=(
            "that no head of a fixed Lipschitz constant is then nearly right at all lengths: on two such prefixes its "
            "mean loss is at least ln(1 + exp(-gamma distance / sqrt 2)), by convexity (theory.bounded_dyck.gpt)",
        ),
    ),
    _statement(
        "Balance of values",
        "What (14) says of V (not in the paper)",
        "(14) holds exactly when each pair either has no values, or has (11) and V_close = -exp(c) V_open, c the "
        "difference of (11).",
        r"u(q, \mathrm{open}_{i,d'}) + u(q, \mathrm{close}_{i,d'-1}) = 0",
        corrected=r"V_{\mathrm{close}_{i,d'-1}} = -e^{c_{id'}}\,V_{\mathrm{open}_{i,d'}}, \quad c_{id'} ="
        r" Z_{q,\mathrm{open}_{i,d'}} - Z_{q,\mathrm{close}_{i,d'-1}} \text{ wherever } V \ne 0",
        assumptions=(_TYPES, _DEPTH),
        prove=_PROOFS["theorem1"],
        checks=(Check("violation under both", _EXACT, checks.values_violation, tolerance=1e-10, expected=_EXACT),),
    ),
    _statement(
        "Corollary 1",
        "Uniform attention",
        "A Transformer with uniform attention in both layers and a starting token is exact at any length.",
        r"A_{ij} = \frac{1}{i} \text{ for } j \le i, \quad \text{no positions, a starting token}",
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
        r"S_{d,d',i,j} \le \frac{C\,P_{d,j}}{N}",
        corrected=r"S \le \frac{P}{n}\left(1 + \frac{2\gamma}{\tau}\right) \text{ for } n \text{ pairs, }"
        r" \gamma\text{-Lipschitz heads, outputs } \tau \text{ apart}",
        assumptions=(_TYPES, _DEPTH),
        prove=_PROOFS["theorem2"],
        errata=("The constant is explicit; twice that where the stack does not reach depth d' - 1.",),
        checks=(
            Check("n S / P against the bound where it is attained", _EXACT, checks.attained_bound, None, 0.01, _EXACT),
            Check(
                "n S / P of trained layers whose outputs are right enough after n pairs",
                _TRAINED,
                checks.approximate_balance,
                tolerance=1e-9,
                expected=_TRAINED,
                says="the bound on S / P",
            ),
        ),
    ),
    _statement(
        "Corollary 2",
        "Weight decay",
        "As weight decay goes to zero, so does the squared loss of a minimiser, and S N / P stays bounded, at each "
        "length.",
        r"\lim_{\lambda \to 0} \frac{S_{d,d',i,j}\,N}{P_{d,j}} \le C",
        corrected=r"\lambda \le \frac{\pi\tau^2}{16 R_0}: \quad S \le \frac{P}{n}\left(1 + \frac{4\gamma}{\tau}\right),"
        r" \quad \gamma \le \left(\frac{R_0}{L}\right)^{L/2} \text{ for heads of } L \text{ matrices}",
        assumptions=(_TYPES, _DEPTH),
        prove=_PROOFS["weight_decay"],
        argued=("that a minimiser exists; no training with falling weight decay was run, which need not find one",),
    ),
    _statement(
        "Lemma 2",
        "Linear maps inside random networks",
        "Pruning a random 2-layer ReLU network of width O(d log(d / eps)) approximates any linear map of norm one.",
        r"n = O\left(d \log\frac{d}{\epsilon}\right): \quad \|g_{\text{pruned}}(x) - Wx\| \le \epsilon \text{ for }"
        r" \|x\| \le 1",
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
        "Lemmas 15 to 20",
        "Heads by interpolation",
        "The paper builds the head of Theorem 1 and Corollary 1 from lemmas on ReLU networks that interpolate "
        "finitely many "
        "points. They are not used here: one network of three layers of weights, written down weight by weight, reads "
        "the "
        "stack off the features (theory.bounded_dyck.balance.exact_head), at every length.",
        r"h = \mathrm{relu}\left(\tfrac{2f}{s} - 1\right) - \mathrm{relu}\left(\tfrac{2f}{s} - 2\right), \quad"
        r" t_{il} = \mathrm{relu}\Bigl(h_{il} - \sum_j h_{j,l+1}\Bigr)",
        prove=_PROOFS["stack"],
        not_examined=(
            "Lemmas 15 to 20 as printed, whose formulas our text of the paper lacks; nothing here rests on them",
        ),
    ),
    _statement(
        "Lemmas of Theorem 3",
        "How errors pass through a Transformer (our own, for Lemmas 3 to 14)",
        "Linear maps, ReLU networks, attention, LN with a floor, LN of more dimensions, the residual link and the "
        "identity: "
        "by how much each part moves if its input and its weights do. All but LN of more dimensions are attained.",
        r"\|\Delta A\|_{\mathrm{TV}} \le \tanh\frac{\omega}{4}, \quad \|\Delta \mathrm{LN}_C(u)\| \le"
        r" \frac{\|P\,\Delta u\|}{C}, \quad \|\tilde g(z) - g(z)\| \le \sum_t \max_D \|W_k D \cdots D E_t \tilde"
        r" h_{t-1}\|",
        prove=_PROOFS["lottery"],
        checks=(
            Check(
                "bounds against changes that attain them",
                _EXACT,
                measures_of_pruning.lemmas_attained,
                tolerance=1e-6,
                expected=_EXACT,
                needed=True,
            ),
        ),
    ),
    _statement(
        "Theorem 3",
        "Any Transformer inside random ones",
        "A random Transformer of more layers, wide enough, can be pruned to any given one: two of its layers hold a "
        "given "
        "one, any other becomes the identity. Run with LN, residual links and up to three given layers, with a "
        "certificate "
        "from the weights for all inputs of norm one and every length (theory.bounded_dyck.lottery); and for a layer "
        "that "
        "is perfect on Dyck, without a residual link.",
        r"\Pr\bigl[\exists \text{ pruned } \tilde T: \sup_X \|\tilde T(X) - T(X)\| \le \epsilon\bigr] \ge 1 - \delta",
        errata=(
            "It needs width for weights above one: a sum of n products reaches n/8 on average.",
            "LN must have a floor, C > 0, for a bound that holds for all inputs; without one it does for inputs whose "
            "mixtures stay away from zero.",
        ),
        checks=(
            Check(
                "sampled error over certificate, less one",
                _EXACT,
                measures_of_pruning.certificates_hold,
                tolerance=1e-9,
                expected=_EXACT,
            ),
            Check(
                "slope of log2 certificate against width, and that of random sums",
                _EXACT,
                measures_of_pruning.width_law,
                tolerance=0.15,
                expected=_EXACT,
            ),
            Check(
                "wrong closing brackets of a pruned perfect layer, n = 26",
                _EXACT,
                checks.pruned_layer,
                tolerance=0.0,
                expected=_EXACT,
            ),
        ),
        argued=(
            "that every subset sum comes near enough with probability 1 - delta at width of order log(1 / (eps "
            "delta)), "
            "which Lemma 2 quotes; the certificate is computed for each pruned Transformer and needs no probability",
        ),
        not_examined=(
            "a random weight of the residual link: our text lacks the paper's formula, and the weight is fixed",
        ),
    ),
    _statement(
        "Corollary 3",
        "One matrix does not tell the function",
        "Two prunings of one random model can agree on a weight matrix, and on all of a layer, and compute different "
        "functions: that layer is the identity in both.",
        r"\tilde T_1|_W = \tilde T_2|_W, \quad \|\tilde T_a - T_a\| \le \epsilon \text{ for any } T_1, T_2",
        checks=(
            Check(
                "error in units of the functions' distance",
                _EXACT,
                checks.one_matrix,
                tolerance=0.02,
                expected=_EXACT,
            ),
            Check(
                "the same of two Transformers that agree on a layer",
                _EXACT,
                measures_of_pruning.one_layer_of_two,
                tolerance=0.02,
                expected=_EXACT,
            ),
        ),
    ),
    _statement(
        "Proposition 1",
        "Attention may not matter",
        "For any key and query matrices, values exist with which the output does not depend on attention.",
        r"W_V = 0 \Rightarrow T(X) \text{ does not depend on } W_K, W_Q",
        prove=_PROOFS["uniform"],
        checks=(Check("features under other logits", _EXACT, checks.no_attention, tolerance=1e-12, expected=_EXACT),),
    ),
)
