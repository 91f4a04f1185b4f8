"""The strict model: d = m, matrices Q, K and V; one layer by its bits; circuits by attention."""

import collections
import math

import numpy as np
import pytest
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.power_sums import AveragingLayer
from yzflow_sparse_averaging.proofs import strict as claims

MODELS = {
    "transform": averaging.match3_transform,
    "sorted": averaging.match3_sorted,
    "groups": lambda n_tokens, modulus: averaging.match3_groups(root=round(n_tokens ** (1 / 3)), modulus=modulus),
}


def by_matrices(model, x):
    """The transformer from its maps and matrices alone; only its maps round."""
    X = model.tokens(x)
    for number, phi in enumerate(model.transformer.maps):
        if number:
            total = X.copy()
            for head in model.transformer.layers[number - 1].heads:
                Q, K, V = head.matrices
                scores = (X @ Q) @ np.swapaxes(X @ K, -1, -2)
                weights = np.exp(scores - scores.max(-1, keepdims=True))
                total += weights / weights.sum(-1, keepdims=True) @ (X @ V)
            X = total
        X = phi(X)
    return X[..., : model.n_tokens, 0] > 0.5


@pytest.mark.parametrize(
    ("name", "n", "modulus"),
    [
        *(("transform", n, m) for n, m in ((1, 2), (2, 5), (3, 4), (4, 3))),
        *(("sorted", n, m) for n, m in ((3, 2), (3, 9), (4, 4))),
        *(("groups", n, m) for n, m in ((1, 3), (8, 2))),
    ],
)
def test_every_small_input(name, n, modulus):
    x = tasks.all_match(n, modulus)
    model = averaging.strict_transformer(MODELS[name](n_tokens=n, modulus=modulus))
    np.testing.assert_array_equal(model(x), tasks.match3(x, modulus))
    np.testing.assert_array_equal(by_matrices(model, x), tasks.match3(x, modulus))


@pytest.mark.parametrize(("name", "n", "modulus"), [("transform", 16, 16), ("sorted", 16, 256), ("groups", 27, 729)])
def test_d_is_m_and_nothing_else_changes(name, n, modulus):
    loose = MODELS[name](n_tokens=n, modulus=modulus)
    model = averaging.strict_transformer(loose)
    x = tasks.random_match(n, modulus, size=4, rng=0, order=3, planted=0.5)
    x = np.concatenate([x, tasks.adversarial_match(n, modulus, order=3)[::4]])
    np.testing.assert_array_equal(model(x), tasks.match3(x, modulus))
    assert (model.depth, model.heads, model.bits) == (loose.depth, loose.heads, loose.bits)
    assert model.width == model.embedding_dim == model.tokens(x).shape[-1] > loose.width
    counted = averaging.counted_size(model, x[:2])
    assert counted.dimension == model.width
    assert counted.bits <= model.bits
    for layer in model.transformer.layers:
        for head in layer.heads:
            for matrix in head.matrices:
                assert matrix.shape == (model.width, model.width)
                assert set(np.unique(matrix)) <= {0, 1}
            Q, K, _ = head.matrices
            assert np.linalg.matrix_rank(Q @ K.T) <= loose.embedding_dim


@pytest.mark.parametrize("power", [3, 6, 10])
def test_the_strict_transform_is_polylogarithmic(power):
    n = 2**power
    model = averaging.strict_transformer(averaging.match3_transform(n_tokens=n, modulus=n))
    assert model.width == 4 * power + 16 == float(claims.transform_width(n))
    assert model.width * model.heads * model.depth == 16 * (power + 1) * (power + 4)


def test_heads_of_another_kind_or_without_rounding_are_refused():
    with pytest.raises(ValueError, match="`model` must round all its numbers"):
        averaging.strict_transformer(averaging.match3_histogram(n_tokens=3, modulus=5))
    strict = averaging.strict_transformer(averaging.match3_groups(root=1, modulus=3))
    with pytest.raises(ValueError, match="have heads that add columns"):
        averaging.strict_transformer(strict)


# One layer


