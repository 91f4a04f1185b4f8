"""SGD and Adam: single steps and loops against plain NumPy, convergence to the flow, invariants, seeds, divergence.

Statistical tests have fixed seeds; each states the probability with which it would fail by chance at new ones.
"""

import driving
import numpy as np
import pytest
import reference
import scipy.special
import scipy.stats
import strategies
from hypothesis import given
from hypothesis import strategies as st

from dynamics import Bags, DivergenceError, Layer, Limits, SequenceClasses, sgd, sgd_many

FULL = {"batch_size": None, "length": None, "momentum": 0.0}
rates = st.floats(0.01, 2)
# Adam in float32, compiled apart for 4 s, is among the slow tests.
OPTIMIZERS = [("sgd", "float64"), ("adam", "float64"), ("sgd", "float32")]


def small_classes(vocab_size=9, **options):
    """Two queries, a common token of all, one of two classes, unequal probabilities."""
    table = [[0.3, 0.2, 0.5, 0, 0], [0.2, 0.3, 0, 0.5, 0], [0.4, 0, 0, 0, 0.6]]
    return SequenceClasses(table, [2, 4, 2], vocab_size=vocab_size, **options)


def assert_equal_arrays(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


# Steps


@given(st.data(), rates, rates)
def test_full_batch_step_is_an_euler_step_of_the_flow(draws, eta_y, eta_z):
    """State + eta * derivative, with the derivative of Lemma 1 in dense matrices and with that of `Layer.gradient`."""
    bags = draws.draw(strategies.bags())
    layer = draws.draw(strategies.layers(bags))
    final = sgd(bags, eta_y=eta_y, eta_z=eta_z, steps=1, init=layer, **FULL).final
    gradient = layer.gradient(bags)
    assert reference.scaled_difference(final.Z, layer.Z + eta_z * gradient.Z) < 1e-14
    assert reference.scaled_difference(final.Y, layer.Y + eta_y * gradient.Y) < 1e-14
    whole = layer.expand()
    dZ, dY = reference.full_flow(bags, whole.Z, whole.Y)
    scale = max(1.0, np.abs(whole.Y).max())  # g = Y r cancels to this accuracy
    assert np.abs(final.Z - layer.Z - eta_z * dZ).max() < 1e-13 * eta_z * scale + 1e-15 * np.abs(layer.Z).max()
    assert np.abs(final.expand().Y - whole.Y - eta_y * dY).max() < 1e-13 * eta_y * scale + 1e-15 * scale


def some_bags(soft):
    rng = np.random.default_rng(3)
    target = rng.dirichlet(np.ones(3), 4) if soft else [0, 2, 1, 2]
    return Bags.from_dense([0, 1, 0, 1], target, rng.exponential(size=(4, 4)), rng.dirichlet(np.ones(4)), vocab_size=4)


def test_value_matrix_takes_the_rate_of_y_by_default():
    data = some_bags(soft=True)
    layer = strategies.generic_layer(data, value=True)
    run = {"eta_y": 0.3, "eta_z": 0.1, "steps": 3, "init": layer, **FULL}
    assert_equal_arrays(reference.arrays(sgd(data, **run).final), reference.arrays(sgd(data, eta_v=0.3, **run).final))
    assert not np.array_equal(sgd(data, **run).final.V, sgd(data, eta_v=0.1, **run).final.V)
    np.testing.assert_array_equal(sgd(data, eta_v=0, **run).final.V, layer.V)


# Convergence to the flow


TINY = SequenceClasses([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]], [0, 1], class_weights=[0.4, 0.6], vocab_size=4)


# Invariants


@given(st.data(), st.sampled_from([None, 3]), st.sampled_from([0.0, 0.9]))
def test_sgd_conserves_row_sums(draws, batch_size, momentum):
    """Lemma 1 sums to zero over next tokens and over tokens, for any data, batch and momentum."""
    bags = draws.draw(strategies.bags())
    layer = draws.draw(strategies.layers(bags))
    length = draws.draw(st.sampled_from([None, 2, 7])) if batch_size else None
    options = {"batch_size": batch_size, "length": length, "momentum": momentum}
    trajectory = sgd(strategies.Population(bags), eta_y=0.3, eta_z=0.2, steps=20, init=layer, **options)
    for name, sums in trajectory.row_sums().items():
        moved = np.abs(trajectory.dataset[name]).sum().item() / trajectory.dataset.sizes["time"] + 1
        assert np.abs(sums - sums.isel(time=0)).max() < 1e-13 * moved * 20


