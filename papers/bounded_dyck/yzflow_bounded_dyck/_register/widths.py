"""Statements on the widths and probabilities of pruning: Lemmas 2, 7 and 9, with constants of our own."""

from __future__ import annotations

from theory.statements import Clause, Remark, Statement
from theory.symbolic import part
from theory.symbolic.printing import tex
from yzflow_bounded_dyck import measures_of_pruning, measures_of_widths
from yzflow_bounded_dyck._register import assumptions as assumed
from yzflow_bounded_dyck._register.common import exact, statement
from yzflow_bounded_dyck.proofs import pruning_lemmas, subset_sums

_MISSED = tex(lambda factor, length, eta: subset_sums.missed(factor, length, eta), r"F", "L", "eta")
_ENOUGH = part(
    subset_sums.derive,
    "missed",
    "potential",
    "mean",
    "density",
    "probability",
    prose=(subset_sums.CHORD, subset_sums.MARKOV, subset_sums.COVER, subset_sums.UNION),
)

LEMMA_2 = statement(
    "Lemma 2",
    "Linear maps inside random networks",
    "Pruning a random 2-layer ReLU network of width O(d log(d / min(eps, delta))) approximates any linear map of norm "
    "one, with probability 1 - delta. The order is right; the constants are ours (yzflow_bounded_dyck.widths).",
    r"n = O\left(d \log\frac{d}{\min(\epsilon, \delta)}\right): \quad \|g_{\text{pruned}}(x) - Wx\| \le \epsilon"
    r" \text{ for } \|x\| \le 1",
    assumptions=(assumed.UNIFORM, assumed.NORM, assumed.BALL),
    errata=(
        Remark(
            "Our text of the paper lacks the formula: the order is that of Pensia et al. (2020), whose Theorem 1 the"
            " lemma restates."
        ),
    ),
    clauses=(
        Clause(
            "enough width",
            rf"\Pr[\text{{a target in }} [-\tfrac L2, \tfrac L2] \text{{ is missed by }} \eta] \le {_MISSED}, \quad"
            rf" F = \left({tex(subset_sums.rate, 'kappa')}\right)^n, \quad \kappa = {tex(subset_sums.gain, 'L')}",
            prove=_ENOUGH,
            checks=(
                exact(
                    "the mean potential, over all sets of cells, against its bound, which it attains",
                    measures_of_widths.potential_attained,
                    1e-12,
                    needed=True,
                ),
                exact(
                    "random networks of the promised width that miss, beyond the share delta",
                    measures_of_widths.enough_units,
                    0.0,
                ),
            ),
        ),
        Clause(
            "too few products",
            rf"\Pr[\text{{one target is reached within }} \eta] \le {tex(subset_sums.few, 'n', 'eta')}",
            prove=part(
                subset_sums.derive,
                "few",
                prose=(subset_sums.UNION, "a sum with an independent number is not more concentrated than the number"),
            ),
            checks=(exact("targets reached by all subsets, beyond the bound", measures_of_widths.too_few, 0.0),),
        ),
        Clause(
            "errors fall with width",
            checks=(
                exact("certificates fall by half or more for every two n", measures_of_pruning.subset_sum_rate, 0.0),
            ),
        ),
    ),
)

STATEMENTS: tuple[Statement, ...] = (
    statement(
        "Lemma 7",
        "Logits inside random key and query matrices",
        "Random key and query matrices with enough rows can be pruned so that their product is near a given one, entry "
        "by entry, with probability 1 - delta. Products of either sign serve, so that half the rows of Lemma 2 do.",
        r"\|\tilde W_K^T \tilde W_Q - W_K^T W_Q\|_\infty \le \epsilon",
        assumptions=(assumed.UNIFORM, assumed.NORM),
        clauses=(
            Clause(
                "enough rows",
                rf"\Pr[\text{{an entry is missed by }} \epsilon] \le d^2 \cdot {_MISSED}, \quad \eta = \epsilon",
                prove=_ENOUGH,
                checks=(
                    exact(
                        "random matrices of the promised size that miss, beyond the share delta",
                        measures_of_widths.enough_rows,
                        0.0,
                    ),
                ),
            ),
        ),
    ),
    statement(
        "Lemma 9",
        "Entries of the value matrix",
        "A random matrix that is cut into d blocks, disjoint in rows and in columns, has an entry of at least h in "
        "each with probability 1 - delta. Blocks of width sqrt(log(d / delta)), up to a factor, are enough; the "
        "print's log(d / delta) is more than that.",
        r"\Pr[\text{an entry of at least } h \text{ in each of } d \text{ blocks of } w \times w] = \left(1 -"
        r" \left(\tfrac{1 + h}{2}\right)^{w^2}\right)^d",
        assumptions=(assumed.UNIFORM,),
        errata=(
            Remark(
                "Our text of the paper lacks the formulas. Its words give the blocks, one entry in each, and a width of"
                " the order of a logarithm; that a block is square is our reading."
            ),
        ),
        checks=(
            exact(
                "share of drawn matrices with an entry in each block, off by standard errors over four",
                measures_of_widths.entries_of_values,
                1.0,
            ),
        ),
    ),
    statement(
        "Lemmas 15 and 17 to 19",
        "Networks of one hidden layer that interpolate, index, pick and switch",
        "One hidden layer interpolates n points with n units, finds the index of the only entry with 4 d, switches "
        "between networks that an index names with 4 units for each of theirs and 3 a network, and so picks an entry "
        "(yzflow_bounded_dyck.interpolating). Built from the words of the lemmas.",
        r"f(x_i) = y_i, \quad f(x) = i, \quad f(x, i) = x_i, \quad f(x, i) = f_i(x)",
        errata=(
            Remark(
                "Our text of the paper lacks the formulas, and with them the widths: of Lemmas 17 to 19 we have that"
                " there are constants, which we read as bounds of the inputs."
            ),
        ),
        clauses=(
            Clause(
                "interpolation",
                prove=part(pruning_lemmas.derive, "interpolation", prose=(pruning_lemmas.SORTED,)),
                checks=(exact("largest error of the built networks", measures_of_widths.interpolated, 1e-9),),
            ),
            Clause("index", prove=part(pruning_lemmas.derive, "index")),
            Clause("switch and pick", prove=part(pruning_lemmas.derive, "switch")),
        ),
    ),
)

# <!-- numbers
# typed: 3 4 (number of units in a construction)
# -->
