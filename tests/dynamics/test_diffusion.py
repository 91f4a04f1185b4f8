"""The stochastic flow: schemes against moments in closed form, and its order in the learning rates against SGD.

Schemes with discrete integrals, and linear equations, have exact expectations: no test of an order draws a number.
"""

import itertools

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
import strategies

from dynamics import (
    IntegrationError,
    Objective,
    SequenceClasses,
    Trajectory,
    gradient_noise,
    sgd,
    stochastic_flow,
)
from dynamics._engine.noise.field import DrawnField, NoisySteps
from dynamics._engine.noise.schemes import euler_maruyama, runge_kutta
from dynamics.fields.system import FlowSetting

CLASSES = SequenceClasses([[0.3, 0.7, 0], [0.4, 0, 0.6]], [0, 1], vocab_size=4, class_weights=[0.4, 0.6])
BAGS = CLASSES.population()
LAYER = strategies.generic_layer(BAGS, scale=0.7)


class Dice:
    """In the place of a generator: what a step draws is given, so that an expectation is a sum over all outcomes."""

    def __init__(self, *draws):
        self.draws = list(draws)

    def choice(self, values, size, p=None):
        return np.array(self.draws.pop(0), dtype=float)[:size]

    def standard_normal(self, size):
        return np.array(self.draws.pop(0), dtype=float)[:size]


def outcomes(scheme, m):
    """All that a step with m noises can draw, and with what probability; normals as signs, of the same variance."""
    if scheme is euler_maruyama:
        return [(Dice(signs), 0.5**m) for signs in itertools.product([-1, 1], repeat=m)]
    chances = {-1: 1 / 6, 0: 2 / 3, 1: 1 / 6}
    return [
        (Dice(single, signs), np.prod([chances[s] for s in single]) * 0.5**m)
        for single in itertools.product(chances, repeat=m)
        for signs in itertools.product([-1, 1], repeat=m)
    ]


class Linear:
    """dx = A x dt + sum_k B_k x dW_k in two dimensions, with two noises that do not commute."""

    noises = 2
    A = np.array([[-0.5, 0.3], [-0.2, 0.1]])
    B = np.array([[[0.4, 0.2], [0.0, 0.3]], [[0.1, -0.3], [0.5, 0.2]]])

    def drift(self, state):
        return self.A @ state

    def column(self, k, state):
        return self.B[k] @ state

    def columns(self, state):
        return np.stack([self.column(k, state) for k in range(2)], axis=1)

    def kick(self, state, normal):
        return self.columns(state) @ normal


def moment_map(scheme, h):
    """The matrix that takes E[x x^T], as a vector, over one step: a step is linear in x, whatever is drawn."""
    total = np.zeros((4, 4))
    for i in range(len(outcomes(scheme, 2))):
        columns = []
        for unit in np.eye(2):
            dice, chance = outcomes(scheme, 2)[i]
            columns.append(scheme(Linear(), unit, h, dice))
        step = np.stack(columns, axis=1)
        total += chance * np.kron(step, step)
    return total


@pytest.mark.parametrize(("scheme", "order"), [(euler_maruyama, 1), (runge_kutta, 2)])
def test_weak_order_of_the_schemes_in_dt(scheme, order):
    """Second moments of a linear equation with multiplicative noise, whose closed form is a matrix exponential."""
    eye, own = np.eye(2), Linear()
    generator = np.kron(own.A, eye) + np.kron(eye, own.A) + sum(np.kron(b, b) for b in own.B)
    sizes = np.array([0.2, 0.1, 0.05, 0.025])
    exact = scipy.linalg.expm(2.0 * generator)
    found = [np.linalg.matrix_power(moment_map(scheme, h), round(2.0 / h)) for h in sizes]
    errors = [np.abs(one - exact).max() for one in found]
    assert np.polyfit(np.log(sizes), np.log(errors), 1)[0] == pytest.approx(order, abs=0.1)


