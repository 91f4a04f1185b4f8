r"""Several attention heads, with or without a residual link before LN: what balance asks of them together.

Wen, Li, Liu, Risteski (NeurIPS 2023, arXiv 2312.01429) leave this open (Appendix B.2). A head is a `dynamics.Layer`, of
which Z and V count; the layer is ``f = LN(x_q + sum_h sum_s c_hs V_hs)``, without x_q in (6). At a query a kind p of
pair has in head h the value ``delta_hp = V_o e^x + V_c e^y`` and the mass ``zeta_hp = e^x + e^y``. Behind many pairs,
n_p of a kind, the sum tends to ``x_q + sum_h sum_p n_p delta_hp / sum_p n_p zeta_hp`` (`left_of_pairs`), whatever the
stack: a layer that is right at every length leaves nothing (`yzflow_bounded_dyck.proofs.heads`). That does not ask for
(14) or (11) in each head: `opposite_heads` have neither, and `shifted_heads` not the first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynamics import Bags, Layer
from dynamics.support import checks
from yzflow_bounded_dyck import DyckLanguage, balance
from yzflow_bounded_dyck.networks import ReluNetwork


def _heads(heads: Sequence[Layer], states: int | None = None) -> list[Layer]:
    """The argument ``heads``, checked: layers of one shape that have values, and LN or a link to come."""
    found = [checks.instance("heads", one, Layer) for one in checks.listed("heads", heads, "hold a layer or more")]
    if not found:
        raise checks.reject("heads", "hold a layer or more", "none")
    for one in found:
        if one.V is None or one.floor > 0 or one.normalisation is None:
            raise checks.reject("heads", "have values V, and LN without a floor", repr(one))
        if np.shape(one.V) != np.shape(found[0].V) or one.center != found[0].center:
            rule = f"have values of the shape {np.shape(found[0].V)} and one kind of LN"
            raise checks.reject("heads", rule, f"shape {np.shape(one.V)}")
    if states is not None and len(found[0].Z) != states:
        raise checks.reject("heads", f"have {states} states", len(found[0].Z))
    return found


def _link(link: ArrayLike | None, heads: list[Layer]) -> np.ndarray:
    """The vectors x_q of the residual link, zero where there is none."""
    shape = np.shape(heads[0].V)
    if link is None:
        return np.zeros(shape)
    vectors = checks.finite_array("link", link, ndim=2)
    if vectors.shape != shape:
        raise checks.reject("link", f"have the shape {shape}, a row a state", f"shape {vectors.shape}")
    return vectors


def features(heads: Sequence[Layer], bags: Bags, *, link: ArrayLike | None = None) -> np.ndarray:
    """``LN(x_q + sum_h sum_s c_hs V_hs)``: (bags, width). LN takes off the mean where the heads do.

    Parameters
    ----------
    heads : sequence of Layer
        With values of one shape, and LN without a floor.
    bags : Bags
    link : (states, width) array, optional
        The vectors x_q. Default: none, the layer (6).
    """
    found = _heads(heads)
    checks.instance("bags", bags, Bags)
    total = sum(one.attention(bags) @ one.V for one in found) + _link(link, found)[bags.query]
    if found[0].center:
        total = total - total.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(total, axis=1, keepdims=True)
    return np.asarray(total / np.where(norms > 0, norms, 1))


def _masses(heads: list[Layer], language: DyckLanguage) -> tuple[np.ndarray, np.ndarray]:
    """delta and zeta of each kind of pair, (heads, queries, k, D, width) and without width; rows of Z are scaled.

    Where LN subtracts the mean, values have their means taken off.
    """
    opens, closes = balance.pairs(language)
    logits = np.stack([one.Z / one.temperature for one in heads])
    # The largest logit of a pair: START's may be so much larger that no pair would be left.
    largest = logits[:, :, np.concatenate([opens.ravel(), closes.ravel()])].max(axis=2, keepdims=True)
    weights = np.exp(np.minimum(logits - largest, 0))
    values = np.stack([one.V for one in heads])
    if heads[0].center:
        values = values - values.mean(axis=2, keepdims=True)
    delta = weights[:, :, opens, None] * values[:, None, opens] + weights[:, :, closes, None] * values[:, None, closes]
    return delta, weights[:, :, opens] + weights[:, :, closes]


def _means(delta: np.ndarray, zeta: np.ndarray) -> np.ndarray:
    """``delta / zeta``; ValueError where a mass is lost to rounding."""
    if not zeta.all():
        raise checks.reject("heads", "have logits that leave each pair a mass: at most 700 apart at a query", "none")
    return np.asarray(delta / zeta[..., None])


def left_of_pairs(
    heads: Sequence[Layer], language: DyckLanguage, numbers: ArrayLike | None = None, *, link: ArrayLike | None = None
) -> np.ndarray:
    """The limit of the sum before LN behind many pairs: (kinds or mixtures, queries, width), without the mean's part.

    ``P (x_q + sum_h sum_p n_p delta_hp / sum_p n_p zeta_hp)``. A layer for two types or more that is right at every
    length has zero at each query close (j, d), 1 <= d <= D - 1 (`balance.queries`), for every mixture.

    Parameters
    ----------
    heads : sequence of Layer
    language : DyckLanguage
    numbers : (mixtures, k, D) array, optional
        Shares n_p of the kinds of pairs, by type and level. Default: each kind by itself, k D of them.
    link : (states, width) array, optional
        As in `features`.
    """
    checks.instance("language", language, DyckLanguage)
    found = _heads(heads, language.n_states)
    k, D = language.n_types, language.max_depth
    given = np.eye(k * D).reshape(-1, k, D) if numbers is None else numbers
    shares = checks.non_negative_array("numbers", given)
    if shares.shape[1:] != (k, D) or not (shares.reshape(len(shares), -1).sum(axis=1) > 0).all():
        raise checks.reject("numbers", f"be rows of {k} x {D} shares that are not all zero", f"shape {shares.shape}")
    delta, zeta = _masses(found, language)
    values = _means(np.einsum("mil,hqilv->mhqv", shares, delta), np.einsum("mil,hqil->mhq", shares, zeta))
    total: np.ndarray = values.sum(axis=1) + _link(link, found)
    return total - total.mean(axis=2, keepdims=True) if found[0].center else total


def own_constants(heads: Sequence[Layer], language: DyckLanguage) -> tuple[np.ndarray, np.ndarray]:
    """v_h, the mean over kinds of pairs of ``delta_hp / zeta_hp``, and the largest distance from it.

    In a layer that is right at every length, with heads whose masses are in different ratios, every kind of pair has
    ``delta_hp = zeta_hp v_h`` at a query: with the values ``V_s - v_h`` the head is balanced there by itself. Where LN
    subtracts the mean, values stand for what is left of them.

    Returns
    -------
    constants : (heads, queries, width) array
        At the queries of the condition, `balance.queries` without their shape.
    spread : (heads, queries) array
        0 where the head is balanced up to a constant.
    """
    checks.instance("language", language, DyckLanguage)
    delta, zeta = _masses(_heads(heads, language.n_states), language)
    rows = _means(delta, zeta)[:, balance.queries(language).ravel()]
    means = rows.mean(axis=(2, 3))
    return means, np.linalg.norm(rows - means[:, :, None, None], axis=-1).max(axis=(2, 3))


def shifted_heads(
    language: DyckLanguage, n_heads: int, rng: np.random.Generator | int | None = None, *, size: float = 1.0
) -> list[Layer]:
    """Heads with random attention, each balanced up to a constant; the constants sum to zero, and the layer is exact.

    ``V_hs + v_h`` with the values of a `balance.balanced_layer` each, on shared coordinates, and ``sum_h v_h = 0``.
    With one head v = 0. No head but a single one has (14).

    Parameters
    ----------
    language : DyckLanguage
    n_heads : int
    rng : numpy.random.Generator or seed, optional
    size : float
        Of the constants; 0 makes each head balanced.

    Examples
    --------
    >>> language = DyckLanguage(n_types=2, max_depth=3)
    >>> heads = shifted_heads(language, 3, rng=0)
    >>> bags = language.sample(100, max_length=500, rng=1)
    >>> bool(abs(stack_head(heads, language)(features(heads, bags)) - bags.target).max() < 1e-9)
    True
    """
    checks.instance("language", language, DyckLanguage)
    generator, n_heads = checks.generator("rng", rng), checks.integer("n_heads", n_heads, minimum=1)
    layers = [balance.balanced_layer(language, generator, decoder=False) for _ in range(n_heads)]
    constants = checks.real("size", size) * generator.normal(size=(n_heads, np.shape(layers[0].V)[1]))
    constants -= constants.mean(axis=0)
    return [Layer(one.Z, one.Y, one.V + own) for one, own in zip(layers, constants, strict=True)]


def opposite_heads(
    language: DyckLanguage, width: int, rng: np.random.Generator | int | None = None
) -> tuple[Layer, Layer]:
    """Two heads of equal random logits and opposite values: without (11) each, and together they gather nothing."""
    states = checks.instance("language", language, DyckLanguage).n_states
    generator, width = checks.generator("rng", rng), checks.integer("width", width, minimum=1)
    Z, V = generator.normal(size=(states, states)), generator.normal(size=(states, width))
    Y = np.zeros((width, language.n_brackets))
    return Layer(Z, Y, V), Layer(Z, Y, -V)


def stack_head(heads: Sequence[Layer], language: DyckLanguage) -> ReluNetwork:
    """The network of `balance.exact_head` for the `features` of several heads, from the least coordinate there.

    With w_h one over a head's normaliser, coordinates of unmatched brackets are ``sum_h w_h e^{Z_h}`` before LN,
    between r W and W for the smallest ratio r of a head's ``e^Z V`` over unmatched brackets and START. So LN leaves r
    / sqrt(k D + 1) of them at least.

    Raises
    ------
    ValueError
        If the heads, without constants that sum to zero, are not balanced on shared coordinates, one a pair. Pairs of
        heads that gather nothing together are to be left out.
    """
    checks.instance("language", language, DyckLanguage)
    found = _heads(heads, language.n_states)
    pairs = language.n_types * language.max_depth
    if np.shape(found[0].V)[1] != pairs + 1:
        raise checks.reject("heads", f"have {pairs + 1} columns of V", np.shape(found[0].V)[1])
    if found[0].center:
        raise checks.reject("heads", "leave `center` out: the network reads coordinates, without a mean off", True)
    delta, zeta = _masses(found, language)
    constants = _means(delta, zeta)[:, :, 0, 0]  # of each query; the same at every query in such heads
    opens = balance.pairs(language)[0].ravel()
    least = 1.0
    total = np.abs(constants.sum(axis=0)).max()
    for one, own in zip(found, constants, strict=True):
        plain = Layer(one.Z / one.temperature, one.Y, one.V - own[0])
        balance.smallest_coordinate(plain, language)
        u = balance.contributions(plain, language, scaled=True)
        sizes = np.column_stack([np.diagonal(u[:, opens, :pairs], axis1=1, axis2=2), u[:, -1, -1]])
        least = min(least, float((sizes.min(axis=1) / sizes.max(axis=1)).min()))
        total = max(total, np.abs(own - own[0]).max())
    if total > 1e-9 * max(1.0, np.abs(constants).max()):
        raise checks.reject("heads", "have constants that sum to zero", f"{total:.2g}")
    uniform = balance.balanced_layer(language, 0, scale=0.0, decoder=False)
    head = balance.exact_head(uniform, language)
    known = balance.smallest_coordinate(uniform, language) * np.sqrt(pairs + 1) / least
    return ReluNetwork((head.weights[0] * known, *head.weights[1:]), head.biases)
