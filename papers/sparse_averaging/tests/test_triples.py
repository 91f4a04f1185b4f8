"""Match3 by a transform and by sorted groups: exact on all small inputs and on hard large ones, in the size stated."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import SEEDS
from yzflow_sparse_averaging import _numerics, averaging, sizes
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.attention_unit import FixedPoint, MultiHeadLayer, Transformer
from yzflow_sparse_averaging.parts import Head, Layers, Layout, Part
from yzflow_sparse_averaging.proofs import sorted_groups as proof
from yzflow_sparse_averaging.proofs import transform
from yzflow_sparse_averaging.transform import Stages, butterfly

MODELS = {
    "transform": averaging.match3_transform,
    "sorted": averaging.match3_sorted,
    "groups": lambda n_tokens, modulus, **more: averaging.match3_groups(
        root=round(n_tokens ** (1 / 3)), modulus=modulus, **more
    ),
}


def hard_inputs(n, modulus, rng):
    """Random with planted triples, misses by one, progressions, few values, and two values at the edges of groups."""
    step = max(1, modulus // n)
    few = rng.integers(modulus, size=3)
    runs = [
        np.arange(n) * step % modulus,
        np.sort(rng.integers(modulus, size=n))[::-1],
        rng.choice(few, n),
        np.where(np.arange(n) < n // 2, 1, modulus - 2) % modulus,
        np.where(rng.random(n) < 0.1, modulus // 3, modulus // 3 + 1) % modulus,
    ]
    planted = tasks.random_match(n, modulus, size=4, rng=rng, order=3, planted=0.5)
    return np.concatenate([planted, np.stack(runs), tasks.adversarial_match(n, modulus, order=3)[:: max(1, n // 16)]])


@pytest.mark.parametrize(
    ("name", "n", "modulus"),
    [
        *(("transform", n, m) for n, m in ((1, 7), (2, 5), (3, 4), (4, 5), (8, 2))),
        *(("sorted", n, m) for n, m in ((3, 9), (4, 5), (5, 4), (8, 2))),
    ],
)
def test_every_small_input(name, n, modulus):
    x = tasks.all_match(n, modulus)
    np.testing.assert_array_equal(MODELS[name](n_tokens=n, modulus=modulus)(x), tasks.match3(x, modulus))


@pytest.mark.parametrize(
    ("name", "n", "modulus"),
    [
        *(("transform", n, m) for n, m in ((60, 40), (64, 300))),
        *(("sorted", n, m) for n, m in ((100, 40), (60, 10**9))),
        pytest.param("transform", 128, 128, marks=pytest.mark.slow),
    ],
)
def test_hard_large_inputs(name, n, modulus):
    x = hard_inputs(n, modulus, np.random.default_rng(n))
    truth = tasks.match3(x, modulus)
    assert 0.1 < truth.mean() < 0.9
    np.testing.assert_array_equal(MODELS[name](n_tokens=n, modulus=modulus)(x), truth)


@given(st.sampled_from(["transform", "sorted"]), st.integers(3, 24), st.integers(2, 60), SEEDS)
def test_random_sizes_and_values(name, n, modulus, seed):
    rng = np.random.default_rng(seed)
    x = rng.choice(rng.integers(modulus, size=rng.integers(1, n + 1)), size=(3, n))
    np.testing.assert_array_equal(MODELS[name](n_tokens=n, modulus=modulus)(x), tasks.match3(x, modulus))


@pytest.mark.parametrize(("n", "modulus"), [(32, 32), (1024, 1024)])
def test_the_transform_has_the_size_that_is_stated(n, modulus):
    model = averaging.match3_transform(n_tokens=n, modulus=modulus)
    r = int(math.log2(n))
    assert (model.depth, model.heads, model.embedding_dim) == (2 * r + 2, 2, r + 2)
    if n == 32:
        size = averaging.counted_size(model, tasks.random_match(n, modulus, size=1, rng=0))
        assert (size.depth, size.heads, size.dimension, size.extra_tokens) == (2 * r + 2, 2, r + 2, 1)
        prime = Stages(2 * n, n, n).prime
        assert size.product == 4 * (r + 1) * (r + 2) and size.bits <= math.log2(prime) + 3


def heads(layer):
    return layer.heads if isinstance(layer, MultiHeadLayer) else [layer]


@pytest.mark.parametrize(("n", "modulus"), [(3, 2), (40, 7), (49, 50), (60, 61)])
def test_scales_of_sorted_groups_are_the_least_that_the_proof_allows(n, modulus):
    """exp(-scale x the least distance of scores) is at most the proof's leak, and one less would not do."""
    *digits, extremes, gather, report = averaging.match3_sorted(n_tokens=n, modulus=modulus).transformer.layers
    leaks = [(layer, 2, proof.digit_leak(n)) for layer in digits]  # codes are of signs: scores differ by 2
    leaks += [(layer, 1, proof.gather_leak(n, modulus)) for layer in (extremes, gather)]
    leaks += [(report, 1, proof.report_leak(n))]
    for layer, distance, leak in leaks:
        for head in heads(layer):
            assert math.exp(-distance * head.scale) <= leak < math.exp(-distance * (head.scale - 1))


