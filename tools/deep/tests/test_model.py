"""Transformers against what is independently known: the Y/Z layer, NumPy, finite differences, exact properties."""

import functools
import pickle
import sys
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import yzflow_deep as deep
from driving import python
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import SEEDS
from yzflow_bounded_dyck import DyckLanguage
from yzflow_deep import objective
from yzflow_deep.model import Architecture, Transformer

from dynamics import Bags, Layer, Objective, sgd

VARIANTS = [
    {},
    {"n_layers": 2, "n_heads": 2, "norm": "after", "positions": "learned", "max_length": 9, "tied": False},
    {"n_layers": 2, "norm": "mixture", "norm_kind": "unit", "residual": False, "attend_self": False, "mlp_width": 0},
    {"n_heads": 2, "values": False, "factored": False, "positions": "sinusoidal", "norm": "none", "mlp_width": 3},
    {"n_layers": 2, "positions": "linear", "max_length": 9, "n_outputs": 3, "tied": False, "norm_kind": "unit"},
]
V, WIDTH, LENGTH = 5, 4, 7


def build(variant, seed=0):
    """A transformer of some variant, in double precision, its weights large enough for attention to be uneven."""
    model = Transformer(Architecture(V, width=WIDTH, **variant), seed, dtype="float64")
    # Unit vectors need larger matrices; gains and biases are to be neither one nor zero.
    size = 5 if model.architecture.norm_kind == "unit" else 1
    model = jax.tree.map(lambda leaf: size * leaf + 0.1, model)
    return eqx.tree_at(lambda m: m.embedding, model, 40 * model.embedding)


def in_double(function, *arguments):
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, function(*arguments))


MODELS = [build(variant) for variant in VARIANTS]
_hidden = jax.jit(lambda model, sequence: model.hidden(sequence))
RUN = [functools.partial(_hidden, model) for model in MODELS]
which = pytest.mark.parametrize("model", range(len(VARIANTS)))
tokens = st.lists(st.integers(0, V - 1), min_size=LENGTH, max_size=LENGTH).map(np.array)


def layer_norm(v, kind, weights):
    if kind == "unit":
        size = np.linalg.norm(v)
        return v / size if size else v
    v = v - v.mean()
    return v / np.sqrt((v**2).mean() + 1e-5) * np.asarray(weights[0]) + np.asarray(weights[1])


