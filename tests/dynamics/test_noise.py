"""The covariance of a mini-batch gradient: exact sums over all sequences, complex steps, limits, and SGD itself."""

import math

import numpy as np
import pytest
import reference
import scipy.stats
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import Objective, SequenceClasses, gradient_noise, linear_noise, sgd, sgd_many

# One token that both classes share, two queries, weights that differ.
CLASSES = SequenceClasses([[0.3, 0.7, 0], [0.4, 0, 0.6]], [0, 1], vocab_size=5, class_weights=[0.4, 0.6])
LAYER = strategies.generic_layer(CLASSES.population(), scale=0.7)


def gradient_of(layer, bags, b, objective=None):
    """The gradient of one bag alone, as a vector: one step of SGD on it with learning rates of one."""
    one = bags._take(np.array([b]), np.ones(1))
    own = {"eta_y": 1.0, "eta_z": 1.0, "steps": 1, "batch_size": None, "length": None, "momentum": 0.0}
    end = sgd(one, **own, init=layer, objective=objective).final
    moved = [(after - before).ravel() for after, before in ((end.Z, layer.Z), (end.Y, layer.Y))]
    return np.concatenate(moved)


def moments(layer, bags, objective=None):
    """Mean and covariance over bags by their weights, one bag after the other."""
    each = np.array([gradient_of(layer, bags, b, objective) for b in range(len(bags))])
    mean = bags.weight @ each
    return mean, (each - mean).T @ (bags.weight[:, None] * (each - mean))


def test_all_sequences_are_all_with_their_chances():
    bags = CLASSES.all_sequences(length=4)
    assert len(bags) == 2 * 4 and bags.weight.sum() == pytest.approx(1, abs=1e-15)
    counts = reference.dense_counts(bags)
    np.testing.assert_array_equal(counts.sum(axis=1), 3)
    for count, target, weight in zip(counts, bags.target, bags.weight, strict=True):
        p = CLASSES.probabilities[[target]].toarray()[0]
        expected = math.factorial(3) * np.prod(p**count / [math.factorial(int(n)) for n in count])
        assert weight == pytest.approx(CLASSES.class_weights[target] * expected, rel=1e-13)
    assert len({(*count, target) for count, target in zip(counts, bags.target, strict=True)}) == len(bags)
    single = SequenceClasses([[0.5, 0.5], [0, 1.0]], [0, 0]).all_sequences(length=3)
    np.testing.assert_array_equal(reference.dense_counts(single)[-1], [0, 2])
    np.testing.assert_allclose(single.weight, [0.125, 0.25, 0.125, 0.5])
    sampled = CLASSES.sample(40_000, length=4, rng=0).merge()
    # A false alarm once in 1e6: five standard deviations of the most frequent bag.
    assert sampled.weight.max() == pytest.approx(bags.weight.max(), abs=5 * np.sqrt(0.25 / 40_000))


@pytest.mark.parametrize("batch_size", [1, 7])
@pytest.mark.parametrize("objective", [None, Objective(label_smoothing=0.2, temperature=2.0)])
def test_of_bags_it_is_the_covariance_over_them(batch_size, objective):
    bags = CLASSES.all_sequences(length=5)
    noise = gradient_noise(bags, LAYER, batch_size=batch_size, length=5, objective=objective)
    mean, covariance = moments(LAYER, bags, objective)
    np.testing.assert_allclose(noise.mean, mean, rtol=0, atol=1e-14)
    np.testing.assert_allclose(noise.covariance, covariance / batch_size, rtol=0, atol=1e-14)
    np.testing.assert_allclose(noise.variance, np.diag(noise.covariance), rtol=0, atol=1e-15)
    assert noise.within.shape[1] == 0


OBJECTIVES = [
    None,
    Objective(label_smoothing=0.1),
    Objective(temperature=1.5, normalisation="layer"),
    Objective("squared", normalisation=None),
]


