"""Changes that must not matter: names and order of tokens, bags and classes, units and widths, copies and files."""

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import SEEDS, bags, layers, sequence_classes

from dynamics import Bags, Layer, SequenceClasses, sgd

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