@given(st.data(), st.sampled_from(OPTIMIZERS), st.sampled_from([None, 5]))
def test_what_no_bag_reaches_stays_exactly_equal(draws, kind, batch_size):
    """Rows of Y of tokens without a bag, and logits of tokens that never meet that query."""
    (optimizer, dtype), bags = kind, draws.draw(strategies.bags())
    layer = draws.draw(strategies.layers(bags))
    options = {"batch_size": batch_size, "length": 6 if batch_size else None, "optimizer": optimizer, "dtype": dtype}
    final = sgd(strategies.Population(bags), eta_y=0.3, eta_z=0.2, steps=5, init=layer, **options).final
    seen = reference.dense_counts(bags) * bags.weight[:, None] > 0
    together = np.array([seen[bags.query == q].any(axis=0) for q in range(bags.n_queries)])
    start = [array.astype(dtype) for array in reference.arrays(layer)]
    np.testing.assert_array_equal(final.Z[~together], start[0][~together])
    np.testing.assert_array_equal(final.Y[~seen.any(axis=0)], start[1][~seen.any(axis=0)])


@pytest.mark.parametrize(("vocab_size", "optimizer"), [(3, "sgd"), (9, "adam"), (40, "adam"), (100, "sgd")])
def test_compressed_start_is_the_full_one(vocab_size, optimizer):
    """One column for all unseen next tokens, with its padding, against a column for each (M of 32 k and others)."""
    classes = small_classes(vocab_size)
    options = {"eta_y": 0.5, "eta_z": 0.4, "steps": 30, "batch_size": 8, "length": 10, "seed": 3}
    short = sgd(classes, optimizer=optimizer, **options)
    whole = Layer.zeros(classes.population()).expand()
    full = sgd(classes, optimizer=optimizer, init=whole, **options)
    assert short.dataset.sizes["column"] == min(4, vocab_size)
    assert full.dataset.sizes["column"] == vocab_size
    expanded = short.final.expand()
    np.testing.assert_allclose(expanded.Z, full.final.Z, rtol=0, atol=1e-11)
    np.testing.assert_allclose(expanded.Y, full.final.Y, rtol=0, atol=1e-11)
    np.testing.assert_allclose(short.dataset["batch_loss"], full.dataset["batch_loss"], rtol=0, atol=1e-11)
    assert np.abs(full.final.Z).max() > 0.1


@pytest.mark.parametrize(("shift", "dtype"), [(-3000.0, "float64"), (100.0, "float64"), (3000.0, "float32")])
def test_a_constant_added_to_the_logits_changes_nothing(shift, dtype):
    """Softmax is blind to it. The columns that pad Y must not show either, whatever lies between them and the rest."""
    data = some_bags(soft=False)
    layer = strategies.generic_layer(data)
    moved = Layer(layer.Z, layer.Y + shift)
    options = {"eta_y": 0.5, "eta_z": 0.5, "steps": 5, "batch_size": 4, "length": 8, "dtype": dtype}
    one, other = (sgd(data, init=init, **options) for init in (layer, moved))
    tolerance = abs(shift) * 100 * np.finfo(dtype).eps
    for name in ("batch_loss", "loss", "z"):
        np.testing.assert_allclose(other.dataset[name], one.dataset[name], rtol=0, atol=tolerance)
    np.testing.assert_allclose(other.dataset["y"] - shift, one.dataset["y"], rtol=0, atol=tolerance)


def test_batch_loss_is_that_of_the_positional_model():
    """With a bias: the loss of the first mini-batch from its sequences token by token, attention over positions."""
    bias, length, size = 0.4, 7, 16
    options = {"eta_y": 1.0, "eta_z": 1.0, "steps": 1, "batch_size": size, "length": length, "seed": 5}
    layer = strategies.generic_layer(TINY.population())
    trajectory = sgd(TINY, position_bias=bias, init=layer, **options)
    # With weights 2^-j of the positions, the counts of the same sequences are binary numbers that spell them out.
    run = driving.start(TINY, **{**options, "position_bias": np.log(2)})
    losses = []
    for group in driving.draw_batch(run):
        query, target = group["query"], group["target"]
        for count in group["count"]:
            sequence = np.zeros(length - 1, dtype=int)
            for token, total in zip(group["token"], count, strict=True):
                digits = int(np.rint(total * 2 ** (length - 2)))
                sequence[[(digits >> (length - 2 - j)) & 1 == 1 for j in range(length - 1)]] = token
            score = np.exp(layer.Z[query, sequence] - bias * np.arange(length - 1))
            feature = reference.normalise(np.bincount(sequence, score, minlength=3))
            losses.append(-reference.log_softmax(layer.Y.T @ feature)[target])
    assert len(losses) == size
    assert trajectory.dataset["batch_loss"].values == pytest.approx([np.mean(losses)], rel=1e-12)


# Seeds, records and threads


