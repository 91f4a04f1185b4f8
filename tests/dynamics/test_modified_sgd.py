"""SGD with the decoder gradient of Lemma 3, the algorithm that Theorems 1 and 5 are about."""

import numpy as np
import pytest
import reference
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import DivergenceError, Layer, Objective, SequenceClasses, sgd, sgd_many
from dynamics._model import kernels
from dynamics.fields import _kernels as decoder_kernels
from theory import decoder

ONE = {"batch_size": 1, "length": None, "momentum": 0.0, "decoder": "modified"}
FIXED = 1e-30  # a rate of Z at which exp(z) stays 1 to the last bit


def classes(k=3, m=9):
    """Two common tokens of unequal shares, a distinct one a class, two queries."""
    rng = np.random.default_rng(k)
    table = np.concatenate([rng.uniform(0.2, 1, (k, 2)), np.diag(rng.uniform(0.5, 1.5, k))], axis=1)
    return SequenceClasses(table / table.sum(axis=1, keepdims=True), np.arange(k) % 2, vocab_size=m)


class Weighted:
    """Bags with other weights, as far as the dense formulas of `reference` look at them."""

    def __init__(self, bags, weight):
        self.bags, self.weight = bags, weight

    def __len__(self):
        return len(self.bags)

    def __getattr__(self, name):
        return getattr(self.bags, name)


def steps_by_hand(bags, layer, shares, rates, momentum=0.0):
    """The layer after a step along Lemma 3 for each row of ``shares``, by dense matrices."""
    remaining = iter(shares)
    gradient = lambda parameters: reference.modified_flow(Weighted(bags, next(remaining)), *parameters)  # noqa: E731
    return reference.momentum_loop(gradient, reference.arrays(layer), rates, len(shares), momentum)


@settings(max_examples=13, deadline=None)
@given(data=strategies.sequence_classes(), seed=st.integers(0, 1000), batch_size=st.sampled_from([1, 2, 5]))
def test_steps_are_those_of_lemma_3_on_the_bags_drawn(data, seed, batch_size):
    bags = data.population()
    layer = strategies.generic_layer(bags, seed=seed, scale=0.5)
    options = ONE | {"batch_size": batch_size, "momentum": 0.5, "seed": seed}
    run = sgd(data, eta_y=0.3, eta_z=0.2, steps=4, init=layer, **options)
    visits = run.dataset["visits"].values
    np.testing.assert_allclose(visits.sum(axis=1), np.arange(5), rtol=1e-15)
    shares = np.diff(visits, axis=0)
    assert np.allclose(shares * batch_size, np.round(shares * batch_size))
    expected = steps_by_hand(bags, layer, shares, (0.2, 0.3), momentum=0.5)
    for ours, theirs in zip(reference.arrays(run.final), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("k", "m"), [(2, 2), (3, 9), (6, 1000)])
def test_with_features_that_stand_still_each_class_learns_by_its_own_visits_alone(k, m):
    """Lemma 5 for the algorithm itself: w_n = (M - 1) h*(N_n) zeta_n, whatever was drawn between."""
    data = classes(k, m)
    run = sgd(data, eta_y=0.7, eta_z=FIXED, steps=120, record_every=10, seed=2, **ONE)
    steps = decoder.h_steps(120, vocab_size=m, eta_y=0.7)
    features = Layer.zeros(data.population()).features(data.population())
    assert np.abs(np.linalg.inv(features @ features.T) - np.eye(k)).max() > 0.1  # E' is not small
    for Y, visits in zip(run.dataset["y"].values, run.dataset["visits"].values, strict=True):
        rows = features @ Y
        margins = m * steps[visits.astype(int)]
        expected = np.eye(k, Y.shape[1]) * margins[:, None] - margins[:, None] / m
        np.testing.assert_allclose(rows, expected, atol=1e-10)


def test_batches_are_those_of_the_full_decoder_and_records_change_nothing():
    data = classes()
    arguments = {"eta_y": 0.5, "eta_z": 0.1, "steps": 150, "seed": 11}
    run = sgd(data, **arguments, **ONE)
    other = sgd(data, **arguments, **ONE | {"decoder": "full"})
    assert run.dataset["batch_loss"].values[0] == other.dataset["batch_loss"].values[0]
    assert "visits" not in other.dataset
    # With rates that move nothing, the loss of a batch says which class it was.
    still = {"eta_y": 1e-200, "eta_z": 1e-200, "steps": 150, "seed": 11}
    layer = strategies.generic_layer(data.population())
    losses = [sgd(data, **still, init=layer, **ONE | {"decoder": name}).dataset["batch_loss"].values
              for name in ("full", "modified")]  # fmt: skip
    np.testing.assert_allclose(*losses, rtol=1e-14)
    assert np.unique(np.round(losses[0], 10)).size == 3
    sparse = sgd(data, **arguments, record_every=70, **ONE)
    np.testing.assert_array_equal(run.final.Y, sparse.final.Y)
    np.testing.assert_array_equal(run.final.Z, sparse.final.Z)
    np.testing.assert_array_equal(sparse.dataset["visits"].values, run.dataset["visits"].values[[0, 70, 140, 150]])
    (outcome,) = sgd_many([(data, arguments | ONE)])
    np.testing.assert_array_equal(outcome.layer.Y, run.final.Y)
    np.testing.assert_array_equal(outcome.visits, run.dataset["visits"].values[-1])


