"""The theorems on bounded Dyck that the kernel checked, in Python by hand, against the functions of `theory`.

As `test_formal_meaning.py` of the core. Words are those of Words.v; that the language takes them, and what a layer
gathers from them, is asked of `dynamics`.
"""

import itertools

import numpy as np
import pytest
from meaning import SEEDS, evaluates
from yzflow_bounded_dyck import DyckLanguage, balance, heads, hypotheses, measures
from yzflow_bounded_dyck.from_tokens import token_transformer
from yzflow_bounded_dyck.proofs import theorem2

from dynamics import Layer


def prefix16(w, j):
    """(16): the types w opened, and a pair of type j. Open brackets are 2i, closed ones 2i + 1."""
    return [2 * i for i in w] + [2 * j, 2 * j + 1]


def lengthened(w, j, n, i, level):
    """`lengthened` of Words.v: n pairs of type i and a level, before the last bracket of (16)."""
    pairs, opened = [2 * i, 2 * i + 1] * n, [2 * s for s in w]
    if level <= len(w) + 1:
        return opened[: level - 1] + pairs + opened[level - 1 :] + [2 * j, 2 * j + 1]
    between = level - 2 - len(w)
    return [*opened, 2 * j, *[0] * between, *pairs, *[1] * between, 2 * j + 1]


def before_ln(layer, language, word):
    """The sum before LN of a word at its last bracket, START with it."""
    states = language.state_sequence(word)
    return balance.contributions(layer, language)[states[-1], states].sum(axis=0)


def ln(v):
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def queries(language):
    """(j, d) of all closing queries of depth 1 to D - 1."""
    return itertools.product(range(language.n_types), range(1, language.max_depth))


def random_layer(language, rng, width=3):
    n = language.n_states
    return Layer(rng.normal(size=(n, n)), rng.normal(size=(width, language.n_brackets)), rng.normal(size=(n, width)))


@evaluates("equation13", "pairs_hide_the_stack")
@pytest.mark.parametrize("seed", SEEDS)
def test_words_of_the_theorems_and_what_they_add(seed):
    rng = np.random.default_rng(seed)
    language = DyckLanguage(2, 4)
    layer = random_layer(language, rng)
    delta = balance.insertions(layer, language)
    for j, d in queries(language):
        w = list(rng.integers(0, 2, d))
        for i, level in itertools.product(range(2), range(1, 5)):
            word, query = lengthened(w, j, 3, i, level), language.close(j, d)
            assert language.state_sequence(word)[-1] == query  # a prefix of the language, with this query
            assert list(language.stack(word)) == list(language.stack(prefix16(w, j)))
            between = sum(delta[query, 0, one - 1] for one in range(d + 2, level))
            expected = before_ln(layer, language, prefix16(w, j)) + between + 3 * delta[query, i, level - 1]
            np.testing.assert_allclose(before_ln(layer, language, word), expected, atol=1e-10)
            (found,) = layer.features(language.bags([word]))
            np.testing.assert_allclose(found, ln(expected), atol=1e-10)
            far = before_ln(layer, language, prefix16(w, j)) + between + 1e9 * delta[query, i, level - 1]
            np.testing.assert_allclose(ln(far), ln(delta[query, i, level - 1]), atol=1e-6)


@evaluates("necessity_of_silence", "balance_is_necessary")
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_right_at_every_length_is_balanced(seed):
    language = DyckLanguage(2, 3)
    layer = balance.balanced_layer(language, rng=seed)
    head = balance.exact_head(layer, language)
    # Each query has a head of its own: here its outputs come in an order of its own.
    orders = np.random.default_rng(seed).permuted(np.tile(np.arange(4), (language.n_states, 1)), axis=1)
    # The hypothesis `right`: outputs are those of the query and the last unmatched type, and types differ in them.
    for (j, d), i, level, n in itertools.product(queries(language), range(2), range(1, 4), (0, 1, 50)):
        targets = []
        for t in range(2):
            word = lengthened([0] * (d - 1) + [t], j, n, i, level)
            order = orders[language.close(j, d)]
            output = head(ln(before_ln(layer, language, word))[None])[0, order]
            np.testing.assert_allclose(output, language.next_token(word)[order], atol=1e-9)
            targets.append(output)
        assert np.abs(targets[0] - targets[1]).max() > 0.1
    closing = balance.queries(language).ravel()
    sizes = np.abs(balance.contributions(layer, language)).max()
    assert np.abs(balance.insertions(layer, language)[closing]).max() < 1e-12 * sizes
    assert balance.residual(layer.Z, language) < 1e-9
    # And a layer that leaves something is not right.
    assert not measures.right_at_every_length(random_layer(language, np.random.default_rng(seed)), language)


