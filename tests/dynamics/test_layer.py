"""Loss and gradient of a layer against their definition."""

import mpmath
import numpy as np
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st

from dynamics import Bags, Layer
from dynamics._model.problem import Problem


def assert_gradient(actual, expected, layer, data):
    """To 1e-12 of the size of the terms that a gradient is summed from: logits Y f times a residual below one."""
    scale = max(1.0, np.abs(layer.Y).max())
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-13 * scale)


@given(st.data(), st.booleans())
def test_gradient_is_the_complex_step_derivative_of_the_loss(draws, value):
    data = draws.draw(strategies.bags())
    layer = draws.draw(strategies.layers(data, value=value, compressed=False))
    Z, Y, V = layer.Z, layer.Y, layer.V
    gradient = layer.gradient(data)
    np.testing.assert_allclose(layer.loss(data), reference.loss(data, Z, Y, V), rtol=1e-12)
    dZ, dY, *dV = reference.complex_step_gradient(data, [Z, Y, V] if value else [Z, Y])
    assert_gradient(gradient.Z, dZ, layer, data)
    assert_gradient(gradient.Y, dY, layer, data)
    if value:
        # 1 / ||V^T c|| multiplies this part, and the round-off of it.
        norm = min(np.linalg.norm(V.T @ c) for c in layer.attention(data))
        np.testing.assert_allclose(
            gradient.V, dV[0], rtol=1e-12, atol=1e-13 * max(1, np.abs(Y).max()) * max(1, 1 / norm)
        )
    else:
        assert gradient.V is None


@given(st.data(), st.booleans())
def test_compressed_layer_is_the_expanded_one(draws, value):
    data = draws.draw(strategies.bags())
    layer = draws.draw(strategies.layers(data, value=value))
    dense = layer.expand()
    assert dense.Y.shape[1] == data.vocab_size
    np.testing.assert_allclose(layer.loss(data), reference.loss(data, dense.Z, dense.Y, dense.V), rtol=1e-12)
    gradient = layer.gradient(data)
    assert_gradient(gradient.expand().Y, dense.gradient(data).Y, layer, data)
    assert_gradient(gradient.Z, dense.gradient(data).Z, layer, data)
    np.testing.assert_allclose(layer.predict(data) @ layer.multiplicity, 1, rtol=1e-13)
    np.testing.assert_allclose(
        np.repeat(layer.predict(data), layer.multiplicity, axis=1), dense.predict(data), rtol=1e-12, atol=1e-300
    )


@given(st.data(), st.booleans())
def test_attention_features_and_predictions_follow_their_definitions(draws, value):
    data = draws.draw(strategies.bags())
    layer = draws.draw(strategies.layers(data, value=value, compressed=False))
    V = np.eye(data.n_tokens) if layer.V is None else layer.V
    for b, counts in enumerate(reference.dense_counts(data)):
        c = reference.attend(counts, layer.Z[data.query[b]])
        f = reference.normalise(V.T @ c)
        np.testing.assert_allclose(layer.attention(data)[b], c, rtol=1e-12)
        # Entries of V^T c may cancel, so relative to the row, whose norm is one.
        amplification = 1 + np.abs(V).max() / np.linalg.norm(V.T @ c)
        np.testing.assert_allclose(layer.features(data)[b], f, atol=1e-14 * amplification)
        alpha = reference.softmax(layer.Y.T @ f)
        error = 1e-13 * amplification * (1 + np.abs(layer.Y).max())
        np.testing.assert_allclose(layer.predict(data)[b], alpha, rtol=error, atol=1e-300)


@st.composite
def sequences(draw):
    """Contextual tokens x_1 .. x_{T-1}, query x_T and next token x_{T+1} over a vocabulary of M tokens."""
    vocab_size = draw(st.integers(2, 6))
    token = st.integers(0, vocab_size - 1)
    return vocab_size, draw(st.lists(token, min_size=1, max_size=10)), draw(token), draw(token), draw(strategies.SEEDS)


@given(sequences(), strategies.LOGIT_SCALES)
def test_gradient_is_lemma_1_token_by_token(sequence, scale):
    M, context, query, following, seed = sequence
    rng = np.random.default_rng(seed)
    Z, Y = scale * rng.normal(size=(2, M, M))
    X = np.eye(M)[context]
    x_T, x_next = np.eye(M)[query], np.eye(M)[following]
    logits = X @ Z.T @ x_T
    b = reference.softmax(logits)
    v = X.T @ b
    f = v / np.linalg.norm(v)
    u = Y.T @ f
    alpha = reference.softmax(u)
    P_perp = np.eye(M) - np.outer(v, v) / (v @ v)
    Y_dot = np.outer(f, x_next - alpha)
    Z_dot = np.outer(x_T, (x_next - alpha) @ Y.T @ (P_perp / np.linalg.norm(v)) @ X.T @ np.diag(b) @ X)

    bag = Bags.from_dense([query], [following], X.sum(axis=0)[None], n_queries=M, vocab_size=M)
    layer = Layer(Z, Y)
    gradient = layer.gradient(bag)
    assert_gradient(gradient.Y, Y_dot, layer, bag)
    assert_gradient(gradient.Z, Z_dot, layer, bag)