def test_numbers_of_the_transform_are_as_fine_as_the_proof_asks():
    histogram, *copies, answer = averaging.match3_transform(n_tokens=5, modulus=7).transformer.layers
    for layers, step in (([histogram], transform.histogram_step(5)), (copies, transform.copy_step())):
        for head in (head for layer in layers for head in heads(layer)):
            assert step / 2 < head.precision.output.step <= step
    assert copies and all(head.precision.output.step == 1 / 4 for head in heads(answer))


@pytest.mark.parametrize(("n", "exponent"), [(5, 1), (64, 1), (65, 1), (100, 2), (50, 4)])
def test_sorted_groups_have_the_size_that_is_stated(n, exponent):
    modulus = n**exponent
    model = averaging.match3_sorted(n_tokens=n, modulus=modulus)
    size = averaging.counted_size(model, tasks.random_match(n, modulus, size=1, rng=0))
    code = math.ceil(math.log2(n * modulus))
    assert size.depth <= 3 + math.ceil(2 * (exponent + 1) / 3) and size.heads == 3 and size.extra_tokens == 0
    assert size.dimension == model.embedding_dim <= max(math.sqrt(n) + 3, code)
    assert size.bits <= math.log2(n * modulus) + 6
    # As large as the square root too, up to what 3 leaves: no dimension less than a group's size is counted.
    assert size.dimension >= math.sqrt(n)


@pytest.mark.parametrize(("name", "n", "modulus"), [("groups", 27, 729), ("transform", 16, 32), ("sorted", 32, 1024)])
def test_the_bits_stated_are_enough_and_two_fewer_are_not(name, n, modulus):
    x = hard_inputs(n, modulus, np.random.default_rng(3))
    truth = tasks.match3(x, modulus)
    for spare, right in ((0, True), (3, True), (-2, False)):
        model = MODELS[name](n_tokens=n, modulus=modulus, spare_bits=spare)
        assert np.array_equal(model(x), truth) is right


@pytest.mark.parametrize(
    ("name", "n", "modulus", "allowed"),
    [
        ("groups", 27, 729, 1 / (32 * 729)),
        ("transform", 32, 32, 1 / (32 * 193)),
        ("sorted", 32, 1024, 1 / (32 * 32 * 1024)),
    ],
)
def test_errors_of_attention_up_to_the_one_stated_do_no_harm(name, n, modulus, allowed, monkeypatch):
    if name == "transform":
        assert Stages(64, 32, 32).prime == 193
    x = hard_inputs(n, modulus, np.random.default_rng(4))
    truth, model = tasks.match3(x, modulus), MODELS[name](n_tokens=n, modulus=modulus)
    exact, rng = _numerics.softmax, np.random.default_rng(5)

    def rough(error):
        # Random signs of the largest relative error, in each numerator and in the denominator.
        def softmax(scores, scale):
            shape = scores.shape
            wrong = (
                rng.choice([1 - error, 1 + error], size=shape)
                / rng.choice([1 - error, 1 + error], size=shape[:-1])[..., None]
            )
            return exact(scores, scale) * wrong

        return softmax

    monkeypatch.setattr(_numerics, "softmax", rough(allowed))
    np.testing.assert_array_equal(model(x), truth)
    monkeypatch.setattr(_numerics, "softmax", rough(0.4))
    assert not np.array_equal(model(x), truth)


@pytest.mark.parametrize(("name", "n", "modulus"), [("transform", 16, 16), ("sorted", 16, 256)])
def test_each_head_is_needed(name, n, modulus):
    model = MODELS[name](n_tokens=n, modulus=modulus)
    x = hard_inputs(n, modulus, np.random.default_rng(6))
    layers, maps, right = model.transformer.layers, model.transformer.maps, model(x)
    for number, layer in enumerate(layers):
        for head in range(len(layer.heads)):
            rest = [unit for k, unit in enumerate(layer.heads) if k != head] or [np.zeros_like]
            cut = Transformer([*layers[:number], MultiHeadLayer(rest), *layers[number + 1 :]], maps)
            assert not np.array_equal(cut(model.tokens(x))[..., :n, 0] > 0.5, right), (number, head)