def test_a_value_matrix_is_part_of_it():
    """Its Jacobian comes from the same kernel: second order in 1/T, and an array V in the vector."""
    layer = strategies.generic_layer(CLASSES.population(), value=True)
    errors = []
    for length in (257, 513):
        own = {"layer": layer, "batch_size": 1}
        noise = gradient_noise(CLASSES, **own, length=length)
        exact = gradient_noise(CLASSES.all_sequences(length=length), **own, length=None)
        errors.append(np.abs(noise.covariance - exact.covariance).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.15)
    assert noise.parts(noise.mean)["V"].shape == layer.V.shape


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_what_it_leaves_out_is_of_second_order_in_1_over_t(objective):
    """Against the sum over all sequences; the draw of classes without its part of order 1/T leaves out first order."""
    lengths, errors = np.array([65, 129, 257, 513]), []
    limit = gradient_noise(CLASSES, LAYER, batch_size=1, length=None, objective=objective)
    for length in lengths:
        noise = gradient_noise(CLASSES, LAYER, batch_size=1, length=length, objective=objective)
        exact = gradient_noise(
            CLASSES.all_sequences(length=length), LAYER, batch_size=1, objective=objective, length=None
        )
        plain = limit.covariance + noise.within @ noise.within.T
        found = (noise.covariance, exact.covariance), (noise.mean, exact.mean), (plain, exact.covariance)
        errors.append([np.abs(one - other).max() for one, other in found])
    slopes = np.polyfit(np.log(lengths - 1), np.log(errors), 1)[0]
    np.testing.assert_allclose(slopes, [-2, -2, -1], atol=0.15)


def test_the_modified_decoders_is_that_of_the_classes_drawn():
    own = {"eta_y": 1.0, "eta_z": 1.0, "steps": 1, "length": None, "momentum": 0.0, "decoder": "modified"}
    each = {}
    for seed in range(40):
        end = sgd(CLASSES, **own, batch_size=1, init=LAYER, seed=seed)
        seen = int(end.dataset["visits"].values[-1].argmax())
        each[seen] = np.concatenate([(end.final.Z - LAYER.Z).ravel(), (end.final.Y - LAYER.Y).ravel()])
        if len(each) == 2:
            break
    steps = np.array([each[0], each[1]])
    mean = CLASSES.class_weights @ steps
    covariance = (steps - mean).T @ (CLASSES.class_weights[:, None] * (steps - mean))
    noise = gradient_noise(CLASSES, LAYER, batch_size=3, length=None, decoder="modified")
    np.testing.assert_allclose(noise.mean, mean, rtol=0, atol=1e-13)
    np.testing.assert_allclose(noise.covariance, covariance / 3, rtol=0, atol=1e-13)


def test_against_steps_of_sgd_itself():
    """Mean and covariance of 6000 gradients that one run took, at rates too small for it to get anywhere.

    A false alarm once in about 1e5: Bonferroni over all entries.
    """
    n, size, rate = 6000, 4, 1e-8
    own = {"eta_y": rate, "eta_z": rate, "steps": n, "batch_size": size, "length": 6, "momentum": 0.0, "init": LAYER}
    exact = gradient_noise(CLASSES.all_sequences(length=6), LAYER, batch_size=size, length=6)
    run = sgd(CLASSES, **own, seed=3).dataset
    states = np.concatenate([run[name].values.reshape(n + 1, -1) for name in ("z", "y")], axis=1)
    steps = np.diff(states, axis=0) / rate
    deviation = steps - exact.mean
    limit = scipy.stats.norm.isf(1e-5 / (2 * deviation.shape[1] * (deviation.shape[1] + 1)))
    error = np.sqrt(np.maximum(exact.variance, 1e-30) / n)
    assert (np.abs(deviation.mean(axis=0)) < limit * error + 1e-7).all()
    products = deviation[:, :, None] * deviation[:, None, :]
    spread = products.std(axis=0) / np.sqrt(n)
    assert (np.abs(products.mean(axis=0) - exact.covariance) < limit * spread + 1e-7).all()
    # And it is a test of something: neither half nor twice the variance would pass.
    moving = exact.variance > 1e-3
    assert moving.sum() > 5 and (0.5 * exact.variance > limit * np.diagonal(spread))[moving].any()


