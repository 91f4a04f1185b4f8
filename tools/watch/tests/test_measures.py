"""Measures of attention by token, against closed forms and small cases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from yzflow_watch import measures
from yzflow_watch.adapters import Matrices
from yzflow_watch.rates import induced

TOKENS = np.array([[0, 1, 0, 2, 9, 5], [1, 1, 0, 2, 9, 5], [2, 2, 1, 0, 8, 4], [0, 0, 0, 1, 9, 5]])


def probe():
    return measures.Probe.of(TOKENS, n_classes=2, n_tokens=3)


def random_attention(rng, shape=(4, 1, 4)):
    found = rng.random(shape)
    return found / found.sum(axis=-1, keepdims=True)


def test_uniform_attention_is_the_share_of_each_token():
    found = measures.token_attention(np.full((4, 1, 4), 0.25), probe())
    by_hand = [[[0.25, 0.25, 0.5], [6 / 12, 4 / 12, 2 / 12]]]
    np.testing.assert_allclose(found, by_hand, rtol=1e-15)
    np.testing.assert_allclose(probe().shares, by_hand[0], rtol=1e-15)


def test_classes_and_queries_of_a_probe():
    assert probe().classes.tolist() == [4, 5]
    assert probe().class_query.tolist() == [8, 9]
    assert probe().one_query == 1.0
    mixed = np.where(np.arange(6) == 4, np.array([[9], [8], [8], [9]]), TOKENS)
    assert measures.Probe.of(mixed, n_classes=2, n_tokens=3).one_query == pytest.approx(3 / 4)


@given(st.integers(0, 10**6))
def test_gains_are_the_logits_up_to_a_constant_of_each_class(seed):
    rng = np.random.default_rng(seed)
    shares, z = random_attention(rng, (3, 5)), rng.normal(size=(3, 5))
    attention = shares * np.exp(z)
    attention /= attention.sum(axis=1, keepdims=True)
    found = measures.gains(attention[None], shares)[0]
    np.testing.assert_allclose(found, z - (shares * z).sum(axis=1, keepdims=True), atol=1e-12)


def test_a_token_that_a_class_lacks_has_no_gain():
    found = measures.gains(np.array([[[0.5, 0.5, 0.0]]]), np.array([[0.5, 0.5, 0.0]]))
    assert np.isnan(found[0, 0, 2]) and found[0, 0, :2].tolist() == [0, 0]


def test_entropy_of_uniform_attention_and_of_one_place():
    assert measures.entropy(np.full((3, 2, 8), 1 / 8)) == pytest.approx([np.log(8)] * 2)
    assert measures.entropy(np.eye(8)[None, :1]) == pytest.approx(0, abs=1e-300)


@given(st.integers(0, 10**6))
def test_a_softmax_of_logits_by_token_is_explained_and_another_order_moves_nothing(seed):
    rng = np.random.default_rng(seed)
    tokens = np.column_stack([rng.integers(0, 4, (12, 9)), rng.integers(4, 6, 12), rng.integers(0, 3, 12)])
    of, z = measures.Probe.of(tokens, n_classes=3, n_tokens=4), rng.normal(size=(6, 4))
    order = rng.permuted(np.tile(np.arange(9), (12, 1)), axis=1)

    def attention(context):
        found = np.exp(z[of.query[:, None], context])
        return (found / found.sum(axis=1, keepdims=True))[:, None]

    first, second = attention(of.context), attention(np.take_along_axis(of.context, order, axis=1))
    assert measures.by_token(first, of) == pytest.approx(1, abs=1e-6)
    assert measures.moved_by_order(first, second, order) == pytest.approx(0, abs=1e-12)


def test_attention_by_position_is_not_explained_by_tokens_and_moves_with_the_order():
    # Tokens of one kind: another order changes no context, and attention stays at its places.
    rng = np.random.default_rng(0)
    tokens = np.column_stack([rng.integers(0, 4, (40, 6)), np.full(40, 4), rng.integers(0, 2, 40)])
    of = measures.Probe.of(tokens, n_classes=2, n_tokens=4)
    weights = np.exp(np.arange(6.0))
    attention = np.broadcast_to(weights / weights.sum(), (40, 1, 6))
    assert measures.by_token(attention, of)[0] < 0.2
    order = np.tile(np.arange(6)[::-1], (40, 1))
    by_hand = 0.5 * np.abs(weights - weights[::-1]).sum() / weights.sum()
    assert measures.moved_by_order(attention, attention, order)[0] == pytest.approx(by_hand, rel=1e-12)


def test_rates_of_orthogonal_parts_are_those_of_one_rate_on_the_original_parameters():
    """eta kappa^2 (kappa^2 + 2 v^2) and eta kappa^2 (kappa^2 (q^2 + k^2) + 2 q^2 k^2)/d, for orthogonal matrices."""
    rng = np.random.default_rng(4)
    d, kappa, v, q, k = 6, 1.3, 0.7, 0.9, 1.1

    def orthogonal(scale):
        return scale * np.linalg.qr(rng.normal(size=(d, d)))[0]

    u = orthogonal(kappa)
    # The decoder there is U W_V^T U^T: an output matrix that does not move adds its own term, eta kappa^2 v^2 kappa^2.
    of = Matrices(u, orthogonal(q), orthogonal(k), orthogonal(v), np.eye(d), u, np.sqrt(d))
    eta_y, eta_z = induced(of, 0.1, np.arange(d), np.arange(d))
    assert eta_z == pytest.approx(0.1 * kappa**2 * (kappa**2 * (q**2 + k**2) + 2 * q**2 * k**2) / d, rel=1e-12)
    assert eta_y == pytest.approx(0.1 * (kappa**2 * (kappa**2 + 2 * v**2) + kappa**4 * v**2), rel=1e-12)


# Places that the last query looks at


@st.composite
def looks(draw):
    """Sequences of few tokens, so that they repeat, attention that adds up to one, and padding on the left."""
    n, heads, length = draw(st.integers(1, 6)), draw(st.integers(1, 3)), draw(st.integers(3, 12))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    tokens = rng.integers(0, draw(st.integers(1, 6)), (n, length))
    real = np.arange(length - 1) >= rng.integers(0, draw(st.integers(1, length - 1)), (n, 1))
    return random_attention(rng, (n, heads, length)), tokens, real


@given(looks())
def test_attention_by_place_beside_a_loop(given):
    """Each place in turn: whether the token before it is the query's."""
    attention, tokens, real = given
    n, heads, length = attention.shape
    found, uniform = measures.attention_by_place(attention, tokens, real), measures.uniform_by_place(tokens, real)
    starts, sizes = length - 1 - real.sum(axis=1), 1 + real.sum(axis=1)
    for head in range(heads):
        matched, places = [], []
        for row in range(n):
            there = [s for s in range(starts[row] + 1, length - 1) if tokens[row, s - 1] == tokens[row, length - 1]]
            if there:
                matched.append(sum(attention[row, head, s] for s in there))
                places.append(len(there) / sizes[row])
        by_hand = {
            "previous_token": np.mean([attention[row, head, length - 2] for row in range(n)]),
            "prefix_match": np.mean(matched) if matched else np.nan,
            "first_position": np.mean([attention[row, head, starts[row]] for row in range(n)]),
        }
        for name in measures.PLACES:
            np.testing.assert_allclose(found[name][head], by_hand[name], rtol=1e-12)
        assert uniform["prefix_match"] == (pytest.approx(np.mean(places)) if places else None)
        assert uniform["previous_token"] == uniform["first_position"] == pytest.approx(np.mean(1 / sizes))