@pytest.mark.parametrize(("n", "modulus"), [(1, 7), (2, 5), (3, 4), (4, 3)])
def test_one_layer_is_right_on_every_input(n, modulus):
    x = tasks.all_match(n, modulus)
    for dimension in {d for d in range(1, 2 * n + 1) if 2 * n % d == 0}:
        layer = averaging.match3_power_sums(n_tokens=n, modulus=modulus, dimension=dimension)
        np.testing.assert_array_equal(layer(x), tasks.match3(x, modulus))


def test_a_token_knows_all_residues_after_one_layer():
    n, modulus = 12, 1000
    x = np.random.default_rng(1).integers(modulus, size=n)
    x[3:6] = x[2]
    for dimension in (1, 3, 24):
        layer = averaging.match3_power_sums(n_tokens=n, modulus=modulus, dimension=dimension)
        assert {len(token) for token in layer.outputs(x)} == {dimension}
        counts = collections.Counter(x.tolist())
        assert layer.residues(x) == [(own, counts) for own in x.tolist()]


def test_no_positions_and_no_number_of_copies():
    layer = averaging.match3_power_sums(n_tokens=6, modulus=7)
    x = np.array([1, 2, 5, 5, 0, 3])
    order = np.random.default_rng(0).permutation(6)
    np.testing.assert_array_equal(layer(x[order]), layer(x)[order])
    few = tasks.all_match(3, 7)
    np.testing.assert_array_equal(layer(np.tile(few, (1, 2)))[:, :3], tasks.match3(few, 7))


