r"""The balance condition of Wen, Li, Liu, Risteski (NeurIPS 2023, arXiv 2312.01429) on a layer over Dyck states.

A pair of matched brackets must not change the layer's output. The output depends on ``LN(sum_s count_s u(q, s))`` only,
with ``u(q, s) = V_s exp(Z[q, s])`` (12). Insert n pairs (i, l) before a closing query q: the sum changes by n delta,
``delta = u(q, open(i, l)) + u(q, close(i, l - 1))``. Unless delta = 0 (14), the LN tends to delta / ||delta|| and
forgets the stack.

The condition's queries are the states close (j, d) with 1 <= d <= D - 1; every other query alone decides the next
token. Types count from 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynamics import Bags, Layer
from dynamics.support import checks
from yzflow_bounded_dyck import DyckLanguage
from yzflow_bounded_dyck._decoders import closing_weights
from yzflow_bounded_dyck.languages import Language
from yzflow_bounded_dyck.networks import ReluNetwork

# Most numbers that the search for the minimum of (16) may hold at once in its partial sums.
_MOST_NUMBERS = 20_000_000


def _fit(name: str, array: np.ndarray, language: Language, kind: type = DyckLanguage) -> None:
    checks.instance("language", language, kind)
    if array.shape[-2:] != (language.n_states,) * 2:
        raise checks.reject(
            name, f"have a row and a column for each of the {language.n_states} states", f"shape {array.shape}"
        )


def queries(language: DyckLanguage) -> np.ndarray:
    """States close (j, d), d = 1..D - 1, whose next bracket depends on the earlier brackets: (k, D - 1)."""
    checks.instance("language", language, DyckLanguage)
    types, depths = np.arange(language.n_types), np.arange(1, language.max_depth)
    return language.close(types[:, None], depths)


def pairs(language: DyckLanguage) -> tuple[np.ndarray, np.ndarray]:
    """The states open (i, l) and their partners close (i, l - 1), l = 1..D: two (k, D) arrays."""
    checks.instance("language", language, DyckLanguage)
    opens = language.open(np.arange(language.n_types)[:, None], np.arange(1, language.max_depth + 1))
    return opens, np.reshape(language.partner(opens.ravel()), opens.shape)


def residual(Z: ArrayLike, language: DyckLanguage) -> np.ndarray | float:
    """Distance of attention logits from the balance condition (11).

    (11) says that ``Z[q, open(i, l)] - Z[q, close(i, l - 1)]`` is the same for all queries q = close (j, d) with
    1 <= d <= D - 1. The residual is its largest spread (maximum minus minimum over q) over all (i, l).

    Parameters
    ----------
    Z : (.., states, states)
        Attention logits, for example ``trajectory.dataset["z"]``; leading axes are kept.
    language : DyckLanguage

    Returns
    -------
    float, or array over the leading axes
        0 exactly where (11) holds, in the unit of Z. 0 for D = 1 too, which has no such query.

    Raises
    ------
    ValueError
        If the last two axes do not have the size of the language.
    """
    Z = checks.finite_array("Z", Z)
    _fit("Z", Z, language)
    opens, closes = pairs(language)
    rows = Z[..., queries(language).ravel(), :]
    if rows.shape[-2] == 0:
        spread = np.zeros(Z.shape[:-2])
    else:
        spread = np.ptp(rows[..., opens.ravel()] - rows[..., closes.ravel()], axis=-2).max(axis=-1)
    return spread if spread.ndim else float(spread)


def contributions(layer: Layer, language: Language, *, scaled: bool = False) -> np.ndarray:
    """``u(q, s) = V_s exp(Z[q, s])`` (12) for all states q and s: (states, states, width of V).

    ``scaled``: every row of Z has its maximum subtracted first. Features do not change with the scale of a row. Where
    LN subtracts the mean, V_s stands for P V_s, with the mean taken off.
    """
    scaled = checks.flag("scaled", scaled)
    _fit("layer", checks.instance("layer", layer, Layer).Z, language, Language)
    if layer.floor > 0:
        # Refuse a floor: the scale grows with every inserted pair, and LN with a floor depends on it.
        raise checks.reject("layer", "have no floor in LN", layer.floor)
    if layer.normalisation is None:
        raise checks.reject("layer", "have LN, which takes the scale off", "normalisation None")
    values = np.eye(language.n_states) if layer.V is None else layer.V
    if layer.center or layer.means:
        values = values - values.mean(axis=1, keepdims=True)
    return _masses(layer, scaled)[:, :, None] * values


def _masses(layer: Layer, scaled: bool) -> np.ndarray:
    """``exp(Z[q, s])``, the masses of softmax; with ``scaled`` the largest of each row is one."""
    logits = layer.Z / layer.temperature
    return np.exp(logits - logits.max(axis=1, keepdims=True) if scaled else logits)


def insertions(layer: Layer, language: DyckLanguage, *, scaled: bool = False) -> np.ndarray:
    """delta of (14), ``u(q, open(i, l)) + u(q, close(i, l - 1))``: (queries, k, D, width), q over all states.

    Its norm at q = close (j, d) is S of (15).
    """
    u = contributions(layer, language, scaled=scaled)
    opens, closes = pairs(language)
    return u[:, opens] + u[:, closes]


def violation(layer: Layer, language: DyckLanguage) -> float:
    """Balance violation: the mean of S / P over types i, j, depths d = 1..D - 1 and levels d' = 1..D (Section 4.2).

    S is (15), the norm of what one matched pair adds before LN. P is (17): with ``Q(w) = u(q, START) + sum_{l <= d}
    u(q, open(w_l, l)) + u(q, open(j, d + 1)) + u(q, close(j, d))`` (16), w* the minimiser of ||Q|| and w' the
    minimiser among the w whose last type is another, P = ||Q(w')||. The paper does not give the weights of the mean;
    they are uniform here. Minima are exact, by branch and bound over the types level by level.

    Returns
    -------
    float
        0 exactly where inserting matched pairs changes nothing; inf where S > 0 = P.

    Raises
    ------
    ValueError
        If the layer has another size, the language has k = 1 or D = 1 (where nothing before a closing query matters),
        or the search would hold more than 20 million numbers, which takes k^(D - 1) times the width of V to be larger.
    """
    checks.instance("language", language, DyckLanguage)
    if min(language.n_types, language.max_depth) < 2:
        raise checks.reject("language", "have at least two types and depths", language)
    scales = np.linalg.norm(insertions(layer, language, scaled=True), axis=-1)
    u = contributions(layer, language, scaled=True)
    ratios = []
    for j, row in enumerate(queries(language)):
        for d, query in enumerate(row, start=1):
            size = _second_smallest(u[query], language, j, d)
            # 0 / 0 counts as 0: nothing was added.
            ratios.append([s / size if size > 0 else np.inf if s > 0 else 0.0 for s in scales[query].ravel()])
    return float(np.mean(ratios))


def _second_smallest(u: np.ndarray, language: DyckLanguage, j: int, d: int) -> float:
    """P of (17) for the query close (j, d), from its contributions ``u`` (states, width)."""
    fixed = u[language.start] + u[language.open(j, d + 1)] + u[language.close(j, d)]
    types = np.arange(language.n_types)
    levels = [u[language.open(types, level)] for level in range(1, d)]
    smallest = [_smallest_norm(fixed + last, levels) for last in u[language.open(types, d)]]
    return sorted(smallest)[1]


def _smallest_norm(fixed: np.ndarray, levels: list[np.ndarray]) -> float:
    """Minimum of ||fixed + sum_l x_l|| with each x_l a row of ``levels[l]``.

    Branch and bound, level by level, wide levels first. The remaining terms lie in a ball around the sum of the levels'
    means. A partial sum is dropped if its nearest point is further than another partial sum's furthest point.
    """
    centres = [level.mean(axis=0) for level in levels]
    radii = [np.linalg.norm(level - centre, axis=1).max() for level, centre in zip(levels, centres, strict=True)]
    rest, radius = sum(centres, np.zeros_like(fixed)), sum(radii)
    sums = fixed[None]
    for index in np.argsort(radii)[::-1]:
        rest, radius = rest - centres[index], max(radius - radii[index], 0.0)
        size = sums.size * len(levels[index])
        if size > _MOST_NUMBERS:
            raise checks.reject("language", f"leave at most {_MOST_NUMBERS:,} numbers to search", f"{size:,}")
        sums = (sums[:, None] + levels[index]).reshape(-1, fixed.size)
        distance = np.linalg.norm(sums + rest, axis=1)
        sums = sums[distance - radius <= (distance.min() + radius) * (1 + 1e-12)]
    return float(np.linalg.norm(sums, axis=1).min())


def balancing_values(Z: ArrayLike, language: DyckLanguage) -> np.ndarray:
    """A value matrix that balances any attention logits with (11) for all queries: (states, k D + 1).

    ``V_open(i, l) = e_il`` and ``V_close(i, l - 1) = -exp(c_il) e_il`` with c_il the query's average of
    ``Z[q, open(i, l)] - Z[q, close(i, l - 1)]``, which under (11) does not depend on q; START has the last coordinate.
    """
    Z = checks.finite_array("Z", Z, ndim=2)
    _fit("Z", Z, language)
    opens, closes = (states.ravel() for states in pairs(language))
    values = np.zeros((language.n_states, opens.size + 1))
    values[opens, np.arange(opens.size)] = 1
    values[closes, np.arange(opens.size)] = -np.exp((Z[:, opens] - Z[:, closes]).mean(axis=0))
    values[language.start, -1] = 1
    return values


def balanced_layer(
    language: DyckLanguage,
    rng: np.random.Generator | int | None = None,
    *,
    scale: float = 1.0,
    decoder: bool = True,
) -> Layer:
    """A layer with random attention that is exactly balanced, so that its features are the stack.

    With R (states by pairs), a and b random normal of standard deviation ``scale``:
    ``Z[q, open(i, l)] = R[q, il] + a_il``, ``Z[q, close(i, l - 1)] = R[q, il] + b_il``, ``V_open(i, l) =
    exp(-a_il) e_il``, ``V_close(i, l - 1) = -exp(-b_il) e_il``; START has any logits and its own coordinate. Then
    ``u = sum over unmatched (i, l) of exp(R[q, il]) e_il``, plus START's. `exact_head` reads it off.

    Y reads the type of the next closing bracket: a deeper bracket outweighs all others at its query. Y's weights grow
    with the level, by a factor that grows with ``scale`` and k. So do the rounding errors of deep matched pairs: after
    very many such pairs in a deep language, `exact_head` still reads the stack, but Y does not.

    Parameters
    ----------
    language : DyckLanguage
    rng : numpy.random.Generator or seed, optional
        Default: fresh randomness.
    scale : float
        Non-negative; 0 is uniform attention (Corollary 1).
    decoder : bool
        False leaves Y zero, for `exact_head` and others that read the features alone.

    Returns
    -------
    Layer
        Z (states, states), V (states, k D + 1), Y (k D + 1, 2 k).

    Raises
    ------
    ValueError
        If float64 cannot hold Y, because what rounding leaves of one matched pair could outweigh the last bracket.

    Examples
    --------
    Attention looks random, and the prediction is exact at any length.

    >>> language = DyckLanguage(n_types=2, max_depth=3)
    >>> layer = balanced_layer(language, rng=0)
    >>> bags = language.sample(100, max_length=500, rng=1)
    >>> errors = exact_head(layer, language)(layer.features(bags)) - bags.target
    >>> bool(np.abs(errors).max() < 1e-10)
    True
    """
    checks.instance("language", language, DyckLanguage)
    scale, decoder = checks.non_negative("scale", scale), checks.flag("decoder", decoder)
    checks.fits_in_memory("language", 3 * 8 * language.n_states**2, "make matrices over the states")
    generator = checks.generator("rng", rng)
    n_pairs = language.n_types * language.max_depth
    R = scale * generator.normal(size=(language.n_states, n_pairs))
    a, b = scale * generator.normal(size=(2, n_pairs))
    Z = np.column_stack([R + a, R + b, scale * generator.normal(size=language.n_states)])
    V = np.zeros((language.n_states, n_pairs + 1))
    V[np.arange(n_pairs), np.arange(n_pairs)] = np.exp(-a)
    V[n_pairs + np.arange(n_pairs), np.arange(n_pairs)] = -np.exp(-b)
    V[-1, -1] = 1
    Y = np.zeros((n_pairs + 1, language.n_brackets))
    if decoder:
        columns = 2 * (np.arange(n_pairs) // language.max_depth) + 1
        Y[np.arange(n_pairs), columns] = closing_weights(np.exp(R), language).ravel()
    return Layer(Z, Y, V)


def exact_head(layer: Layer, language: DyckLanguage) -> ReluNetwork:
    r"""The network that turns the features of a `balanced_layer` into the exact distribution of the next bracket.

    With f = LN(u) the features and delta the smallest coordinate that an unmatched bracket can have,
    ``h_il = relu(2 f_il / delta - 1) - relu(2 f_il / delta - 2)`` is 1 if (i, l) is unmatched, else 0;
    ``t_il = relu(h_il - sum_j h_{j, l + 1})`` tells the last unmatched one and ``e = relu(1 - sum_j h_j1)`` the empty
    stack; the output is ``sum t_il p(i, l) + e p(0)``. Three layers of weights, where the paper's construction has six.

    Returns
    -------
    ReluNetwork
        From features (.., k D + 1) to distributions (.., 2 k).

    Raises
    ------
    ValueError
        If the layer is not of the form that `balanced_layer` has.
    """
    checks.instance("language", language, DyckLanguage)
    k, D, n_pairs = language.n_types, language.max_depth, language.n_types * language.max_depth
    smallest = smallest_coordinate(layer, language)
    first = np.zeros((2 * n_pairs, n_pairs + 1))
    first[:n_pairs, :n_pairs] = first[n_pairs:, :n_pairs] = 2 / smallest * np.eye(n_pairs)
    steps = np.hstack([np.eye(n_pairs), -np.eye(n_pairs)])  # h from the two parts of it
    level = np.arange(n_pairs) % D
    covered = -1.0 * (level[:, None] + 1 == level)  # by an unmatched bracket one level deeper
    empty = -1.0 * (level == 0)
    second = np.vstack([np.eye(n_pairs) + covered, empty]) @ steps
    # The top of the stack decides: one prefix for each.
    targets = [language.next_token([0] * level + [2 * kind]) for kind in range(k) for level in range(D)]
    third = np.column_stack([*targets, language.next_token([])])
    biases = (np.repeat([-1.0, -2.0], n_pairs), np.append(np.zeros(n_pairs), 1.0), np.zeros(2 * k))
    return ReluNetwork((first, second, third), biases)


def smallest_coordinate(layer: Layer, language: DyckLanguage, queries: ArrayLike | None = None) -> float:
    """Smallest feature of an unmatched bracket, over the queries and the stacks that they can have.

    Parameters
    ----------
    layer : Layer
    language : DyckLanguage
    queries : sequence of int, optional
        States. Default: all.

    Raises
    ------
    ValueError
        If the layer is not exactly balanced at these queries, one coordinate a pair.
    """
    checks.instance("language", language, DyckLanguage)
    states = np.arange(language.n_states)
    chosen = states if queries is None else checks.index_array("queries", queries)
    if not np.isin(chosen, states).all():
        raise checks.reject("queries", f"be states, below {language.n_states}", chosen.tolist())
    u = contributions(layer, language, scaled=True)[chosen]
    opens, closes = (states.ravel() for states in pairs(language))
    n_pairs = opens.size
    if u.shape[2] != n_pairs + 1:
        raise checks.reject("layer", f"have {n_pairs + 1} columns of V", u.shape[2])
    if chosen.size == 0:
        return np.inf
    weights = np.diagonal(u[:, opens, :n_pairs], axis1=1, axis2=2)  # of (query, pair)
    off_axis = u[:, opens] - weights[:, :, None] * np.eye(n_pairs, n_pairs + 1)
    delta = u[:, opens] + u[:, closes]
    wrong = max(np.abs(off_axis).max(), np.abs(delta).max(), np.abs(u[:, -1, :-1]).max())
    if wrong > 1e-9 * weights.max() or weights.min() <= 0:
        raise checks.reject("layer", "be exactly balanced, one coordinate a pair", f"a difference of {wrong:.2g}")
    squares = weights.reshape(chosen.size, language.n_types, language.max_depth) ** 2
    smallest = np.inf
    for row, start, query in zip(squares, u[:, -1, -1], chosen, strict=True):
        state = language.states[query]
        if state.depth == 0:
            continue
        choices = row[:, : state.depth].copy()
        if state.kind == "open":
            choices[:, -1] = choices[state.type, -1]  # the top is the query itself
        others = choices.max(axis=0).sum() - choices.max(axis=0) + start**2
        smallest = min(smallest, (choices / (choices + others)).min())
    return float(np.sqrt(smallest))


def _lengths(lengths: ArrayLike) -> np.ndarray:
    values = checks.index_array("lengths", np.atleast_1d(checks.array("lengths", lengths)))
    if values.size == 0 or values.min() < 1:
        raise checks.reject("lengths", "be positive", values.tolist())
    return values


def _depths(language: DyckLanguage, length: int) -> np.ndarray:
    """``P[t, d]``: probability that a prefix of t brackets has depth d, for t = 0..length."""
    checks.fits_in_memory("lengths", 3 * 8 * (length + 1) * (language.max_depth + 1), "weigh depths")
    opening = _opening(language)
    probability = np.zeros((length + 1, language.max_depth + 1))
    probability[0, 0] = 1
    for t in range(length):
        probability[t + 1, 1:] += probability[t, :-1] * opening[:-1]
        probability[t + 1, :-1] += probability[t, 1:] * (1 - opening[1:])
    return probability


def _opening(language: DyckLanguage) -> np.ndarray:
    """Probability that the next bracket is an open one, by depth."""
    opening = np.full(language.max_depth + 1, language.open_probability)
    opening[0], opening[-1] = 1, 0
    return opening


def matched_pairs(language: DyckLanguage, lengths: int | Sequence[int]) -> np.ndarray:
    """Mean number of matched pairs of one type at each level of a random prefix: (D,), level l = 1..D first.

    Exact, from the Markov chain of depths: the expected number of steps from depth l to l - 1, over k types.

    Parameters
    ----------
    language : DyckLanguage
    lengths : int or sequence of int
        Length of the prefix in brackets; of several, each is as likely.
    """
    checks.instance("language", language, DyckLanguage)
    chosen = _lengths(lengths)
    closing = (_depths(language, int(chosen.max()) - 1) * (1 - _opening(language)))[:, 1:]
    return np.cumsum(closing, axis=0)[chosen - 1].mean(axis=0) / language.n_types


def drift(layer: Layer, language: DyckLanguage, lengths: int | Sequence[int]) -> np.ndarray:
    """Mean contribution of a random prefix's matched brackets before LN: (queries, width), q over all states.

    ``Drift(q) = sum_{i, l} nbar_l [u(q, open(i, l)) + u(q, close(i, l - 1))]`` with nbar_l of `matched_pairs`. An
    exactly balanced layer has none. Rows have the scale of Z, like `contributions`.

    Parameters
    ----------
    layer : Layer
    language : DyckLanguage
    lengths : int or sequence of int
        Length of the prefix in brackets; of several, each is as likely.
    """
    return np.einsum("qilv,l->qv", insertions(layer, language), matched_pairs(language, lengths))


def predicted_accuracy(layer: Layer, language: DyckLanguage, lengths: int | Sequence[int]) -> dict[str, float]:
    """Share of prefixes after which the layer finds the type of the closing bracket, at the mean number of pairs.

    After each prefix with an unmatched bracket, the answer is the largest closing entry of ``Y^T (u_stack +
    Drift(q))``, with u_stack the contributions of START and of the unmatched brackets. Exact over stacks and queries at
    these lengths; the number of matched pairs is replaced by its mean. This asks the layer's own decoder, so that it is
    nearly the accuracy itself, and no property of attention.

    Returns
    -------
    dict
        "open" and "close": by the kind of the query; "all": both, by how often they occur. nan where there is none.

    Raises
    ------
    ValueError
        If there are more than a million stacks, or the layer has a hidden layer.
    """
    checks.instance("layer", layer, Layer)
    k, D = checks.instance("language", language, DyckLanguage).n_types, language.max_depth
    if k**D > 1_000_000:
        raise checks.reject("language", "have at most 1,000,000 stacks", k**D)
    if layer.hidden is not None:
        raise checks.reject("layer", "have no hidden layer, for it needs features and not sums", repr(layer))
    chosen = _lengths(lengths)
    u = contributions(layer, language, scaled=True)
    added = np.einsum("qilv,l->qv", insertions(layer, language, scaled=True), matched_pairs(language, lengths))
    Y = layer.expand().Y[:, 1 : 2 * k : 2]
    before = _depths(language, int(chosen.max()))[chosen - 1].mean(axis=0)
    opening = _opening(language)
    mass, right = {"open": 0.0, "close": 0.0}, {"open": 0.0, "close": 0.0}
    for depth in range(1, D + 1):
        stacks = np.indices((k,) * depth).reshape(depth, -1).T
        states = language.open(stacks, np.arange(1, depth + 1))
        options = [("open", stacks[:, -1] == j, language.open(j, depth)) for j in range(k)]
        chances = {"open": before[depth - 1] * opening[depth - 1] / k}
        if depth < D:
            options += [("close", np.full(len(stacks), True), language.close(j, depth)) for j in range(k)]
            chances["close"] = before[depth + 1] * (1 - opening[depth + 1]) / k
        for kind, possible, query in options:
            sums = u[query, language.start] + u[query][states[possible]].sum(axis=1) + added[query]
            correct = np.argmax(sums @ Y, axis=1) == stacks[possible, -1]
            mass[kind] += chances[kind]
            right[kind] += chances[kind] * float(correct.mean())
    shares = {kind: right[kind] / mass[kind] if mass[kind] > 0 else np.nan for kind in mass}
    total = sum(mass.values())
    return {**shares, "all": sum(right.values()) / total if total > 0 else np.nan}


def closing_accuracy(
    layer: Layer, language: DyckLanguage, bags: Bags, *, head: ReluNetwork | None = None
) -> dict[str, float]:
    """Share of bags with an unmatched bracket whose closing bracket has the largest of the k closing outputs.

    Parameters
    ----------
    layer : Layer
    language : DyckLanguage
    bags : Bags
        As `DyckLanguage.sample` and `DyckLanguage.bags` return them.
    head : ReluNetwork, optional
        Reads the features in place of the layer's decoder, as `exact_head` does.

    Returns
    -------
    dict
        The accuracies, with the keys of `predicted_accuracy`, which predicts them.
    """
    _fit("layer", checks.instance("layer", layer, Layer).Z, language)
    checks.instance("bags", bags, Bags)
    if head is not None:
        checks.instance("head", head, ReluNetwork)
    closing = bags.target[:, 1::2]
    chosen = closing.max(axis=1) > 0
    # Compare logits: softmax would round small differences away.
    outputs = layer.expand().logits(bags) if head is None else head(layer.features(bags))
    wrong = np.argmax(outputs[:, 1 : language.n_brackets : 2], axis=1) != closing.argmax(axis=1)
    opened = bags.query < language.n_types * language.max_depth
    kinds = {"open": chosen & opened, "close": chosen & ~opened, "all": chosen}
    return {
        kind: 1 - float(bags.weight[which] @ wrong[which] / bags.weight[which].sum()) if which.any() else np.nan
        for kind, which in kinds.items()
    }