def by_hand(model, sequence):
    """Logits and attention position by position, head by head, from the definition."""
    a, n = model.architecture, len(sequence)
    x = np.asarray(model.embedding)[sequence]
    position = np.arange(n)[:, None]
    if a.positions == "learned":
        x = x + np.asarray(model.position)[:n]
    elif a.positions == "linear":
        x = x + position / a.max_length * np.asarray(model.position)
    elif a.positions == "sinusoidal":
        angle = position / 10000 ** (2 * np.arange(a.width // 2) / a.width)
        x = x + np.hstack([np.sin(angle), np.cos(angle)])
    maps = np.zeros((a.n_layers, a.n_heads, n, n))
    for number, block in enumerate(model.blocks):
        norms = list(block.norms)
        entered = x
        if a.norm == "before":
            entered = np.array([layer_norm(row, a.norm_kind, norms[0]) for row in x])
        out = np.zeros_like(x)
        for head in range(a.n_heads):
            for q in range(n):
                keys = entered[: q + a.attend_self]
                if not len(keys):
                    continue
                if a.factored:
                    left, right = np.asarray(block.query)[head], np.asarray(block.key)[head]
                    logits = keys @ right @ left.T @ entered[q] / np.sqrt(a.width / a.n_heads)
                else:
                    logits = keys @ np.asarray(block.merged)[head].T @ entered[q]
                share = np.exp(logits) / np.exp(logits).sum()
                maps[number, head, q, : len(share)] = share
                mixed = share @ (keys @ np.asarray(block.value)[head] if a.values else keys)
                if a.norm == "mixture":
                    mixed = layer_norm(mixed, a.norm_kind, norms[0])
                out[q] += mixed @ np.asarray(block.output)[head]
        x = x + out if a.residual else out
        if a.norm == "after":
            x = np.array([layer_norm(row, a.norm_kind, norms[0]) for row in x])
        if a.mlp_width:
            entered = x
            if a.norm == "before":
                entered = np.array([layer_norm(row, a.norm_kind, norms[1]) for row in x])
            units = np.maximum(entered @ np.asarray(block.up[0]) + np.asarray(block.up[1]), 0)
            out = units @ np.asarray(block.down[0]) + np.asarray(block.down[1])
            x = x + out if a.residual else out
            if a.norm == "after":
                x = np.array([layer_norm(row, a.norm_kind, norms[1]) for row in x])
    if a.norm == "before":
        x = np.array([layer_norm(row, a.norm_kind, model.last_norm) for row in x])
    return x @ (np.asarray(model.embedding).T if a.tied else np.asarray(model.decoder)), maps


# The model


@which
def test_output_and_attention_follow_the_definition(model):
    sequence = np.random.default_rng(model).integers(V, size=LENGTH)
    hidden, attention = in_double(RUN[model], sequence)
    logits, maps = by_hand(MODELS[model], sequence)
    np.testing.assert_allclose(in_double(MODELS[model].decode, hidden), logits, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(attention, maps, rtol=1e-9, atol=1e-12)
    assert np.ptp(attention[..., -1, :3]) > 0.02  # not uniform, which would hide wrong logits


@which
@settings(max_examples=15)
@given(tokens, st.data())
def test_later_tokens_never_change_earlier_output(model, sequence, data):
    cut = data.draw(st.integers(1, LENGTH - 1))
    other = sequence.copy()
    other[cut:] = data.draw(tokens)[cut:]
    first, second = (in_double(RUN[model], row) for row in (sequence, other))
    assert np.array_equal(first[0][:cut], second[0][:cut])
    assert np.array_equal(first[1][:, :, :cut], second[1][:, :, :cut])


@pytest.mark.parametrize("model", [0, 2])
@settings(max_examples=15)
@given(tokens, SEEDS)
def test_without_positions_one_layer_sees_a_bag(model, sequence, seed):
    """The last output does not depend on the order of the tokens before it, and attention goes with the tokens."""
    if MODELS[model].architecture.n_layers > 1:
        # Deeper layers see prefixes, whose bags do change.
        single = build(VARIANTS[model] | {"n_layers": 1})
        run = functools.partial(_hidden, single)
    else:
        run = RUN[model]
    order = np.append(np.random.default_rng(seed).permutation(LENGTH - 1), LENGTH - 1)
    plain, moved = (in_double(run, row) for row in (sequence, sequence[order]))
    np.testing.assert_allclose(moved[0][-1], plain[0][-1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(moved[1][0, :, -1], plain[1][0, :, -1][:, order], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("model", [1, 3, 4])
def test_positions_break_that_symmetry(model):
    sequence = np.array([0, 1, 2, 3, 4, 0, 1])
    plain, moved = (in_double(RUN[model], tokens)[0][-1] for tokens in (sequence, sequence[[1, 0, 2, 3, 4, 5, 6]]))
    assert np.abs(plain - moved).max() > 1e-4


@which
@settings(max_examples=15)
@given(tokens)
def test_attention_rows_sum_to_one_over_the_keys_before(model, sequence):
    attention = in_double(RUN[model], sequence)[1]
    diagonal = MODELS[model].architecture.attend_self
    np.testing.assert_allclose(attention.sum(axis=-1)[..., 1 - diagonal :], 1, rtol=1e-12)
    assert (attention >= 0).all() and not attention[..., ~np.tri(LENGTH, k=diagonal - 1, dtype=bool)].any()


def test_entropy_of_uniform_attention_is_log_n():
    n = np.arange(1, 9)
    rows = np.tri(8) / n[:, None]
    np.testing.assert_allclose(in_double(objective.entropies, rows), np.log(n), rtol=1e-12, atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("model", [1, 2])
def test_gradient_is_that_of_finite_differences(model):
    rng = np.random.default_rng(model)
    shape = (2, LENGTH)
    model = MODELS[model]
    data = rng.integers(V, size=shape), rng.integers(model.architecture.n_outputs, size=shape), rng.random(shape) < 0.7
    leaves, tree = jax.tree.flatten(model)

    direction = [rng.normal(size=leaf.shape) for leaf in leaves]

    def loss(leaves):
        return objective.mean_loss(jax.tree.unflatten(tree, leaves), *data)

    with jax.enable_x64(True):
        along = jax.jit(lambda h: loss([leaf + h * d for leaf, d in zip(leaves, direction, strict=True)]))
        exact = float(jax.jit(jax.grad(along))(0.0))
        h = 1e-5
        values = [float(along(c * h)) for c in (1, -1)]
    assert (values[0] - values[1]) / (2 * h) == pytest.approx(exact, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("model, eps", [(1, 0.0), (0, 0.3)])
def test_sequence_by_sequence_is_all_at_once(monkeypatch, model, eps):
    """The loss of large batches, whose gradient is made by hand."""
    data = np.random.default_rng(3).integers(V, size=(2, 3, LENGTH))
    mask = np.random.default_rng(4).random((3, LENGTH)) < 0.6

    def both():
        return in_double(
            jax.jit(jax.value_and_grad(lambda m: 3 * objective.mean_loss(m, *data, mask, eps))), MODELS[model]
        )

    at_once = both()
    monkeypatch.setattr(objective, "_MOST_LOGITS", 1)
    for leaf, other in zip(jax.tree.leaves(at_once), jax.tree.leaves(both()), strict=True):
        np.testing.assert_allclose(leaf, other, rtol=1e-10, atol=1e-13)


@pytest.mark.slow
def test_smoothed_targets_are_those_of_optax():
    tokens, targets = np.random.default_rng(3).integers(V, size=(2, 3, LENGTH))
    mask, eps = np.ones((3, LENGTH), dtype=bool), 0.3
    with jax.enable_x64(True):
        logits = jax.jit(jax.vmap(MODELS[0]))(tokens)
        soft = optax.smooth_labels(jax.nn.one_hot(targets, V, dtype=logits.dtype), eps)
        expected = optax.softmax_cross_entropy(logits, soft).mean()
        for given_targets in (targets, jax.nn.one_hot(targets, V)):
            loss = jax.jit(lambda *data: objective.mean_loss(MODELS[0], *data, mask, eps))(tokens, given_targets)
            assert float(loss) == pytest.approx(float(expected), rel=1e-12)


# The Y/Z layer


def every_prefix(sequences):
    """Bags of the tokens before each position, its token as the query and the next as the target."""
    rows = [
        (row[i], row[i + 1], np.bincount(row[:i], minlength=V)) for row in sequences for i in range(1, len(row) - 1)
    ]
    query, target, counts = map(np.array, zip(*rows, strict=True))
    return Bags.from_dense(query, target, counts.astype(float), n_queries=V, vocab_size=V)


@pytest.fixture(scope="module")
def joined():
    rng = np.random.default_rng(8)
    text = rng.integers(V, size=(4, LENGTH + 1))
    mask = np.ones((4, LENGTH), dtype=bool)
    mask[:, 0] = False  # nothing before it to attend to
    sequences = deep.Sequences(text[:, :-1], text[:, 1:], mask)
    return sequences, every_prefix(text), Layer(rng.normal(size=(V, V)), rng.normal(size=(V, V)))


_slopes = jax.jit(jax.value_and_grad(objective.mean_loss))


def embeddings(rows):
    return np.linalg.qr(np.random.default_rng(5).normal(size=(rows, rows)))[0][:V]


@pytest.mark.parametrize("U", [None, embeddings(V), embeddings(V + 2)], ids=["one-hot", "square", "wide"])
def test_orthogonal_embeddings_give_the_gradient_of_the_layer(joined, U):
    sequences, bags, layer = joined
    slope = layer.gradient(bags)
    with jax.enable_x64(True):
        model = deep.from_layer(layer, U)
        data = (sequences.inputs, sequences.targets, sequences.mask)
        loss, slopes = _slopes(model, *data)
        U = np.eye(V) if U is None else U
        dZ, dY = (U @ np.asarray(block[0]) @ U.T for block in (slopes.blocks[0].merged, slopes.blocks[0].output))
    assert float(loss) == pytest.approx(layer.loss(bags), rel=1e-14)
    np.testing.assert_allclose(-dZ, slope.Z, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(-dY, slope.Y, rtol=1e-12, atol=1e-15)
    assert np.abs(slope.Z).max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    "optimizer, U, eps, tau",
    [
        ("sgd", embeddings(V + 2), 0.2, 0.5),
        ("adam", None, 0.0, 1.0),
    ],
)
def test_orthogonal_embeddings_follow_the_layer_through_training(joined, optimizer, U, eps, tau):
    """Adam, which does not commute with rotations, for one-hot embeddings only."""
    sequences, bags, layer = joined
    arguments = {"steps": 60, "optimizer": optimizer, "batch_size": None, "momentum": 0.9}
    layer = replace(layer, temperature=tau)
    kept = {"objective": Objective(label_smoothing=eps, temperature=tau)}
    run = sgd(bags, eta_y=0.1, eta_z=0.1, init=layer, length=None, record_every=20, **kept, **arguments)
    arguments |= {"learning_rate": 0.1, "record_every": 20, "dtype": "float64", "label_smoothing": eps}
    data = deep.train(deep.from_layer(layer, U), sequences, **arguments)
    end = deep.to_layer(deep.model_at(data))
    np.testing.assert_allclose(end.Z, run.final.Z, rtol=0, atol=1e-12)
    np.testing.assert_allclose(end.Y, run.final.expand().Y, rtol=0, atol=1e-12)
    np.testing.assert_allclose(data["batch_loss"].values[0, 0], run.dataset["batch_loss"], rtol=1e-12)
    np.testing.assert_allclose(data["loss"].values[0, 0], run.dataset["loss"], rtol=1e-12)
    assert np.abs(end.Z - layer.Z).max() > 0.05
    # The entropy and the maps that it records are those of the layer, position by position.
    share = end.attention(bags)
    entropy = -np.sum(share * np.log(np.where(share > 0, share, 1)), axis=1)
    tokens_apart = data["attention"].values[0, 0, -1, 0, 0, 0]
    gathered = np.zeros((LENGTH - 1, V))
    for position, token in enumerate(sequences.inputs[0]):
        gathered[:, token] += tokens_apart[1:, position]
    np.testing.assert_allclose(gathered, share[: LENGTH - 1], atol=1e-12)
    assert float(data["entropy"][0, 0, -1, 0, 0]) >= entropy.mean()  # a token that stands twice is split


def test_layers_with_more_parts_have_no_transformer():
    square = np.zeros((3, 3))
    with pytest.raises(ValueError, match="`layer` must have no parts beside Z and Y"):
        deep.from_layer(Layer(square, square, np.eye(3)))
    with pytest.raises(ValueError, match="`layer` must have square Z and Y, but got shapes"):
        deep.from_layer(Layer(square, np.zeros((3, 4))))
    with pytest.raises(ValueError, match="`embedding` must have orthonormal rows, but got rows whose"):
        deep.from_layer(Layer(square, square), np.ones((3, 4)))
    with pytest.raises(ValueError, match="`model` must have the architecture that `from_layer` gives"):
        deep.to_layer(MODELS[0])


# Data


@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 2**16))
@settings(max_examples=20)
def test_dyck_sequences_hold_the_language(k, D, seed):
    language = DyckLanguage(k, D)
    prefixes = language.sample_sequences(4, max_length=9, rng=seed)
    for first_layer in ("trained", "minimal"):
        drawn = deep.dyck_sequences(language, prefixes, first_layer=first_layer)
        exact = deep.dyck_sequences(language, prefixes, first_layer=first_layer, targets="exact", length=15)
        for row, prefix in enumerate(prefixes):
            assert drawn.mask[row].sum() == len(prefix) and exact.mask[row].sum() == len(prefix) + 1
            assert drawn.targets[row, : len(prefix)].tolist() == prefix.tolist()
            start, n = (language.start if first_layer == "minimal" else 2 * k), len(prefix)
            assert drawn.inputs[row, 0] == start
            if first_layer == "trained":
                assert exact.inputs[row, 1 : n + 1].tolist() == prefix.tolist()
            else:
                assert exact.inputs[row, : n + 1].tolist() == language.state_sequence(prefix).tolist()
            for i in range(n + 1):
                np.testing.assert_allclose(exact.targets[row, i], language.next_token(prefix[:i]), rtol=1e-6)


@pytest.mark.parametrize("k, D", [(2, 3), (3, 2)])
def test_insertions_are_the_nested_pairs_of_the_language(k, D):
    language = DyckLanguage(k, D)
    pairs = language.nested_pairs()
    listed = deep.dyck_insertions(language, first_layer="minimal")
    brackets = deep.dyck_insertions(language)
    chances = {}
    for row, size, weight in zip(listed.tokens, listed.lengths, listed.weights, strict=True):
        chances[tuple(sorted(row[:size].tolist()))] = weight
    expected = {}
    for i, weight in enumerate(pairs.weight):
        expected[tuple(pairs.token[pairs.indptr[i] : pairs.indptr[i + 1]].tolist())] = weight
    assert chances == pytest.approx(expected)
    for row, size in zip(brackets.tokens, brackets.lengths, strict=True):
        assert language.stack(row[:size]).size == 0


def test_an_insertion_stands_behind_the_first_token():
    made = objective.insert(jnp.array([9, 1, 2]), jnp.array([5, 6, 0, 0]), 2)
    assert made.tolist() == [9, 5, 6, 1, 2, 0, 0]


def test_contrast_is_the_mean_squared_difference_of_logits():
    rng = np.random.default_rng(0)
    model, inputs = MODELS[1], rng.integers(V, size=(2, 4))
    mask = np.array([[True, True, True, False], [True, True, False, False]])
    insertions, lengths = rng.integers(V, size=(2, 3)), np.array([3, 2])
    expected = 0.0
    for row in range(2):
        longer = np.concatenate([inputs[row, :1], insertions[row, : lengths[row]], inputs[row, 1:]])
        plain, inserted = (by_hand(model, sequence)[0] for sequence in (inputs[row], longer))
        gap = ((plain - inserted[lengths[row] :]) ** 2).mean(axis=1)
        expected += gap[mask[row]].sum() / mask.sum()
    loss = in_double(jax.jit(objective.contrast_loss), model, inputs, mask, insertions, lengths)
    assert float(loss) == pytest.approx(expected, rel=1e-9)


# Distributions that are not installed


def test_without_jax_everything_else_works_and_kinds_of_files_are_known():
    code = (
        "import sys\n"
        "sys.modules['jax'] = sys.modules['equinox'] = sys.modules['optax'] = None\n"
        "import dynamics, theory, yzflow.figures, yzflow_deep\n"
        "from dynamics.support import sealed\n"
        "from yzflow_deep.kinds import KINDS\n"
        "assert KINDS.items() <= sealed.kinds().items()\n"
        "try:\n"
        "    yzflow_deep.train\n"
        "except ImportError as error:\n"
        "    assert error.name in ('jax', 'equinox'), error\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
    )
    python(code)


def test_kinds_of_files_and_public_names_are_known_before_jax_is_imported():
    code = (
        "import sys\n"
        "import yzflow_deep\n"
        "from yzflow_deep.kinds import KINDS\n"
        "assert KINDS and 'train' in dir(yzflow_deep)\n"
        "assert not {'jax', 'equinox', 'optax', 'yzflow_bounded_dyck'} & set(sys.modules)\n"
        "yzflow_deep.train\n"
        "assert 'jax' in sys.modules and 'yzflow_bounded_dyck' not in sys.modules\n"
    )
    python(code)


@pytest.mark.parametrize("function", ["dyck_sequences", "dyck_insertions"])
def test_without_languages_the_message_names_their_distribution(function, monkeypatch):
    monkeypatch.setitem(sys.modules, "yzflow_bounded_dyck", None)
    given = {"dyck_sequences": (None, [[0, 1]]), "dyck_insertions": (None,)}[function]
    with pytest.raises(ImportError, match=r"yzflow-bounded-dyck: pip install -e papers/bounded_dyck$"):
        getattr(deep, function)(*given)


def test_what_is_public_can_be_pickled():
    model = Transformer(Architecture(V, width=WIDTH), 0)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.architecture == model.architecture
    np.testing.assert_array_equal(copy.embedding, model.embedding)
    for function in (deep.train, deep.load_training):
        assert pickle.loads(pickle.dumps(function)) is function
