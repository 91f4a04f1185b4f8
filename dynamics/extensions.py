"""Extensions that Scan and Snap discusses, expressed through the same bags, layer and kernel.

A position bias is the argument ``position_bias`` of `sgd`, and in a flow `biased_sequences`; several heads are several
starts ``init`` of `sgd` or `gradient_flow`. The residual connection is `residual_connection`, and LayerNorm that
subtracts the mean `layer_norm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynamics._model.feed import bias_of, position_weights
from dynamics.bags import Bags, Data, population_of
from dynamics.layer import Layer
from dynamics.support import checks


def residual_connection(data: Data, *, inner_norm: bool = True) -> tuple[Bags, Layer]:
    r"""Bags and a start layer with a residual connection, LN(LN(X^T b) + x_T), as Section 7 prints it.

    Queries have vectors of their own, orthogonal to the token vectors, so that the feature is
    ``[LN(X^T b), e_query]/sqrt(2)``. Overlaps are (f_n . f_n' + 1[psi(n) = psi(n')])/2, where f_n is the feature
    without the connection. The connection is the option ``residual`` of `Layer`.

    With ``inner_norm=False`` the query is added to the attention-weighted sum itself, LN(X^T b + x_T). If attention is
    spread, the norm of this sum is far below one, so that the query outweighs it. Attention weights sum to one, so that
    X^T b + x_T = sum_l c_l (e_l + e_query): a fixed value matrix adds the query. Each query needs its own value matrix.
    So a token of the new bags is a pair (query m, token l), number m S + l, with the value ``e_l + e_{S + m}``; row m
    of Z acts on the pairs of query m only. Train with ``eta_v=0``, which keeps the value matrix fixed.

    Parameters
    ----------
    data : Bags, or an object with a method ``population()`` that returns Bags
    inner_norm : bool
        Whether the attention-weighted sum is normalised before the query is added.

    Returns
    -------
    bags : Bags
        The bags of ``data``, or bags of pairs with ``inner_norm=False``.
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
        class_names=bags.class_names,
        query_names=bags.query_names,
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


def layer_norm(data: Data, *, width: int | None = None) -> tuple[Bags, Layer]:
    """Bags and a start layer whose LN subtracts the mean over ``width`` tokens before it divides by the norm.

    Train with ``eta_v=0``, which keeps the value matrix, an identity, fixed.

    Parameters
    ----------
    data : Bags, or an object with a method ``population()`` that returns Bags
    width : int, optional
        Entries of X^T b, at least the contextual tokens. Default: the vocabulary M, or the tokens if these are more.

    Returns
    -------
    bags : Bags
        The bags of ``data``.
    layer : Layer
        Z: (queries, tokens), Y: (width, next tokens), V: (tokens, width).

    Source: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Section 3.1.
    """
    bags = population_of(data)
    default = max(bags.vocab_size, bags.n_tokens)
    width = default if width is None else checks.integer("width", width, minimum=bags.n_tokens)
    start = Layer.zeros(bags)
    Y = np.zeros((width, start.Y.shape[1]))
    return bags, Layer(start.Z, Y, np.eye(bags.n_tokens, width), start.multiplicity, center=True)


def biased_sequences(
    data: Data,
    n: int,
    *,
    length: int,
    position_bias: float | Sequence[float],
    rng: int | np.random.Generator = 0,
) -> Bags:
    """Finite sequences with a position bias, as bags: `gradient_flow` takes them in place of a population.

    The token at distance j = 0, 1, .. before the last contextual token counts w_j = exp(-b j), or exp(-b_j), as in
    `sgd` with the argument ``position_bias``. The flow on many sequences is the limit of this SGD at small learning
    rates. At Z = 0 the shares of a sequence vary as those of (sum_j w_j)^2 / sum_j w_j^2 unbiased tokens. With a slope
    b, this number tends to coth(b/2) for long sequences: noise remains in the limit T -> infinity. With b_j within a
    fixed range, the noise vanishes, and the limit is the same as without a bias. If the tokens of a class are drawn
    independently, the bias shortens sequences, and prefers no token.

    Parameters
    ----------
    data : Bags, or an object with a method ``population()`` that returns Bags
        Tokens are drawn from the counts of each bag.
    n : int
        Number of sequences.
    length : int
        T of each, query included.
    position_bias : float or sequence of float
        b >= 0, or T - 1 numbers b_j.
    rng : int or numpy.random.Generator

    Returns
    -------
    Bags
        Sequences, each with the weight 1/n.

    Source: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Section 7.
    """
    bags = population_of(data)
    n, positions = checks.integer("n", n, minimum=1), checks.integer("length", length, minimum=2) - 1
    weight = position_weights(bias_of("position_bias", position_bias), positions)
    checks.fits_in_memory("n", 24 * n * min(positions, bags.n_tokens) + 24 * positions, "draw sequences")
    generator = checks.generator("rng", rng)
    drawn = np.sort(generator.choice(len(bags), size=n, p=bags.weight / bags.weight.sum()))
    token, count, starts = [], [], [0]
    for bag in drawn:
        entries = slice(bags.indptr[bag], bags.indptr[bag + 1])
        share = bags.count[entries] / bags.count[entries].sum()
        total = np.bincount(generator.choice(share.size, size=positions, p=share), weight, minlength=share.size)
        token.append(bags.token[entries][total > 0])
        count.append(total[total > 0])
        starts.append(starts[-1] + token[-1].size)
    options: dict[str, Any] = bags.sizes | bags.names
    parts: tuple[Any, ...] = (
        bags.query[drawn],
        bags.target[drawn],
        starts,
        np.concatenate(token),
        np.concatenate(count),
    )
    return Bags(*parts, **options)