# The order in the learning rates


def equation(rate, *, second, batch_size=1, objective=None, bags=BAGS, still=False):
    rates = {"eta_y": rate, "eta_z": 1e-30 if still else rate / 2}
    setting = FlowSetting(bags, LAYER, LAYER, rates, objective or Objective())
    return NoisySteps(DrawnField(setting, "full", 0), batch_size, second=second)


def one_step_of_sgd(own, state, batch_size):
    """Each batch, its probability, and where it leads."""
    field = own.field
    each = [field.still(state, field.alone(n)) for n in range(field.bags)]
    for batch in itertools.product(range(field.bags), repeat=batch_size):
        yield np.prod(field.share[list(batch)]), state + np.mean([each[n] for n in batch], axis=0)


def smooth_functions(change):
    """Smooth functions of a state: its entries and their products."""
    return np.concatenate([change, np.outer(change, change).ravel()])


@pytest.mark.parametrize(("second", "order"), [(False, 2), (True, 3)])
@pytest.mark.parametrize("batch_size", [1, 2])
def test_one_step_of_sgd_and_one_unit_of_time(second, order, batch_size):
    """The local error in eta is of one order more than the global one: cross-entropy, Z and Y, all batches summed.

    The equation is stepped by Runge-Kutta, whose own local error is of third order.
    """
    rates, errors = np.array([0.2, 0.1, 0.05]), []
    for rate in rates:
        own = equation(rate, second=second, batch_size=batch_size)
        state = own.field.system.initial
        exact = sum(p * smooth_functions(end - state) for p, end in one_step_of_sgd(own, state, batch_size))
        found = sum(
            p * smooth_functions(runge_kutta(own, state, 1.0, dice) - state) for dice, p in outcomes(runge_kutta, 2)
        )
        errors.append(np.abs(found - exact).max())
    assert np.polyfit(np.log(rates), np.log(errors), 1)[0] == pytest.approx(order, abs=0.2)


def affine(function, size):
    """(A, c) of a function A x + c."""
    at_zero = function(np.zeros(size))
    return np.stack([function(unit) - at_zero for unit in np.eye(size)], axis=1), at_zero


@pytest.mark.parametrize(("second", "order"), [(False, 1), (True, 2)])
def test_weak_order_of_the_equation_in_eta(second, order):
    """First and second moments of Y after eta k = 2, squared loss at a Z that stays: both sides are exact.

    Steps of SGD are then affine in Y, and so are drift and factors of the equation: moments of both follow linear maps
    of [1, y, y y^T], powers for SGD and an exponential for the equation.
    """
    objective, rates, errors = Objective("squared"), np.array([0.1, 0.05, 0.025, 0.0125]), []
    fixed = LAYER.Z.ravel()
    n = LAYER.Y.shape[0]  # columns of Y do not meet under the squared loss: one is enough
    at = fixed.size + np.arange(n) * LAYER.Y.shape[1]

    def state(y):
        whole = np.concatenate([fixed, np.zeros(LAYER.Y.size)])
        whole[at] = y
        return whole

    def homogeneous(function, diagonal):
        A, c = affine(lambda y: function(state(y))[at], n)
        return np.block([[np.full((1, 1), diagonal), np.zeros((1, n))], [c[:, None], A]])

    def moved_by(field, k):
        return homogeneous(lambda x: x + field.still(x, field.alone(k)), 1.0)

    def column(own, k):
        return homogeneous(lambda x: own.column(k, x), 0.0)

    eye, start = np.eye(n + 1), np.concatenate([[1.0], LAYER.Y[:, 0]])
    for rate in rates:
        own = equation(rate, second=second, objective=objective, still=True)
        draws, steps = [moved_by(own.field, k) for k in range(2)], round(2 / rate)
        one = sum(p * np.kron(D, D) for p, D in zip(own.field.share, draws, strict=True))
        drift, columns = homogeneous(own.drift, 0.0), [column(own, k) for k in range(2)]
        generator = np.kron(drift, eye) + np.kron(eye, drift) + sum(np.kron(B, B) for B in columns)
        found = scipy.linalg.expm(steps * generator) - np.linalg.matrix_power(one, steps)
        errors.append(np.abs(found @ np.kron(start, start)).max())
    assert np.polyfit(np.log(rates), np.log(errors), 1)[0] == pytest.approx(order, abs=0.1)


