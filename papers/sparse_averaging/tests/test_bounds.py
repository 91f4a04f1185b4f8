"""Lower bounds: ranks, protocols on all pairs of inputs, collisions of narrow networks."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import null_space
from scipy.optimize import linprog, minimize
from strategies import SEEDS
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.attention_unit import AttentionUnit, MultiHeadLayer, Transformer
from yzflow_sparse_averaging.proofs import fully_connected


@pytest.mark.parametrize("q", [1, 2, 5, 7])
def test_ranks_of_disjointness_and_intersection(q):
    matrix = averaging.disjointness_matrix(q)
    assert averaging.exact_rank(matrix) == 2**q
    if q <= 6:
        assert averaging.exact_rank(1 - matrix) == 2**q - 1


def test_disjointness_by_sets():
    strings = averaging.bit_strings(4)
    sets = [set(np.flatnonzero(string)) for string in strings]
    assert len({tuple(string) for string in strings}) == 16
    np.testing.assert_array_equal(averaging.disjointness_matrix(4), [[a.isdisjoint(b) for b in sets] for a in sets])


def test_rank_is_exact_where_floats_are_not():
    # Determinant -1 with entries beyond 2^53, which float64 rounds to a matrix of rank one.
    big = 2**60
    matrix = np.array([[big, big + 1], [big - 1, big]])
    assert averaging.exact_rank(matrix) == 2
    assert np.linalg.matrix_rank(matrix.astype(float)) == 1
    assert averaging.exact_rank(np.zeros((2, 3), int)) == 0


def unit_for_protocol(q, bits, *, seed=0):
    n = 2 * q + 1
    keys = averaging.random_keys(n, max(16, math.ceil(12 * q * math.log(n))), rng=np.random.default_rng(seed))
    return averaging.random_keys_unit(keys, q, error=0.5 / q, bits=bits)


@pytest.mark.parametrize("q", [1, 2, 5])
def test_the_protocol_answers_every_pair_with_few_bits(q):
    unit = unit_for_protocol(q, 8)
    run = averaging.qsa_protocol(unit, q)
    assert run.disjoint.shape == (2**q, 2**q)
    assert run.errors == 0
    np.testing.assert_array_equal(run.disjoint, averaging.disjointness_matrix(q))
    # Query and key of m numbers and the value, of 8 bits each; all 2^q messages differ, so that q bits are needed.
    assert run.bits == (2 * unit.embedding_dim + 1) * 8 >= q
    assert run.messages == 2**q


@pytest.mark.parametrize("q", [3, 5])
def test_too_few_bits_break_the_protocol(q):
    one = averaging.qsa_protocol(unit_for_protocol(q, 1), q)
    assert one.errors > 0
    assert averaging.qsa_protocol(unit_for_protocol(q, 8), q).errors == 0


def test_a_unit_too_small_for_its_messages_must_err():
    # m = 1 and p = 1: at most 2^2 messages of query and key, for 2^3 sets of Alice.
    class Stub:
        """A unit of one dimension: it breaks the lower bound, and must fail."""

        def __init__(self, unit):
            self.precision, self.scale, self.values = unit.precision, unit.scale, unit.values
            self.queries = lambda X: unit.queries(X)[..., :1]
            self.keys = lambda X: unit.keys(X)[..., :1]

    run = averaging.qsa_protocol(Stub(unit_for_protocol(3, 1)), 3)
    assert run.messages <= 4 < 8
    assert run.errors > 0


@pytest.mark.parametrize("q", [2, 4])
def test_the_printed_encoding_decides_the_complement_of_a(q):
    run = averaging.qsa_protocol(unit_for_protocol(q, 8), q, encoding="printed")
    # Row a of the printed protocol is row not-a of the truth: the reverse order.
    np.testing.assert_array_equal(run.disjoint, averaging.disjointness_matrix(q)[::-1])
    assert run.errors > 0


def test_a_unit_without_rounding_sends_no_definite_number_of_bits():
    keys = averaging.random_keys(5, 40, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="`unit` must round queries, keys and values to one number of bits"):
        averaging.qsa_protocol(averaging.random_keys_unit(keys, 2, error=0.1), 2)


@given(st.integers(1, 12), st.integers(0, 9))
def test_only_the_members_of_a_pair_complete_minus_one(n, more):
    modulus = 2 * n + 3 + more
    left = averaging.disjointness_residues(n, modulus)
    right = (1 - left) % modulus
    members = [*left.tolist(), *right.tolist(), modulus - 1]
    assert len(set(members)) == 2 * n + 1
    for i, s in enumerate(members):
        for j, t in enumerate(members):
            assert ((s + t - 1) % modulus == 0) is (abs(i - j) == n and 2 * n not in (i, j))


def test_too_small_a_modulus_has_too_few_pairs():
    assert len(averaging.disjointness_residues(3, 8)) == 3
    with pytest.raises(ValueError, match=r"`modulus` must have 4 pairs \{v, 1 - v\} beside \{-1, 2\}, but got 8"):
        averaging.disjointness_residues(4, 8)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_one_layer_for_match3_answers_disjointness(n):
    modulus, bits = 2 * n + 3, 9
    model = averaging.match3_histogram(n_tokens=2 * n + 1, modulus=modulus)
    run = averaging.match3_protocol(model, bits=bits)
    assert run.errors == 0
    assert run.messages == 2**n
    # The sum of exponentials, the residual's column and M shares.
    assert run.bits == (modulus + 2) * bits >= n
    assert averaging.match3_protocol(model, bits=2).errors > 0 or n <= 2


def test_what_bob_puts_together_is_the_layer_on_the_whole_input():
    n, modulus = 3, 11
    model = averaging.match3_histogram(n_tokens=2 * n + 1, modulus=modulus)
    seen = []

    def finish(X):
        seen.append(X)
        return model.transformer.maps[1](X)

    # Heads whose attention depends on the tokens, so that both sums of exponentials count.
    heads = [
        AttentionUnit.from_maps(
            lambda X: np.ones((*X.shape[:-1], 1)),
            lambda X, slope=slope: slope * np.sin(X[..., :1]),
            model.transformer.layers[0].heads[0].values,
            embedding_dim=1,
        )
        for slope in (2.0, -5.0)
    ]
    layer = MultiHeadLayer(heads)
    spied = dataclasses.replace(model, transformer=Transformer([layer], [None, finish]))
    run = averaging.match3_protocol(spied, bits=45)
    assert run.bits == 2 * (modulus + 2) * 45
    left, strings = averaging.disjointness_residues(n, modulus), averaging.bit_strings(n)
    for i, a in enumerate(strings):
        for j, b in enumerate(strings):
            x = [modulus - 1, *np.where(a, left, modulus - 1), *np.where(b, (1 - left) % modulus, modulus - 1)]
            whole = layer(model.tokens(np.array(x)))[0]
            np.testing.assert_allclose(seen[0][i, j, 0], whole, atol=1e-10)


def test_the_protocol_of_match3_needs_one_layer():
    with pytest.raises(ValueError, match="`model` must have one layer"):
        averaging.match3_protocol(averaging.match3_bigram(n_tokens=5, modulus=9), bits=9)


@given(st.integers(4, 24), st.integers(1, 3), SEEDS)
def test_narrow_networks_cannot_average(n, value_dimension, seed):
    rng = np.random.default_rng(seed)
    size = n * value_dimension
    width, q = size // 2, n // 4
    weights = rng.normal(size=(width, size))
    found = averaging.collision(weights, q, n_tokens=n, value_dimension=value_dimension, rng=rng)
    z = found.values
    assert np.abs(z).max() <= 1
    np.testing.assert_allclose(weights @ z.ravel(), 0, atol=1e-10 * size)
    assert found.error >= 1 - 1e-9
    averages = [values[found.subset].mean(axis=0)[found.coordinate] for values in (z, -z)]
    assert averages[0] - averages[1] == pytest.approx(2, abs=1e-8)
    # A network behind this layer: one output for both inputs, hence an error of at least one.
    out = [np.tanh(rng_layer(seed, width) @ np.maximum(weights @ values.ravel() + 0.3, 0)) for values in (z, -z)]
    np.testing.assert_allclose(out[0], out[1], atol=1e-9)
    assert max(abs(out[k][0] - averages[k]) for k in (0, 1)) >= 1 - 1e-6


def rng_layer(seed, width):
    return np.random.default_rng([seed, 1]).normal(size=(3, width)) / max(width, 1)


def test_a_layer_as_wide_as_the_input_collides_nowhere():
    with pytest.raises(ValueError, match="`first_layer` must have a kernel"):
        averaging.collision(np.eye(6), 1, n_tokens=6)
    one = averaging.collision(np.eye(6)[:5], 1, n_tokens=6)  # only token 6 is free
    assert one.error == pytest.approx(1) and one.subset.tolist() == [5]


def test_beyond_half_the_width_the_witness_says_what_it_reaches():
    weights = np.random.default_rng(0).normal(size=(15, 16))
    found = averaging.collision(weights, 4, n_tokens=16)
    assert 0 < found.error < 1
    assert found.error == pytest.approx(found.values[found.subset].mean())


@given(st.integers(2, 16), st.integers(1, 3), SEEDS, st.data())
def test_no_first_layer_escapes_what_is_proved(n, value_dimension, seed, data):
    rng = np.random.default_rng(seed)
    size = n * value_dimension
    q, width = data.draw(st.integers(1, n - 1)), data.draw(st.integers(0, size - 1))
    # Small integers, so that rows are dependent and entries of the kernel equal now and then.
    weights = rng.integers(-1, 2, size=(width, size)).astype(float)
    found = averaging.collision(weights, q, n_tokens=n, value_dimension=value_dimension, rng=rng)
    bound = averaging.collision_error(n, q, width=width, value_dimension=value_dimension)
    # Above N/2 one vertex need not show all that the layer forces: `largest_error` does.
    assert found.error >= (bound if 2 * q <= n else 1 / (2 * q - 1)) - 1e-9
    assert bound >= 1 / (2 * q - 1)


@pytest.mark.parametrize(("n", "q"), [(2, 1), (5, 2), (9, 3), (9, 8), (12, 5)])
def test_the_smallest_error_of_a_layer_of_width_n_minus_1(n, q):
    kernel = np.full(n, -1 / (2 * q - 1))
    kernel[0] = 1
    weights = np.linalg.svd(kernel[None])[2][1:]
    found = averaging.collision(weights, q, n_tokens=n)
    assert found.error == pytest.approx(1 / (2 * q - 1), abs=1e-12)
    assert found.error == pytest.approx(averaging.collision_error(n, q, width=n - 1), abs=1e-12)
    # The error over all sets, not only over the returned set.
    largest = max(abs(kernel[y].mean()) for y in tasks.all_subsets(n, q))
    assert largest == pytest.approx(found.error, abs=1e-12)


def test_every_layer_of_two_small_rows():
    """All pairs of different rows of 0 and 1 on four tokens, none of them 0: width 2 = N - 2q at q = 1."""
    rows = [np.array(row, dtype=float) for row in np.ndindex(2, 2, 2, 2) if any(row)]
    assert len(rows) == 15
    for i, first in enumerate(rows):
        for second in rows[:i]:
            assert averaging.collision(np.stack([first, second]), 1, n_tokens=4).error >= 1 - 1e-9
            # Beyond that width one half, the share of the tokens that the layer lacks.
            assert averaging.collision(np.stack([first, second]), 2, n_tokens=4).error >= 1 / 2 - 1e-9
    assert averaging.collision_error(4, 1, width=2) == 1 and averaging.collision_error(4, 2, width=2) == 1 / 2


def largest_error(weights, q, value_dimension=1):
    """Error that a first layer forces, by a linear program for each set: the largest average on its kernel."""
    n = weights.shape[1] // value_dimension
    found = 0.0
    for subset in tasks.all_subsets(n, q):
        for coordinate in range(value_dimension):
            averaged = np.zeros((n, value_dimension))
            averaged[subset, coordinate] = -1 / q
            equal = {"A_eq": weights, "b_eq": np.zeros(len(weights))}
            found = max(found, -linprog(averaged.ravel(), **equal, bounds=[(-1, 1)] * averaged.size).fun)
    return found


@pytest.mark.parametrize(("n", "q"), [(4, 2), (5, 2)])
def test_half_of_the_width_forces_a_constant_error_for_all_q_to_half(n, q):
    rng = np.random.default_rng(n + q)
    for width in range(1, n):
        layers = [rng.normal(size=(width, n)), rng.integers(-2, 3, size=(width, n)).astype(float), np.eye(n)[:width]]
        least = min(largest_error(layer, q) for layer in layers)
        bound = averaging.collision_error(n, q, width=width)
        assert least >= bound - 1e-9 and bound >= 1 - width / n - 1e-12
        # Far above what was said before: 1/q at every width beyond N - 2q.
        assert width > n / 2 or bound >= 1 / 2


@pytest.mark.parametrize("n", [3, 4, pytest.param(5, marks=pytest.mark.slow)])
def test_the_least_error_is_attained_and_nothing_is_below_it(n):
    """All q and widths: the layer that attains it, and descents that start from others, which end above it."""
    rng = np.random.default_rng(n)
    for q in range(1, n):
        for width in range(1, n):
            least = averaging.collision_error(n, q, width=width)
            assert largest_error(averaging.best_first_layer(n, q, width=width), q) == pytest.approx(least, abs=1e-8)
            layer = rng.normal(size=(width, n))
            error = largest_error(layer, q)
            for size in (0.5, 0.2, 0.05):
                tried = layer + size * rng.normal(size=layer.shape)
                if (other := largest_error(tried, q)) < error:
                    layer, error = tried, other
            assert error >= least - 1e-8


@pytest.mark.parametrize(("n", "q"), [(20, 10), (20, 4), (21, 17)])
def test_the_least_error_of_many_tokens_by_the_sorted_sums_of_the_kernel(n, q):
    """Vertices of the best layers' kernels, each known in closed form: no set has a larger average than is said."""
    rng = np.random.default_rng(q)
    for width in range(1, n):
        layer = averaging.best_first_layer(n, q, width=width)
        assert layer.shape == (width, n) and np.linalg.matrix_rank(layer) == width
        least = averaging.collision_error(n, q, width=width)
        found = max(averaging.collision(layer, q, n_tokens=n, rng=rng).error for _ in range(2))
        assert found <= least + 1e-9
        if 2 * q <= n:
            assert found == pytest.approx(least, abs=1e-9)