def state(trajectory):
    return [trajectory.dataset[name].values for name in ("z", "y", "batch_loss")]


@pytest.mark.parametrize("init", ["zero", "uniform"])
def test_same_seed_same_result(init):
    """Bit for bit; an int and its SeedSequence agree, a SeedSequence given twice too, even after it spawned."""
    classes = small_classes()
    run = lambda seed: state(sgd(classes, eta_y=1, eta_z=1, steps=20, batch_size=4, init=init, seed=seed))  # noqa: E731
    sequence = np.random.SeedSequence(7)
    first = run(7)
    assert_equal_arrays(run(7), first)
    assert_equal_arrays(run(sequence), first)
    sequence.spawn(3)
    assert_equal_arrays(run(sequence), first)
    child = np.random.SeedSequence(7).spawn(1)[0]
    for other in (8, child):
        assert not np.array_equal(run(other)[0], first[0])
        assert not np.array_equal(run(other)[2], first[2])
    assert_equal_arrays(run(child), run(np.random.SeedSequence(7).spawn(1)[0]))


def test_uniform_start_is_uniform():
    """Entries in +-1/sqrt(M), by Kolmogorov-Smirnov over 30 seeds, false alarm 1e-5; it differs between seeds."""
    classes = SequenceClasses.syn_medium(1)
    bound = classes.vocab_size**-0.5
    options = {"eta_y": 1, "eta_z": 1, "steps": 1, "batch_size": 1, "init": "uniform"}
    runs = [sgd(classes, **options, seed=seed).dataset for seed in range(30)]
    for name in ("z", "y"):
        values = np.ravel([run[name].values[0] for run in runs])
        assert np.abs(values).max() <= bound
        assert scipy.stats.kstest(values, "uniform", args=(-bound, 2 * bound)).pvalue > 1e-5
        assert len(np.unique(values)) == values.size


def many_runs():
    """Runs of all kinds, on two data sets and layers."""
    classes, bags = small_classes(), some_bags(soft=True)
    kinds = [
        (classes, {"batch_size": 4, "length": 9}),
        (bags, {"optimizer": "adam", "init": "uniform"}),
        (classes, {"batch_size": 3, "length": 4, "position_bias": 0.2, "seed": 5}),
        (bags, {"batch_size": 2, "length": None, "init": strategies.generic_layer(bags, value=True), "momentum": 0.5}),
        (classes, {"batch_size": None, "length": None, "dtype": "float32"}),
    ]
    common = {"eta_y": 0.4, "eta_z": 0.3}
    return [(data, {**common, "steps": 20 + i, **options}) for i, (data, options) in enumerate(kinds)]


@pytest.mark.parametrize("threads", [1, 4])
def test_many_runs_are_those_of_sgd(threads):
    """Bit for bit, whatever the number of threads, and in the order of the list."""
    runs = many_runs()
    for outcome, (data, arguments) in zip(sgd_many(runs, threads=threads), runs, strict=True):
        alone = sgd(data, **arguments)
        assert_equal_arrays(
            [array.astype(float) for array in reference.arrays(outcome.layer)], reference.arrays(alone.final)
        )
        np.testing.assert_array_equal(outcome.layer.multiplicity, alone.final.multiplicity)
        np.testing.assert_array_equal(outcome.batch_loss, alone.dataset["batch_loss"])
        assert outcome.layer.Z.dtype == arguments.get("dtype", "float64")


def test_many_runs_do_not_depend_on_what_else_is_in_the_list():
    runs = many_runs()
    keep = lambda outcome: (outcome.layer.Z.tobytes(), outcome.layer.Y.tobytes(), outcome.batch_loss.tobytes())  # noqa: E731
    together = sgd_many(runs * 4, observe=keep, threads=4)
    assert together == sgd_many(runs, observe=keep, threads=1) * 4
    assert sgd_many(runs[::-1], observe=keep, threads=2) == together[: len(runs)][::-1]
    assert sgd_many(runs[1:2], observe=keep) == together[1:2]
    assert sgd_many([]) == []


def test_many_runs_pass_on_what_a_run_raises():
    runs = many_runs()
    done = []
    with pytest.raises(ValueError, match="`eta_y` must be positive, but got -1"):
        sgd_many([*runs, (runs[0][0], {**runs[0][1], "eta_y": -1.0})], observe=done.append, threads=1)
    assert not done  # each is checked before the first runs
    data, diverging = runs[0][0], {**runs[0][1], "eta_y": 1e308, "eta_z": 1e308}
    for own in ({}, {"init": "uniform"}, {"record_every": 1}):
        with pytest.raises(DivergenceError) as alone:
            sgd(data, **{"record_every": diverging["steps"]} | diverging | own)
        with pytest.raises(DivergenceError) as among:
            sgd_many([*runs, (data, diverging | own)])
        assert among.value.trajectory.dataset.identical(alone.value.trajectory.dataset)


