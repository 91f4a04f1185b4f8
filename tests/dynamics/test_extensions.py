"""Section 7 of Scan and Snap: the residual connection, and several heads as several starts."""

import itertools

import numpy as np
import pytest
import reference
import strategies
from driving import draw_batch
from hypothesis import given, settings

from dynamics import Bags, Layer, SequenceClasses, Trajectory, gradient_flow, sgd
from dynamics._engine.sgd.run import SgdRun
from dynamics.descent import complete
from dynamics.extensions import biased_sequences, layer_norm, residual_connection

# Queries 6 (next tokens 0 and 1) and 7 (2 and 3). Token 0 is common to all; token 5 occurs with 0 and 2, so that it is
# globally common and yet distinct within each query's own next tokens.
LOCAL = [[0.4, 0.3, 0, 0, 0, 0.3], [0.4, 0, 0.6, 0, 0, 0], [0.4, 0, 0, 0.3, 0, 0.3], [0.4, 0, 0, 0, 0.6, 0]]


@pytest.fixture
def classes():
    return SequenceClasses(LOCAL, [6, 6, 7, 7], vocab_size=50)


@settings(max_examples=13)
@given(strategies.sequence_classes())
def test_without_the_inner_norm_the_feature_is_the_normalised_sum_of_attention_and_query(data):
    bags, layer = residual_connection(data, inner_norm=False)
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(data.population().n_queries, data.n_tokens))
    wide = np.zeros_like(layer.Z)
    for m, row in enumerate(Z):
        wide[m, m * data.n_tokens : (m + 1) * data.n_tokens] = row
    found = Layer(wide, layer.Y, layer.V, layer.multiplicity).features(bags)
    for n, query in enumerate(data.population().query):
        c = data.probabilities[[n]].toarray().ravel() * np.exp(Z[query])
        expected = np.concatenate([c / c.sum(), np.eye(len(Z))[query]])
        np.testing.assert_allclose(found[n], expected / np.linalg.norm(expected), atol=1e-14)


def residual_loss(data, Z, Y):
    """-J with LN(LN(X^T b) + x_T), by dense matrices: the query's vector is a unit vector of its own."""
    total = 0
    for b, (counts, target) in enumerate(zip(reference.dense_counts(data), reference.dense_targets(data), strict=True)):
        query = np.eye(len(Z))[data.query[b]]
        gathered = reference.normalise(reference.attend(counts, Z[data.query[b]]))
        f = reference.normalise(np.concatenate([gathered, query]))
        total = total - data.weight[b] * (target @ reference.log_softmax(Y.T @ f))
    return total


def residual_layer(data, seed=0):
    rng = np.random.default_rng(seed)
    Z, Y = (
        rng.normal(size=(data.n_queries, data.n_tokens)),
        rng.normal(size=(data.n_tokens + data.n_queries, data.vocab_size)),
    )
    return Layer(Z, Y, residual=True)


@settings(max_examples=10, deadline=None)
@given(strategies.bags(), strategies.SEEDS)
def test_loss_and_gradient_of_the_residual_connection(data, seed):
    layer = residual_layer(data, seed)
    arrays = reference.arrays(layer)
    assert layer.loss(data) == pytest.approx(residual_loss(data, *arrays), abs=1e-12)
    expected = reference.complex_step(lambda *moved: -residual_loss(data, *moved), arrays)
    for ours, theirs in zip(reference.arrays(layer.gradient(data)), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(layer.features(data), axis=1), 1, rtol=1e-12)


def test_batches_of_sequences_touch_every_row_that_they_have_to():
    """Sequences of several classes: the rows of the queries move, and momentum goes on in rows without a gradient."""
    classes = SequenceClasses(LOCAL, [6, 6, 7, 7], vocab_size=9)
    bags = classes.sample(60, length=5, rng=1)
    layer = residual_layer(bags)
    run = sgd(bags, eta_y=0.5, eta_z=0.3, steps=25, init=layer, batch_size=2, length=None, momentum=0.9, seed=5)
    # The same batches one step at a time, by the layer's gradient.
    whole, velocity = layer, [0.0, 0.0]
    feed = SgdRun(
        bags, **complete({"eta_y": 0.5, "eta_z": 0.3, "steps": 25, "batch_size": 2, "length": None, "seed": 5})
    )
    for _ in range(25):
        groups = draw_batch(feed)
        token = np.concatenate([group["token"] for group in groups])
        starts = np.cumsum([0, *(group["token"].size for group in groups)])
        counts = np.concatenate([group["count"].ravel() for group in groups])
        weights = np.concatenate([group["weight"] for group in groups])
        queries, targets = ([group[name] for group in groups] for name in ("query", "target"))
        sizes = {"n_queries": bags.n_queries, "n_tokens": bags.n_tokens, "vocab_size": bags.vocab_size}
        batch = Bags(queries, targets, starts, token, counts, weights, **sizes)
        slopes = whole.gradient(batch)
        velocity = [0.9 * velocity[0] + slopes.Z, 0.9 * velocity[1] + slopes.Y]
        whole = Layer(whole.Z + 0.3 * velocity[0], whole.Y + 0.5 * velocity[1], residual=True)
    np.testing.assert_allclose(run.final.Y, whole.Y, atol=1e-11)
    np.testing.assert_allclose(run.final.Z, whole.Z, atol=1e-11)


