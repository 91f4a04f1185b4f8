"""The balance condition against brute-force insertion of pairs; layers that are perfect whatever their attention."""

import dataclasses
import itertools

import numpy as np
import pytest
import reference
import strategies
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from yzflow_bounded_dyck import DyckLanguage, balance
from yzflow_bounded_dyck.networks import ReluNetwork

from dynamics import Bags, Layer


def random_layer(language, seed, *, value=True, scale=1.0):
    rng = np.random.default_rng(seed)
    width = 5 if value else language.n_states
    return Layer(
        scale * rng.normal(size=(language.n_states, language.n_states)),
        rng.normal(size=(width, language.n_brackets)),
        rng.normal(size=(language.n_states, width)) if value else None,
    )


def attended(layer, language, brackets):
    """The sum before LN, term by term: V_s exp(Z[q, s]) over the states of a sequence; its last state is the query."""
    states = language.state_sequence(brackets)
    V = np.eye(language.n_states) if layer.V is None else layer.V
    return sum(np.exp(layer.Z[states[-1], s]) * V[s] for s in states)


def brute_force_violation(layer, language):
    """The mean of S / P from sums over whole prefixes: S by inserting a pair, P over all k^d stacks."""
    k, D = language.n_types, language.max_depth
    ratios = []
    for j, d in itertools.product(range(k), range(1, D)):
        size = {}
        for w in itertools.product(range(k), repeat=d):
            prefix = [2 * i for i in w] + [2 * j, 2 * j + 1]
            size[w] = np.linalg.norm(attended(layer, language, prefix))
        best = min(size, key=size.get)
        P = min(size[w] for w in size if w[-1] != best[-1])
        for i, level in itertools.product(range(k), range(1, D + 1)):
            # A prefix through all depths, then back to depth d; the pair goes where the depth is level - 1.
            base = [0] * D + [1] * D + [0] * d + [2 * j, 2 * j + 1]
            longer = [0] * (level - 1) + [2 * i, 2 * i + 1] + base[level - 1 :]
            S = np.linalg.norm(attended(layer, language, longer) - attended(layer, language, base))
            ratios.append(S / P)
    return np.mean(ratios)


def insert_pairs(language, prefix, rng, n):
    """A prefix with n matched pairs of random types inserted at random places, if the depth allows it."""
    for _ in range(n):
        depths = np.concatenate([[0], np.cumsum(1 - 2 * (np.asarray(prefix) % 2))])
        # The last state stays the query.
        places = np.flatnonzero(depths[:-1] < language.max_depth)
        place, kind = rng.choice(places), rng.integers(language.n_types)
        prefix = np.insert(prefix, place, [2 * kind, 2 * kind + 1])
    return prefix


@given(st.integers(2, 3), st.integers(2, 4), strategies.SEEDS, st.booleans())
def test_violation_is_the_brute_force_one(k, depth, seed, value):
    language = DyckLanguage(k, depth)
    layer = random_layer(language, seed, value=value)
    expected = brute_force_violation(layer, language)
    assert balance.violation(layer, language) == pytest.approx(expected, rel=1e-10)


@given(strategies.SEEDS, st.integers(0, 5), st.integers(1, 4), st.sampled_from([0.01, 1.0, 30.0]))
def test_the_search_finds_the_smallest_norm(seed, n_levels, n_types, scale):
    rng = np.random.default_rng(seed)
    fixed = rng.normal(size=3) * scale
    levels = [rng.normal(size=(n_types, 3)) * rng.choice([0.1, 1, 10]) for _ in range(n_levels)]
    choices = itertools.product(*levels)
    expected = min(np.linalg.norm(fixed + sum(choice, np.zeros(3))) for choice in choices)
    assert balance._smallest_norm(fixed, levels) == pytest.approx(expected, rel=1e-12)


def test_closing_weights_under_uniform_attention():
    """Each is a share 1/D more than all at lower levels together."""
    layer = balance.balanced_layer(DyckLanguage(2, 4), 0, scale=0.0)
    np.testing.assert_allclose(layer.Y[:4, 1], [1, 1.25, 1.25 * 2.25, 1.25 * 2.25**2], rtol=1e-14)
    np.testing.assert_array_equal(layer.Y[4:8, 3], layer.Y[:4, 1])
    assert (layer.Y != 0).sum() == 8


