"""Ctrl-C ends what takes long: the layer's kernels are called for a part of the bags at a time."""

import signal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import SEEDS, bags, layers

from dynamics import Bags, Layer, Limits, Objective, gradient_flow
from dynamics._model import gradient
from dynamics._model.problem import Problem


def measured(problem, layer, n_bags):
    slopes = problem.zeros()
    residual = np.zeros((n_bags, layer.multiplicity.size))
    losses = problem.loss(layer.weights), problem.loss_and_gradient(layer.weights, slopes)
    problem.loss_and_gradient(layer.weights, problem.zeros(), residual)
    return losses, slopes, residual


@given(st.data(), SEEDS, st.integers(1, 20))
def test_parts_make_up_the_whole(data, seed, work):
    """To the bit, but for the loss, which is a sum of sums."""
    own = data.draw(bags(max_bags=12))
    layer = data.draw(layers(own))
    whole = measured(Problem(own, layer), layer, len(own))
    with Limits(work=work):
        problem = Problem(own, layer)
        parts = measured(problem, layer, len(own))
    sizes = [part.count.size for part, _ in problem._parts]
    assert sum(sizes) == own.count.size and sum(part.query.size for part, _ in problem._parts) == len(own)
    assert max(sizes) <= work / layer.Y.shape[1] + np.diff(own.indptr).max()
    np.testing.assert_allclose(parts[0], whole[0], rtol=1e-12)
    for one, other in zip(parts[1], whole[1], strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(parts[2], whole[2])


def test_parts_of_pairs_make_up_the_whole():
    """Under the regulariser, whose bags come in pairs."""
    rng = np.random.default_rng(0)
    own = Bags.from_dense([0, 1, 0], [0, 1, 2], rng.integers(0, 3, (3, 4)) + np.eye(3, 4))
    insertions = Bags.from_dense([0, 0], [0, 0], [[1.0, 2, 0, 0], [0, 0, 0, 1.0]])
    objective = Objective(contrast=insertions, contrast_weight=0.5)
    layer = Layer(rng.normal(size=(2, 4)), rng.normal(size=(4, 3)))
    whole = Problem(own, layer, objective)
    with Limits(work=1):
        parts = Problem(own, layer, objective)
    assert (len(whole._parts), len(parts._parts)) == (1, 6)
    slopes = whole.zeros(), parts.zeros()
    losses = [problem.loss_and_gradient(layer.weights, slopes[i]) for i, problem in enumerate((whole, parts))]
    assert losses[1] == pytest.approx(losses[0], rel=1e-12)
    for one, other in zip(*slopes, strict=True):
        np.testing.assert_array_equal(one, other)


def test_ctrl_c_is_heard_between_the_parts(monkeypatch):
    calls, kernel = [], gradient.plain

    def interrupted(*arguments):
        calls.append(arguments[0].query.size)
        if len(calls) == 20:
            signal.raise_signal(signal.SIGINT)
        return kernel(*arguments)

    own = Bags.from_dense(np.zeros(30, dtype=int), np.arange(30), np.eye(30) + 1)
    monkeypatch.setattr(gradient, "made", lambda parts: interrupted)
    with Limits(work=1), pytest.raises(KeyboardInterrupt):
        gradient_flow(own, eta_y=1.0, eta_z=1.0, t_end=1.0)
    assert calls == [1] * 20  # of the thirty of the first evaluation