def test_features_depend_on_the_temperature_of_the_start():
    """Two queries tell two classes apart by their logits, unless these are divided by so much that nothing is left."""
    alike, logits = SequenceClasses([[0.5, 0.5], [0.5, 0.5]], [0, 1], vocab_size=4), np.diag([1.0, 1.0])
    for temperature, apart in ((2.0, True), (1e12, False)):
        start = Layer(temperature * logits if apart else logits, np.zeros((2, 4)), temperature=temperature)
        if apart:
            sgd(alike, eta_y=1.0, eta_z=1.0, steps=1, init=start, **ONE)
            continue
        with pytest.raises(ValueError, match="`data` must have linearly independent features f_n"):
            sgd(alike, eta_y=1.0, eta_z=1.0, steps=1, init=start, **ONE)


# Kernels of float32 are compiled apart, for 3 s.
in_both_precisions = pytest.mark.parametrize(
    ("optimizer", "dtype"),
    [("sgd", "float64"), ("adam", "float64"), pytest.param("sgd", "float32", marks=pytest.mark.slow)],
)


@in_both_precisions
@pytest.mark.parametrize(("common", "batch_size"), [(2, 1), (9, 3), (300, None)])
def test_steps_in_kernels_are_those_of_any_layer_to_the_last_bit(common, batch_size, optimizer, dtype):
    """A term that adds nothing takes the path of all layers, whose sums are made by other functions."""
    k = 4
    table = np.random.default_rng(7).uniform(0.2, 1, (k, common + k)) * np.concatenate(
        [np.ones((k, common)), np.eye(k)], axis=1
    )
    data = SequenceClasses(table / table.sum(axis=1, keepdims=True), np.arange(k) % 2, vocab_size=30)
    options = ONE | {"batch_size": batch_size, "optimizer": optimizer, "dtype": dtype, "seed": 2, "record_every": 50}
    options |= {"init": strategies.generic_layer(data.population(), seed=3, scale=0.2), "momentum": 0.0}
    if optimizer == "sgd":
        options["momentum"] = 0.5
    runs = [
        sgd(data, eta_y=0.05, eta_z=0.04, steps=130, objective=Objective(terms=terms), **options).dataset
        for terms in ((), (lambda weights: {},))
    ]
    for name in ("z", "y", "visits", "batch_loss"):
        np.testing.assert_array_equal(runs[0][name].values, runs[1][name].values)
    assert np.abs(runs[0]["y"].values[-1] - runs[0]["y"].values[0]).max() > 0.01


@pytest.mark.parametrize("n", [1, 8, 9, 17, 129, 138, 1000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_norms_of_features_are_added_in_the_order_of_numpy(n, dtype):
    """Fixed seeds keep their bits, which numpy's sums made before."""
    count = np.random.default_rng(n).uniform(0.1, 3, n + 2).astype(dtype)
    indptr, token = np.array([0, n, n + 2]), np.concatenate([np.arange(n), np.arange(2)])
    query, Z = np.zeros(2, dtype=np.int64), np.random.default_rng(1).normal(size=(1, max(n, 2))).astype(dtype)
    attention, found = np.empty((2, n + 2), dtype)
    read_only = [array.view() for array in (query, indptr, token, count, Z)]
    for array in read_only:
        array.flags.writeable = False
    kernels.attention(*read_only, attention)
    decoder_kernels.unit_features(*read_only, found)
    norms = np.sqrt(np.add.reduceat(attention**2, indptr[:-1]))
    np.testing.assert_array_equal(found, attention / np.repeat(norms, [n, 2]))


@in_both_precisions
def test_runs_side_by_side_are_those_alone_to_the_last_bit(optimizer, dtype):
    data, others = classes(6, 40), classes(3, 9)
    options = ONE | {"eta_y": 0.4, "eta_z": 0.3, "steps": 130, "batch_size": 3, "optimizer": optimizer, "dtype": dtype}
    if optimizer == "sgd":
        options["momentum"] = 0.5
    tasks = [(data, options | {"seed": seed}) for seed in range(5)]
    tasks += [(data, options | {"seed": 1, "eta_z": 0.2}), (others, options | {"seed": 1}), *tasks[:70]]
    tasks += [(data, options | {"seed": seed, "record_every": 40}) for seed in (7, 8)]
    for outcome, (own, arguments) in zip(sgd_many(tasks, threads=1), tasks, strict=True):
        alone = sgd(own, **arguments)
        last = alone.dataset.isel(time=-1)
        for ours, theirs in (
            (outcome.layer.Z, last["z"]),
            (outcome.layer.Y, last["y"]),
            (outcome.visits, last["visits"]),
        ):
            np.testing.assert_array_equal(ours, theirs.values)
        np.testing.assert_array_equal(outcome.batch_loss, alone.dataset["batch_loss"].values)


def test_a_run_that_diverges_does_so_as_it_does_alone():
    """The first of them in order is told, though another one diverges in an earlier step."""
    data = classes()
    options = ONE | {"eta_y": 1e305, "eta_z": 1.0, "steps": 200, "momentum": 0.9}
    options["init"] = strategies.generic_layer(data.population(), seed=1)
    steps = {}
    for seed in range(4):
        try:
            sgd(data, **options, seed=seed)
        except DivergenceError as error:
            steps[seed] = error.step
    order = [seed for seed in range(4) if seed not in steps] + sorted(steps, key=steps.get, reverse=True)
    assert len(steps) < 4 and len(set(steps.values())) > 1
    with pytest.raises(DivergenceError) as caught:
        sgd_many([(data, options | {"seed": seed}) for seed in order], threads=1)
    assert caught.value.step == max(steps.values())