def test_the_transform_needs_its_blank_token():
    model = averaging.match3_transform(n_tokens=8, modulus=8)
    x = np.array([[1, 1, 1, 1, 1, 1, 1, 1], [2, 2, 2, 2, 2, 2, 2, 2]])
    assert not tasks.match3(x, 8).any()
    assert (model.transformer(model.tokens(x)[:, :-1])[..., 0] > 0.5).any()


@pytest.mark.parametrize("length", [2, 8, 64])
def test_butterflies_evaluate_a_polynomial_and_are_undone(length):
    stages = Stages(length, length, length)
    prime, root = stages.prime, stages.root
    a = np.random.default_rng(length).integers(prime, size=length)
    values, strides = a.copy(), [length >> k for k in range(1, length.bit_length())]
    place = np.arange(length)
    for h in strides:
        own, other = butterfly(length, h, root, prime, inverse=False)
        values = (own * values + other * values[place ^ h] % prime) % prime
    powers = [pow(root, k, prime) for k in range(length)]
    by_horner = sorted(sum(int(c) * pow(w, j, prime) for j, c in enumerate(a)) % prime for w in powers)
    assert sorted(values.tolist()) == by_horner and len(set(powers)) == length
    for h in strides[::-1]:
        own, other = butterfly(length, h, root, prime, inverse=True)
        values = (own * values + other * values[place ^ h] % prime) % prime
    np.testing.assert_array_equal(values, a)


@given(st.integers(1, 12), st.integers(2, 200), SEEDS)
def test_few_triples_of_groups_hold_all_zero_sums(n_groups, modulus, seed):
    rng = np.random.default_rng(seed)
    largest = np.sort(rng.integers(modulus, size=n_groups))
    triples = averaging.feasible_triples(largest, modulus)
    assert len(triples) <= n_groups**2
    known = set(map(tuple, triples.tolist()))
    for _ in range(30):
        x = rng.integers(largest[-1] + 1, size=2)
        third = -int(x.sum()) % modulus
        if third <= largest[-1] and x.any():
            groups = np.sort(np.searchsorted(largest, [*x, third]))
            assert tuple(groups.tolist()) in known
    assert all(a <= b <= c for a, b, c in known)


def test_as_many_triples_as_the_lemma_allows():
    # The most of all largest residues below M, by trying all: G^2 for these G, and fewer for smaller M.
    for n_groups, modulus in ((1, 2), (2, 5), (3, 9)):
        choices = list(itertools.combinations_with_replacement(range(modulus), n_groups))
        most = max(len(averaging.feasible_triples(np.array(largest), modulus)) for largest in choices)
        assert most == n_groups**2 == proof.triples(n_groups)
    # Evenly spaced groups: more than half of what the lemma allows can occur, so that it is no wild bound.
    largest = np.arange(1, 13) * 10 - 1
    assert 12**2 / 2 < len(averaging.feasible_triples(largest, 120)) <= 12**2


def test_no_triple_is_left_without_a_token():
    """N = 5 has two groups and four triples, the last of them (1, 1, 1): of these, 3 + 3 + 4 = 10 alone needs it."""
    x = np.array([[2, 2, 2, 3, 4]])
    np.testing.assert_array_equal(averaging.match3_sorted(n_tokens=5, modulus=5)(x), tasks.match3(x, 5))
    assert len(averaging.feasible_triples(np.array([2, 4]), 5)) == 4


def test_groups_that_own_nothing_are_in_no_triple():
    # All tokens the same, 3 * 40 = 120: the first group owns it. Ranges that touch would leave all 364 triples.
    np.testing.assert_array_equal(averaging.feasible_triples(np.full(12, 40), 120), [[0, 0, 0]])
    # 0..1 and 2..6: 2 + 2 + 3 = 7, 0 + 3 + 4 = 7 and 1 + 0 + 6 = 7, but no sum of three of 0 and 1.
    np.testing.assert_array_equal(averaging.feasible_triples(np.array([1, 6]), 7), [[0, 0, 1], [0, 1, 1], [1, 1, 1]])


def test_columns_of_values_are_counted_where_they_are_used():
    model = averaging.match3_groups(root=3, modulus=2)
    size = averaging.counted_size(model, tasks.random_match(27, 2, size=1, rng=0))
    assert (size.depth, size.heads, size.dimension, size.extra_tokens) == (2, 3, 9, 0)  # 3 of queries, 9 of values
    assert averaging.counted_size(model, np.zeros((1, 27))).dimension == 9  # bits of layer 2
    none = np.ones((1, 27))  # three ones are odd: neither residues in layer 1 vanish nor is a bit of layer 2 set
    assert not tasks.match3(none.astype(int), 2).any() and averaging.counted_size(model, none).dimension == 9