def test_several_numbers_a_token_share_the_width_evenly():
    """d' = 2: the kernels of both coordinates by themselves, five numbers and four of eleven that are lacking."""
    n, q = 8, 4
    first, second = (averaging.best_first_layer(n, q, width=k) for k in (3, 4))
    both = np.zeros((7, n, 2))
    both[:3, :, 0], both[3:, :, 1] = first, second
    least = averaging.collision_error(n, q, width=7, value_dimension=2)
    assert max(largest_error(first, q), largest_error(second, q)) == pytest.approx(least, abs=1e-8)
    found = averaging.collision(both.reshape(7, 2 * n), q, n_tokens=n, value_dimension=2)
    assert found.error == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize(("n", "q", "d"), [(2, 1, 3), (3, 2, 2), pytest.param(4, 3, 2, marks=pytest.mark.slow)])
def test_several_numbers_a_token_are_attained_and_not_undercut(n, q, d):
    """Every width: the layer that is built, and layers that mix coordinates, near random ones and near it."""
    rng = np.random.default_rng(n)
    for width in range(d, n * d):
        least = averaging.collision_error(n, q, width=width, value_dimension=d)
        best = averaging.best_first_layer(n, q, width=width, value_dimension=d)
        assert best.shape == (width, n * d) and np.linalg.matrix_rank(best) == width
        assert largest_error(best, q, d) == pytest.approx(least, abs=1e-8)
        for layer in (rng.normal(size=best.shape), best):
            for size in (0.3, 0.05):
                tried = layer + size * rng.normal(size=layer.shape)
                assert largest_error(tried, q, d) >= least - 1e-8


