"""Axes of attention and logits that own functions give: told by an experiment, or refused in words."""

import numpy as np
import pytest
import watched_layers as layers
from hypothesis import given
from hypothesis import strategies as st
from yzflow_watch.adapters import of_functions

import yzflow as yz

LENGTH = 6


def tokens_of(n, length=LENGTH, seed=0):
    return np.random.default_rng(seed).integers(0, 5, (n, length))


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def full(sequences, heads=1, causal=True, seed=0):
    """(n, heads, T, T) attention by tokens."""
    z = np.random.default_rng(seed).normal(size=(heads, 5, 5))
    logits = z[:, sequences[:, :, None], sequences[:, None, :]].transpose(1, 0, 2, 3)
    hidden = np.triu(np.ones(logits.shape[-2:], dtype=bool), 1) & causal
    return softmax(np.where(hidden, -np.inf, logits))


def scores(model, sequences):
    return np.eye(5)[sequences[:, -1]]


def look(attention, tokens, logits=scores):
    return of_functions(lambda model, sequences: attention(sequences), logits, ()).on(None, tokens)


def refused(attention, message, tokens=None, logits=scores):
    with pytest.raises(ValueError, match=message):
        look(attention, tokens_of(4) if tokens is None else tokens, logits)


@pytest.mark.parametrize("causal", [True, False])
@given(n=st.integers(1, 8), length=st.integers(3, 8), heads=st.integers(1, 8))
def test_attention_of_every_shape_is_that_of_the_last_query(n, length, heads, causal):
    tokens = tokens_of(n, length)
    right = full(tokens, heads, causal)[:, :, -1]
    for attention in (
        lambda sequences: full(sequences, heads, causal),
        lambda sequences: full(sequences, heads, causal)[None],
        lambda sequences: full(sequences, heads, causal)[:, :, -1:],
        lambda sequences: full(sequences, heads, causal)[:, :, -1],
    ):
        np.testing.assert_array_equal(look(attention, tokens).attention, right[None])
    mean = look(lambda sequences: full(sequences, heads, causal).mean(axis=1), tokens)
    np.testing.assert_allclose(mean.attention[0], right.mean(axis=1, keepdims=True))


@pytest.mark.parametrize("change", [lambda shares: shares.mean(axis=1), lambda shares: shares[:, :, -1]])
def test_square_attention_of_a_model_of_one_length_is_asked_about(change):
    def attention(sequences):
        if sequences.shape[1] != LENGTH:
            raise RuntimeError("positions")
        return change(full(sequences, LENGTH))

    refused(attention, r"`attention` must say which axis is that of heads: give \(4, heads, 6, 6\) or .* but got")


def test_axes_in_another_order_are_found_where_sizes_are_equal():
    refused(lambda sequences: full(sequences, 4).swapaxes(0, 1), "must have axes .*one sequence more")
    layers_of_mean = lambda sequences: np.stack([full(sequences)[:, 0]] * 4)  # noqa: E731
    refused(layers_of_mean, "must have axes .*one sequence more")


def test_transposed_attention_is_found():
    turned = lambda sequences: full(sequences, 2, causal=False).swapaxes(2, 3)  # noqa: E731
    refused(turned, r"add up to one, but got \S+ in layer 0, sequence 0 of 4, head 0, position 0, .*come before keys")
    refused(lambda sequences: full(sequences, 2, causal=True).swapaxes(2, 3), "queries come before keys")
    last = np.eye(LENGTH)  # every row adds up, and none looks back
    last[[0, 1]] = last[[1, 0]]
    later = np.triu(np.ones((LENGTH, LENGTH)))
    later /= later.sum(axis=1, keepdims=True)
    refused(lambda sequences: np.broadcast_to(later, (len(sequences), 1, *later.shape)), "have queries before keys")


@pytest.mark.parametrize("total", [0.7, 0.3, 1.05])
def test_a_row_that_does_not_add_up_is_named(total):
    def attention(sequences):
        shares = full(sequences, 3)[:, :, -1].copy()
        shares[2, 1] *= total
        return shares

    refused(attention, rf"but got {total} in layer 0, sequence 2 of 4, head 1, position 5, from 0 on")


