"""Section 7 of Scan and Snap: the residual connection, and several heads as several starts."""

import numpy as np
import pytest
import strategies
from hypothesis import given, settings

from dynamics import Layer, SequenceClasses, gradient_flow, sgd
from dynamics.extensions import residual_connection

# Queries 6 (next tokens 0 and 1) and 7 (2 and 3). Token 0 is common to all; token 5 occurs with 0 and 2, so that it is
# globally common and yet distinct within each query's own next tokens.
LOCAL = [[0.4, 0.3, 0, 0, 0, 0.3], [0.4, 0, 0.6, 0, 0, 0], [0.4, 0, 0, 0.3, 0, 0.3], [0.4, 0, 0, 0, 0.6, 0]]


@pytest.fixture
def classes():
    return SequenceClasses(LOCAL, [6, 6, 7, 7], vocab_size=50)


@settings(max_examples=25)
@given(strategies.sequence_classes())
def test_the_residual_feature_is_the_normalised_sum_of_attention_and_query(data):
    bags, layer = residual_connection(data)
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


def test_classes_of_one_query_overlap_more_than_others_under_the_residual_connection(classes):
    bags, layer = residual_connection(classes)
    features = layer.features(bags)
    overlap = features @ features.T
    assert min(overlap[0, 1], overlap[2, 3]) > 4 * overlap[:2, 2:].max()
    # Without it the largest overlap is between classes of different queries, that share token 5.
    assert np.unravel_index(np.triu(classes.overlap(), 1).argmax(), (4, 4)) == (0, 2)


def test_a_locally_distinct_token_gains_attention_under_the_residual_connection_and_loses_it_without(classes):
    plain = gradient_flow(classes, eta_y=1.0, eta_z=0.5, t_end=500).final.Z
    bags, layer = residual_connection(classes)
    residual = gradient_flow(bags, init=layer, eta_y=1.0, eta_z=0.5, eta_v=0.0, t_end=500)
    np.testing.assert_array_equal(residual.final.V, layer.V)
    own = residual.final.Z.reshape(2, 2, 6)[[0, 1], [0, 1]]
    assert (plain[:, 5] < -0.1).all()
    assert (own[:, 5] > 0.1).all()
    assert (own[:, 0] < -1).all()  # the token common to all loses attention in both
    assert (plain[:, 0] < -0.3).all()


def test_the_residual_connection_trains_by_sgd_too(classes):
    bags, layer = residual_connection(classes)
    run = sgd(bags, init=layer, eta_y=1.0, eta_z=0.5, eta_v=0.0, steps=200, momentum=0.9, record_every=200)
    own = run.final.Z.reshape(2, 2, 6)[[0, 1], [0, 1]]
    assert (own[:, 5] > 0).all() and (own[:, 0] < 0).all()


def test_the_residual_connection_refuses_other_data():
    with pytest.raises(ValueError, match=r"`data` must be Bags or offer population\(\), but got list"):
        residual_connection([1, 2])


def test_heads_from_different_starts_keep_different_tokens():
    # Theorem 3: r_{l/l'}(t) = r(0) chi_l(t) keeps its sign and grows, so that the initial logits decide between two
    # tokens of equal probability; each head (a start of Z) keeps another one.
    classes = SequenceClasses([[0.2, 0.4, 0.4, 0.0], [0.2, 0.0, 0.0, 0.8]], [0, 0], vocab_size=20)
    for favoured, other in ((1, 2), (2, 1)):
        Z = np.zeros((1, 4))
        Z[0, favoured] = 0.1
        start = Layer(Z, np.zeros((4, 3)), None, [1, 1, 18])
        head = gradient_flow(classes, init=start, eta_y=1.0, eta_z=1.0, t_end=500, decoder="theory", rtol=1e-11)
        gain = head.relative_gain(0, favoured, other)
        np.testing.assert_allclose(gain, np.expm1(0.2) * head.growth_factor(0, favoured), rtol=1e-7)
        assert gain[-1] > 1.1 * gain[0] > 0
