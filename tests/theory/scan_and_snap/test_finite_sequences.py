"""The drift that finite sequences add: against sums over all sequences, complex steps and the noise's own mean."""

import numpy as np
import pytest
import reference
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import Layer, SequenceClasses, gradient_noise, linear_noise
from theory.scan_and_snap.early import initial_drift
from theory.scan_and_snap.finite_sequences import finite_length_drift, finite_length_first_moves

DISJOINT = SequenceClasses([[0.5, 0.3, 0.2, 0, 0], [0, 0, 0, 0.9, 0.1]], [0, 0], vocab_size=7)


def start(height):
    """Classes that share nothing: Y_l = height f_nl in the column of its class."""
    f = np.sqrt(1 / np.sum(DISJOINT.probabilities.toarray() ** 2, axis=1))[:, None] * DISJOINT.probabilities.toarray()
    return Layer(np.zeros((1, 5)), np.concatenate([height * f.T, np.zeros((5, 1))], axis=1), None, [1, 1, 5])


@pytest.mark.parametrize("height", [0.01, 1.0, 5.0])
def test_against_the_mean_gradient_of_classes_that_share_nothing(height):
    """Where the layer learned from features that stand still the formula is exact at order 1/T, whatever it knows."""
    layer = start(height)
    bias = gradient_noise(DISJOINT, layer, length=2).mean - gradient_noise(DISJOINT, layer, length=None).mean
    found = gradient_noise(DISJOINT, layer).parts(bias)["Z"][0]
    alpha = layer.predict(DISJOINT.population())
    for n, own in enumerate((slice(0, 3), slice(3, 5))):
        p = DISJOINT.probabilities.toarray()[n, own]
        kappa = height * (1 - alpha[n, n])
        np.testing.assert_allclose(found[own], 0.5 * kappa * finite_length_drift(p), rtol=0, atol=2e-10 * height)
    assert np.abs(found).max() > 1e-3 * height


def test_against_the_sum_over_all_sequences():
    """Of one class: the error falls as 1/T^2 once 1/(T - 1) beta is taken off."""
    p, errors, lengths = np.array([0.5, 0.3, 0.2]), [], np.array([20, 40, 80])
    classes = SequenceClasses([[0.5, 0.3, 0.2, 0], [0, 0, 0, 1.0]], [0, 0], vocab_size=4)
    for length in lengths:
        bags = classes.all_sequences(length=length)
        counts, f0 = reference.dense_counts(bags)[:, :3], reference.normalise(p)
        own = bags.target == 0
        f = counts[own] / np.linalg.norm(counts[own], axis=1, keepdims=True)
        mean = 2 * bags.weight[own] @ (f * (f0 - f * (f @ f0)[:, None]))
        errors.append(np.abs(mean - finite_length_drift(p) / (length - 1)).max())
    assert np.polyfit(np.log(lengths - 1), np.log(errors), 1)[0] == pytest.approx(-2, abs=0.2)


def test_the_first_moves_of_finite_sequences():
    """Two steps from zero against `early.initial_drift` of all sequences, which is exact at any T."""
    classes = SequenceClasses([[0.3, 0.7, 0], [0.4, 0, 0.6]], [0, 0], vocab_size=5)
    eta_y, eta_z = 1e-5, 0.3
    found = linear_noise(classes, eta_y=eta_y, eta_z=eta_z, steps=[2]).isel(time=0)
    lengths, errors = np.array([100, 200, 400]), []
    for length in lengths:
        exact = initial_drift(classes.all_sequences(length=length)).toarray()[0]
        mean = (found["z"] + found["shift"] / (length - 1)).values / (eta_y * eta_z)
        errors.append(np.abs(mean - exact).max())
    assert np.polyfit(np.log(lengths - 1), np.log(errors), 1)[0] == pytest.approx(-2, abs=0.15)


def test_the_first_moves_of_classes_that_share_nothing():
    """Against `early.initial_drift` of all sequences: the error falls as 1/T^2, and beta alone is far off."""
    found = np.zeros((2, 5))
    for n, row in enumerate(DISJOINT.probabilities.toarray()):
        for which, function in enumerate((finite_length_first_moves, finite_length_drift)):
            found[which, row > 0] = (1 / 2) ** 2 * (1 - 1 / 7) * function(row[row > 0])
        assert abs(finite_length_first_moves(row[row > 0]).sum()) < 1e-12, n
    lengths, errors = np.array([40, 80, 160]), []
    for length in lengths:
        exact = initial_drift(DISJOINT.all_sequences(length=length)).toarray()[0]
        errors.append(np.abs(exact - found / (length - 1)).max(axis=1))
    assert np.polyfit(np.log(lengths - 1), np.log(errors), 1)[0][0] == pytest.approx(-2, abs=0.2)
    assert errors[-1][1] > 4 * errors[-1][0]


@settings(max_examples=25, deadline=None)
@given(strategies.SEEDS, st.integers(1, 30), st.floats(0.1, 8))
def test_signs_and_sums(seed, n, spread):
    p = np.random.default_rng(seed).random(n) ** spread + 1e-6
    p /= p.sum()
    beta = finite_length_drift(p)
    scale = np.abs(p / (p**2).sum()).max()
    assert abs(beta.sum()) < 1e-11 * n * max(1, scale)
    np.testing.assert_allclose(finite_length_drift(np.full(n, 1 / n)), 0, atol=1e-11)
    # The rarest token never gains, and one rare enough loses almost p/S_2.
    assert beta[p.argmin()] <= 1e-11 * max(1, scale)
    if n > 1 and p.min() < 1e-3 * (p**2).sum():
        assert beta[p.argmin()] == pytest.approx(-p.min() / (p**2).sum(), rel=0.01)
