"""Pruning random networks to given ones: exact subset sums, certificates, and what they leave undecided."""

import itertools

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from yzflow_bounded_dyck import DyckLanguage, balance, pruning
from yzflow_bounded_dyck.networks import ReluNetwork


def random_points(rng, n, size):
    """Points of the unit ball, some on its surface."""
    points = rng.normal(size=(n, size))
    return points / np.linalg.norm(points, axis=1, keepdims=True) * rng.choice([1.0, 0.3], (n, 1))


@given(st.integers(0, 11), strategies.SEEDS, st.floats(-3, 3))
def test_subset_sums_are_the_nearest_of_all(size, seed, target):
    values = np.random.default_rng(seed).uniform(-1, 1, size)
    chosen = pruning.subset_sum(values, target)
    assert chosen.dtype == bool and chosen.shape == values.shape
    every = (values[list(mask)].sum() for mask in itertools.product([False, True], repeat=size))
    assert abs(values[chosen].sum() - target) == pytest.approx(min(abs(total - target) for total in every), abs=1e-14)


@given(st.integers(25, 60), strategies.SEEDS, st.floats(-1, 1))
def test_subset_sums_of_many_numbers_are_near(size, seed, target):
    rng = np.random.default_rng(seed)
    values = rng.uniform(-1, 1, size)
    assert abs(values[pruning.subset_sum(values, target)].sum() - target) < 1e-4


@given(st.integers(1, 4), st.integers(1, 4), st.integers(3, 12), strategies.SEEDS)
def test_certificates_hold_and_are_attained(outputs, inputs, n, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.uniform(-1, 1, (outputs, inputs))
    pruned = pruning.prune_linear(matrix, n, rng)
    assert pruning.is_pruning(pruned.network.weights, pruned.random.weights)
    assert pruned.random.weights[0].shape == (2 * n * inputs, inputs)
    assert max(np.abs(weight).max() for weight in pruned.random.weights) <= 1
    points = random_points(rng, 500, inputs)
    error = pruning.approximation_error(pruned.network, lambda x: x @ matrix.T, points)
    assert error <= pruned.certificate * (1 + 1e-12)
    # Along a coordinate the error is that column's.
    axis = pruning.approximation_error(pruned.network, lambda x: x @ matrix.T, np.eye(inputs))
    assert axis <= pruned.certificate * (1 + 1e-12) and pruned.certificate <= 2 * np.sqrt(2 * inputs) * max(
        axis, pruning.approximation_error(pruned.network, lambda x: x @ matrix.T, -np.eye(inputs))
    )


@pytest.mark.parametrize(("n", "low", "high"), [(10, 0.03, 0.6), (24, 3e-6, 2e-4)])
def test_errors_fall_as_the_specification_measured(n, low, high):
    """8 x 8: 0.14 and 4.9e-5 there; the median of three random maps of norm 1 here."""
    certificates = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        matrix = rng.uniform(-1, 1, (8, 8))
        certificates.append(pruning.prune_linear(matrix / np.linalg.norm(matrix, 2), n, rng).certificate)
    assert low < np.median(certificates) < high


@given(st.integers(1, 4), st.integers(1, 4), strategies.SEEDS)
def test_key_and_query_matrices_hold_any_logits(rows, columns, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.uniform(-1, 1, (rows, columns))
    pruned, product = pruning.prune_product(matrix, 40, rng)
    Q, K = pruned.network.weights
    assert pruning.is_pruning(pruned.network.weights, pruned.random.weights)
    np.testing.assert_allclose(K @ Q, product, atol=1e-14)
    assert np.abs(product - matrix).max() == pruned.certificate < 1e-3


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), strategies.SEEDS, st.booleans())
def test_pruned_networks_stay_within_their_certificate(inputs, hidden, outputs, seed, biased):
    rng = np.random.default_rng(seed)
    sizes = [inputs, hidden, hidden, outputs]
    weights = tuple(rng.normal(size=(out, into)) for into, out in itertools.pairwise(sizes))
    biases = tuple(rng.normal(size=out) for out in sizes[1:]) if biased else None
    network = ReluNetwork(weights, biases)
    pruned = pruning.prune_network(network, 12, rng)
    assert len(pruned.network.weights) == 6
    assert pruning.is_pruning(pruned.network.weights, pruned.random.weights)
    points = random_points(rng, 200, inputs + biased)
    if biased:
        points[:, -1] = np.abs(points[:, -1])  # the constant input; scaled points scale the biases
        wanted = [network(point[:-1] / point[-1]) * point[-1] for point in points]
        found = pruned.network(points)
        error = np.linalg.norm(found - wanted, axis=1).max()
    else:
        error = pruning.approximation_error(pruned.network, network, points)
    assert error <= pruned.certificate * (1 + 1e-9)