# The simulator


def test_factors_columns_and_kicks_are_those_of_the_gradient_noise():
    noise = gradient_noise(CLASSES, LAYER, batch_size=3, length=20)
    rates = dict.fromkeys(("eta_y", "eta_z"), 1.0)
    own = NoisySteps(DrawnField(FlowSetting(BAGS, LAYER, LAYER, rates, Objective()), "full", 19), 3, second=False)
    state = own.field.system.initial
    np.testing.assert_allclose(own.columns(state), noise.factor, rtol=0, atol=1e-14)
    for k in range(own.noises):
        np.testing.assert_allclose(own.column(k, state), noise.factor[:, k], rtol=0, atol=1e-14)
    normal = np.random.default_rng(0).standard_normal(own.noises)
    np.testing.assert_allclose(own.kick(state, normal), noise.factor @ normal, rtol=0, atol=1e-10)
    np.testing.assert_allclose(own.drift(state), noise.mean, rtol=0, atol=1e-14)


@pytest.mark.parametrize("decoder", ["full", "modified", "theory"])
def test_the_second_order_equation_without_noise_is_gradient_descent(decoder):
    """Steps of the expected gradient, at second order in the learning rates in the place of first."""
    rates, errors = np.array([0.4, 0.2, 0.1]), {1: [], 2: []}
    for rate, order in itertools.product(rates, (1, 2)):
        own = {"eta_y": rate, "eta_z": rate, "decoder": decoder, "batch_size": None, "length": None}
        steps = round(8 / rate)
        found = stochastic_flow(CLASSES, **own, t_end=steps, n_times=2, scheme="runge-kutta", order=order).final
        if decoder == "theory":  # whose steps no simulator takes: Euler's scheme is them
            exact = stochastic_flow(CLASSES, **own, t_end=steps, n_times=2).final
        else:
            exact = sgd(CLASSES, **own, steps=steps, momentum=0.0).final
        errors[order].append(np.abs(found.Z - exact.Z).max())
    for order, found in errors.items():
        assert np.polyfit(np.log(rates), np.log(found), 1)[0] == pytest.approx(order, abs=0.25)


def test_same_seed_same_bits_and_a_file_that_makes_it_again(tmp_path):
    own = {"eta_y": 0.5, "eta_z": 0.2, "t_end": 5.0, "n_times": 3, "length": 16}
    first = stochastic_flow(CLASSES, **own, seed=7)
    for other, same in (
        (stochastic_flow(CLASSES, **own, seed=7), True),
        (stochastic_flow(CLASSES, **own, seed=8), False),
    ):
        assert np.array_equal(first.dataset["z"], other.dataset["z"]) == same
    first.save(tmp_path / "run.nc")
    again = Trajectory.load(tmp_path / "run.nc").call.make()
    np.testing.assert_array_equal(again.dataset["z"], first.dataset["z"])
    assert first.parameters["scheme"] == "euler-maruyama" and first.dataset.attrs["simulator"] == "stochastic_flow"


def test_what_stops_being_finite_is_told_with_what_there_was():
    with pytest.raises(IntegrationError, match="stopped being finite after t = ") as caught:
        stochastic_flow(CLASSES, eta_y=1e306, eta_z=1e306, t_end=9.0, n_times=4, length=None, batch_size=1)
    assert caught.value.trajectory.dataset.sizes["time"] >= 1
