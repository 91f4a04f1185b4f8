"""qSA, Match2 and Match3 against their definitions, and their inputs against counts and laws.

Statistical tests have fixed seeds; each states the probability with which it would fail by chance at new ones.
"""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
import strategies
from hypothesis import given
from hypothesis import strategies as st
from yzflow_sparse_averaging import instances as tasks

from dynamics import Limits


@st.composite
def qsa_inputs(draw):
    """One or two inputs; N = q and q = 1 among them."""
    n_tokens = draw(st.integers(1, 7))
    size = draw(st.sampled_from([1, n_tokens, max(1, n_tokens // 2)]))
    rng = np.random.default_rng(draw(strategies.SEEDS))
    return tasks.random_qsa(n_tokens, size, draw(st.integers(1, 3)), size=draw(st.integers(1, 2)), rng=rng)


@st.composite
def match_inputs(draw):
    """Up to four inputs; M = 2 and M far above N among them."""
    modulus = draw(st.sampled_from([2, 3, 5, 8, 11, 1000, 2**61]))
    values = st.one_of(st.integers(0, modulus - 1), st.sampled_from([0, 1, modulus // 2, modulus // 3, modulus - 1]))
    n_tokens = draw(st.integers(1, 6))
    rows = st.lists(values, min_size=n_tokens, max_size=n_tokens)
    return np.array(draw(st.lists(rows, min_size=1, max_size=4))), modulus


def match2_by_definition(x, modulus):
    x = [[int(v) for v in row] for row in x]
    return [[any((a + b) % modulus == 0 for b in row) for a in row] for row in x]


def match3_by_definition(x, modulus):
    x = [[int(v) for v in row] for row in x]
    return [[any((a + b + c) % modulus == 0 for b in row for c in row) for a in row] for row in x]


BY_DEFINITION = {2: (tasks.match2, match2_by_definition), 3: (tasks.match3, match3_by_definition)}


# Exact outputs


@given(qsa_inputs())
def test_sparse_average_is_the_mean_over_the_set(problem):
    z, y = problem
    means = [[sum(z[b, j] for j in members) / len(members) for members in y[b]] for b in range(len(z))]
    np.testing.assert_allclose(tasks.sparse_average(z, y), means, rtol=0, atol=1e-15)
    np.testing.assert_allclose(tasks.sparse_average(z[0], y[0]), means[0], rtol=0, atol=1e-15)


@given(qsa_inputs(), strategies.SEEDS)
def test_attention_error_is_the_largest_output_error_over_the_unit_ball(problem, seed):
    """Attained by `worst_values`, and exceeded by no random values."""
    z, y = problem
    rng = np.random.default_rng(seed)
    attention = rng.dirichlet(np.full(z.shape[1], 0.5), size=y.shape[:2])
    error = tasks.attention_error(attention, y)
    values = tasks.worst_values(attention, y)
    assert np.isin(values, (-1, 1)).all()
    for b, i in np.ndindex(*error.shape):
        gap = attention[b, i] @ values[b, i] - values[b, i, y[b, i]].mean()
        assert gap == pytest.approx(error[b, i], abs=1e-14)
    output = np.linalg.norm(attention @ z - tasks.sparse_average(z, y), axis=-1)
    assert (output <= error + 1e-14).all()


def test_attention_error_of_uniform_attention_on_one_set():
    """2 (1 - q/N): the mass that is off the set, twice."""
    attention = np.full((3, 8), 1 / 8)
    np.testing.assert_allclose(tasks.attention_error(attention, [[0, 1], [2, 7], [5, 3]]), 1.5)
    np.testing.assert_array_equal(attention, np.full((3, 8), 1 / 8))


@given(match_inputs())
def test_match2_and_match3_are_their_definitions(problem):
    for ours, definition in BY_DEFINITION.values():
        np.testing.assert_array_equal(ours(*problem), definition(*problem))
        np.testing.assert_array_equal(ours(problem[0][0], problem[1]), definition(*problem)[0])


def test_match_over_many_rows_in_blocks():
    x = tasks.all_match(4, 5)
    whole = tasks.match2(x, 5), tasks.match3(x, 5)
    with Limits(numbers=40):
        np.testing.assert_array_equal((tasks.match2(x, 5), tasks.match3(x, 5)), whole)
    np.testing.assert_array_equal(whole[1], match3_by_definition(x, 5))


# Tokens


@given(qsa_inputs())
def test_qsa_tokens_hold_the_vector_the_set_and_the_number(problem):
    z, y = problem
    tokens = tasks.qsa_tokens(z, y)
    dim, size = z.shape[-1], y.shape[-1]
    np.testing.assert_array_equal(tokens[..., :dim], z)
    np.testing.assert_array_equal(tokens[..., dim : dim + size], np.sort(y, axis=-1))
    np.testing.assert_array_equal(tokens[..., -1], np.tile(np.arange(z.shape[1]), (len(z), 1)))
    assert tokens.shape[-1] == dim + size + 1


def test_match_tokens_end_with_the_blank():
    np.testing.assert_array_equal(tasks.match_tokens([3, 0]), [[3], [0], [tasks.BLANK]])
    np.testing.assert_array_equal(tasks.match_tokens([[3, 0]], blank=False), [[[3], [0]]])
    assert tasks.BLANK < 0


# Inputs


@pytest.mark.parametrize(("n_tokens", "size"), [(1, 1), (5, 1), (5, 5), (6, 3), (9, 2)])
def test_all_subsets_are_each_once(n_tokens, size):
    sets = tasks.all_subsets(n_tokens, size)
    assert sets.tolist() == [list(s) for s in itertools.combinations(range(n_tokens), size)]


def test_random_subsets_are_uniform():
    """Chi-squared over all 20 sets, fails by chance with probability 1e-6."""
    rows = 60_000
    sets = tasks.random_subsets(6, 3, size=rows, rng=np.random.default_rng(5))
    assert (np.diff(sets, axis=1) > 0).all() and sets.shape == (rows, 3)
    _, counts = np.unique(sets @ [36, 6, 1], return_counts=True)
    assert counts.size == 20
    assert scipy.stats.chisquare(counts).pvalue > 1e-6


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_random_vectors_are_uniform_in_the_unit_ball(dim):
    """|z|^d is uniform (Kolmogorov-Smirnov) and each direction as likely as its opposite; 1e-6 each by chance."""
    z, y = tasks.random_qsa(20, 3, dim, size=100, rng=np.random.default_rng(7))
    assert z.shape == (100, 20, dim) and y.shape == (100, 20, 3)
    radius = np.linalg.norm(z, axis=-1).ravel()
    assert scipy.stats.kstest(radius**dim, "uniform").pvalue > 1e-6
    flat = z.reshape(-1, dim)
    # Covariance 1/(d + 2) in each direction; the standard error of a mean square is below sqrt(2/n)/(d + 2).
    covariance = flat.T @ flat / len(flat) * (dim + 2)
    assert np.abs(covariance - np.eye(dim)).max() < 5.5 * math.sqrt(2 / len(flat))
    assert np.abs(flat.mean(axis=0)).max() < 5.5 / math.sqrt((dim + 2) * len(flat))


@given(st.integers(2, 8), st.integers(1, 4), st.sampled_from([1, -1]), strategies.SEEDS)
def test_adversarial_subsets_hold_the_keys_most_correlated_with_another_one(n_tokens, m, sign, seed):
    rng = np.random.default_rng(seed)
    keys = rng.normal(size=(n_tokens, m))
    size = int(rng.integers(1, n_tokens))
    for i, members in enumerate(tasks.adversarial_subsets(keys, size, sign=sign)):
        others = [j for j in range(n_tokens) if j not in members and j != i]
        assert i not in members and len(set(members)) == size and (np.diff(members) > 0).all()
        inside = min(sign * keys[i] @ keys[j] for j in members)
        assert all(inside >= sign * keys[i] @ keys[j] for j in others)


def test_all_match_inputs_are_each_once():
    assert tasks.all_match(3, 4).tolist() == [list(x) for x in itertools.product(range(4), repeat=3)]


@pytest.mark.parametrize("order", [2, 3])
def test_planted_matches_are_there(order):
    """Where M is far above N^2 nothing else matches: the share of inputs with a match is that planted."""
    match = BY_DEFINITION[order][0]
    rng = np.random.default_rng(3)
    modulus = 2**60
    x = tasks.random_match(6, modulus, size=2000, rng=rng, order=order, planted=0.3)
    share = match(x, modulus).any(axis=1)
    assert abs(share.mean() - 0.3) < 5 * math.sqrt(0.3 * 0.7 / 2000)  # 6e-7 by chance
    # All tokens of a planted match see it, and it is at any place.
    assert (match(x[share], modulus).sum(axis=1) >= order).all()
    assert match(x[share], modulus).any(axis=0).all()
    assert not match(tasks.random_match(6, modulus, size=200, rng=rng, order=order), modulus).any()
    assert match(tasks.random_match(2, modulus, size=50, rng=rng, order=order, planted=1), modulus).any(axis=1).all()


@given(st.integers(1, 9), st.sampled_from([2, 3, 5, 8, 100, 101, 10**6]), st.sampled_from([2, 3]))
def test_adversarial_match_inputs_hold_both_answers_and_every_near_miss(n_tokens, modulus, order):
    x = tasks.adversarial_match(n_tokens, modulus, order=order)
    assert x.shape[1] == n_tokens and x.min() >= 0 and x.max() < modulus
    assert len(np.unique(x, axis=0)) == len(x)
    found = BY_DEFINITION[order][0](x, modulus)
    assert found.any()
    if modulus >= 100:
        assert not found.all(axis=1).all()
        # Constant rows whose sums are all 1 or -1, where M is not a multiple of the order: the worst case of all.
        if math.gcd(modulus, order) == 1:
            sums = {int(order * row[0] % modulus) for row in x if (row == row[0]).all()}
            assert {0, 1, modulus - 1} <= sums
        # Rows whose first token has no match: all sums with others miss by one, or half of the sums with two others.
        # (Constant rows, of which all sums may miss by one, are looked at above.)
        mixed = [row for row, yes in zip(x, found, strict=True) if not yes[0] and (row != row[0]).any()]
        if n_tokens > order:
            most = max(near_misses(row, modulus, order) for row in mixed)
            assert most >= (n_tokens - 1 if order == 2 else ((n_tokens - 1) ** 2 - 1) / 2)


def near_misses(row, modulus, order):
    """Sums of the first token with one other, or with two, that are 1 or -1."""
    row = [int(v) for v in row]
    others = row if order == 2 else [a + b for a in row for b in row]
    return sum((row[0] + other) % modulus in (1, modulus - 1) for other in others)


# Bad input

Z, Y = [[1.0], [0.0]], [[0], [1]]
RNG = np.random.default_rng(0)
BAD = [
    (lambda: tasks.sparse_average([[1.1], [0.0]], Y), "`z` must hold vectors of the unit ball, but got a norm of 1.1"),
    (lambda: tasks.sparse_average([1.0, 0.0], Y), "`z` must have the axes"),
    (lambda: tasks.sparse_average(Z, [[0], [2]]), r"`y` must hold tokens in \[0, 2\), but got 2"),
    (lambda: tasks.sparse_average(Z, [[0], [-1]]), r"`y` must hold tokens in \[0, 2\), but got -1"),
    (lambda: tasks.sparse_average(Z, [[0, 1], [1, 1]]), r"`y` must hold each token once in a row, but got \[1, 1\]"),
    (lambda: tasks.sparse_average(Z, [[0]]), r"`y` must have one set for each of the tokens \(2,\)"),
    (
        lambda: tasks.sparse_average(Z, [[0.0], [1.0]]),
        "`y` must be an array of integers, not empty, but got dtype float",
    ),
    (lambda: tasks.sparse_average(Z, [[0], [1, 0]]), "`y` must be an array of integers, but got rows of different"),
    (lambda: tasks.attention_error([0.5, 0.5], [0]), "`attention` must have the axes"),
    (lambda: tasks.attention_error([[0.5, 0.5]], Y), "`y` must have one set for each row of attention"),
    (lambda: tasks.random_subsets(3, 4, size=1, rng=RNG), "`subset_size` must be at most the number of tokens, 3"),
    (lambda: tasks.random_subsets(3, 0, size=1, rng=RNG), "`subset_size` must be at least 1, but got 0"),
    (lambda: tasks.random_qsa(3, 1, 0, size=1, rng=RNG), "`dim` must be at least 1"),
    (lambda: tasks.all_subsets(60, 30), "`n_tokens` must give at most 16777216 cases, but got 1182"),
    (lambda: tasks.adversarial_subsets(np.eye(3), 3), "`subset_size` must be below the number of keys, 3"),
    (lambda: tasks.adversarial_subsets(np.eye(3), 2, sign=0), "`sign` must be 1 or -1, but got 0"),
    (lambda: tasks.match2([1, 5], 5), r"`x` must hold integers in \[0, 5\), but got 5"),
    (lambda: tasks.match3([1, -1], 5), r"`x` must hold integers in \[0, 5\), but got -1"),
    (lambda: tasks.match2([0], 1), "`modulus` must be at least 2, but got 1"),
    (lambda: tasks.match2([0], 2**62), f"`modulus` must be at most {2**61}"),
    (lambda: tasks.match2([0.5], 5), "`x` must be an array of integers"),
    (lambda: tasks.match_tokens([-1]), "`x` must hold integers of at least 0, but got -1"),
    (lambda: tasks.all_match(30, 2), "`n_tokens` must give at most 16777216 cases"),
    (lambda: tasks.random_match(3, 5, size=1, rng=RNG, planted=1.5), "`planted` must be at most 1, but got 1.5"),
    (lambda: tasks.random_match(3, 5, size=1, rng=RNG, order=4), "`order` must be 2 or 3, but got 4"),
    (lambda: tasks.adversarial_match(0, 5), "`n_tokens` must be at least 1"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("miss", [1, -1])
def test_rows_that_miss_a_match_do_so_on_both_sides(miss):
    """Of 7 tokens, 6 have sums with the first that are 1 or -1 in turns; and 2 with the first two, for Match3."""
    two, three = (set(map(tuple, tasks.adversarial_match(7, 101, order=order).tolist())) for order in (2, 3))
    for a in (0, 1, 25, 33, 50, 100):
        assert tuple(x % 101 for x in (a, *[-a - miss, -a + miss] * 3)) in two
        for b in (0, 1, 25, (101 - a) // 2):
            assert tuple(x % 101 for x in (a, *[b, -a - b + miss] * 3)) in three