def test_certificates_add_up_over_layers():
    """Lemma 5 by hand: e_2 = (|A_2| + c_2) c_1 + c_2 |A_1| for inputs of norm one."""
    first, second = np.ones((9, 1)), np.ones((1, 9))
    rng = np.random.default_rng(3)
    c1, c2 = (pruning.prune_linear(matrix, 6, rng).certificate for matrix in (first, second))
    pruned = pruning.prune_network(ReluNetwork((first, second)), 6, 3)
    assert pruned.certificate == pytest.approx((3 + c2) * c1 + c2 * 3)


def test_units_are_copied_until_none_is_large_or_a_hidden_layer_is_full():
    """Three layers of weights 2, c copies of each hidden unit: the common largest weight is (8/c^2)^(1/3)."""
    matrices = [np.full(shape, 2.0) for shape in ((3, 2), (7, 3), (2, 7))]
    for most, copies in ((None, 3), (20, 2), (13, 1), (5, 1)):
        found = pruning.balanced_matrices(matrices, most=most)
        assert [matrix.shape for matrix in found] == [(3 * copies, 2), (7 * copies, 3 * copies), (2, 7 * copies)]
        assert [np.abs(matrix).max() for matrix in found] == pytest.approx([(8 / copies**2) ** (1 / 3)] * 3)
        np.testing.assert_allclose(found[2] @ found[1] @ found[0], matrices[2] @ matrices[1] @ matrices[0])


def test_larger_networks_come_nearer():
    network = ReluNetwork((np.array([[3.0, -1], [0.5, 2]]), np.array([[1.0, -2]])))
    certificates = [pruning.prune_network(network, n, 0).certificate for n in (10, 40)]
    assert certificates[0] > 1
    assert certificates[1] < 1e-5


