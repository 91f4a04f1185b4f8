"""Changes that must not matter: names and order of tokens, bags and classes, units and widths, copies and files."""

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import SEEDS, bags, layers, sequence_classes

from dynamics import Bags, Layer, SequenceClasses, TextCorpus, sgd
from theory.scan_and_snap import early

INTEGERS = st.sampled_from([np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
RATES = {"eta_y": 1.0, "eta_z": 1.0}


@st.composite
def problems(draw, **options):
    """Bags, a layer that fits them, and a generator."""
    data = draw(bags(**options))
    return data, draw(layers(data, compressed=False)), np.random.default_rng(draw(SEEDS))


def rebuilt(data, *, order=None, rename=None, widths=(np.int64, np.float64), unit=1.0):
    """The same bags in another order, with tokens of other numbers, in other types and in another unit."""
    order = np.arange(len(data)) if order is None else order
    rename = np.arange(data.n_tokens) if rename is None else rename
    whole, real = widths
    query, target, indptr, token, count, weight = [], [], [0], [], [], []
    for b in order:
        at = slice(data.indptr[b], data.indptr[b + 1])
        place = np.argsort(rename[data.token[at]])
        token.extend(rename[data.token[at]][place])
        count.extend(unit * data.count[at][place])
        indptr.append(len(token))
        query.append(data.query[b])
        target.append(data.target[b])
        weight.append(data.weight[b])
    target = np.array(target, dtype=whole) if data.hard else np.array(target)
    arrays = (np.array(query, dtype=whole), target, np.array(indptr, dtype=whole), np.array(token, dtype=whole))
    return Bags(*arrays, np.array(count, dtype=real), weight, **data.sizes)


def close(a, b, scale=1.0):
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11 * scale)


@given(problems())
def test_the_order_of_bags_permutes_what_is_said_of_them(problem):
    data, layer, rng = problem
    order = rng.permutation(len(data))
    other = rebuilt(data, order=order)
    np.testing.assert_array_equal(layer.attention(other), layer.attention(data)[order])
    close(layer.predict(other), layer.predict(data)[order])
    close(layer.loss(other), layer.loss(data))
    close(layer.gradient(other).Z, layer.gradient(data).Z)


@given(problems())
def test_tokens_may_have_other_numbers(problem):
    data, layer, rng = problem
    rename = rng.permutation(data.n_tokens)
    other = rebuilt(data, rename=rename)
    Z, Y = np.empty_like(layer.Z), np.empty_like(layer.Y)
    Z[:, rename], Y[rename] = layer.Z, layer.Y
    renamed = Layer(Z, Y)
    close(renamed.attention(other)[:, rename], layer.attention(data))
    close(renamed.loss(other), layer.loss(data))
    close(renamed.gradient(other).Z[:, rename], layer.gradient(data).Z)
    close(renamed.gradient(other).Y[rename], layer.gradient(data).Y)


@given(problems(soft=False))
def test_next_tokens_and_queries_may_have_other_numbers(problem):
    data, layer, rng = problem
    names, rows = rng.permutation(data.vocab_size), rng.permutation(data.n_queries)
    other = Bags(rows[data.query], names[data.target], data.indptr, data.token, data.count, data.weight, **data.sizes)
    Z, Y = np.empty_like(layer.Z), np.empty_like(layer.Y)
    Z[rows], Y[:, names] = layer.Z, layer.Y
    close(Layer(Z, Y).loss(other), layer.loss(data))
    close(Layer(Z, Y).gradient(other).Y[:, names], layer.gradient(data).Y)


@given(problems())
def test_a_bag_twice_is_a_bag_of_twice_the_weight(problem):
    data, layer, _ = problem
    twice = Bags.concatenate([data, data])
    assert len(twice) == 2 * len(data)
    close(layer.loss(twice), layer.loss(data))
    close(layer.gradient(twice).Z, layer.gradient(data).Z)
    merged = twice.merge()
    assert len(merged) == len(data.merge())
    close(merged.weight, data.merge().weight)
    close(layer.loss(merged), layer.loss(data))
    if data.hard:
        close(early.initial_drift(twice).toarray(), early.initial_drift(data).toarray())


@given(problems(), INTEGERS, st.sampled_from([np.float32, np.float64, np.longdouble]))
def test_widths_of_types_do_not_matter(problem, whole, real):
    data, layer, _ = problem
    data = rebuilt(data, widths=(np.int64, real))  # with counts that the width holds
    other = rebuilt(data, widths=(whole, real))
    for name in ("query", "target", "indptr", "token", "count", "weight"):
        found = getattr(other, name)
        assert found.dtype == getattr(data, name).dtype
        np.testing.assert_array_equal(found, getattr(data, name))
    assert layer.loss(other) == layer.loss(data)


@given(problems(), st.sampled_from([1e-300, 1e-60, 1e-9, 7.0, 1e9, 1e39, 1e300]), st.sampled_from(["f4", "f8"]))
def test_the_unit_of_counts_does_not_matter(problem, unit, dtype):
    data, layer, _ = problem
    layer = Layer(layer.Z.astype(dtype), layer.Y.astype(dtype))
    other = rebuilt(data, unit=unit)
    tolerance = 1e-5 if dtype == "f4" else 1e-11
    np.testing.assert_allclose(layer.attention(other), layer.attention(data), atol=tolerance)
    np.testing.assert_allclose(layer.loss(other), layer.loss(data), rtol=tolerance, atol=tolerance)
    slopes = layer.gradient(other).Z, layer.gradient(data).Z
    np.testing.assert_allclose(*slopes, atol=tolerance * max(1.0, np.abs(layer.Y).max()))


@given(sequence_classes(), st.sampled_from(["f4", "f8"]), INTEGERS, SEEDS)
def test_training_does_not_see_how_data_was_given(classes, real, whole, seed):
    table = classes.probabilities.toarray()
    if not np.array_equal(table, table.astype(real)):
        real = "f8"  # rows of narrower numbers would not sum to one
    again = SequenceClasses(
        table.astype(real),
        classes.query.astype(whole),
        vocab_size=classes.vocab_size,
        class_weights=classes.class_weights,
    )
    options = RATES | {"steps": 4, "batch_size": 4, "length": 6, "seed": seed % 1000}
    ends = [sgd(d, **options).final for d in (classes, again, pickle.loads(pickle.dumps(classes)))]
    for end in ends[1:]:
        np.testing.assert_array_equal(end.Z, ends[0].Z)
        np.testing.assert_array_equal(end.Y, ends[0].Y)


@given(st.lists(st.sampled_from("abc"), min_size=6, max_size=30), st.integers(2, 4))
def test_words_may_have_other_names(words, length):
    corpus = TextCorpus([" ".join(words)])
    other = TextCorpus([" ".join("xyz"["abc".index(word)] for word in words)], vocabulary=None)
    plain, renamed = corpus.windows(length), other.windows(length)
    # Equally frequent words are numbered by their letters, whose order is kept.
    np.testing.assert_array_equal(plain.token, renamed.token)
    np.testing.assert_array_equal(plain.target, renamed.target)
    made = pickle.loads(pickle.dumps(corpus)).windows(length)
    np.testing.assert_array_equal(made.count, plain.count)