def test_loss_of_two_tokens_by_hand():
    # c = (1, 2 * 3) / 7 at z = (0, ln 3), f = (1, 6) / sqrt(37), u = (5 - 6 * 2, 0) / sqrt(37).
    bag = Bags.from_dense([0], [1], [[1, 2]], vocab_size=2)
    layer = Layer([[0, np.log(3)]], [[5, 0], [-2, 0]])
    np.testing.assert_allclose(layer.attention(bag), [[1 / 7, 6 / 7]], rtol=1e-15)
    assert layer.loss(bag) == pytest.approx(np.log1p(np.exp(-7 / np.sqrt(37))), rel=1e-14)


def test_loss_of_a_soft_target_by_hand():
    # f = 1, u = (ln 2, 0, 0) and two more next tokens of logit 0: alpha = (2, 1, 1, 1, 1) / 6.
    bag = Bags.from_dense([0], [[0.5, 0.25, 0.25]], [[3.0]], vocab_size=5)
    layer = Layer([[0.0]], [[np.log(2), 0, 0, 0]], None, [1, 1, 1, 2])
    assert layer.loss(bag) == pytest.approx(0.5 * np.log(3) + 0.5 * np.log(6), rel=1e-15)


@pytest.mark.parametrize("value", [False, True])
def test_huge_logits_stay_finite_and_right(value):
    bag = Bags.from_dense([0, 0], [0, 1], [[1, 1], [3, 1]])
    layer = Layer([[700, -700]], [[500, -500], [0, 0]], np.eye(2) if value else None)
    # Attention is all on token 0, so the logits are (500, -500): losses 0 and 1000.
    assert layer.loss(bag) == pytest.approx(500, rel=1e-15)
    gradient = layer.gradient(bag)
    np.testing.assert_allclose(gradient.Y, [[-0.5, 0.5], [0, 0]], atol=1e-300)
    np.testing.assert_allclose(gradient.Z, 0, atol=1e-300)
    np.testing.assert_allclose(layer.predict(bag), [[1, 0], [1, 0]], atol=1e-300)


@pytest.mark.parametrize("vocab_size", [2, 1000])
def test_near_certain_target_keeps_all_digits(vocab_size):
    logit = 46.0 + np.log(vocab_size - 1)
    bag = Bags.from_dense([0], [0], [[1.0]], vocab_size=vocab_size)
    layer = Layer([[0.0]], [[logit, 0.0]], None, [1, vocab_size - 1])
    with mpmath.workdps(50):
        others = (vocab_size - 1) * mpmath.exp(-mpmath.mpf(logit))
        loss = mpmath.log1p(others)
        residual = others / (1 + others)
    assert 1e-21 < float(loss) < 2e-20
    assert layer.loss(bag) == pytest.approx(float(loss), rel=1e-10, abs=0)
    gradient = layer.gradient(bag).Y[0]
    assert gradient[0] == pytest.approx(float(residual), rel=1e-10, abs=0)
    assert gradient @ layer.multiplicity == pytest.approx(0, abs=1e-14 * float(residual))


def test_attention_on_tokens_with_opposite_values_has_no_feature_and_no_gradient():
    """LN of the zero vector is zero: nothing is nan, nothing moves."""
    bag = Bags.from_dense([0], [0], [[1, 1]], vocab_size=3)
    layer = Layer([[0, 0]], [[1, 2, 3]], [[1], [-1]])
    assert layer.loss(bag) == pytest.approx(np.log(3), rel=1e-15)
    gradient = layer.gradient(bag)
    for array in (gradient.Z, gradient.Y, gradient.V):
        assert (array == 0).all()


def test_problem_adds_into_what_is_there():
    """Simulators rely on it to add up batches."""
    bag = Bags.from_dense([0], [1], [[1, 2]])
    layer = Layer([[0.2, -0.1]], [[1, 0], [0, 2]])
    gradient = layer.gradient(bag)
    problem = Problem(bag, layer)
    slopes = problem.zeros()
    slopes[0][:], slopes[1][:] = 1, 2
    problem.loss_and_gradient(layer.weights, slopes)
    np.testing.assert_allclose(slopes[0], gradient.Z + 1, rtol=1e-15)
    np.testing.assert_allclose(slopes[1], gradient.Y + 2, rtol=1e-15)


def test_layer_owns_its_arrays():
    Z = np.zeros((1, 2))
    layer = Layer(Z, np.zeros((2, 3)))
    Z[0, 0] = 1
    assert layer.Z[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        layer.Y[0, 0] = 1


def test_a_residual_is_kept_as_a_flag():
    assert Layer(np.zeros((2, 3)), np.zeros((5, 4)), residual=1).residual is True