@pytest.mark.parametrize("matrix", [0, 3, 5])
def test_different_functions_agree_on_any_one_matrix(matrix):
    """Corollary 3, on both blocks."""
    rng = np.random.default_rng(7)
    first, second = (ReluNetwork((rng.uniform(-1, 1, (3, 2)), rng.uniform(-1, 1, (2, 3)))) for _ in range(2))
    models = pruning.indistinguishable(first, second, matrix, 30, 5)
    weights = [[*one.network.weights, *two.network.weights] for one, two in models]
    originals = [[*one.random.weights, *two.random.weights] for one, two in models]
    for one, other in zip(*originals, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(weights[0][matrix], weights[1][matrix])
    assert weights[0][matrix].any()
    assert any((one != other).any() for one, other in zip(*weights, strict=True))
    points = random_points(rng, 200, 2)
    for (one, two), target in zip(models, (first, second), strict=True):
        assert pruning.is_pruning([*one.network.weights, *two.network.weights], originals[0])
        found = two.network(one.network(points))
        assert np.linalg.norm(found - target(points), axis=1).max() < 0.02
    assert pruning.approximation_error(first, second, points) > 0.3


def test_blocks_are_as_wide_as_the_functions_where_those_are_wider_than_the_identity():
    rng = np.random.default_rng(1)
    first, second = (ReluNetwork((rng.uniform(-1, 1, (7, 2)), rng.uniform(-1, 1, (2, 7)))) for _ in range(2))
    for model in pruning.indistinguishable(first, second, 0, 4, 5):
        # Two random matrices for each given one, n columns or rows of both signs for each of its inputs.
        assert [[weight.shape for weight in block.network.weights] for block in model] == [
            [(16, 2), (7, 16), (56, 7), (2, 56)]
        ] * 2


@pytest.mark.parametrize("scale", [0.0, pytest.param(0.3, marks=pytest.mark.slow)])
def test_a_perfect_layer_inside_random_networks(scale):
    """Theorem 3, end to end: no wrong closing bracket up to length 500, where a small network has many."""
    language = DyckLanguage(2, 3)
    bags = language.sample(1500, min_length=8, max_length=500, rng=1)
    pruned = pruning.prune_balanced_layer(language, 26, 0, scale=scale)
    for part in (pruned.values, pruned.attention, pruned.head):
        assert pruning.is_pruning(part.network.weights, part.random.weights)
        assert part.network.weights[1].any() or scale == 0
    closing = bags.target[:, 1::2]
    chosen = closing.max(axis=1) > 0

    def wrong(model):
        found = model.predict(bags)[:, 1::2]
        return (found.argmax(axis=1) != closing.argmax(axis=1))[chosen].mean()

    assert chosen.sum() > 700 and wrong(pruned) == 0
    assert np.abs(pruned.predict(bags) - bags.target).max() < 0.25
    assert balance.violation(pruned.layer, language) < 1e-3
    if scale == 0:
        np.testing.assert_array_equal(pruned.layer.Z, 0)
        small = pruning.prune_balanced_layer(language, 10, 0)
        assert wrong(small) > 0.2 and balance.violation(small.layer, language) > 0.01


def test_definitions():
    assert pruning.max_row_norm([[3, 4], [1, 1]]) == 5
    assert pruning.is_pruning([np.array([[1.0, 0.0]])], [np.array([[1.0, 2.0]])])
    assert not pruning.is_pruning([np.array([[1.0, 3.0]])], [np.array([[1.0, 2.0]])])
    assert not pruning.is_pruning([np.zeros((1, 1))], [np.zeros((1, 2))])
    assert not pruning.is_pruning([], [np.zeros((1, 2))])
    for n_layers in (2, 3, 5):
        network = pruning.identity_network(3, n_layers)
        assert len(network.weights) == n_layers
        np.testing.assert_array_equal(network([[1, -2, 0]]), [[1, -2, 0]])
    network = ReluNetwork(([[1.0, 2.0]], [[3.0]]), ([1.0], [-1.0]))
    padded = pruning.pad(network, [3, 2, 2])
    np.testing.assert_allclose(padded([[1, 1, 9]]), [[*network([1, 1]), 0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pruning.prune_linear(np.eye(2), 0, 0), "`n` must be at least 1, but got 0"),
        (lambda: pruning.prune_linear([1.0], 3, 0), "`matrix` must have 2 axes"),
        # A network for 20,000 inputs has 20,000 times as many numbers a layer: 12.8 TB.
        (lambda: pruning.prune_linear(np.zeros((1, 20_000)), 1000, 0), "`n` .*draw a network"),
        (lambda: pruning.subset_sum([[1.0]], 0), "`values` must have 1 axis"),
        (lambda: pruning.subset_sum([1.0], np.nan), "`target` must be a finite number"),
        (lambda: pruning.identity_network(2, 1), "`n_layers` must be at least 2, but got 1"),
        (lambda: pruning.pad(pruning.identity_network(2, 2), [2, 3, 2]), r"`sizes` must be at least \[2, 4, 2\]"),
        (
            lambda: pruning.indistinguishable(pruning.identity_network(2, 2), pruning.identity_network(3, 2), 0, 5, 0),
            "`second` must have the shapes",
        ),
        (
            lambda: pruning.indistinguishable(*[pruning.identity_network(2, 2)] * 2, 8, 5, 0),
            "`matrix` must be below 8, but got 8",
        ),
        (
            lambda: pruning.indistinguishable(*[ReluNetwork((np.eye(2),) * 2, (np.ones(2),) * 2)] * 2, 0, 5, 0),
            "`first` must have no biases",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