def test_the_modified_decoder_with_the_residual_connection():
    """A step of Lemma 3 with the features of the connection, by dense matrices."""
    classes = SequenceClasses(LOCAL, [6, 6, 7, 7], vocab_size=9)
    bags, layer = classes.population(), residual_layer(classes.population())
    options = {"batch_size": None, "length": None, "momentum": 0.0, "decoder": "modified"}
    final = sgd(classes, eta_y=0.3, eta_z=0.2, steps=1, init=layer, **options).final
    F = layer.features(bags).T
    R = np.eye(4, 9) - layer.predict(bags)
    np.testing.assert_allclose(final.Y - layer.Y, 0.3 * F @ np.linalg.inv(F.T @ F) @ R / 4, atol=1e-13)
    np.testing.assert_allclose(final.Z - layer.Z, 0.2 * layer.gradient(bags).Z, atol=1e-14)
    flow = gradient_flow(
        classes, eta_y=0.3, eta_z=0.2, t_end=1.0, times=[0.0, 1e-6], init=layer, decoder="modified"
    ).dataset
    rate = (flow["y"].values[1] - flow["y"].values[0]) / 1e-6
    np.testing.assert_allclose(rate, final.Y - layer.Y, atol=1e-5)
    np.testing.assert_allclose(flow["z_velocity"].values[0], final.Z - layer.Z, atol=1e-13)


def test_overlaps_on_syn_medium_as_printed_and_without_the_inner_norm():
    classes = SequenceClasses.syn_medium(3)
    for inner_norm, same, other in ((True, 0.861, 0.361), (False, 0.985, 0.039)):
        bags, layer = residual_connection(classes, inner_norm=inner_norm)
        features = layer.features(bags)
        overlap = features @ features.T
        assert overlap[0, 1] == pytest.approx(same, abs=5e-4)
        np.testing.assert_allclose(overlap[:2, 2:], other, atol=5e-4)


@settings(max_examples=13)
@given(strategies.sequence_classes())
def test_overlaps_are_those_without_it_and_one_for_a_shared_query_halved(data):
    bags, layer = residual_connection(data)
    features = layer.features(bags)
    same = bags.query[:, None] == bags.query
    np.testing.assert_allclose(features @ features.T, (data.overlap() + same) / 2, atol=1e-13)


@pytest.mark.parametrize("inner_norm", [True, False])
def test_a_locally_distinct_token_gains_attention_under_the_residual_connection_and_loses_it_without(
    classes, inner_norm
):
    plain = gradient_flow(classes, eta_y=1.0, eta_z=0.5, t_end=500).final.Z
    bags, layer = residual_connection(classes, inner_norm=inner_norm)
    fixed = {} if inner_norm else {"eta_v": 0.0}
    residual = gradient_flow(bags, init=layer, eta_y=1.0, eta_z=0.5, t_end=500, **fixed)
    own = residual.final.Z if inner_norm else residual.final.Z.reshape(2, 2, 6)[[0, 1], [0, 1]]
    assert (plain[:, 5] < -0.1).all()
    assert (own[:, 5] > 0.05).all()
    assert (own[:, 0] < -0.3).all()  # the token common to all loses attention in both
    assert (plain[:, 0] < -0.3).all()


def test_the_value_matrix_of_the_connection_without_inner_norm_can_be_held(classes):
    bags, layer = residual_connection(classes, inner_norm=False)
    options = {"eta_y": 1.0, "eta_z": 0.5, "eta_v": 0.0, "init": layer}
    flow = gradient_flow(bags, t_end=50, **options)
    run = sgd(bags, steps=200, momentum=0.9, record_every=200, **options)
    for final in (flow.final, run.final):
        np.testing.assert_array_equal(final.V, layer.V)


def test_a_residual_layer_is_kept_whole_in_files(tmp_path, classes):
    bags, layer = residual_connection(classes)
    run = sgd(bags, init=layer, eta_y=1.0, eta_z=0.5, steps=3, length=None)
    run.save(tmp_path / "run.nc")
    again = type(run).load(tmp_path / "run.nc").final
    assert again.residual and "residual" in repr(again)
    np.testing.assert_array_equal(again.Y, run.final.Y)
    flow = gradient_flow(bags, init=run, eta_y=1.0, eta_z=0.5, t_end=4.0, n_times=2)
    assert flow.final.residual