@pytest.mark.parametrize("options", [{"batch_size": None, "length": None}, {"batch_size": 8, "length": 2**24}])
def test_a_call_of_the_kernels_is_short_enough_for_ctrl_c(options):
    """At most 2^28 multiplications or tokens drawn beyond the first step: 64 steps would be many times that."""
    rng = np.random.default_rng(0)
    classes = SequenceClasses(rng.dirichlet(np.ones(300), size=400), np.zeros(400, dtype=int), vocab_size=400)
    feed = driving.start(classes, steps=64, record_every=64, **options).feed
    a_step = 400 * 300 * 400 if options["batch_size"] is None else 8 * 2**24
    assert 1 <= feed.most <= 1 + 2**28 / a_step < 8


@pytest.mark.parametrize("options", [{"batch_size": None, "length": None}, {"batch_size": 5, "length": 9}])
def test_the_length_of_a_call_changes_no_bit(options):
    runs = []
    for work in (2**28, 1):
        with Limits(work=work):
            runs.append(sgd(small_classes(), eta_y=1.0, eta_z=2.0, steps=20, record_every=20, seed=3, **options))
            assert (driving.start(small_classes(), steps=20, record_every=20, **options).feed.most == 1) is (work == 1)
    driving.assert_same_bits(*(run.dataset for run in runs))


@pytest.mark.parametrize("steps, record_every", [(203, 7), (203, 150), (203, 5000), (128, 64), (12, 1), (1, 3)])
def test_records(steps, record_every):
    """First and last state always; what is recorded and how the loop is cut (each 64 steps) changes no state."""
    classes = small_classes()
    options = {"eta_y": 0.1, "eta_z": 0.1, "steps": steps, "batch_size": 2, "length": 4}
    trajectory = sgd(classes, record_every=record_every, **options)
    every = sgd(classes, record_every=1, **options)
    times = trajectory.dataset["time"].values
    expected = [*range(0, steps, record_every), steps]
    np.testing.assert_array_equal(times, expected)
    np.testing.assert_array_equal(every.dataset["time"], np.arange(steps + 1))
    for name in ("z", "y", "loss", "attention"):
        np.testing.assert_array_equal(trajectory.dataset[name], every.dataset[name].sel(time=times))
    assert trajectory.dataset["batch_loss"].shape == (steps,)
    np.testing.assert_array_equal(trajectory.dataset["batch_loss"], every.dataset["batch_loss"])
    assert trajectory.dataset["z"].values[0].any() == 0 and trajectory.dataset["y"].values[-1].any()


def test_adam_counts_its_steps_through_all_calls():
    """Bias correction after 64 steps, where the compiled loop is entered again, still is that of the textbook."""
    data = some_bags(soft=True)
    layer = strategies.generic_layer(data)
    options = {"eta_y": 1e-3, "eta_z": 2e-3, "steps": 150, "optimizer": "adam", "init": layer, **FULL}
    final = sgd(data, record_every=90, **options).final
    expected = reference.adam_loop(lambda p: reference.lemma1(data, p), reference.arrays(layer), (2e-3, 1e-3), 150)
    for ours, theirs in zip(reference.arrays(final), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)


def test_losses_and_labels_of_a_trajectory():
    """`loss` is that of the population at each state, `batch_loss` equals it for full batches, before each step."""
    classes = small_classes()
    trajectory = sgd(classes, eta_y=0.5, eta_z=0.5, steps=9, **FULL)
    for i in range(10):
        at = trajectory.dataset.isel(time=i)
        Y = np.repeat(at["y"].values, at["multiplicity"].values, axis=1)
        expected = reference.loss(classes.population(), at["z"].values, Y)
        assert at["loss"].item() == pytest.approx(expected, rel=1e-12)
        if i < 9:
            assert trajectory.dataset["batch_loss"].values[i] == pytest.approx(expected, rel=1e-12)
    assert trajectory.dataset["loss"].values[0] == pytest.approx(np.log(9), rel=1e-14)
    np.testing.assert_array_equal(trajectory.dataset["query"], [2, 4])
    assert trajectory.parameters["batch_size"] is None and trajectory.parameters["eta_y"] == 0.5
    assert trajectory.dataset.attrs["simulator"] == "sgd"


def test_progress_changes_nothing(capsys):
    options = {"eta_y": 0.5, "eta_z": 0.5, "steps": 9}
    assert_equal_arrays(state(sgd(small_classes(), progress=True, **options)), state(sgd(small_classes(), **options)))
    assert capsys.readouterr().out == ""
