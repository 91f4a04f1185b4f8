"""Match2 and Match3 as units and transformers: on every small input, on large ones, and where they must fail."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import SEEDS
from yzflow_sparse_averaging import averaging, measures
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.attention_unit import AttentionUnit, TensorAttentionUnit

UNITS = {2: (averaging.match2, tasks.match2), 3: (averaging.match3_tensor, tasks.match3)}
ROUNDING = 1e-15  # of an output of order one


def largest_error(unit, x):
    truth = UNITS[unit.order][1](x, unit.modulus)
    return float(np.abs(unit(x) - truth).max())


@pytest.mark.parametrize("error", [0.3, 1e-9])
@pytest.mark.parametrize(
    ("order", "n", "modulus"),
    [(2, 1, 2), (2, 4, 7), (2, 5, 4), (3, 1, 2), (3, 3, 3), (3, 4, 4)],
)
def test_every_small_input_is_within_the_bound(order, n, modulus, error):
    unit = UNITS[order][0](n_tokens=n, modulus=modulus, error=error)
    for size in range(1, n + 1):  # fewer tokens than N too
        assert largest_error(unit, tasks.all_match(size, modulus)) <= error + ROUNDING


@pytest.mark.parametrize(("n", "modulus"), [(1, 5), (7, 5), (200, 11)])
def test_the_largest_error_of_match2_is_exactly_eta(n, modulus):
    eta = 0.03
    unit = averaging.match2(n_tokens=n, modulus=modulus, error=eta)
    one_match = [0] + [modulus // 4] * (n - 1)  # 0 + 0 = 0; the others are far from -0, and weigh nothing
    assert largest_error(unit, np.array(one_match)) == pytest.approx(eta, rel=1e-3)
    assert largest_error(unit, np.array([0])) == pytest.approx(eta, rel=1e-9)
    nearest = np.full(n, (modulus + 1) // 2)  # 2 x = 1 mod M: no match, and all as near as can be
    assert largest_error(unit, nearest) == pytest.approx(eta, rel=1e-9)


@pytest.mark.parametrize(("n", "modulus"), [(300, 10**6), (200, 97), (2, 10**7), (50, 2)])
def test_match2_on_large_inputs_random_and_adversarial(n, modulus):
    rng, error = np.random.default_rng(n), 0.01
    unit = averaging.match2(n_tokens=n, modulus=modulus, error=error)
    x = tasks.random_match(n, modulus, size=3, rng=rng, planted=0.5)
    x = np.concatenate([x, tasks.adversarial_match(n, modulus)])
    assert 0 < tasks.match2(x, modulus).mean() < 1 or modulus == 2
    assert largest_error(unit, x) <= error


@pytest.mark.parametrize(("n", "modulus"), [(30, 10**6), (25, 7)])
def test_match3_on_large_inputs_random_and_adversarial(n, modulus):
    rng, error = np.random.default_rng(n), 0.01
    unit = averaging.match3_tensor(n_tokens=n, modulus=modulus, error=error)
    x = tasks.random_match(n, modulus, size=6, rng=rng, order=3, planted=0.5)
    x = np.concatenate([x, tasks.adversarial_match(n, modulus, order=3)])
    assert largest_error(unit, x) <= error


@pytest.mark.parametrize("order", [2, 3])
def test_dimensions_are_three_and_four(order):
    unit = UNITS[order][0](n_tokens=5, modulus=7, error=0.1)
    assert unit.unit.embedding_dim == order + 1


@pytest.mark.parametrize(("n", "modulus"), [(3, 5), (1000, 10**4)])
def test_the_scale_is_that_of_the_statement(n, modulus):
    unit = averaging.match2(n_tokens=n, modulus=modulus, error=0.02)
    log_odds = math.log(0.98 / 0.02)
    scale = (math.log(n) + 2 * log_odds) / (1 - math.cos(2 * math.pi / modulus))
    assert unit.scale == pytest.approx(scale, rel=1e-6)
    assert (1 - unit.blank_score) * unit.scale == pytest.approx(log_odds, rel=1e-5)
    again = averaging.match2(n_tokens=n, modulus=modulus, scale=unit.scale)
    assert again.error == pytest.approx(0.02, rel=1e-9)
    assert again.blank_score == pytest.approx(unit.blank_score, abs=1e-15)


@pytest.mark.parametrize("order", [2, 3])
def test_below_the_scale_the_bound_fails(order):
    n, modulus, eta = 20, 101, 0.01
    make = UNITS[order][0]
    unit = make(n_tokens=n, modulus=modulus, error=eta)
    x = np.concatenate(
        [tasks.adversarial_match(n, modulus, order=order), np.zeros((1, n), int)]  # all match, and one of them alone:
    )
    for fraction in (0.9, 0.5, 0.1):
        low = make(n_tokens=n, modulus=modulus, scale=fraction * unit.scale)
        assert low.error > eta
        worst = max(largest_error(low, x), largest_error(low, np.zeros(1, int)))
        assert worst > eta
        # The unit keeps its promise at its scale; with order 3 up to the mixed pairs.
        assert worst == pytest.approx(low.error, rel=0.05 if order == 3 else 1e-6)
    assert low.error > 0.5


def test_without_the_blank_token_match2_fails():
    unit = averaging.match2(n_tokens=4, modulus=11, error=0.01)
    x = np.array([1, 2, 3, 4])
    assert not tasks.match2(x, 11).any()
    assert unit(x).max() <= 0.01
    np.testing.assert_allclose(unit.unit(tasks.match_tokens(x, blank=False)), 1.0)


@pytest.mark.parametrize("order", [2, 3])
def test_one_dimension_less_fails(order):
    unit = UNITS[order][0](n_tokens=4, modulus=11, error=0.01)

    def cut(function):
        return lambda X: function(X)[..., :-1]

    parts = unit.unit
    x = tasks.match_tokens(np.array([1, 2, 3, 4]) if order == 2 else np.array([1, 1, 2, 4]))
    if order == 2:
        small = AttentionUnit.from_maps(
            cut(parts.queries), cut(parts.keys), parts.values, embedding_dim=2, scale=unit.scale
        )
        attention = small.attention(x)
    else:
        keys = tuple(cut(key) for key in parts._keys)
        small = TensorAttentionUnit(cut(parts._query), keys, parts._values, embedding_dim=3, scale=unit.scale)
        attention = small.attention(x)
    assert attention.shape[-1] == 5
    truth = UNITS[order][1](x[:-1, 0].astype(int), 11)
    assert not truth.any()
    assert np.abs(small(x)[:-1, 0] - truth).max() > 0.5


def test_sums_are_modulo_m():
    # As the slides print the tasks, without "mod M", positive integers have no match; mod M these have.
    x = np.array([1, 2, 9, 5])
    assert not (x[:, None] + x == 0).any()
    unit = averaging.match2(n_tokens=4, modulus=11, error=0.01)
    np.testing.assert_array_equal(unit(x) > 0.5, [False, True, True, False])


@given(st.integers(2, 3), st.integers(1, 6), st.integers(2, 40), SEEDS)
def test_order_and_repeats_of_tokens(order, n, modulus, seed):
    rng = np.random.default_rng(seed)
    unit = UNITS[order][0](n_tokens=2 * n, modulus=modulus, error=0.05)
    x = rng.integers(modulus, size=n)
    shuffle = rng.permutation(n)
    np.testing.assert_allclose(unit(x[shuffle]), unit(x)[shuffle], rtol=0, atol=1e-12)
    twice = unit(np.concatenate([x, x]))
    np.testing.assert_array_equal(twice[:n] > 0.5, tasks.match2(x, modulus) if order == 2 else tasks.match3(x, modulus))
    np.testing.assert_allclose(twice[n:], twice[:n], rtol=0, atol=1e-12)


def bigram(x, modulus):
    """By the definition, token by token."""
    pairs = [(x[j] + x[j + 1]) % modulus for j in range(len(x) - 1)]
    return [any((token + pair) % modulus == 0 for pair in pairs) for token in x]


def local(x, modulus, reach):
    out = []
    for i, token in enumerate(x):
        near = x[max(0, i - reach) : i + reach + 1]
        out.append(any((token + a + b) % modulus == 0 for a, b in itertools.product(near, near)))
    return out


@pytest.mark.parametrize(("n", "modulus"), [(1, 3), (3, 5), (5, 3)])
def test_assisted_match3_on_every_small_input(n, modulus):
    x = tasks.all_match(n, modulus)
    pairs = averaging.match3_bigram(n_tokens=n, modulus=modulus)
    assert (pairs.depth, pairs.heads, pairs.embedding_dim) == (2, 1, 3)
    np.testing.assert_array_equal(pairs(x), [bigram(row, modulus) for row in x.tolist()])
    for reach in (0, 1, 2):
        near = averaging.match3_local(n_tokens=n, modulus=modulus, reach=reach)
        assert (near.depth, near.heads, near.embedding_dim, near.width) == (1, 1, 4 * reach + 2, 2 * reach + 3)
        np.testing.assert_array_equal(near(x), [local(row, modulus, reach) for row in x.tolist()])
    np.testing.assert_array_equal(averaging.match3_histogram(n_tokens=n, modulus=modulus)(x), tasks.match3(x, modulus))


def test_the_audit_of_assisted_match3_plants_matches(monkeypatch):
    """x_1 + x_2 + x_3 = 0 mod 10^6, where no other sums vanish: x_1 and x_3 match the pair of the other two."""
    runs = SimpleNamespace(setting=SimpleNamespace(n_tokens=20, modulus=10**6, seed=0))
    assert measures.assisted(runs, "construction") == 0
    blind = type("Blind", (), {"depth": 2, "heads": 1, "embedding_dim": 3})
    blind.__call__ = lambda self, x: np.zeros(x.shape, bool)
    monkeypatch.setattr(averaging, "match3_bigram", lambda **sizes: blind())
    assert measures.assisted(runs, "construction") == 2 / 20


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 18, 97])
def test_neighbours_at_every_n(n):
    for modulus in (2, 3, 50, 10_007):
        x = tasks.random_match(n, modulus, size=3, rng=np.random.default_rng(n + modulus))
        truth = [bigram(row, modulus) for row in x.tolist()]
        np.testing.assert_array_equal(averaging.match3_bigram(n_tokens=n, modulus=modulus)(x), truth)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 10, 11, 23, 41])
def test_windows_at_every_n(n):
    """Windows within the input, of all of it, and beyond both ends; the definition is written twice."""
    for reach, modulus in itertools.product({0, 1, 2, 5, min(n, 20)}, (2, 3, 47, 1001)):
        x = tasks.random_match(n, modulus, size=3, rng=np.random.default_rng(n + reach), order=3, planted=0.5)
        truth = [local(row, modulus, reach) for row in x.tolist()]
        model = averaging.match3_local(n_tokens=n, modulus=modulus, reach=reach)
        np.testing.assert_array_equal(model(x), truth)
        np.testing.assert_array_equal(measures.within(x, modulus, reach), truth)


def test_a_window_ends_where_it_ends():
    """A planted match at the distance K is found and one at K + 1 is not, at both sides and every position."""
    n, modulus, reach = 11, 10**5, 3
    model = averaging.match3_local(n_tokens=n, modulus=modulus, reach=reach)
    for i, j in itertools.product(range(n), repeat=2):
        x = np.full(n, 1)
        x[i], x[j] = 2 * 17, modulus - 17  # x_i + 2 x_j vanishes, and no other sum with x_i does
        assert model(x)[i] == (0 < abs(i - j) <= reach)


def test_windows_are_refused_where_float64_cannot_tell():
    with pytest.raises(ValueError, match="`modulus` must leave scores of 33334 blocks that float64 tells apart"):
        averaging.match3_local(n_tokens=10**5, modulus=10**7, reach=1)


@pytest.mark.parametrize(("root", "modulus"), [(1, 6), (2, 2), (2, 3)])
def test_the_two_layer_construction_on_every_small_input(root, modulus):
    model = averaging.match3_groups(root=root, modulus=modulus)
    assert (model.n_tokens, model.depth, model.heads, model.embedding_dim) == (root**3, 2, 3, root**2)
    x = tasks.all_match(root**3, modulus)
    np.testing.assert_array_equal(model(x), tasks.match3(x, modulus))


@pytest.mark.parametrize(("root", "modulus", "size"), [(2, 9, 512), (2, 1001, 200), (4, 6000, 6)])
def test_the_two_layer_construction_on_larger_inputs(root, modulus, size):
    model = averaging.match3_groups(root=root, modulus=modulus)
    n = root**3
    x = tasks.random_match(n, modulus, size=size, rng=np.random.default_rng(root), order=3, planted=0.3)
    x = np.concatenate([x, tasks.adversarial_match(n, modulus, order=3)[:: root**2]])
    truth = tasks.match3(x, modulus)
    assert 0 < truth.mean() < 1
    np.testing.assert_array_equal(model(x), truth)


def test_each_part_of_the_two_layer_construction_is_needed():
    # The only triple of these 8 tokens, two groups of four: 10 + 100 + 391 = 501.
    x = np.array([10, 3, 100, 7, 391, 20, 5, 6])
    model = averaging.match3_groups(root=2, modulus=501)
    np.testing.assert_array_equal(model(x), [1, 0, 1, 0, 1, 0, 0, 0])
    first, second = model.transformer.layers
    for head in range(3):
        layer = type(first)([unit for h, unit in enumerate(first.heads) if h != head])
        cut = type(model.transformer)([layer, second], model.transformer.maps)
        assert not np.array_equal(cut(model.tokens(x))[..., 0] > 0.5, model(x))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: averaging.match2(n_tokens=0, modulus=3, error=0.1), "`n_tokens` must be at least 1, but got 0"),
        (lambda: averaging.match2(n_tokens=2, modulus=1, error=0.1), "`modulus` must be at least 2, but got 1"),
        (lambda: averaging.match2(n_tokens=2, modulus=3, error=0.5), "`error` must be below 1/2, but got 0.5"),
        (lambda: averaging.match2(n_tokens=2, modulus=3), "`error` must be given, or `scale` in its place"),
        (lambda: averaging.match2(n_tokens=2, modulus=3, error=0.1, scale=1), "`error` must be given, or `scale`"),
        (lambda: averaging.match2(n_tokens=2, modulus=10**9, error=0.1), "`modulus` must leave a gap"),
        (lambda: averaging.match2(n_tokens=2, modulus=3, error=0.1)([1, 2, 0]), "`x` must hold at most 2 tokens"),
        (lambda: averaging.match2(n_tokens=2, modulus=3, error=0.1)([1, 3]), "`x` must hold residues below the mod"),
        (lambda: averaging.match3_bigram(n_tokens=2, modulus=3)([1, 2, 0]), "`x` must hold 2 tokens, but got shape"),
        (lambda: averaging.match3_bigram(n_tokens=2, modulus=3)([1, 3]), r"`x` must hold integers in \[0, 3\)"),
        (lambda: averaging.match3_groups(root=0, modulus=3), "`root` must be at least 1, but got 0"),
        (
            lambda: averaging.match3_groups(root=2, modulus=2**40 + 1),
            "`modulus` must be at most 1099511627776, but got 1099511627777",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