def error_in_the_ball(layer, q, d, rng):
    """The largest norm of an average over q tokens, of z in the kernel and the unit ball, as an ascent finds it."""
    kernel = np.linalg.svd(layer)[2][len(layer) :].reshape(-1, layer.shape[1] // d, d)
    toward, size = rng.normal(size=(500, len(kernel))), 0.5
    for _ in range(40):
        tried = np.concatenate([toward, *(toward + size * rng.normal(size=toward.shape) for _ in range(4))])
        tried /= np.linalg.norm(tried, axis=1, keepdims=True)
        z = np.einsum("tr,rnd->tnd", tried, kernel)
        z /= np.linalg.norm(z, axis=2).max(axis=1)[:, None, None]
        means = np.stack([z[:, subset].mean(axis=1) for subset in tasks.all_subsets(z.shape[1], q)])
        errors = np.linalg.norm(means, axis=2).max(axis=0)
        best = np.argsort(errors)[-20:]
        toward, size = tried[best], 0.8 * size
    return float(errors[best[-1]])


def test_the_best_layer_of_the_cube_is_not_that_of_the_ball():
    """Its two coordinates read different combinations, so that z = (1, 0) and (-1, +-2 sqrt(2))/3 hide from it."""
    rng = np.random.default_rng(0)
    n, q, d, width = 3, 2, 2, 3
    least = averaging.collision_error(n, q, width=width, value_dimension=d)
    best = averaging.best_first_layer(n, q, width=width, value_dimension=d)
    assert least == 1 / 2 and largest_error(best, q, d) == pytest.approx(least)
    assert error_in_the_ball(best, q, d, rng) == pytest.approx(3**-0.5, abs=1e-3)
    assert "cube" in averaging.collision_error.__doc__ and "unit ball" in averaging.best_first_layer.__doc__


@pytest.mark.parametrize(
    ("n", "q", "d", "width"), [(3, 2, 2, 3), (3, 2, 2, 5), (4, 2, 2, 5), (4, 3, 2, 4), (3, 2, 3, 7)]
)
def test_in_the_ball_the_same_combinations_in_each_coordinate_leave_no_more_than_in_the_cube(n, q, d, width):
    same = np.kron(averaging.best_first_layer(n, q, width=width // d), np.eye(d))
    found = error_in_the_ball(same, q, d, np.random.default_rng(n))
    assert found <= averaging.collision_error(n, q, width=width, value_dimension=d) + 1e-9


def test_where_one_coordinate_says_too_little_its_balanced_vertices_say_enough():
    """N = 9, q = 7: three entries of one sign force less than the least error of a layer that lacks three."""
    n, q, d, width = 9, 7, 2, 13
    least = averaging.collision_error(n, q, width=width, value_dimension=d)
    assert least == pytest.approx(17 / 77)
    alike = np.array([1.0] * 3 + [-2 / 5] * 6)
    assert max(abs(alike[subset].mean()) for subset in tasks.all_subsets(n, q)) == pytest.approx(1 / 5)
    rng = np.random.default_rng(0)
    # The second coordinate's kernel has the three alike in it; the first has two that are balanced.
    alone = np.zeros((5, n, d))
    alone[:2, :3, 0] = [[1, -1, 0], [0, 1, -1]]
    alone[2:4, :3, 1], alone[4, :, 1] = [[1, -1, 0], [0, 1, -1]], alike
    for kernel in (alone, alone + 0.1 * rng.normal(size=alone.shape), rng.normal(size=alone.shape)):
        layer = np.linalg.svd(kernel.reshape(5, n * d))[2][5:]
        assert layer.shape == (width, n * d)
        assert largest_error(layer, q, d) >= least - 1e-8


@pytest.mark.parametrize(("n", "d", "s"), [(3, 2, 2), (3, 2, 3), (4, 2, 2), (4, 2, 3), (3, 3, 2)])
def test_kernels_large_enough_have_balanced_vertices_in_whole_numbers(n, d, s):
    """All vertices of kernels of small integers by exact elimination, another route than the register's check."""
    rng = np.random.default_rng(s)
    dimension = (s - 1) * d + 1
    for _ in range(4):
        kernel = rng.integers(-2, 3, size=(dimension, n * d))
        if averaging.exact_rank(kernel) == dimension:
            assert has_balanced_vertex(kernel, n, s)
    fewer = np.eye(dimension - 1, n * d, dtype=int)  # s - 1 tokens are free, in each coordinate
    assert not has_balanced_vertex(fewer, n, s)


def has_balanced_vertex(kernel, n, s):
    for entries in itertools.combinations(range(kernel.shape[1]), len(kernel)):
        tight = sp.Matrix(kernel[:, entries])
        if (scale := tight.det()) == 0:
            continue
        inverse = np.array(tight.adjugate(), dtype=object) * (1 if scale > 0 else -1)
        for signs in itertools.product((1, -1), repeat=len(kernel)):
            point = np.array(signs, dtype=object) @ inverse @ kernel  # times |det|
            if max(abs(point)) > abs(scale):
                continue
            columns = point.reshape(n, -1).T
            counts = [sorted(sum(one == sign * abs(scale) for one in c) for sign in (1, -1)) for c in columns]
            if any(low >= s // 2 and high >= (s + 1) // 2 for low, high in counts):
                return True
    return False


def test_less_than_one_number_a_coordinate_leaves_an_error_of_one():
    assert averaging.collision_error(6, 5, width=1, value_dimension=2) == 1
    assert averaging.collision_error(6, 6, width=0) == 1
    assert averaging.collision_error(6, 6, width=1) == 0


@given(st.integers(2, 200), st.integers(1, 4), st.data())
def test_the_forced_error_is_at_least_the_share_of_the_values_that_is_lacking(n, dimension, data):
    q = data.draw(st.integers(1, n // 2))
    width = data.draw(st.integers(0, n * dimension))
    error = averaging.collision_error(n, q, width=width, value_dimension=dimension)
    assert error >= min(1.0, 1 - width / (n * dimension)) - 1e-12
    # One from 2q lacking numbers of a coordinate on, and already from 2q - 1: an odd one is rounded up to the next.
    assert (error >= 1) == (width < dimension * (n - 2 * q + 2))


@given(st.integers(2, 60), SEEDS, st.data())
def test_above_half_one_number_is_within_less_than_one(n, seed, data):
    q = data.draw(st.integers(n // 2 + 1, n))
    z = np.random.default_rng(seed).uniform(-1, 1, n)
    smallest, largest = np.sort(z)[:q].mean(), np.sort(z)[-q:].mean()
    assert max(largest - z.sum() / q, z.sum() / q - smallest) <= fully_connected.error_of_sum(n, q) + 1e-12 < 1


def test_widths_at_which_the_error_changes():
    # q <= N/4 and k <= N d'/2, as in the slides' form; and one more at the edge of each part.
    assert averaging.collision_error(16, 4, width=16, value_dimension=2) == 1
    assert averaging.collision_error(16, 4, width=17, value_dimension=2) == 1
    assert averaging.collision_error(16, 4, width=20, value_dimension=2) == 6 / 8
    assert averaging.collision_error(16, 4, width=30, value_dimension=2) == 1 / 7
    assert averaging.collision_error(16, 4, width=31, value_dimension=2) == 1 / 7
    assert averaging.collision_error(16, 4, width=32, value_dimension=2) == 0
    assert averaging.collision_error(16, 9, width=8) == 4 / 9
    assert averaging.collision_error(16, 9, width=8, value_dimension=2) == 12 / 18
    assert averaging.collision_error(16, 9, width=16, value_dimension=2) == 4 / 9
    assert averaging.collision_error(16, 9, width=31, value_dimension=2) == 1 / 17
    assert averaging.collision_error(16, 16, width=3) == 0
    # At q = N the bound ends: the average of all is one number.
    assert averaging.collision(np.ones((1, 6)), 6, n_tokens=6).error < 1e-12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: averaging.collision(np.ones((2, 5)), 1, n_tokens=6), "`first_layer` must have N d' = 6 columns"),
        (lambda: averaging.collision(np.ones((2, 6)), 7, n_tokens=6), "`q` must be at most `n_tokens` = 6, but got 7"),
        (lambda: averaging.exact_rank(np.eye(2)), "`matrix` must be a matrix of integers, but got dtype float64"),
        (lambda: averaging.bit_strings(0), "`n` must be at least 1, but got 0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_worst_values_are_what_a_protocol_tells_apart():
    # The error of the unit in the protocol is below half the distance 2/q of its two answers.
    q = 4
    unit = unit_for_protocol(q, 10)
    y = tasks.all_subsets(9, q)
    tokens = tasks.qsa_tokens(np.zeros((9, 1)), y[:9])
    assert tasks.attention_error(unit.attention(tokens), y[:9]).max() < 1 / q


def ball_error(layer, q, n, d, rng):
    """Largest Euclidean norm of an average over values of the unit ball that a layer sends to zero, by ascent."""
    kernel = null_space(layer)

    def lost(c):
        z = (kernel @ c).reshape(n, d)
        sums = [np.linalg.norm(z[list(y)].sum(axis=0)) for y in itertools.combinations(range(n), q)]
        return -max(sums) / q / np.linalg.norm(z, axis=1).max()

    starts = rng.normal(size=(12, kernel.shape[1]))
    options = {"xatol": 1e-9, "fatol": 1e-12}
    return max(-minimize(lost, c, method="Nelder-Mead", options=options).fun for c in starts)


def test_the_best_layer_of_the_cube_is_not_the_best_of_the_ball():
    n, q, d, k = 3, 2, 2, 3
    rng = np.random.default_rng(0)
    best = averaging.best_first_layer(n, q, width=k, value_dimension=d)
    assert averaging.collision_error(n, q, width=k, value_dimension=d) == 0.5
    assert ball_error(best, q, n, d, rng) == pytest.approx(1 / math.sqrt(3), abs=1e-6)
    # The same sum in both coordinates, two rows: z_3 = -z_1 - z_2, so that a sum over two is a vector of the ball.
    same = np.kron(np.ones((1, n)), np.eye(d))
    assert ball_error(same, q, n, d, rng) == pytest.approx(0.5, abs=1e-6)