@given(looks())
def test_uniform_attention_has_the_uniform_scores(given):
    attention, tokens, real = given
    places = np.hstack([real, np.ones((len(real), 1), dtype=bool)])
    uniform = np.broadcast_to((places / places.sum(axis=1, keepdims=True))[:, None], attention.shape)
    found = measures.attention_by_place(uniform, tokens, real)
    for name, value in measures.uniform_by_place(tokens, real).items():
        np.testing.assert_allclose(found[name], np.nan if value is None else value, rtol=1e-12)


def test_an_induction_head_and_a_sink_have_the_score_one():
    tokens = np.array([[7, 3, 5, 7], [1, 7, 2, 7]])
    induction, sink = np.zeros((2, 1, 4)), np.zeros((2, 1, 4))
    induction[0, 0, 1] = induction[1, 0, 2] = sink[:, 0, 0] = 1
    real = np.ones((2, 3), dtype=bool)
    assert measures.attention_by_place(induction, tokens, real)["prefix_match"].tolist() == [1]
    found = measures.attention_by_place(sink, tokens, real)
    assert (found["first_position"].tolist(), found["prefix_match"].tolist()) == ([1], [0])
    # The place after an occurrence right before the query is the query itself, and is no match.
    assert np.isnan(measures.attention_by_place(sink, np.array([[1, 2, 7, 7]] * 2), real)["prefix_match"][0])


def test_attention_that_is_no_number_has_no_score():
    tokens = np.array([[7, 3, 5, 7], [7, 1, 2, 7]])
    attention = np.full((2, 2, 4), 0.25)
    attention[0, 1] = np.nan
    for name, value in measures.attention_by_place(attention, tokens, np.ones((2, 3), dtype=bool)).items():
        assert np.isfinite(value[0]) and np.isnan(value[1]), name
