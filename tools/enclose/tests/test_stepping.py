"""Bounds of a validated step, one by one: where all is known exactly they are that, and elsewhere they hold."""

import math

import numpy as np
import pytest
from flint import arb, arb_mat, arb_poly, ctx
from own_steps import Made, near
from yzflow_enclose import stepping
from yzflow_enclose.stepping import precision


def linear(matrix, weights):
    def derivative(state):
        return [sum((a * x for a, x in zip(row, state, strict=True)), state[0] * 0) for row in matrix]

    return Made(weights, derivative)


@pytest.fixture(autouse=True)
def sixty_bits():
    with precision(60):
        ctx.cap = 1  # what a function needs, it sets itself
        yield


SQUARE = Made([4.0], lambda state: [state[0] * state[0] / 2])  # x' = x^2 / 2, of the Jacobian x


def test_a_jacobian_has_rows_of_velocities_and_columns_of_variables():
    field = Made([1, 1], lambda state: [state[0] * state[1], state[0].exp()])
    found = stepping.jacobian(field, [arb(2), arb(3)])
    assert [[float(entry) for entry in row] for row in found] == [[3, 2], [pytest.approx(math.exp(2)), 0]]


@pytest.mark.parametrize("order", [1, 2, 5])
def test_taylor_coefficients_are_those_of_a_solution(order):
    """x' = x^2/2 from 2: x = 2/(1 - t), and every coefficient is 2."""
    assert [float(c) for c in stepping.taylor(SQUARE, [arb(2)], order, exact=False)[0]] == [2] * (order + 1)


def test_a_defect_is_no_smaller_than_any_and_not_much_larger_than_the_largest():
    """Of degrees below that of f(p), where the remainder counts, and in either half of the step."""
    field = Made([1, 3], lambda state: [state[0] * state[1], state[0].exp()])
    rng = np.random.default_rng(0)
    for _ in range(20):
        degree, length = int(rng.integers(1, 4)), rng.uniform(0.1, 0.5)
        rows = rng.uniform(-1, 1, (2, degree + 1))
        delta = float(stepping.defect(field, [arb_poly(row) for row in rows.tolist()], arb(length), degree))
        t = np.linspace(0, length, 200)
        p, q = (np.polynomial.Polynomial(row) for row in rows)
        exact = np.hypot(p.deriv()(t) - p(t) * q(t), 3 * (q.deriv()(t) - np.exp(p(t)))).max()
        assert exact * (1 - 1e-12) <= delta < 1.7 * exact


@pytest.mark.parametrize(("rate", "degree"), [(1.0, 2), (-2.0, 3), (0.5, 5)])
def test_the_defect_of_a_cut_exponential_is_that_of_its_last_term(rate, degree):
    """p' - a p = -a (a t)^n / n!, largest at the end; over a half of the step its Taylor terms are all of one sign."""
    polynomial = arb_poly([rate**k / math.factorial(k) for k in range(degree + 1)])
    delta = stepping.defect(linear([[rate]], [4.0]), [polynomial], arb(0.5), degree)
    assert near(delta, 4 * abs(rate) * abs(rate * 0.5) ** degree / math.factorial(degree))


def test_a_logarithmic_norm_is_that_in_the_units_of_the_weights():
    matrix, weights = np.array([[1.0, 8.0], [0.5, -2.0]]), np.array([1.0, 2.0])
    scaled = weights[:, None] * matrix / weights
    mu, spread = stepping.log_norm(linear(matrix.tolist(), weights), [arb(0, 1)] * 2)
    assert near(mu, np.linalg.eigvalsh((scaled + scaled.T) / 2)[-1]) and spread < 1e-15


def largest_of(middle, radii):
    """Largest eigenvalue of symmetric matrices whose entries are at the ends of balls."""
    found = -np.inf
    for signs in np.random.default_rng(1).choice([-1, 1], (300, *middle.shape)):
        whole = middle + np.triu(radii * signs) + np.triu(radii * signs, 1).T
        found = max(found, np.linalg.eigvalsh(whole)[-1])
    return found


def ball_matrix(middle, radii):
    entries = zip(middle.ravel().tolist(), radii.ravel().tolist(), strict=True)
    return arb_mat(*middle.shape, [arb(a, r) for a, r in entries])