@evaluates("loud_pairs_are_balanced")
def test_silent_pairs_need_no_balance():
    language = DyckLanguage(2, 3)
    found = 0
    for layer in measures._family(language):
        if not measures.right_at_every_length(layer, language):
            continue
        values = np.abs(balance.contributions(layer, language)).max(axis=(0, 2))
        closing = balance.queries(language).ravel()
        for o, c in zip(*(states.ravel() for states in balance.pairs(language)), strict=True):
            assert (values[o] > 1e-9) == (values[c] > 1e-9)
            if values[o] > 1e-9:
                assert np.ptp(layer.Z[closing, o] - layer.Z[closing, c]) < 1e-9
                found += 1
    assert found


@evaluates("balance_suffices", "balance_suffices_behind_the_link")
@pytest.mark.parametrize(("k", "depth"), [(1, 1), (2, 3), (3, 2)])
def test_balance_suffices_for_every_prefix(k, depth):
    """`head` and `linked_head` of Sufficiency.v by hand, and their widths against the networks that are built."""
    language, D = DyckLanguage(k, depth, 0.3), depth
    rng = np.random.default_rng(k)
    opens, closes = balance.pairs(language)
    closing = set(balance.queries(language).ravel().tolist())
    c = rng.normal(size=(k, D))
    Z = rng.normal(size=(language.n_states,) * 2)
    V = np.zeros((language.n_states, k * D + 1))
    V[opens.ravel(), np.arange(k * D)], V[closes.ravel(), np.arange(k * D)] = 1, -np.exp(c.ravel())
    V[language.start, -1] = 1
    everywhere, partly = Z.copy(), Z.copy()
    everywhere[:, opens] = Z[:, closes] + c  # (11) at every query
    for query in closing:
        partly[query] = everywhere[query]
    told = np.array([[language.next_token([0] * m + [2 * i]) for m in range(D)] for i in range(k)])
    empty = language.next_token([])

    def relu(x):
        return np.maximum(0, x)

    for word in [[], *(list(w) for n in range(1, 7) for w in language.prefixes(n))]:
        states = language.state_sequence(word)
        q, counts = states[-1], np.bincount(states, minlength=language.n_states)
        for logits, linked in ((everywhere, False), (partly, True)):
            row = logits[q]
            small = np.exp(row.min() - row.max()) / np.sqrt(k * D + 1)
            f = 2 * ln((counts * np.exp(row)) @ V)[:-1].reshape(k, D) / small
            h = relu(f - 1) - relu(f - 2)
            if linked:
                d = language.states[q].depth
                asked = np.array([float(q in closing and d == m + 1) for m in range(D)])
                opened = q != language.start and language.states[q].kind == "open"
                alone = told[language.states[q].type, d - 1] if opened else empty * (q not in closing)
                found = np.tensordot(relu(h + asked - 1), told, 2) + alone
            else:
                deeper = np.append(h[:, 1:].sum(axis=0), 0)
                found = np.tensordot(relu(h - deeper), told, 2) + relu(1 - h[:, 0].sum()) * empty
            np.testing.assert_allclose(found, language.next_token(word), atol=1e-12)
    layer = balance.balanced_layer(language, 0)
    widths = [len(weight) for weight in balance.exact_head(layer, language).weights]
    assert widths == [2 * k * D, k * D + 1, 2 * k]
    widths = [len(weight) for weight in hypotheses.linked_head(layer, language).weights]
    assert widths == [4 * k * D + 1, 2 * k * D + k + 1, 2 * k]