@given(st.integers(1, 12), st.integers(1, 3), st.sampled_from([0.0, 0.5, 1.0]), strategies.SEEDS)
@settings(max_examples=15)
def test_a_balanced_layers_decoder_reads_the_stack_at_any_depth(depth, k, scale, seed):
    language = DyckLanguage(k, depth)
    layer = balance.balanced_layer(language, seed, scale=scale)
    rng = np.random.default_rng(seed)
    # After every word of one type and each other one's last, all deeper levels opened and closed, once or thrice.
    deep = []
    for level in range(1, depth):
        stack, rest = rng.integers(0, k, level - 1), np.repeat(rng.integers(0, k), depth - level)
        down = [*(2 * rest), *(2 * rest + 1)] * int(rng.choice([1, 3]))
        deep += [[*(2 * stack), 2 * last, *down] for last in range(k)]
    for bags in (language.sample(100, max_length=200, rng=seed), *([language.bags(deep)] if deep else [])):
        shares = balance.closing_accuracy(layer, language, bags)
        assert all(share == 1 or np.isnan(share) for share in shares.values())
        closing = bags.target[:, 1::2]
        found, asked = layer.predict(bags)[:, 1::2].argmax(axis=1), closing.max(axis=1) > 0
        np.testing.assert_array_equal(found[asked], closing.argmax(axis=1)[asked])


def test_where_no_decoder_holds_the_head_reads_the_stack():
    language = DyckLanguage(6, 14)
    with pytest.raises(
        ValueError, match=r"`language` must be shallower, or `scale` smaller, .* `exact_head` reads the stack"
    ):
        balance.balanced_layer(language, 0)
    layer = balance.balanced_layer(language, 0, decoder=False)
    bags = language.sample(50, max_length=100, rng=0)
    assert not layer.Y.any() and balance.closing_accuracy(layer, language, bags)["all"] < 0.5
    head = balance.exact_head(layer, language)
    assert balance.closing_accuracy(layer, language, bags, head=head)["all"] == 1
    assert balance.balanced_layer(language, 0, scale=0.0).Y.max() < 1e5


@pytest.mark.slow
def test_violation_where_every_contribution_is_its_own_unit_vector():
    # S = sqrt 2, and ||Q||^2 counts the d + 3 different states, so that nothing can be pruned from the search.
    language = DyckLanguage(3, 7)
    layer = Layer(np.zeros((43, 43)), np.zeros((43, 6)))
    expected = np.mean([np.sqrt(2 / (d + 3)) for d in range(1, 7)])
    assert balance.violation(layer, language) == pytest.approx(expected, rel=1e-12)
    language = DyckLanguage(5, 12)
    with pytest.raises(ValueError, match="`language` must leave at most 20,000,000 numbers to search"):
        balance.violation(Layer(np.zeros((121, 121)), np.zeros((121, 10))), language)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "depth", "scale"), [(2, 6, 1.0), (3, 4, 0.0), (4, 5, 1.0)])
def test_constructed_layers_predict_the_exact_distribution(k, depth, scale):
    language = DyckLanguage(k, depth, 0.3)
    layer = balance.balanced_layer(language, k + depth, scale=scale)
    head = balance.exact_head(layer, language)
    assert len(head.weights) == 3
    short = language.enumerate(min_length=0, max_length=8)
    long = language.sample(200, min_length=500, max_length=500, rng=1)
    for bags in (short, long):
        assert np.abs(head(layer.features(bags)) - bags.target).max() < 1e-10
        shares = balance.closing_accuracy(layer, language, bags)
        assert all(share == 1 or np.isnan(share) for share in shares.values())
    if scale == 0:
        counts = reference.dense_counts(long)
        np.testing.assert_allclose(layer.attention(long), counts / 501, rtol=1e-12)
    else:
        assert np.ptp(layer.attention(long)[:, language.start]) > 1e-4


