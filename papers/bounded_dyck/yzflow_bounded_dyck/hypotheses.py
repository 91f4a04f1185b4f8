r"""Layers that lack one hypothesis of Theorem 1 each, and the head behind the layer (6) of the paper.

Wen, Li, Liu, Risteski (NeurIPS 2023, arXiv 2312.01429). A matched pair must add nothing where there are several types;
with one type a bracket's depth says all, and a layer can tell depths apart although its pairs add something
(`one_type_layer`). Balance is sufficient where the encodings of all states, of START too, are linearly independent
(`encoded_layer`). The condition (11) speaks of closing queries of depth 1 to D - 1. That is enough in the paper's layer
(6), whose residual link behind LN tells the query (`linked_head`); without it (11) must hold at all queries
(`balanced_at_closing_queries`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics import Bags, Layer
from dynamics.support import checks
from yzflow_bounded_dyck import DyckLanguage, balance
from yzflow_bounded_dyck.networks import ReluNetwork


def one_type_layer(language: DyckLanguage) -> Layer:
    """A layer for one type of brackets that tells depths apart at every length, and whose pairs add something.

    V_open = a, V_close = b and V_START = a + b for orthonormal a, b; a query of depth d has the logit -ln(1 + d) for
    closed brackets and 0 for all others. After C closed brackets the sum before LN is (1 + d + C) (a + b / (1 + d)),
    so that features are a function of the depth alone. A pair adds a + b / (1 + d), against (14), and the
    difference of (11) is ln(1 + d), which depends on the query.

    Parameters
    ----------
    language : DyckLanguage
        With one type.

    Returns
    -------
    Layer
        V has three columns, which sum to zero, so that LN may take off the mean.
    """
    if checks.instance("language", language, DyckLanguage).n_types != 1:
        raise checks.reject("language", "have one type", language)
    opens, closes = balance.pairs(language)
    depth = np.array([state.depth for state in language.states])
    Z = np.zeros((language.n_states,) * 2)
    Z[:, closes.ravel()] = -np.log1p(depth)[:, None]
    one, other = np.array([1, -1, 0]) / np.sqrt(2), np.array([1, 1, -2]) / np.sqrt(6)
    V = np.zeros((language.n_states, 3))
    V[opens.ravel()], V[closes.ravel()], V[language.start] = one, other, one + other
    return Layer(Z, np.zeros((3, language.n_brackets)), V)


def balanced_at_closing_queries(language: DyckLanguage, rng: np.random.Generator | int | None = None) -> Layer:
    """A `balance.balanced_layer` that keeps (11) at closing queries of depth 1 to D - 1 only.

    The logits of all other queries are drawn anew.
    """
    generator = checks.generator("rng", rng)
    layer = balance.balanced_layer(language, generator)
    Z = generator.normal(size=np.shape(layer.Z))
    kept = balance.queries(language).ravel()
    Z[kept] = layer.Z[kept]
    return Layer(Z, layer.Y, layer.V)


def encoded_layer(layer: Layer, encodings: ArrayLike) -> Layer:
    """The closest second layer to ``layer`` that reads encodings of the states.

    ``Z = E W E^T`` and ``V = E W_V`` with the matrices of least squares. If the rows of E are linearly independent, the
    result equals ``layer``.

    Parameters
    ----------
    layer : Layer
        With V.
    encodings : (states, width) array
        E, the outputs e(s) of a minimal first layer (Definition 2), START last.
    """
    states = len(checks.instance("layer", layer, Layer).Z)
    E = checks.finite_array("encodings", encodings, ndim=2)
    if E.shape[0] != states or E.shape[1] == 0:
        raise checks.reject("encodings", f"have a row for each of the {states} states", f"shape {E.shape}")
    if layer.V is None:
        raise checks.reject("layer", "have V", "none")
    back = np.linalg.pinv(E)
    return Layer(E @ (back @ layer.Z @ back.T) @ E.T, layer.Y, E @ (back @ layer.V), center=layer.center)


def linked_features(layer: Layer, bags: Bags) -> np.ndarray:
    """Input of the network in the layer (6): LN of the sum, beside the query's own encoding.

    The encodings are one-hot here, in dimensions of their own: (bags, width + states).
    """
    features = checks.instance("layer", layer, Layer).features(bags)
    return np.hstack([features, np.eye(len(layer.Z))[bags.query]])


def linked_head(layer: Layer, language: DyckLanguage) -> ReluNetwork:
    """A network with three layers of weights that is exact behind `linked_features` at every length.

    With h as in `balance.exact_head`, ``t_il = relu(h_il + sum_j [q = close(j, l)] - 1)`` is the last unmatched bracket
    of a closing query of depth l. Any other query alone decides the next token: an open bracket, a closed bracket of
    depth 0, or START.

    Raises
    ------
    ValueError
        If the layer has not the form of `balanced_at_closing_queries`.
    """
    k, D = checks.instance("language", language, DyckLanguage).n_types, language.max_depth
    n_pairs = k * D
    smallest = balance.smallest_coordinate(layer, language, balance.queries(language).ravel())
    states, asked = language.n_states, balance.queries(language)
    alone = np.setdiff1d(np.arange(states), asked)  # queries that say what comes next
    first = np.zeros((2 * n_pairs + states, n_pairs + 1 + states))
    first[:n_pairs, :n_pairs] = first[n_pairs : 2 * n_pairs, :n_pairs] = 2 / smallest * np.eye(n_pairs)
    first[2 * n_pairs :, n_pairs + 1 :] = np.eye(states)
    second = np.zeros((n_pairs + alone.size, 2 * n_pairs + states))
    second[:n_pairs, : 2 * n_pairs] = np.hstack([np.eye(n_pairs), -np.eye(n_pairs)])
    for pair in range(n_pairs):
        if (depth := pair % D + 1) < D:
            second[pair, 2 * n_pairs + asked[:, depth - 1]] = 1
    second[n_pairs + np.arange(alone.size), 2 * n_pairs + alone] = 1
    by_stack = [language.next_token([0] * level + [2 * kind]) for kind in range(k) for level in range(D)]
    third = np.column_stack([*by_stack, *(_alone(language, state) for state in alone)])
    biases = (
        np.concatenate([np.repeat([-1.0, -2.0], n_pairs), np.zeros(states)]),
        np.repeat([-1.0, 0.0], [n_pairs, alone.size]),
        np.zeros(2 * k),
    )
    return ReluNetwork((first, second, third), biases)


def _alone(language: DyckLanguage, state: int) -> np.ndarray:
    """The next token after a query that decides it alone."""
    one = language.states[state]
    text = [] if one.type is None or one.kind != "open" else [0] * (one.depth - 1) + [2 * one.type]
    return language.next_token(text)