@evaluates("uniform_attention_is_enough")
@pytest.mark.parametrize(("k", "depth"), [(1, 1), (2, 3), (3, 2)])
def test_uniform_attention_is_enough_from_tokens(k, depth):
    """`uniform_transformer` of Composed.v by hand: `sine`, `reaches`, `one_hot`, `second` and `head`."""
    language, D = DyckLanguage(k, depth, 0.3), depth
    told = np.array([[language.next_token([0] * m + [2 * i]) for m in range(D)] for i in range(k)])
    at_depth = np.arange(D + 1) / np.sqrt(1 + np.arange(D + 1) ** 2)

    def relu(x):
        return np.maximum(0, x)

    def reaches(m, x):
        y = 3 * (x - at_depth[m - 1]) / (at_depth[m] - at_depth[m - 1])
        return relu(y - 1) - relu(y - 2)

    def one_hot(word):
        if not word:
            return np.eye(language.n_states)[language.start]
        total = sum(1 if b % 2 == 0 else -1 for b in word)
        sine = ln(np.array([1, total]) / (len(word) + 1))[1]
        row = np.zeros(language.n_states)
        for number, state in enumerate(language.states[:-1]):
            d, token = state.depth, 2 * state.type + (state.kind == "close") == word[-1]
            row[number] = relu(token + (reaches(d, sine) if d else 1) - (reaches(d + 1, sine) if d < D else 0) - 1)
        return row

    opens, closes = balance.pairs(language)
    V = np.zeros((language.n_states, k * D + 1))
    V[opens.ravel(), np.arange(k * D)], V[closes.ravel(), np.arange(k * D)], V[language.start, -1] = 1, -1, 1
    for word in [[], *(list(w) for n in range(1, 7) for w in language.prefixes(n))]:
        rows = np.array([one_hot(word[:n]) for n in range(len(word) + 1)])
        np.testing.assert_allclose(rows[-1], np.eye(language.n_states)[language.state_sequence(word)[-1]], atol=1e-12)
        f = 2 * ln((rows @ V).mean(axis=0))[:-1].reshape(k, D) * np.sqrt(k * D + 1)
        h = relu(f - 1) - relu(f - 2)
        deeper = np.append(h[:, 1:].sum(axis=0), 0)
        found = np.tensordot(relu(h - deeper), told, 2) + relu(1 - h[:, 0].sum()) * language.next_token([])
        np.testing.assert_allclose(found, language.next_token(word), atol=1e-12)


@evaluates("unlike_heads_are_balanced_each")
@pytest.mark.parametrize("seed", SEEDS)
def test_unlike_heads_are_balanced_each(seed):
    """Heads that leave one number c of every mixture have one quotient each; heads of one ratio need not."""
    rng, mixtures = np.random.default_rng(seed), np.arange(1, 30)[:, None]
    zeta, other, quotients = rng.uniform(0.5, 2, (3, 4))

    def left(delta, zeta, more, other):
        return ((delta + mixtures * more) / (zeta + mixtures * other)).sum(axis=1)

    np.testing.assert_allclose(left(quotients * zeta, zeta, quotients * other, other), quotients.sum())
    moved = quotients * other + np.array([1, -1, 0, 0])
    assert np.ptp(left(quotients * zeta, zeta, moved, other)) > 1e-3
    shift = np.array([1, -1]) * zeta[0]
    same = np.array([zeta[0], zeta[0]])
    np.testing.assert_allclose(left(same, same, same + shift, same), 2)  # one ratio: the sum is, the quotients are not
    language = DyckLanguage(2, 3)
    found = heads.shifted_heads(language, 3, seed)
    constants, spread = heads.own_constants(found, language)
    assert spread.max() < 1e-9 and np.abs(constants).max() > 0.1
    np.testing.assert_allclose(constants.sum(axis=0), 0, atol=1e-9)


@evaluates("balance_of_values")
@pytest.mark.parametrize("seed", SEEDS)
def test_balance_of_values(seed):
    language = DyckLanguage(2, 3)
    layer = balance.balanced_layer(language, rng=seed)
    opens, closes = (states.ravel() for states in balance.pairs(language))
    for o, c in zip(opens, closes, strict=True):
        difference = layer.Z[:, o] - layer.Z[:, c]
        np.testing.assert_allclose(difference, difference[0], atol=1e-9)  # (11)
        np.testing.assert_allclose(layer.V[c], -np.exp(difference[0]) * layer.V[o], rtol=1e-9)
    sizes = np.abs(balance.contributions(layer, language)).max()
    assert np.abs(balance.insertions(layer, language)).max() < 1e-12 * sizes