@settings(max_examples=5, deadline=None)
@given(
    strategies.sequence_classes(max_unseen=5),
    strategies.SEEDS,
    st.integers(2, 400),
    st.integers(1, 50),
    st.sampled_from([None, "layer", "unit"]),
)
def test_it_keeps_row_sums_and_scales_with_the_batch(classes, seed, length, batch_size, normalisation):
    """Each sequence's gradient keeps the sum of each row, and so does the noise."""
    layer = strategies.generic_layer(classes.population(), seed=seed)
    objective = Objective(normalisation=normalisation)
    noise = gradient_noise(classes, layer, batch_size=batch_size, length=length, objective=objective)
    one = gradient_noise(classes, layer, batch_size=1, length=length, objective=objective)
    np.testing.assert_allclose(noise.covariance * batch_size, one.covariance, rtol=1e-12, atol=1e-15)
    for column in (noise.mean, *noise.factor.T):
        parts = noise.parts(column)
        scale = 1e-11 * max(1, np.abs(column).max())
        assert np.abs(parts["Y"] @ layer.multiplicity).max() < scale
        assert np.abs(parts["Z"].sum(axis=1)).max() < scale
    # A multinomial count has no spread in the direction of its probabilities.
    assert np.linalg.matrix_rank(noise.within, tol=1e-9) <= noise.within.shape[1] - classes.n_classes


def test_the_whole_population_is_not_random():
    noise = gradient_noise(CLASSES, LAYER, batch_size=None, length=None)
    assert not noise.variance.any() and noise.factor.shape[1] == 0
    np.testing.assert_array_equal(noise.sample(2, rng=0), [noise.mean, noise.mean])


def test_samples_have_its_moments():
    noise = gradient_noise(CLASSES, LAYER, batch_size=2, length=20)
    drawn = noise.sample(20_000, rng=1)
    np.testing.assert_allclose(np.cov(drawn.T), noise.covariance, rtol=0, atol=0.05 * noise.variance.max())
    np.testing.assert_array_equal(drawn[:3], noise.sample(20_000, rng=1)[:3])


@pytest.mark.slow
def test_small_fluctuations_are_those_of_sgd():
    """Variance and mean of z after 30 steps over 1500 runs: false alarms below 1e-4, and 6% for what is left out."""
    classes = SequenceClasses([[0.3, 0.7, 0], [0.4, 0, 0.6]], [0, 0], vocab_size=5)
    rates, batch_size, length = {"eta_y": 0.3, "eta_z": 0.2}, 32, 33
    found = linear_noise(classes, **rates, steps=[0, 30])
    assert not found["between"][0].any() and not found["z"][0].any()
    own = {**rates, "steps": 30, "batch_size": batch_size, "length": length, "momentum": 0.0}
    runs = [(classes, {**own, "seed": seed}) for seed in range(1500)]
    z = np.array(sgd_many(runs, observe=lambda outcome: outcome.layer.Z.ravel(), threads=1))
    end = found.isel(time=-1)
    covariance = ((end["between"] + end["within"] / (length - 1)) / batch_size).values
    # The relative standard error of a variance is sqrt(2/1500) = 0.037.
    np.testing.assert_allclose(z.var(axis=0), np.diag(covariance), rtol=4 * 0.037 + 0.06)
    mean = (end["z"] + end["shift"] / (length - 1)).values
    error = np.sqrt(np.diag(covariance) / 1500)
    assert (np.abs(z.mean(axis=0) - mean) < 4 * error + 0.03 * np.abs(mean)).all()
    # The shift is seen: without it the mean would be off by more.
    assert (np.abs(z.mean(axis=0) - end["z"].values) > 4 * error + 0.03 * np.abs(mean)).any()


def test_small_fluctuations_of_bags_and_of_both_decoders():
    """One step from zero moves Y alone; after two, Z moves by what Y's first step gives it: by hand for one draw."""
    both = {
        d: linear_noise(CLASSES, eta_y=0.5, eta_z=0.25, steps=[1, 2], decoder=d, finite=False)
        for d in ("full", "modified")
    }
    for found in both.values():
        assert not found["within"].any() and not found["shift"].any()
        assert not found["between"][0].any() and found["between"][1].values.any()
    bags = linear_noise(CLASSES.population(), eta_y=0.5, eta_z=0.25, steps=[1, 2])
    np.testing.assert_allclose(bags["between"], both["full"]["between"], rtol=0, atol=1e-15)
    assert np.abs(both["full"]["between"] - both["modified"]["between"]).max() > 1e-6