# LayerNorm with the mean


@settings(max_examples=10, deadline=None)
@given(strategies.sequence_classes(), strategies.SEEDS)
def test_layer_norm_subtracts_the_mean_over_the_vocabulary(data, seed):
    bags, layer = layer_norm(data, width=data.n_tokens + 5)
    rng = np.random.default_rng(seed)
    layer = Layer(
        rng.normal(size=layer.Z.shape), rng.normal(size=layer.Y.shape), layer.V, layer.multiplicity, center=True
    )
    shares = np.pad(layer.attention(bags), ((0, 0), (0, 5)))
    shares -= shares.mean(axis=1, keepdims=True)
    expected = shares / np.linalg.norm(shares, axis=1, keepdims=True)
    np.testing.assert_allclose(layer.features(bags), expected, atol=1e-13)
    np.testing.assert_allclose(layer.gradient(bags).Z.sum(axis=1), 0, atol=1e-13)


# Position bias


def enumerated(classes, positions, slope):
    """The law of short sequences with a position bias, as bags: every sequence with its probability."""
    weights, rows = [], []
    table, population = classes.probabilities.toarray(), classes.population()
    discount = np.exp(-np.array(slope)) if np.ndim(slope) else np.exp(-slope * np.arange(positions))
    for n, share in enumerate(table):
        for sequence in itertools.product(np.flatnonzero(share), repeat=positions):
            counts = np.bincount(sequence, discount, minlength=share.size)
            rows.append((population.query[n], n, counts))
            weights.append(population.weight[n] * np.prod(share[list(sequence)]))
    query, target, counts = zip(*rows, strict=True)
    return Bags.from_dense(query, target, np.array(counts), np.array(weights), vocab_size=classes.vocab_size)


@pytest.mark.parametrize("slope", [0.7, [0.6, -1.2, 0.3]])
def test_flow_and_sgd_with_a_position_bias_have_the_law_of_biased_sequences(slope):
    """Mean gradient over drawn sequences, and over a batch of SGD, against the sum over all; within 5 errors."""
    classes = SequenceClasses([[0.5, 0.5, 0.0], [0.3, 0.0, 0.7]], [3, 3], vocab_size=4, class_weights=[0.3, 0.7])
    layer = strategies.generic_layer(classes.population())
    exact = layer.gradient(enumerated(classes, 3, slope))
    n = 10_000
    sample = biased_sequences(classes, n, length=4, position_bias=slope, rng=2)
    assert len(sample) == n
    options = {"batch_size": n, "length": 4, "momentum": 0.0, "position_bias": slope, "init": layer}
    step = sgd(classes, eta_y=1.0, eta_z=1.0, steps=1, **options).final
    # Entries of a sequence's gradient are below 2 in these units, so that 5 errors are below 5 x 2/sqrt(n).
    scale = 5 * 2 / np.sqrt(n)
    for found in (layer.gradient(sample), Layer(step.Z - layer.Z, step.Y - layer.Y)):
        for ours, theirs in zip(reference.arrays(found), reference.arrays(exact), strict=True):
            assert np.abs(ours - theirs).max() < scale
    # Much closer than to the law without a bias, and to the limit of long sequences.
    other = layer.gradient(enumerated(classes, 3, 0.0))
    assert np.abs(layer.gradient(sample).Z - exact.Z).max() < 0.3 * np.abs(other.Z - exact.Z).max()


@pytest.mark.parametrize("bias", [[0.0, 0.0, 0.0], [5.0, 5.0, 5.0]])
def test_a_bias_that_is_the_same_everywhere_is_none(classes, bias):
    options = {"eta_y": 1.0, "eta_z": 0.5, "steps": 3, "batch_size": 8, "length": 4, "seed": 2}
    one, none = (sgd(classes, position_bias=given, **options) for given in (bias, 0.0))
    np.testing.assert_array_equal(one.final.Z, none.final.Z)


def test_a_bias_by_position_is_saved_and_run_again(classes, tmp_path):
    bias = np.array([0.5, -0.3, 0.1])
    options = {"eta_y": 1.0, "eta_z": 0.5, "steps": 3, "batch_size": 8, "length": 4, "seed": 2}
    run = sgd(classes, position_bias=bias, **options)
    assert run.parameters["position_bias"] == [0.5, -0.3, 0.1]
    run.save(tmp_path / "run.nc")
    again = Trajectory.load(tmp_path / "run.nc").call.make()
    np.testing.assert_array_equal(again.final.Z, run.final.Z)