@evaluates("one_type_needs_no_balance")
def test_one_type_knows_the_depth_without_balance():
    language = DyckLanguage(1, 4)
    layer = hypotheses.one_type_layer(language)
    words = [[0] * opens + [1] * closes for opens in range(1, 5) for closes in range(1, opens + 1)]
    first, second = layer.V[language.open(0, 1)], layer.V[language.close(0, 0)]
    for word in words:
        f = ln(before_ln(layer, language, word))
        depth = 2 * word.count(0) - len(word)
        assert f @ first == pytest.approx((1 + depth) * (f @ second))
    assert np.abs(balance.insertions(layer, language)).max() > 0.1 and balance.residual(layer.Z, language) > 0.1


@evaluates("theorem2", "theorem2_deeper")
@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_of_theorem2(seed):
    rng = np.random.default_rng(seed)
    language = DyckLanguage(2, 4)
    layer = random_layer(language, rng)
    Y = np.asarray(layer.Y)
    gamma = np.linalg.norm(Y, 2)  # the head is linear
    delta = np.linalg.norm(balance.insertions(layer, language), axis=-1)
    n = int(rng.integers(1, 6))
    for j, d in queries(language):
        w = [[*rng.integers(0, 2, d - 1), t] for t in range(2)]
        P = max(np.linalg.norm(before_ln(layer, language, prefix16(one, j))) for one in w)

        def apart(i, level, w=w, j=j):
            outputs = [ln(before_ln(layer, language, lengthened(one, j, n, i, level))) @ Y for one in w]
            return np.linalg.norm(outputs[0] - outputs[1])

        for i, level in itertools.product(range(2), range(1, 5)):
            # Words of the level, and of those between, must be apart; so many levels are opened once.
            levels = [(0, one) for one in range(d + 2, level)] + [(i, level)]
            tau = min(apart(*one) for one in levels)
            bound = float(theorem2.bound(P, gamma, tau, n))
            if level > d + 2:
                bound = float(theorem2.deeper(bound, n, level - d - 2))
            assert delta[language.close(j, d), i, level - 1] <= bound * (1 + 1e-9)
            assert len(lengthened(w[0], j, n, i, level)) + 1 <= 2 * n + 2 * language.max_depth
    assert measures.attained_bound(None, "") < 0.01 and measures.attained_deeper(None, "") < 0.01  # and they are sharp


@evaluates("encodings_20_and_21_are_dependent")
@pytest.mark.parametrize(("k", "depth"), [(1, 2), (2, 2), (2, 4), (3, 3)])
def test_ranks_of_encodings(k, depth):
    language = DyckLanguage(k, depth)
    opens, _ = balance.pairs(language)
    for kind, columns in (("type and depth", 2 * k + depth + 1), ("type and angle", 2 * k + 2)):
        rows = language.embedding(kind)[opens.ravel()]
        assert not rows[:, columns:].any()  # START's coordinate, which Encodings.v leaves out
        assert (np.linalg.matrix_rank(rows) < k * depth) == (k > 1)


@evaluates("uniform_attention_knows_the_depth", "without_start_words_are_their_doubles")
def test_uniform_attention():
    language = DyckLanguage(2, 3)
    states = language.states[:-1]
    V = np.array([[0, 1 if state.kind == "open" else -1] for state in states] + [[1, 0]])
    layer = Layer(np.zeros((language.n_states,) * 2), np.zeros((2, language.n_brackets)), V)
    words = [list(word) for length in range(1, 7) for word in language.prefixes(length)]
    for word, (s, h) in zip(words, layer.features(language.bags(words)), strict=True):
        assert s > 0 and h / s == pytest.approx(len(language.stack(word)))
    value = np.random.default_rng(0).normal(size=(language.n_brackets, 4))
    for word in words:
        np.testing.assert_allclose(ln(value[word + word].mean(axis=0)), ln(value[word].mean(axis=0)), atol=1e-12)
    assert len(language.stack([0])) == 1 and len(language.stack([0, 0])) == 2


