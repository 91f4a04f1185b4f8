"""The first moves of attention in closed form, against the layer's own gradient and the gradient flow."""

import numpy as np
import pytest
import strategies
from hypothesis import given

from dynamics import Bags, Layer, SequenceClasses, gradient_flow
from theory.scan_and_snap.early import initial_drift


@given(strategies.bags(soft=False))
def test_drift_is_the_derivative_of_the_gradient(bags):
    start = Layer(np.zeros((bags.n_queries, bags.n_tokens)), np.zeros((bags.n_tokens, bags.vocab_size)))
    first = start.gradient(bags).Y
    step = 1e-4
    moved = [Layer(start.Z, sign * step * first).gradient(bags).Z for sign in (1, -1)]
    expected = (moved[0] - moved[1]) / (2 * step)  # an odd function to leading order: the error is of order step^2
    drift = initial_drift(bags).toarray()
    assert drift.shape == start.Z.shape
    assert drift == pytest.approx(expected, abs=1e-7)
    assert drift.sum(axis=1) == pytest.approx(0, abs=1e-14)


def test_flow_starts_as_predicted():
    classes = SequenceClasses.syn_small()
    eta_y, eta_z = 2.0, 0.7
    drift = eta_y * eta_z / 2 * initial_drift(classes.population()).toarray()
    errors = []
    for t in (0.02, 0.01):
        run = gradient_flow(classes, eta_y=eta_y, eta_z=eta_z, t_end=t, n_times=2, rtol=1e-12, atol=1e-16)
        errors.append(np.abs(run.final.Z / t**2 - drift).max())
    assert errors[0] < 0.05 * np.abs(drift).max()
    assert errors[0] / errors[1] == pytest.approx(2, abs=0.1)  # the next term is of order t^3


def test_common_tokens_gain_first_where_one_next_token_dominates():
    """Windows differ within a class, as those of text do: the likely next token teaches what all its windows share."""
    counts = np.zeros((8, 9))
    counts[:, 0] = 2
    counts[np.arange(8), np.arange(1, 9)] = 1
    target = np.repeat([0, 1], 4)
    for likely, sign in ((0.5, -1), (0.95, 1)):
        weight = np.repeat([likely / 4, (1 - likely) / 4], 4)
        drift = initial_drift(Bags.from_dense(np.zeros(8, int), target, counts, weight)).toarray()[0]
        assert np.sign(drift[0]) == sign
        assert np.sign(drift[1]) == -sign