@given(st.integers(1, 30), st.integers(-10, 20), SEEDS)
def test_bits_of_numbers_are_those_of_fixed_point(bits, fraction, seed):
    numbers = FixedPoint(bits, fraction)
    values = numbers.round(np.random.default_rng(seed).normal(size=5) * numbers.step * 2.0**bits)
    needed = averaging.number_bits(values)
    assert needed <= bits + 1  # -2^(p-1) has one bit more than its negative
    finest = max((k for k in range(-40, 40) if any(np.ldexp(v, k) % 1 for v in values)), default=-41) + 1
    again = FixedPoint(needed, finest).round(values)
    np.testing.assert_array_equal(again[values > -np.inf], values)


def test_averages_are_fine_enough_and_in_range():
    for bound, resolution in itertools.product((1.0, 7.3, 1000.0), (0.5, 0.3, 1 / 1001)):
        numbers = sizes.averages(bound, resolution)
        assert resolution / 2 < numbers.step <= resolution
        np.testing.assert_allclose(numbers.round([bound, -bound]), [bound, -bound], atol=numbers.step / 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: averaging.match3_transform(n_tokens=0, modulus=3), "`n_tokens` must be at least 1, but got 0"),
        (lambda: averaging.match3_transform(n_tokens=4, modulus=1), "`modulus` must be at least 2, but got 1"),
        (lambda: averaging.match3_sorted(n_tokens=2, modulus=3), "`n_tokens` must be at least 3, but got 2"),
        (lambda: averaging.match3_sorted(n_tokens=4, modulus=3)([1, 2, 0]), "`x` must hold 4 tokens, but got shape"),
        (lambda: averaging.match3_transform(n_tokens=2, modulus=3)([1, 3]), r"`x` must hold integers in \[0, 3\)"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("name", "n", "modulus"),
    [
        *(("groups", n, m) for n, m in ((27, 2), (64, 4096))),
        *(("sorted", n, m) for n, m in ((5, 25), (32, 64))),
        *(("transform", n, m) for n, m in ((5, 20), (32, 64))),
    ],
)
def test_what_a_construction_tells_of_itself_is_what_it_uses_while_it_runs(name, n, modulus):
    model = MODELS[name](n_tokens=n, modulus=modulus)
    x = np.concatenate([tasks.random_match(n, modulus, size=1, rng=0, order=3), [[modulus - 1] * n]])
    used = averaging.counted_size(model, x)
    told = (model.depth, model.heads, model.embedding_dim, model.width)
    assert told == (used.depth, used.heads, used.dimension, used.width)
    # Nothing is longer than the numbers that it is rounded to; three bits are the most that these inputs do not need.
    assert model.bits - 3 <= used.bits <= model.bits


def test_positions_are_numbers_too():
    """log2 M + 4 and log2 S + 4 bits are too few for positions to 1330."""
    model = averaging.match3_groups(root=11, modulus=2)
    assert math.log2(121) + 4 < 11 and model.bits == 12 == number_bits_of_positions(1331)
    assert (model.width, model.embedding_dim) == (365, 121)
    sorted_one = averaging.match3_sorted(n_tokens=256, modulus=256**2)
    assert (sorted_one.width, sorted_one.embedding_dim) == (94, 20)


def number_bits_of_positions(n):
    return averaging.number_bits(np.arange(float(n)))


def test_tokens_lose_what_does_not_fit_into_their_numbers():
    layout = Layout((Part("x", 1, FixedPoint(3, 0)), Part("rest", 2)))
    np.testing.assert_array_equal(
        layout.held(lambda X: 2 * X)(np.array([[1.0, 0.3, 9.0], [7.0, 1.0, 1.0]])), [[2, 0.6, 18], [3, 2, 2]]
    )
    np.testing.assert_array_equal(layout.placed("rest", np.ones((2, 1))), [[0, 1, 0], [0, 1, 0]])


def test_a_head_refuses_values_of_another_width():
    layout = Layout((Part("x", 1), Part("rest", 3)))
    head = Head.into("rest", layout, Layers("two", 1, 1, 1, 2), query=first, key=first, value=lambda X: X[..., :1])
    with pytest.raises(ValueError, match="`value` must give 2 columns, as its layers have, but got 1"):
        head(np.ones((3, 4)))


def first(X):
    return X[..., :1]


def test_a_model_without_rounding_tells_no_number_of_bits():
    with pytest.raises(ValueError, match="`model` must round all its numbers"):
        averaging.match3_histogram(n_tokens=3, modulus=5).bits  # noqa: B018