@evaluates("first_layer_knows_the_state")
@pytest.mark.parametrize(("k", "depth"), [(1, 3), (2, 2), (2, 4)])
def test_the_first_layer_of_the_transformer_from_tokens(k, depth):
    """`seen`, `ramp` and `state_unit` of FromTokens.v by hand, against the stream that is computed."""
    language = DyckLanguage(k, depth)
    model = token_transformer(language, 0)
    at = [d / np.sqrt(1 + d * d) for d in range(depth + 1)]

    def reached(m, x):
        y = 3 * (x - at[m - 1]) / (at[m] - at[m - 1]) if m else np.inf
        return max(0, y - 1) - max(0, y - 2) if m else 1.0

    def unit(b, m, x):
        return max(0, b + reached(m, x) - (reached(m + 1, x) if m < depth else 0.0) - 1)

    place = 2 * k + 2 + depth
    for word in language.prefixes(6):
        x = ln(np.array([1.0, np.sum(1 - 2 * (word % 2))]) / 7)[1]
        assert x == pytest.approx(at[len(language.stack(word))])
        last = model.stream(word, parts=2)[-1]
        assert last[2 * k + 1] == pytest.approx(x)
        for number, state in enumerate(language.states[:-1]):
            own = float(word[-1] == 2 * state.type + (state.kind == "close"))
            assert unit(own, state.depth, x) == pytest.approx(own * (state.depth == len(language.stack(word))))
            assert last[place + number] == pytest.approx(unit(own, state.depth, x))


@evaluates("any_balanced_attention", "head_reads_softmax_attention")
@pytest.mark.parametrize("seed", SEEDS)
def test_softmax_attention_that_is_balanced(seed):
    language, rng = DyckLanguage(2, 3), np.random.default_rng(seed)
    opens, closes = balance.pairs(language)
    layer = balance.balanced_layer(language, rng)
    Z, t = np.array(layer.Z), rng.normal(size=language.n_states)
    t[closes] = t[opens]
    raised = Layer(Z + t, layer.Y, layer.V)
    assert balance.residual(raised.Z, language) < 1e-9
    sizes = np.abs(balance.contributions(raised, language)).max()
    assert np.abs(balance.insertions(raised, language)).max() < 1e-12 * sizes
    head = balance.exact_head(raised, language)
    for word in [[], *(list(w) for w in language.prefixes(7)[::9])]:
        states = language.state_sequence(word)
        weights = np.exp(raised.Z[states[-1], states])
        mixed = (weights / weights.sum()) @ raised.V[states]
        np.testing.assert_allclose(ln(mixed), ln(before_ln(raised, language, word)), atol=1e-9)
        np.testing.assert_allclose(head(ln(mixed)[None])[0], language.next_token(word), atol=1e-9)


@evaluates("weight_decay_leaves_little")
@pytest.mark.parametrize("seed", SEEDS)
def test_weight_decay(seed):
    # Weights are rows of a list; the first is exact, and each has a norm.
    rng = np.random.default_rng(seed)
    X, n_brackets, weights = 6, 4, 40
    pi, p = rng.dirichlet(np.ones(X)), rng.dirichlet(np.ones(n_brackets), X)
    T = p + rng.uniform(0, 0.3, weights)[:, None, None] * rng.normal(size=(weights, X, n_brackets))
    T[0] = p
    size = rng.uniform(0, 5, weights)
    size[0] = 4
    squared = ((T[:, :, None, :] - np.eye(n_brackets)) ** 2).sum(axis=-1)
    loss = np.einsum("x,xo,wxo->w", pi, p, squared)
    apart = ((T - p) ** 2).sum(axis=-1)
    np.testing.assert_allclose(loss - loss[0], apart @ pi, atol=1e-12)  # `loss_splits`
    assert loss.min() == loss[0]
    for decay in (0.01, 0.1, 1.0):
        # All whose objective is at most that of exact weights: no minimum is asked for.
        good = loss - loss[0] + decay * size <= decay * size[0]
        assert good[0] and good.sum() > 1 and good[np.argmin(loss + decay * size)]
        assert (loss[good] - loss[0] <= decay * size[0] + 1e-12).all() and (size[good] <= size[0]).all()
        assert (pi * apart[good] <= decay * size[0] + 1e-12).all()