def test_a_table_adapter_checks_rows_too():
    from yzflow_watch.looks import checked_look

    with pytest.raises(ValueError, match=r"add up to one, but got 0\.5 in layer 1, sequence 0 of 2, head 0"):
        checked_look(np.array([1.0, 0.5])[:, None, None, None, None] * full(tokens_of(2))[None, :, :, -1:],
                      np.zeros((2, 5)), tokens_of(2))  # fmt: skip


def test_rounding_of_half_precision_nan_and_rows_of_zeros_are_taken():
    torch = pytest.importorskip("torch")
    for kind in (torch.bfloat16, torch.float16):
        shares = torch.as_tensor(full(tokens_of(40, 60), 4, causal=False)).to(kind)
        found = look(lambda sequences, shares=shares: shares[: len(sequences)], tokens_of(40, 60))
        np.testing.assert_allclose(found.attention[0], full(tokens_of(40, 60), 4, causal=False)[:, :, -1], rtol=5e-3)
    for value in (np.nan, 0.0):
        found = look(lambda sequences, value=value: full(sequences) * value, tokens_of(3))
        np.testing.assert_array_equal(found.attention, np.full((1, 3, 1, LENGTH), value))


def test_logits_of_every_shape():
    tokens = tokens_of(4)
    right = scores(None, tokens)
    attention = full
    for logits in (
        lambda model, sequences: scores(model, sequences)[:, None],
        lambda model, sequences: np.eye(5)[sequences],
        lambda model, sequences: {"logits": np.eye(5)[sequences]},
        lambda model, sequences: (np.eye(5)[sequences], None),
        lambda model, sequences: (np.float64(0.3), np.eye(5)[sequences]),
    ):
        np.testing.assert_array_equal(look(attention, tokens, logits).logits, right)
    for logits, message in (
        (lambda model, sequences: np.eye(5)[sequences].swapaxes(1, 2), r"`logits` must give an array \(4, 6, next tok"),
        (
            lambda model, sequences: {"scores": 1},
            "`logits` must .* have 'logits', but got a dict of scores",
        ),
        (lambda model, sequences: (np.eye(5)[sequences],) * 2, "`logits` must be given as a function"),
        (lambda model, sequences: "no", "`logits` must be an array of numbers"),
    ):
        refused(attention, message, tokens, logits)


def test_attention_that_was_not_kept_and_outputs_of_transformers():
    torch = pytest.importorskip("torch")
    refused(lambda sequences: None, "attn_implementation='eager'")
    refused(lambda sequences: (None, None), "attn_implementation='eager'")
    refused(lambda sequences: {"attentions": (None,)}, "attn_implementation='eager'")
    tokens = tokens_of(4)

    def attention(sequences):
        return {"attentions": tuple(torch.as_tensor(full(sequences, 2, seed=seed)) for seed in range(3))}

    found = look(attention, tokens).attention
    np.testing.assert_array_equal(found, np.stack([full(tokens, 2, seed=seed)[:, :, -1] for seed in range(3)]))
    unlike = lambda sequences: tuple(torch.as_tensor(full(sequences, heads)) for heads in (1, 2))  # noqa: E731
    refused(unlike, r"as many heads each, .* but got attention of layer 0 \(4, 1, 6, 6\), layer 1 \(4, 2, 6, 6\)")


def test_answers_that_depend_on_other_sequences_are_refused_at_the_start():
    model = layers.Trained(layers.classes_inside(vocab_size=50), start=1.0)
    tokens = layers.draw(model.classes, 24, 60, np.random.default_rng(0))

    def mixed(model, sequences):
        found = layers.logits(model, sequences)
        return found - found.mean(axis=0)

    with pytest.raises(ValueError, match=r"`model` must answer on each sequence by itself, .*sequence moves by"):
        yz.watch(model, tokens, attention=layers.attention, logits=mixed)


def test_axes_are_asked_about_once():
    asked = []

    def attention(model, sequences):
        asked.append(sequences.shape)
        return full(sequences).mean(axis=1)

    adapter = of_functions(attention, scores, ())
    for _ in range(3):
        adapter.on(None, tokens_of(4))
    assert asked == [(4, 6), (4, 5), (4, 6), (4, 6)]
