"""Networks of one hidden layer that interpolate, index, pick and switch, against what they should return."""

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from yzflow_bounded_dyck import interpolating
from yzflow_bounded_dyck.networks import ReluNetwork


@given(st.integers(1, 12), st.integers(1, 4), strategies.SEEDS)
def test_points_are_interpolated_with_one_unit_each(n, d, seed):
    rng = np.random.default_rng(seed)
    points, values = rng.normal(size=(n, d)), rng.normal(size=(n, 3))
    network = interpolating.interpolating_network(points, values)
    assert network.weights[0].shape == (n, d)
    np.testing.assert_allclose(network(points), values, atol=1e-6)


@given(st.integers(1, 6), st.floats(0.1, 2.0), strategies.SEEDS)
def test_the_only_entry_has_its_index(size, least, seed):
    rng, network = np.random.default_rng(seed), interpolating.index_network(size, least)
    assert network.weights[0].shape == (4 * size, size)
    for at in range(size):
        for sign in (1, -1):
            x = np.zeros(size)
            x[at] = sign * least * rng.uniform(1, 5)
            assert network(x)[0] == pytest.approx(at + 1)
    assert network(np.zeros(size))[0] == 0


@given(st.integers(1, 5), st.floats(0.1, 3.0), strategies.SEEDS)
def test_entries_are_picked(size, bound, seed):
    x = np.random.default_rng(seed).uniform(-bound, bound, size)
    network = interpolating.picking_network(size, bound)
    np.testing.assert_allclose([network([*x, i + 1])[0] for i in range(size)], x, atol=1e-9)


@given(st.integers(1, 4), st.integers(1, 3), strategies.SEEDS)
def test_a_switch_is_the_network_that_is_named(k, d, seed):
    rng, size = np.random.default_rng(seed), 4
    shapes = ((size, d), (2, size), size, 2)
    drawn = [[rng.normal(size=shape) for shape in shapes] for _ in range(k)]
    networks = [ReluNetwork((first, second), (one, two)) for first, second, one, two in drawn]
    switch = interpolating.switching_network(networks, 2.0)
    x = rng.uniform(-2, 2, d)
    for i, network in enumerate(networks, start=1):
        np.testing.assert_allclose(switch([*x, i]), network(x), atol=1e-8)
    assert len(switch.weights[0]) == k * (4 * size + 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: interpolating.interpolating_network([[0.0], [0.0]], [[1.0], [2.0]]), "`points` must be different"),
        (
            lambda: interpolating.interpolating_network([[0], [1e-300], [1]], [[0], [1], [2]]),
            "`points` must be so far apart",
        ),
        (lambda: interpolating.index_network(2, 0.0), "`least` must be positive"),
        (lambda: interpolating.switching_network([ReluNetwork((np.eye(2),))], 1.0), "`networks` must be of one hidden"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
