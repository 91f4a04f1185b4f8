"""Statements on the paper's approximations, on residual connections and on the usual LayerNorm."""

from __future__ import annotations

from theory.scan_and_snap import centred, residual
from theory.scan_and_snap._register import formulas as f
from theory.scan_and_snap._register.assumptions import (
    ASSUMPTION_1,
    DECODER,
    ONE_COMMON,
    ONE_QUERY,
    SYMMETRIC,
    UNIFORM,
    ZERO_DECODER,
)
from theory.scan_and_snap._register.common import PROOFS, closed, statement
from theory.statements import Clause, RefutedInPart, Remark
from theory.symbolic import part
from theory.values import value

_RARE, _LOCAL = value("scan_and_snap.rare_token"), value("scan_and_snap.local_tokens")

STATEMENTS = (
    statement(
        "Equations 13, 118, 119",
        "How good Theorem 4's approximations are",
        "beta is taken for the overlap, and both for that of a common token whose norm rho_0 stands still. For equal"
        " classes with one common token the errors are exact rational functions of M, K and the overlap rho of the"
        " moment; two of them have opposite signs. The norm moves, so that the common token falls by less in the end.",
        r"f_n^Tf_{n'} \approx \beta_{nn'} \approx \frac{e^{2z_{ml}}}{\rho_0^2}\ \text{(118, 119)},\quad \dot z_{ml}"
        r" \approx -\eta_Z\gamma\frac{e^{4z_{ml}}}{C_0}\ \text{(13)}",
        corrected=rf"\tfrac{{\beta}}{{\rho}} - 1 \sim {f.BETA_ERROR},\quad \tfrac{{-\dot z}}{{\eta_Z\gamma(K-1)\rho^2}}"
        rf" - 1 \sim {f.SPEED_ERROR},\quad \tfrac{{d\ln\rho}}{{\eta_Z\xi\,dt}} = -2\left({f.DECAY}\right)",
        assumptions=(ZERO_DECODER, UNIFORM, ONE_COMMON, ONE_QUERY, *SYMMETRIC),
        errata=(
            Remark(
                "(119) leaves out 1/(M rho), and (13) with it, which is small for M rho >> 1 only. A constant rho_0"
                " makes the common token fall by up to 1 + 1/K times too much where each class attends to one distinct"
                " token, as long as M rho of the moment is large: finding 41."
            ),
        ),
        clauses=(
            Clause(
                "(119) and (13), exactly",
                rf"\tfrac{{\beta}}{{\rho}} = {f.BETA_RATIO},\quad \tfrac{{-\dot z}}{{\eta_Z\gamma(K-1)\rho^2}} ="
                rf" {f.SPEED_RATIO}",
                prove=part(PROOFS["approximations"], "ratios"),
            ),
            Clause(
                "to leading order",
                rf"\tfrac{{\beta}}{{\rho}} - 1 \sim {f.BETA_ERROR},\quad \text{{and for }} \dot z:\ {f.SPEED_ERROR}"
                r" \quad (\rho \to 0,\ M\rho \to \infty)",
                prove=part(PROOFS["approximations"], "leading"),
            ),
            Clause(
                "the norm that moves",
                rf"\tfrac{{d\ln\rho}}{{\eta_Z\xi\,dt}} = -2\kappa,\quad \kappa = {f.DECAY},\quad S_4 = \sum_l f_l^4"
                r" \text{ of the distinct tokens}",
                prove=part(PROOFS["approximations"], "norm"),
            ),
            Clause(
                "B where kappa stands still",
                rf"\eta_Z\int\xi = {f.MOVING_EXPONENT},\quad \kappa \to 1 + \tfrac1K \text{{ for one distinct token a"
                r" class, } \rho \to 0",
                prove=part(PROOFS["approximations"], "moving"),
            ),
        ),
    ),
    statement(
        "Section 7, residual connection",
        "Local distinct and common tokens",
        "With the query's vector added, classes of one query overlap by a half more, and Theorem 2 is said to hold"
        " within the classes of each query: tokens distinct among these gain, tokens common to these lose.",
        r"\bar u_T = \mathrm{LN}(\mathrm{LN}(\hat u_T) + u_{x_T}):\quad \beta_{nn'} \approx f_n^Tf_{n'} +"
        r" 1[\psi(n)=\psi(n')],\quad \dot z_{ml} > 0 \text{ for } l \text{ distinct within } \psi^{-1}(m)",
        corrected=rf"\beta_{{nn'}} \approx {f.OWN_BETA}\left(f_n^Tf_{{n'}} + 1\right) \text{{ for }} \psi(n)=\psi(n'),"
        r"\ c = |\psi^{-1}(m)|;\quad \text{a token of one class of every query: } \dot z_{ml} > 0 \text{ for }"
        rf" f_{{nl}}^2 < {f.ONE_LOCAL_SHARE}f_{{n0}}^2,\ < 0 \text{{ above; }}\ \text{{ one in every class:}}"
        rf"\ {f.LOCAL_SHARE}f_{{n0}}^2",
        assumptions=(*ASSUMPTION_1, ZERO_DECODER, *DECODER, UNIFORM),
        errata=(
            RefutedInPart(
                "Of Q queries of c equal classes each, with a token common to the classes of each query (f_n0), a token"
                " of one class of every query (f_nl) loses attention from f_nl^2 = f_n0^2"
                f" {f.one_local_share} on, and from f_n0^2 {f.local_share} on if every class has such a token, to first"
                " order in the squares.",
                stands="Tokens common within a query lose, and tokens of a single class gain. With beta between queries"
                " neglected, as the section does, so does every locally distinct token.",
                quoted="Theorem 2 holds with local distinct and common tokens within psi^{-1}(m).",
                setting="Q = {queries}, c = {each}, M = {m:,}, f_n0 = {common:g} and f_nl = {shared:g}",
                found="a locally distinct token that one class of either query has moves at {speed:.1e} in units of"
                " eta_Z gamma/K: it loses. The thresholds are {edge:g} f_n0^2, and {every:g} f_n0^2 with such a token"
                " in every class.",
                numbers=_LOCAL,
            ),
            Remark(
                "beta_nn' ~ f_n.f_n' + 1[psi(n) = psi(n')] is right in its order: beta is the larger within queries."
                f" Its size there is {f.own_beta} times that, for c classes a query and weak overlaps."
            ),
        ),
        checks=(
            closed(
                "beta within a query, 200 random sets",
                residual.beta_printed,
                residual.beta_corrected,
                tolerance=0.15,
                remarked=True,
            ),
            closed("beta between queries smaller than within", residual.beta_apart),
            closed("tokens common within a query, or to all, that do not lose", residual.local_common),
            closed("tokens of one class that do not gain", residual.own_distinct),
            closed(
                "locally distinct tokens that do not gain", residual.local_distinct, residual.local_distinct_corrected
            ),
        ),
    ),
    statement(
        "Section 3.1, LayerNorm",
        "LayerNorm that subtracts the mean",
        "The analysis is said to extend to the usual LayerNorm, which subtracts the mean first. Theorem 1 does, with"
        " the Gram matrix of the centred features. Theorem 2(b) does for any number of classes where beta is positive"
        " and the common token's share above 1/M in each; Theorem 2(a) for tokens of a share of 1/M and more, where"
        " overlaps are not negative, but not for rare tokens.",
        r"\mathrm{LN}(x) = \frac{x - \bar x 1}{\|x - \bar x 1\|}:\quad \text{the analysis can be extended}",
        corrected=rf"\dot z_{{ml}} = {f.CENTRED_RATE},\quad \tilde f_n = \frac{{c_n - 1/M}}{{N_n}},\ N_n^2 = \|c_n\|^2"
        r" - \tfrac1M",
        assumptions=(*ASSUMPTION_1, ZERO_DECODER, *DECODER, UNIFORM),
        errata=(
            Remark(
                "The paper prints no inequality for it. Centred features have the overlap c_n . c_n' - 1/M, up to a"
                f" positive factor, and where it is below {f.least_overlap} of two classes, or of equal overlaps, beta"
                " is negative: under the modified decoder a common token of a share above 1/M then gains. In the full"
                " flow it loses all the same.",
                stands="Theorem 1 extends, with the Gram matrix of the centred features; Theorem 2(b) where beta is"
                " positive and the common token's share above 1/M; Theorem 2(a) for shares of 1/M and more and overlaps"
                " that are not negative.",
                quoted="our analysis can also be extended to standard LayerNorm, which also subtracts the mean.",
            ),
            Remark(
                f"Rare distinct tokens gain only where {f.distinct_push} > 0, kappa = c_n . c_n' - 1/M. Of two classes"
                f" of shares {_RARE['common'][0]:g} and {_RARE['common'][1]:g} of the common token, one and"
                f" {_RARE['others']}"
                " tokens of their own, one more in the second loses attention below a share of"
                f" {_RARE['border']:.2g}/M (M = {_RARE['m']})."
            ),
        ),
        clauses=(
            Clause(
                "the velocity",
                rf"\dot z_{{ml}} = {f.CENTRED_RATE}",
                prove=part(PROOFS["layer_norm"], "velocity"),
            ),
            Clause(
                "a single common token",
                rf"\dot z_{{ml}} < 0 \text{{ for }} \beta_{{nn'}} > 0,\ p_n > \tfrac1M;\quad n' \text{{ takes }}"
                rf" \beta_{{nn'}}\left({f.COMMON_PULL}\right) \text{{ of }} n",
                prove=part(
                    PROOFS["layer_norm"],
                    "common",
                    prose=("the spread e_n is a sum of squares", "a sum of positive terms is positive"),
                ),
                checks=(
                    closed("common tokens of 200 random sets with beta > 0 that do not lose", centred.common_several),
                ),
            ),
            Clause(
                "distinct tokens",
                rf"n' \text{{ adds }} \beta_{{nn'}}\left({f.DISTINCT_PUSH}\right),\quad \kappa = c_n^Tc_{{n'}} -"
                r" \tfrac1M:\quad \dot z_{ml} > 0 \text{ for } c_{nl} \ge \tfrac1M,\ \kappa \ge 0,\ \beta_{nn'} > 0",
                prove=part(PROOFS["layer_norm"], "distinct", prose=("a sum of positive terms is positive",)),
                checks=(closed("rare distinct tokens on the wrong side of that", centred.distinct_corrected),),
            ),
            Clause(
                "the sign of beta, two classes or equal overlaps",
                rf"\beta > 0 \text{{ for }} \tilde f_n^T\tilde f_{{n'}} > {f.LEAST_OVERLAP},\ < 0 \text{{ below}};\quad"
                rf" \text{{equal classes: }} {f.BORDER} > 0,\ \text{{hence }} p > \tfrac{{2}}{{M+1}}",
                prove=part(PROOFS["layer_norm"], "beta", prose=("squares of shares add up to their sum's at most",)),
                checks=(
                    closed("common tokens of 200 random pairs on the wrong side of that", centred.common_corrected),
                ),
            ),
            Clause(
                "other overlaps of three classes and more",
                rf"\tilde f_n^T\tilde f_{{n'}} > {f.LEAST_OVERLAP}",
                not_examined=("that some beta are negative there is seen; whether the common token can gain is open",),
            ),
        ),
    ),
)

# <!-- numbers
# typed: 200 (size in the code of a check, which its name tells)
# -->