@given(strategies.dyck_languages(), strategies.SEEDS)
def test_features_of_a_balanced_layer_are_the_stack(language, seed):
    layer = balance.balanced_layer(language, seed)
    bags = language.sample(5, min_length=0, max_length=40, rng=seed)
    for features, sequence in zip(
        layer.features(bags), language.sample_sequences(5, min_length=0, max_length=40, rng=seed), strict=True
    ):
        stack = language.stack(sequence)
        unmatched = language.open(stack, np.arange(1, stack.size + 1))
        np.testing.assert_array_equal(
            np.flatnonzero(np.abs(features) > 1e-11), [*np.sort(unmatched), language.start // 2]
        )
        assert (features > -1e-11).all()


@given(st.integers(1, 4), st.integers(2, 5), strategies.SEEDS)
def test_inserted_pairs_change_nothing_exactly_where_balance_holds(k, depth, seed):
    language = DyckLanguage(k, depth)
    rng = np.random.default_rng(seed)
    layer = balance.balanced_layer(language, rng)
    depths = rng.integers(1, depth)
    types = rng.integers(k, size=depths + 1)
    prefix = np.array([*(2 * types), 2 * types[-1] + 1])
    longer = insert_pairs(language, prefix, rng, 100)
    assert longer.size == prefix.size + 200 and (language.stack(longer) == language.stack(prefix)).all()
    bags = language.bags([prefix, longer])
    before, after = layer.features(bags)
    assert np.abs(after - before).max() < 1e-11
    # Broken in a value, or in one attention logit of the query.
    V, Z = layer.V.copy(), layer.Z.copy()
    V[language.close(rng.integers(k), 0)] *= 1.01
    Z[language.close(types[-1], depths), language.open(rng.integers(k), 1)] += 0.01
    for broken in (Layer(layer.Z, layer.Y, V), Layer(Z, layer.Y, layer.V)):
        before, after = broken.features(
            language.bags([prefix, np.concatenate([np.tile(np.arange(2 * k), 50), prefix])])
        )
        assert np.abs(after - before).max() > 1e-6


@given(st.integers(1, 3), st.integers(1, 4), strategies.SEEDS, st.booleans())
def test_insertion_law(k, depth, seed, value):
    """u_n = u_0 + n delta, from whole prefixes."""
    language = DyckLanguage(k, depth)
    layer = random_layer(language, seed, value=value)
    rng = np.random.default_rng(seed)
    prefix = language.sample_sequences(1, min_length=1, max_length=12, rng=rng)[0]
    i = rng.integers(k)
    longer = np.concatenate([[2 * i, 2 * i + 1] * 7, prefix])
    query = language.state_sequence(prefix)[-1]
    delta = balance.insertions(layer, language)[query, i, 0]
    found = attended(layer, language, longer) - attended(layer, language, prefix)
    np.testing.assert_allclose(found, 7 * delta, atol=1e-11)
    # Features are LN of that sum.
    feature = layer.features(language.bags([longer]))[0]
    np.testing.assert_allclose(feature, reference.normalise(attended(layer, language, longer)), atol=1e-12)


@given(st.integers(1, 3), st.integers(2, 4), strategies.SEEDS, st.floats(-3, 3))
def test_residual_is_the_spread_over_closing_queries(k, depth, seed, shift):
    language = DyckLanguage(k, depth)
    rng = np.random.default_rng(seed)
    Z = balance.balanced_layer(language, rng).Z.copy()
    assert balance.residual(Z, language) < 1e-12
    # Neither a row's level nor a shift of a state for all queries is seen.
    Z += rng.normal(size=(language.n_states, 1)) + rng.normal(size=language.n_states)
    assert balance.residual(Z, language) < 1e-12
    # Queries that alone decide the next token, or that follow an empty stack, do not count.
    closing = balance.queries(language)
    others = np.setdiff1d(np.arange(language.n_states), closing)
    Z[others] = rng.normal(size=(others.size, language.n_states))
    assert balance.residual(Z, language) < 1e-12
    np.testing.assert_array_equal(closing, [[language.close(j, d) for d in range(1, depth)] for j in range(k)])
    assume(closing.size > 1)
    state = rng.integers(language.start)
    Z[closing[-1, -1], state] += shift
    assert balance.residual(Z, language) == pytest.approx(abs(shift), abs=1e-12)
    several = np.stack([Z, np.zeros_like(Z)])
    np.testing.assert_allclose(balance.residual(several, language), [balance.residual(Z, language), 0])


@given(st.integers(2, 3), st.integers(2, 4), strategies.SEEDS)
def test_any_attention_that_meets_11_is_balanced_by_some_values(k, depth, seed):
    language = DyckLanguage(k, depth)
    rng = np.random.default_rng(seed)
    Z = balance.balanced_layer(language, rng).Z
    V = balance.balancing_values(Z, language)
    layer = Layer(Z, np.zeros((V.shape[1], 2 * k)), V)
    assert balance.violation(layer, language) < 1e-13
    bags = language.sample(50, max_length=60, rng=seed)
    assert np.abs(balance.exact_head(layer, language)(layer.features(bags)) - bags.target).max() < 1e-10
    # ... and no values balance attention that does not: delta cannot vanish at two queries with other differences.
    broken = Z.copy()
    broken[balance.queries(language)[0, 0], language.open(0, 1)] += 0.1
    broken = Layer(broken, layer.Y, balance.balancing_values(broken, language))
    assert balance.violation(broken, language) > 1e-5


@given(st.integers(1, 3), st.integers(1, 3), strategies.SEEDS)
def test_the_head_knows_the_smallest_coordinate_of_an_unmatched_bracket(k, depth, seed):
    language = DyckLanguage(k, depth)
    layer = balance.balanced_layer(language, seed)
    # D + 1 brackets reach every stack with every query.
    features = layer.features(language.enumerate(max_length=depth + 1))[:, :-1]
    smallest = features[features > 1e-12].min()
    weight = balance.exact_head(layer, language).weights[0][0, 0]
    assert 2 / weight == pytest.approx(smallest, rel=1e-12)


def test_matched_pairs_and_drift_are_the_means_over_all_prefixes():
    language = DyckLanguage(2, 3, 0.4)
    layer = random_layer(language, 0)
    total, shift = np.zeros((2, 3)), np.zeros((language.n_states, 5))
    opens, closes = balance.pairs(language)
    for length in (5, 8):
        bags = language.enumerate(min_length=length, max_length=length)
        # As many pairs are matched as brackets are closed.
        matched = reference.dense_counts(bags)[:, closes]
        mean = np.einsum("b,bil->il", bags.weight, matched)
        total += mean / 2
        for q, i, level in np.ndindex(language.n_states, 2, 3):
            states = opens[i, level], closes[i, level]
            shift[q] += mean[i, level] / 2 * sum(np.exp(layer.Z[q, s]) * layer.V[s] for s in states)
    np.testing.assert_allclose(balance.matched_pairs(language, [5, 8]), total.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(balance.drift(layer, language, [5, 8]), shift, rtol=1e-10)
    np.testing.assert_array_equal(balance.matched_pairs(language, 1), 0)
    balanced = balance.balanced_layer(language, 1)
    assert np.abs(balance.drift(balanced, language, range(400, 501))).max() < 1e-12 * np.exp(balanced.Z).max() * 500


def test_a_drift_towards_one_answer_is_predicted_and_found():
    """One closing query always answers type 1; at five standard errors (6e-7)."""
    language = DyckLanguage(3, 3)
    layer = balance.balanced_layer(language, 0, scale=0)
    Z = layer.Z.copy()
    Z[language.close(0, 1), language.open(1, 1)] += 5
    layer = Layer(Z, layer.Y, layer.V)
    lengths, n = range(300, 302), 20_000
    bags = language.sample(n, min_length=300, max_length=301, rng=4)
    predicted = balance.predicted_accuracy(layer, language, lengths)
    found = balance.closing_accuracy(layer, language, bags)
    # Two thirds of the stacks under that query do not end in type 1.
    closing = np.isin(bags.query, balance.queries(language))
    share = (bags.query == language.close(0, 1)).sum() / closing.sum()
    assert predicted["open"] == found["open"] == 1
    assert predicted["close"] == pytest.approx(1 - share * 2 / 3, abs=5 * 0.5 / np.sqrt(closing.sum()))
    for kind, count in (("close", closing.sum()), ("all", n)):
        assert predicted[kind] == pytest.approx(found[kind], abs=5 * 0.5 / np.sqrt(count))
    assert 0.6 < predicted["close"] < 0.9
    # D = 1 has no closing query, and a closing bracket that the query names.
    flat = balance.predicted_accuracy(balance.balanced_layer(DyckLanguage(2, 1), 0), DyckLanguage(2, 1), 3)
    assert flat["open"] == flat["all"] == 1 and np.isnan(flat["close"])


@given(strategies.dyck_languages(max_types=3, max_depth=3), strategies.SEEDS)
def test_balanced_layers_are_predicted_to_be_right(language, seed):
    layer = balance.balanced_layer(language, seed)
    predicted = balance.predicted_accuracy(layer, language, [40, 41])
    assert all(share == pytest.approx(1) or np.isnan(share) for share in predicted.values())


def test_the_accuracy_at_the_mean_prefix_asks_the_decoder_and_violation_does_not():
    """Another decoder over the same attention and values: the same violation, another accuracy, as measured."""
    language = DyckLanguage(2, 3)
    layer = balance.balanced_layer(language, 0)
    wrong = Layer(layer.Z, -np.asarray(layer.Y), layer.V)
    lengths, bags = [40, 60], language.sample(2000, min_length=40, max_length=60, rng=0)
    for one, expected in ((layer, 1.0), (wrong, 0.0)):
        assert balance.violation(one, language) < 1e-12
        assert balance.predicted_accuracy(one, language, lengths)["all"] == expected
        assert balance.closing_accuracy(one, language, bags)["all"] == pytest.approx(expected, abs=1e-12)


def test_networks_compute_what_is_written():
    network = ReluNetwork(([[1, -1], [2, 0]], [[1, -1]]), ([0, -1], [0.5]))
    # relu(3 - 1), relu(6 - 1): 2 - 5 + 0.5; relu(-2), relu(-3) are 0.
    np.testing.assert_allclose(network([[3, 1], [-1, 1]]), [[-2.5], [0.5]])
    np.testing.assert_allclose(network([3, 1]), [-2.5])


LANGUAGE = DyckLanguage(2, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: balance.residual(np.zeros((12, 13)), LANGUAGE), "`Z` must have a row and a column for each of the 13"),
        (lambda: balance.residual([[np.nan]], LANGUAGE), "`Z` must hold finite numbers"),
        (
            lambda: balance.violation(Layer(np.zeros((7, 7)), np.zeros((7, 4))), LANGUAGE),
            r"`layer` must have a row and a column for each of the 13 states, but got shape \(7, 7\)",
        ),
        (
            lambda: balance.violation(balance.balanced_layer(DyckLanguage(1, 3)), DyckLanguage(1, 3)),
            "`language` must have at least two types and depths",
        ),
        (lambda: balance.balanced_layer(LANGUAGE, scale=-1), "`scale` must be non-negative, but got -1"),
        (
            lambda: balance.exact_head(random_layer(LANGUAGE, 0), LANGUAGE),
            "`layer` must have 7 columns of V, but got 5",
        ),
        (
            lambda: balance.exact_head(Layer(np.zeros((13, 13)), np.zeros((7, 4)), np.ones((13, 7))), LANGUAGE),
            "`layer` must be exactly balanced",
        ),
        (lambda: balance.matched_pairs(LANGUAGE, []), "`lengths` must be positive"),
        (lambda: balance.matched_pairs(LANGUAGE, 0), "`lengths` must be positive"),
        (lambda: ReluNetwork(()), "`weights` must hold at least one matrix, but got none"),
        (
            lambda: ReluNetwork((np.ones((2, 3)), np.ones((1, 3)))),
            "`weights` must have as many inputs as the layer before has outputs",
        ),
        (lambda: ReluNetwork((np.ones((2, 3)),), (np.ones(3),)), r"`biases` must have the sizes \[2\], but got \[3\]"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@given(strategies.SEEDS)
def test_mean_subtraction_takes_the_mean_off_the_values(seed):
    """LN with centring sees P u: violation is that of P V, and what a million pairs leave points along P delta."""
    language = DyckLanguage(2, 3)
    plain = random_layer(language, seed)
    layer = Layer(plain.Z, plain.Y, plain.V, center=True)
    shifted = Layer(plain.Z, plain.Y, plain.V - plain.V.mean(axis=1, keepdims=True))
    assert balance.violation(layer, language) == pytest.approx(brute_force_violation(shifted, language), rel=1e-10)
    bags = language.bags([[0, 0, 1]])
    states = np.array([language.open(1, 1), language.close(1, 0)])
    counts = np.zeros(language.n_states)
    counts[bags.token] = bags.count
    counts[states] += 1e6
    many = Bags.from_dense(bags.query, bags.target, [counts], n_queries=language.n_states)
    delta = balance.insertions(layer, language)[bags.query[0], 1, 0]
    assume(np.linalg.norm(delta) > 0.01 * np.linalg.norm(balance.contributions(layer, language)[bags.query[0]]))
    np.testing.assert_allclose(layer.features(many)[0], delta / np.linalg.norm(delta), atol=1e-3)


def test_layers_that_sums_do_not_describe_are_refused():
    language = DyckLanguage(2, 3)
    layer = random_layer(language, 0)
    with pytest.raises(ValueError, match="`layer` must have no floor in LN"):
        balance.violation(Layer(layer.Z, layer.Y, layer.V, floor=0.1), language)
    headed = Layer(layer.Z, np.ones((4, 4)), layer.V, hidden=np.ones((6, 4)))
    with pytest.raises(ValueError, match="`layer` must have no hidden layer"):
        balance.predicted_accuracy(headed, language, 10)


def test_contributions_know_temperature_and_normalisation():
    """The balance condition is about what LN is applied to: at another temperature other logits, with the mean off."""
    language = DyckLanguage(2, 3)
    layer = random_layer(language, 3, value=False)
    plain = balance.contributions(dataclasses.replace(layer, Z=layer.Z / 2), language)
    hot = dataclasses.replace(layer, temperature=2.0)
    np.testing.assert_array_equal(balance.contributions(hot, language), plain)
    centred = balance.contributions(dataclasses.replace(hot, normalisation="layer"), language)
    np.testing.assert_allclose(centred, plain - plain.mean(axis=2, keepdims=True), rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="`layer` must have LN, which takes the scale off"):
        balance.contributions(dataclasses.replace(layer, normalisation=None), language)
