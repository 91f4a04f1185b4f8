"""Extensions that Section 7 of Scan and Snap discusses, expressed through the same bags, layer and kernel.

A linear position bias is the argument ``position_bias`` of `sgd`, and in a flow `position_prior`; several heads are
several starts ``init`` of `sgd` or `gradient_flow`. The residual connection is `residual_connection`.
"""

from __future__ import annotations

import numpy as np

from dynamics.bags import Bags, Data, population_of
from dynamics.layer import Layer
from dynamics.support import checks


def residual_connection(data: Data, *, inner_norm: bool = True) -> tuple[Bags, Layer]:
    r"""Bags and a start layer to which the query token is added: LN(LN(X^T b) + x_T), as Section 7 prints it.

    Queries have vectors of their own, orthogonal to those of the tokens, so that the feature is
    ``[LN(X^T b), e_query]/sqrt(2)``: overlaps are (f_n . f_n' + 1[psi(n) = psi(n')])/2, with f_n those without the
    connection. It is an option of `Layer`.

    With ``inner_norm=False`` the query is added to the attention-weighted sum itself, LN(X^T b + x_T), whose norm is
    far below one where attention is spread, so that the query outweighs it. Attention weights sum to one, so that
    X^T b + x_T = sum_l c_l (e_l + e_query): a fixed value matrix does it. As each query needs its own, a token of the
    new bags is a pair (query m, token l), number m S + l, with the value ``e_l + e_{S + m}``; row m of Z acts on the
    pairs of query m only. Train with ``eta_v=0``, which keeps the value matrix fixed.

    Parameters
    ----------
    data : Bags, or an object with a method ``population()`` that returns Bags
    inner_norm : bool
        Whether what attention gathers is normalised before the query is added.

    Returns
    -------
    bags : Bags
        Those of ``data``; of pairs, with ``inner_norm=False``.
    layer : Layer
        Z: (queries, tokens), Y: (S + queries, next tokens); V: (pairs, S + queries) with ``inner_norm=False``.

    Examples
    --------
    >>> from dynamics import SequenceClasses, gradient_flow
    >>> bags, layer = residual_connection(SequenceClasses.syn_small())
    >>> flow = gradient_flow(bags, init=layer, eta_y=1.0, eta_z=1.0, t_end=10.0)
    >>> bags, layer = residual_connection(SequenceClasses.syn_small(), inner_norm=False)
    >>> flow = gradient_flow(bags, init=layer, eta_y=1.0, eta_z=1.0, eta_v=0.0, t_end=10.0)

    Source: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Section 7.
    """
    bags = population_of(data)
    n_queries, n_tokens = bags.n_queries, bags.n_tokens
    if checks.flag("inner_norm", inner_norm):
        start = Layer.zeros(bags)
        Y = np.zeros((n_tokens + n_queries, start.Y.shape[1]))
        return bags, Layer(start.Z, Y, None, start.multiplicity, residual=True)
    pair = bags.query[bags.owner] * n_tokens + bags.token
    paired = Bags(
        bags.query,
        bags.target,
        bags.indptr,
        pair,
        bags.count,
        bags.weight,
        n_queries=n_queries,
        n_tokens=n_queries * n_tokens,
        vocab_size=bags.vocab_size,
    )
    query, token = np.divmod(np.arange(n_queries * n_tokens), n_tokens)
    values = np.eye(n_tokens + n_queries)
    start = Layer.zeros(bags)
    layer = Layer(
        np.zeros((n_queries, n_queries * n_tokens)),
        np.zeros((n_tokens + n_queries, start.Y.shape[1])),
        values[token] + values[n_tokens + query],
        start.multiplicity,
    )
    return paired, layer
