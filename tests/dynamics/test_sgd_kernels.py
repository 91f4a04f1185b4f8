"""SGD in the groups of a mini-batch, in single precision, and where it diverges."""

import driving
import numpy as np
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numba import njit

from dynamics import Bags, DivergenceError, Layer, SequenceClasses, sgd
from dynamics._model import kernels
from dynamics.backend.modes import IN_PYTHON, PLAIN, X86

FULL = {"batch_size": None, "length": None, "momentum": 0.0}

# Groups: the sequences of one class in a mini-batch


def bags_of(groups, data):
    """The bags of a mini-batch one by one, without the tokens that were not drawn."""
    query, target, rows, weight = [], [], [], []
    for group in groups:
        for count, w in zip(group["count"].astype(float), group["weight"], strict=True):
            dense = np.zeros(data.n_tokens)
            dense[group["token"]] = count
            rows.append(dense)
            query.append(group["query"])
            target.append(group["target"])
            weight.append(float(w))
    weight = np.array(weight) / np.sum(weight)
    return Bags.from_dense(query, np.array(target), np.array(rows), weight, vocab_size=data.vocab_size)


@given(st.data(), st.booleans(), st.integers(2, 30), strategies.SEEDS)
def test_a_step_is_that_of_its_bags_one_by_one(draws, value, length, seed):
    """Matrix products over a group against the definition of the gradient, bag by bag, in plain NumPy."""
    data = draws.draw(strategies.bags())
    layer = draws.draw(strategies.layers(data, value=value)).expand()
    options = {"eta_y": 1.0, "eta_z": 1.0, "steps": 1, "batch_size": 12, "length": length, "seed": seed, "init": layer}
    batch = bags_of(driving.draw_batch(driving.start(data, **options)), data)
    trajectory = sgd(strategies.Population(data), momentum=0.0, **options)
    largest = max(1.0, *(np.abs(array).max() for array in reference.arrays(layer)))
    slopes = reference.complex_step_gradient(batch, reference.arrays(layer))
    for end, begin, slope in zip(reference.arrays(trajectory.final), reference.arrays(layer), slopes, strict=True):
        np.testing.assert_allclose(end, begin + slope, rtol=0, atol=1e-12 * largest**2)
    loss = reference.loss(batch, *reference.arrays(layer))
    np.testing.assert_allclose(trajectory.dataset["batch_loss"], loss, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("batch_size", [40, 9000])
def test_large_groups_are_taken_in_parts(batch_size, dtype):
    """9000 sequences of two classes go beyond what one matrix product takes: the same gradient, no bag lost."""
    classes = SequenceClasses([[0.7, 0.2, 0.1, 0], [0.1, 0.2, 0, 0.7]], [0, 1], vocab_size=40)
    data = classes.population()
    assert 2 * kernels._TOGETHER < 9000 * 3 * 64 and kernels._TOGETHER > 40 * 3 * 64
    layer = strategies.generic_layer(data)
    options = {"eta_y": 1.0, "eta_z": 1.0, "steps": 1, "batch_size": batch_size, "length": 9, "init": layer}
    batch = bags_of(driving.draw_batch(driving.start(classes, **options)), data).merge()
    trajectory = sgd(classes, momentum=0.0, dtype=dtype, **options)
    tolerance = 2e-6 if dtype == "float32" else 1e-14
    expected = [
        x + g
        for x, g in zip(reference.arrays(layer), reference.full_flow(batch, *reference.arrays(layer)), strict=True)
    ]
    for end, other in zip(reference.arrays(trajectory.final), expected, strict=True):
        np.testing.assert_allclose(end, other, rtol=0, atol=tolerance * np.abs(other).max())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_attention_of_a_bag_far_below_its_class(dtype):
    """A sequence without the token that all attention goes to: exp(z) of its tokens underflows against that one."""
    classes = SequenceClasses([[0.1, 0.45, 0.45], [0.2, 0.4, 0.4]], [0, 0], vocab_size=2)
    # Powers of two, so that steps of Z are resolved in single precision too.
    layer = Layer([[0.0, -2048.0, -2047.0]], [[0.5, -0.5], [1.0, 0.0], [0.0, 2.0]])
    options = {"eta_y": 1.0, "eta_z": 1.0, "steps": 1, "batch_size": 30, "length": 5, "init": layer, "seed": 1}
    groups = driving.draw_batch(driving.start(classes, **options))
    assert 0 < (groups[0]["count"][:, 0] == 0).sum() < len(groups[0]["count"])
    dZ, dY = reference.full_flow(bags_of(groups, classes.population()), *reference.arrays(layer))
    final = sgd(classes, momentum=0.0, dtype=dtype, **options).final
    np.testing.assert_allclose(final.Y - layer.Y, dY, rtol=0, atol=1e-6 if dtype == "float32" else 1e-14)
    assert np.abs(dZ).max() > 0.01
    np.testing.assert_allclose(final.Z - layer.Z, dZ, rtol=0, atol=2e-4 if dtype == "float32" else 1e-12)


# Single precision


@njit(error_model="numpy")  # not on disk, where what it calls could change unnoticed
def into(u, top, out):
    kernels._exponentials(u, top, out)


def exponentials(u, top):
    out = np.empty((1, u.size), u.dtype)
    into(u.reshape(1, -1), np.array([top], u.dtype), out)
    return out[0]


def test_float32_exponentials():
    """Relative error below 1e-7 over [-87, 0], on a fine grid and around the cuts between powers of two."""
    cuts = -np.log(2) * (np.arange(126) + 0.5)
    near = (cuts[cuts > -86.9, None] * (1 + np.linspace(-1e-6, 1e-6, 41))).ravel()
    u = np.concatenate([np.linspace(-87, 0, 400_001), near, [0.0, -1e-30, -1e-7]]).astype(np.float32)
    exact = np.exp(u.astype(np.float64))
    np.testing.assert_allclose(exponentials(u, 0).astype(np.float64), exact, rtol=1e-7)
    assert exponentials(u, 0)[-3] == 1


def test_float32_exponentials_at_the_ends():
    """Far below, a number too small to matter; nan, and infinity less infinity, stay nan and are not hidden."""
    u = np.array([0, -88, -1e4, -1e30, -np.inf, np.nan], dtype=np.float32)
    out = exponentials(u, 0)
    assert out[0] == 1 and (out[1:5] >= 0).all() and (out[1:5] < 2e-38).all() and np.isnan(out[5])
    assert np.isnan(exponentials(np.array([np.inf, 0], dtype=np.float32), np.inf)[0])


@njit(error_model="numpy")
def largest_into(u, top):
    kernels._largest(u, top)


@given(st.data(), st.sampled_from([np.float32, np.float64]))
def test_the_largest_of_a_row(draws, dtype):
    """By ranks of bits: infinities, subnormal numbers and zeros of either sign among them, whatever the length."""
    numbers = st.floats(width=8 * dtype().itemsize, allow_nan=False)
    u = draws.draw(arrays(dtype, st.tuples(st.integers(1, 3), st.integers(1, 70)), elements=numbers))
    top = np.empty(len(u), dtype)
    largest_into(u, top)
    np.testing.assert_array_equal(top, u.max(axis=1))


@pytest.mark.skipif(IN_PYTHON or PLAIN or not X86, reason="other ways and processors take them as they are")
def test_what_underflows_is_zero_in_gradients_alone():
    """A saturated softmax: velocities below the normal numbers, each a hundred cycles a step, are gone.

    The loss of a batch keeps its last bits, and the arithmetic of this thread is the person's again.
    """
    tiny = np.finfo(np.float32).tiny
    options = {"eta_y": 300.0, "eta_z": 3.0, "steps": 1200, "record_every": 1200, "init": "uniform", "seed": 0}
    run = driving.start(SequenceClasses.syn_medium(1), dtype="float32", **options)
    run.go(None)
    sizes = np.abs(run.memory.first.Y)
    assert (sizes == 0).any() and not ((sizes > 0) & (sizes < tiny)).any()
    assert 0 < run.losses[-1] < 1e-30
    assert np.array([tiny])[0] / 2 > 0


@given(st.data())
def test_float32_gradient_is_the_float64_one(draws):
    """One full-batch step in both precisions, from a layer that is exact in both."""
    bags = draws.draw(strategies.bags())
    layer = draws.draw(strategies.layers(bags))
    layer = Layer(*(None if a is None else a.astype("f4") for a in (layer.Z, layer.Y, layer.V)), layer.multiplicity)
    options = {"eta_y": 1.0, "eta_z": 1.0, "steps": 1, "init": layer, **FULL}
    single, double = (sgd(bags, dtype=dtype, **options) for dtype in ("float32", "float64"))
    largest = max(1.0, *(np.abs(array).max() for array in reference.arrays(layer)))
    # exp(z) and alpha err by eps times their arguments; Z's gradient has a factor Y.
    tolerance = 30 * np.finfo(np.float32).eps * largest**2
    for a, b in zip(reference.arrays(single.final), reference.arrays(double.final), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)
    np.testing.assert_allclose(single.dataset["batch_loss"], double.dataset["batch_loss"], rtol=0, atol=tolerance)


# Divergence

ENORMOUS = [
    {"eta_y": 1e308, "eta_z": 1e308},
    {"eta_y": 1.7e308, "eta_z": 1.0},
    {"eta_y": 1e307, "eta_z": 1e307, "optimizer": "adam"},
    {"eta_y": 3e38, "eta_z": 1.0, "dtype": "float32"},
]
# Kernels of Adam in float32, compiled apart for 4 s.
SINGLE_ADAM = {"eta_y": 3e38, "eta_z": 3e38, "dtype": "float32", "optimizer": "adam"}


@pytest.mark.parametrize(
    ("rates", "record_every"),
    [*zip(ENORMOUS, (1, 1, 1000, 3), strict=True), (ENORMOUS[0], 3), (ENORMOUS[0], 1000),
     pytest.param(SINGLE_ADAM, 3, marks=pytest.mark.slow)],
)  # fmt: skip
def test_divergence_says_where_and_what_to_do(rates, record_every):
    """And keeps what was recorded, all of it finite: no nan in a state is ever returned."""
    with pytest.raises(DivergenceError) as caught:
        sgd(SequenceClasses.syn_small(), steps=200, record_every=record_every, **rates)
    error = caught.value
    for part in (
        f"step {error.step} of 200",
        f"eta_y = {rates['eta_y']:g}",
        f"eta_z = {rates['eta_z']:g}",
        rates.get("optimizer", "sgd"),
        rates.get("dtype", "float64"),
        "smaller learning rates",
    ):
        assert part in str(error)
    dataset = error.trajectory.dataset
    assert 0 < error.step < 200
    recorded = np.arange(0, error.step + 1, record_every)
    times = dataset["time"].values
    assert len(times) in (len(recorded), len(recorded) - 1)  # less the last state, where that is not finite
    np.testing.assert_array_equal(times, recorded[: len(times)])
    for name in ("z", "y", "batch_loss"):
        assert np.isfinite(dataset[name]).all()
    assert dataset.sizes["step"] == times[-1]
    error.trajectory.final  # noqa: B018 (a layer refuses what is not finite)


@given(st.sampled_from(ENORMOUS), st.integers(1, 12), strategies.SEEDS)
def test_no_state_that_is_not_finite_is_returned(rates, steps, seed):
    """Stopping before, at or after the overflow: a finite trajectory, or the error."""
    try:
        trajectory = sgd(SequenceClasses.syn_small(), steps=steps, batch_size=4, seed=seed, **rates)
    except DivergenceError as error:
        trajectory = error.trajectory
    for name in ("z", "y", "batch_loss"):
        assert np.isfinite(trajectory.dataset[name]).all()


def test_large_rates_that_only_saturate_are_no_divergence():
    """The softmax saturates and the gradient vanishes: nothing overflows, whatever the padding does."""
    for options in ({"eta_y": 1e30, "dtype": "float32"}, {"eta_y": 1e10, "dtype": "float32"}, {"eta_y": 1e300}):
        trajectory = sgd(SequenceClasses.syn_small(), eta_z=1.0, steps=100, **options)
        assert trajectory.dataset["loss"].values[-1] < 1e-6