@pytest.mark.parametrize(
    "radii",
    [[[0.1, 0.2, 0], [0.2, 0.3, 0], [0, 0, 0.5]], [[0.3, 0, 0], [0, 0.3, 0], [0, 0, 0.3]], np.full((3, 3), 0.1)],
)
def test_the_largest_eigenvalue_of_a_ball_grows_by_row_sums_or_a_norm(radii):
    rng, radii = np.random.default_rng(0), np.array(radii)
    middle = rng.normal(size=(3, 3))
    middle += middle.T
    mu, spread = stepping.largest_eigenvalue(ball_matrix(middle, radii))
    assert float(spread) == pytest.approx(min(radii.sum(axis=1).max(), np.linalg.norm(radii)), rel=1e-7)
    assert near(mu, np.linalg.eigvalsh(middle)[-1] + float(spread)) and mu >= largest_of(middle, radii)


@pytest.mark.parametrize("wrong", [0.7, 1.3])
def test_eigenvectors_that_are_rough_make_a_bound_rough_and_not_false(wrong, monkeypatch):
    """Neither of their length one, nor quite orthogonal."""
    rng, eigh = np.random.default_rng(2), np.linalg.eigh
    bent = wrong * (np.eye(3) + rng.uniform(-0.3, 0.3, (3, 3)))
    monkeypatch.setattr(np.linalg, "eigh", lambda table: (None, eigh(table)[1] @ bent))
    for shift in np.linspace(-9, 9, 20):
        middle = rng.normal(size=(3, 3)) + shift * np.eye(3)
        middle += middle.T
        mu, _ = stepping.largest_eigenvalue(ball_matrix(middle, np.zeros((3, 3))))
        assert 0 <= float(mu) - np.linalg.eigvalsh(middle)[-1] < np.abs(middle).sum()


@pytest.mark.parametrize("pieces", [1, 3])
def test_an_error_is_followed_piece_by_piece(pieces):
    """x' = x^2/2 along p = t: the logarithmic norm of a piece is its last time and the radius, and half of it wide.

    So eps grows by exp(h^2 (1 + 1/n)/2 + h r/w), the size of the pieces adds h^2/2n + h r/w to its exponent.
    """
    length, radius = 0.5, 0.125
    line = [arb_poly([0, 1])]
    end, largest, excess = stepping.follow(SQUARE, line, arb(length), arb(3), arb(0), arb(radius), pieces)
    beside = length * radius / 4
    assert near(end, 3 * math.exp(length**2 * (1 + 1 / pieces) / 2 + beside)) and largest == end
    assert excess == pytest.approx(length**2 / (2 * pieces) + beside, rel=1e-7)
    back = [arb_poly([-1, 1])]  # at times before zero the error falls
    end, largest, _ = stepping.follow(SQUARE, back, arb(length), arb(3), arb(0), arb(radius), pieces)
    assert near(end, 3 * math.exp(length**2 * (1 + 1 / pieces) / 2 - length + beside)) and largest == 3


def test_the_speed_of_an_error_is_that_of_a_matrix_and_of_the_defect():
    """||W A W^-1||_F r + delta; along p = t the Jacobian is largest at the end, and by the radius beside it."""
    matrix, weights = np.array([[1.0, 8.0], [0.5, -2.0]]), np.array([1.0, 2.0])
    scaled = weights[:, None] * matrix / weights
    still = [arb_poly([1])] * 2
    found = stepping.speed_margin(linear(matrix.tolist(), weights), still, arb(1), arb(0.25), arb(0.5))
    assert near(found, np.linalg.norm(scaled) * 0.5 + 0.25)
    found = stepping.speed_margin(SQUARE, [arb_poly([0, 1])], arb(0.5), arb(0.25), arb(0.125))
    assert near(found, (0.5 + 0.125 / 4) * 0.125 + 0.25)


def test_a_norm_is_of_weights_times_what_is_farthest_from_zero():
    assert near(stepping.weighted_norm([arb(1, 2), arb(-3, 1)], np.array([1.0, 0.5])), math.hypot(3, 2))


def test_floats_add_up_to_coefficients_as_closely_as_a_step_can_tell():
    bits, length = 130, 0.01
    with precision(400):
        coefficients = [[arb.pi() / arb(length) ** k for k in range(4)]]
        limbs = stepping.as_limbs(coefficients, length, bits)
        for k, value in enumerate(coefficients[0]):
            gap = sum((arb(limb) for limb in limbs[0, k].tolist()), -value)
            assert abs(gap) * arb(length) ** k < arb(2) ** -(bits + 16)
        assert limbs[0, 3, -1] == 0  # digits beyond are left out
        step = stepping.Step(0.0, length, limbs, 0.0, 1)
        assert step.polynomials()[0][1].overlaps(sum((arb(x) for x in limbs[0, 1].tolist()), arb(0)))