@pytest.mark.parametrize(("n", "dimension"), [(1, 1), (3, 2), (15, 5), (51, 1), (51, 102)])
def test_bits_are_those_stated_and_near_the_bound(n, dimension):
    layer = averaging.match3_power_sums(n_tokens=n, modulus=n + 2, dimension=dimension)
    stated = float(claims.bits(n, layer.prime, dimension))
    assert stated - 5 < layer.bits <= stated
    assert dimension * layer.bits >= (n - 1) / 4
    # Every number that occurs has at most p bits: multiples of the step, with a sign.
    worst = [0] * (n // 2) + [n + 1] * (n - n // 2)
    for token in layer.outputs(worst):
        for number in token:
            steps = number * 2**layer.fraction_bits
            assert steps.denominator == 1
            assert abs(steps.numerator).bit_length() + 1 <= layer.bits


def test_fewer_bits_after_the_point_or_a_small_prime_fail():
    class Coarse(AveragingLayer):
        fraction_bits = 0

    x = tasks.all_match(3, 5)
    prime = averaging.match3_power_sums(n_tokens=3, modulus=5).prime
    truth = tasks.match3(x, 5)
    wrong = 0
    for row, right in zip(x, truth, strict=True):
        try:
            wrong += int((Coarse(3, 5, 1, prime)(row) != right).sum())
        except ValueError:  # no residue is found
            wrong += 1
    assert wrong > 0
    with pytest.raises(ValueError, match="not invertible"):
        AveragingLayer(3, 5, 1, 5)([0, 1, 2])  # 5 is below 2N = 6: Newton's identities divide by 5


# Circuits


def test_a_circuit_for_match3():
    for n, modulus in ((1, 2), (2, 5), (3, 4), (4, 3)):
        x = tasks.all_match(n, modulus)
        circuit = averaging.match3_circuit(n_tokens=n, modulus=modulus)
        np.testing.assert_array_equal(circuit(x), tasks.match3(x, modulus))
        assert circuit.depth <= 6 + math.ceil(math.log2(modulus)) * 4 + math.ceil(math.log2(n))


def random_circuit(rng, n, bits, count):
    """Random gates; the last n are outputs."""
    gates = tuple((*rng.integers(n * bits + k, size=2).tolist(), int(rng.integers(16))) for k in range(count))
    outputs = tuple(n * bits + count - n + int(i) for i in rng.permutation(n))
    return averaging.Circuit(n, bits, gates, outputs)


@pytest.mark.parametrize("seed", range(3))
def test_attention_runs_random_circuits(seed):
    rng = np.random.default_rng(seed)
    n, bits, count = int(rng.integers(1, 5)), int(rng.integers(1, 3)), int(rng.integers(5, 14))
    circuit = random_circuit(rng, n, bits, count)
    model = averaging.circuit_transformer(circuit, modulus=2**bits)
    x = tasks.all_match(n, 2**bits)
    np.testing.assert_array_equal(model(x), circuit(x))
    slots = -(-count // n)
    assert (model.depth, model.heads) == (circuit.depth, 2 * slots)
    strict = averaging.strict_transformer(model)
    np.testing.assert_array_equal(strict(x), circuit(x))
    code = max(1, (n - 1).bit_length())
    assert strict.width == strict.embedding_dim == claims.circuit_width(slots, code, bits)


def test_one_layer_less_does_not_run_a_chain():
    chain = averaging.Circuit(1, 1, ((0, 0, 0b0001), (1, 1, 0b0001), (2, 2, 0b0001)), (3,))  # three negations
    x = tasks.all_match(1, 2)
    np.testing.assert_array_equal(averaging.circuit_transformer(chain, modulus=2)(x), x == 0)
    shorter = averaging.Circuit(1, 1, chain.gates[:2], (2,))
    np.testing.assert_array_equal(averaging.circuit_transformer(shorter, modulus=2)(x), x == 1)


@pytest.mark.parametrize("tables", [*((table, 0b0001, 0) for table in range(16)), (0b0110, 0b0001, 0b1000)])
def test_attention_alone_does_every_gate(tables):
    circuit = averaging.Circuit(3, 1, tuple((k, (k + 1) % 3, table) for k, table in enumerate(tables)), (3, 4, 5))
    x = tasks.all_match(3, 2)
    model = averaging.attention_only_transformer(circuit, modulus=2)
    np.testing.assert_array_equal(model(x), circuit(x))
    assert model.transformer.maps[:-1] == (None,) * model.depth  # neither before nor between layers
    assert model.depth <= 14


def test_attention_alone_is_linear_and_its_errors_do_not_grow():
    # Negations, three of one token in a chain: all wires stay within 3/(128 W) of bits.
    circuit = averaging.Circuit(3, 1, tuple((wire, wire, 0b0001) for wire in (0, 1, 2, 3, 6)), (7, 4, 5))
    model = averaging.attention_only_transformer(circuit, modulus=2)
    x = np.array([[1, 0, 1]])
    np.testing.assert_array_equal(model(x), circuit(x))
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 5, model.width))
    last = model.transformer.layers[-1].heads[0]
    for part in (last.queries, last.keys, last.values):
        np.testing.assert_allclose(part(X + 2 * Y), part(X) + 2 * part(Y), atol=1e-12)
    state = model.tokens(x)
    for layer in model.transformer.layers:
        state = layer(state)
    slots = next(part.columns for part in model.layout.parts if part.name == "gates 1")
    allowed = {"gates": 3 / (128 * (slots + 2)), "inputs": 1 / 8}
    for part in model.layout.parts:
        if (kind := part.name.split()[0]) in allowed:
            found = model.layout.read(state, part.name)
            assert np.abs(found - np.rint(found)).max() <= allowed[kind]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: averaging.Circuit(2, 1, ((0, 2, 8),), (2, 2)), "`gates` must be at most 1, but got 2"),
        (lambda: averaging.Circuit(2, 1, ((0, 1, 16),), (2, 2)), "`gates` must be at most 15, but got 16"),
        (lambda: averaging.Circuit(2, 1, ((0, 1, 8),), (2,)), "`outputs` must be 2 wires, one a token, but got 1"),
        (
            lambda: averaging.circuit_transformer(averaging.Circuit(2, 1, ((0, 1, 8),), (2, 2)), modulus=2),
            "`circuit` must have a gate of its own for the output of each token",
        ),
        (lambda: averaging.match3_power_sums(n_tokens=3, modulus=5, dimension=4), "`dimension` must divide 6"),
        *(
            (
                lambda last=last: averaging.match3_power_sums(n_tokens=3, modulus=5)([0, 1, last]),
                "`x` must hold integers in [0, 5), but got others",
            )
            for last in (5, -1, 0.5)
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ValueError) as refused:
        make()
    assert message in str(refused.value)
