r"""A residual link around attention: why balance is not enough for a standard GPT layer (Appendix C.7).

Wen, Li, Liu, Risteski (NeurIPS 2023, arXiv 2312.01429) say so in words; our text of the paper lacks the formula (49),
and the layer is read here as ``f = LN(x_q + sum_s c_s V_s)``, with attention c and the query's own vector x_q. After n
copies of every matched pair a balanced layer has ``sum_s c_s V_s = u_0 / (z_0 + n zeta)``: the stack u_0 stays what it
is (14) and the normaliser of softmax grows by ``zeta = sum over pairs of exp Z[q, open] + exp Z[q, close]``. Without
x_q LN takes the factor off. With it two stacks come as close as 1 / n, unless LN's projection takes x_q off, that is,
x_q is a multiple of the all-ones vector: the paper's exception.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike

from dynamics import Layer
from dynamics.support import checks
from yzflow_bounded_dyck import DyckLanguage, balance


def gathered(layer: Layer, language: DyckLanguage, n: int) -> dict[tuple[int, int], np.ndarray]:
    """``sum_s c_s V_s`` after n copies of every matched pair, for each closing query and stack.

    Returns
    -------
    dict
        (j, d) -> (k, .., k, width): the query close (j, d) of the condition, then the types w_1, .., w_d of the stack.
    """
    n = checks.integer("n", n, minimum=0)
    u = balance.contributions(layer, language, scaled=True)
    z = balance._masses(layer, scaled=True)
    opens, closes = balance.pairs(language)
    k, found = language.n_types, {}
    for j, row in enumerate(balance.queries(language)):
        for d, query in enumerate(row, start=1):
            stacks = np.indices((k,) * d).reshape(d, -1).T
            states = language.open(stacks, np.arange(1, d + 1))
            alone = [language.start, language.open(j, d + 1), language.close(j, d)]
            both = np.concatenate([opens.ravel(), closes.ravel()])
            total = u[query][states].sum(axis=1) + u[query][alone].sum(axis=0) + n * u[query][both].sum(axis=0)
            mass = z[query][states].sum(axis=1) + z[query][alone].sum() + n * z[query][both].sum()
            found[j, d] = (total / mass[:, None]).reshape(*(k,) * d, -1)
    return found


def distances(layer: Layer, language: DyckLanguage, n: int, *, queries: ArrayLike | None = None) -> np.ndarray:
    """Distances of the features of stacks that differ in their last bracket alone, after n copies of every pair.

    Parameters
    ----------
    layer : Layer
        Its Z and V, and whether LN takes off the mean, count.
    language : DyckLanguage
    n : int
    queries : (states, width), optional
        The vectors x_q of the residual link. Default: none, the layer (6).

    Returns
    -------
    (pairs,)
        Over closing queries, the types below the last, and pairs of last types. 2 at most.
    """
    sums = gathered(layer, language, n)
    width = language.n_states if layer.V is None else layer.V.shape[1]
    if queries is None:
        vectors = np.zeros((language.n_states, width))
    else:
        vectors = checks.finite_array("queries", queries, ndim=2)
    if vectors.shape != (language.n_states, width):
        rule = f"have a row for each of the {language.n_states} states, and {width} columns"
        raise checks.reject("queries", rule, f"shape {vectors.shape}")
    found: list[float] = []
    for (j, d), rows in sums.items():
        x = rows + vectors[language.close(j, d)]
        x = x - x.mean(axis=-1, keepdims=True) if layer.center or layer.means else x
        scale = np.abs(x).max(axis=-1, keepdims=True)  # whose square may be no number
        x = x / np.where(scale > 0, scale, 1)
        norm = np.linalg.norm(x, axis=-1, keepdims=True)
        f = x / np.where(norm > 0, norm, 1)
        for one, other in itertools.combinations(range(language.n_types), 2):
            found.extend(np.linalg.norm(f[..., one, :] - f[..., other, :], axis=-1).ravel())
    return np.array(found)


def least_loss(distance: ArrayLike, lipschitz: float) -> np.ndarray:
    r"""The smallest mean loss, per closing bracket, of a head on two features that must name different types, nats.

    A head of Lipschitz constant gamma has logits a and a' with ``|a - a'| <= gamma distance``, so that the mean over
    both of the margin of the right type over the other is ``t <= gamma distance / sqrt 2``. By convexity the mean
    cross-entropy is at least ``ln(1 + exp(-t))``. A linear head attains it.
    """
    gap = checks.non_negative_array("distance", distance)
    return np.logaddexp(0, -checks.positive("lipschitz", lipschitz) * gap / np.sqrt(2))


def closed_form(layer: Layer, language: DyckLanguage) -> tuple[float, float]:
    r"""Smallest and largest ``lim n |A_n - A'_n|`` for the two sums that `distances` compares, in a balanced layer.

    ``A_n = u_0 / (z_0 + n zeta)``, so that the limit is ``|u_0 - u_0'| / zeta``: what the residual link adds to is
    told apart by as little as 1 / n.
    """
    u = balance.contributions(layer, language, scaled=True)
    if min(language.n_types, language.max_depth) < 2:
        raise checks.reject("language", "have at least two types and depths", language)
    z = balance._masses(layer, scaled=True)
    states = np.concatenate([part.ravel() for part in balance.pairs(language)])
    limits = []
    for row in balance.queries(language):
        for d, query in enumerate(row, start=1):
            last = u[query][language.open(np.arange(language.n_types), d)]
            zeta = z[query][states].sum()
            limits += [np.linalg.norm(a - b) / zeta for a, b in itertools.combinations(last, 2)]
    return float(min(limits)), float(max(limits))


def linked_rate(layer: Layer, language: DyckLanguage, queries: ArrayLike) -> np.ndarray:
    r"""``lim n |f_n - f'_n|`` of the distances that `distances` returns, in a balanced layer: (pairs,).

    ``|(I - x x^T) P (u_0 - u_0')| / (zeta |P x_q|)`` with x = LN(x_q) (`yzflow_bounded_dyck.proofs.link`).

    Parameters
    ----------
    layer : Layer
        Balanced; its Z and V, and whether LN takes off the mean, count.
    language : DyckLanguage
    queries : (states, width)
        The vectors x_q, of which none at a closing query of the condition is zero behind P.
    """
    u = balance.contributions(layer, language, scaled=True)
    vectors = checks.finite_array("queries", queries, ndim=2)
    if vectors.shape != (language.n_states, u.shape[2]):
        rule = f"have a row for each of the {language.n_states} states, and {u.shape[2]} columns"
        raise checks.reject("queries", rule, f"shape {vectors.shape}")
    whole = np.linalg.norm(vectors, axis=1)
    if layer.center or layer.means:
        vectors = vectors - vectors.mean(axis=1, keepdims=True)
    z = balance._masses(layer, scaled=True)
    states = np.concatenate([part.ravel() for part in balance.pairs(language)])
    found: list[float] = []
    for row in balance.queries(language):
        for d, query in enumerate(row, start=1):
            size = np.linalg.norm(vectors[query])
            if size <= 1e-12 * whole[query]:  # what rounding leaves of the ones
                raise checks.reject("queries", "not be zero behind LN's projection", f"row {query}")
            unit, zeta = vectors[query] / size, z[query][states].sum()
            last = u[query][language.open(np.arange(language.n_types), d)]
            rates = []
            for one, other in itertools.combinations(last, 2):
                apart = one - other
                rates.append(float(np.linalg.norm(apart - unit * (unit @ apart)) / (zeta * size)))
            found.extend(np.repeat(rates, language.n_types ** (d - 1)))
    return np.array(found)


def layer_on_a_line(language: DyckLanguage, rng: np.random.Generator | int | None = None) -> tuple[Layer, np.ndarray]:
    r"""A layer and a residual link, right at every length, with another vector x_q at each closing query.

    A right layer has ``P (V_o e^x + V_c e^y + (e^x + e^y) x_q) = 0`` for each pair, so that -P x_q lies between the
    values of its two brackets: those of all closing queries are on one line. Here that line is the first axis: ``V_o =
    a``, ``V_c = -b``, ``x_q = s_q``, and the logits of closed brackets are ``ln((a + s_q) / (b - s_q))``, so that
    neither (11) nor (14) holds for V. A stack is the number ``s_q + sum (a + s_q)`` over unmatched brackets, beside
    START's one.

    Returns
    -------
    layer : Layer
        Values of width 2.
    queries : (states, 2) array
        The vectors x_q, zero but at `balance.queries`.
    """
    generator = checks.generator("rng", rng)
    opens, closes = balance.pairs(language)
    a, b = generator.uniform(1, 2, (2, *opens.shape))
    s = np.zeros(language.n_states)
    chosen = balance.queries(language).ravel()
    s[chosen] = generator.uniform(-0.5, 0.5, chosen.size)
    Z, V = np.zeros((language.n_states,) * 2), np.zeros((language.n_states, 2))
    Z[:, closes] = np.log((a + s[:, None, None]) / (b - s[:, None, None]))
    V[opens, 0], V[closes, 0], V[language.start, 1] = a, -b, 1
    return Layer(Z, np.zeros((2, language.n_brackets)), V), np.column_stack([s, np.zeros_like(s)])
