"""Bounds of a cell's steps on fields of one variable: closed forms that they reach, and no less."""

import math

import numpy as np
import pytest
from flint import arb, arb_poly, ctx
from own_steps import Made, near
from yzflow_enclose import cell_bounds, signs
from yzflow_enclose.cell import CellStep
from yzflow_enclose.stepping import precision

WEIGHT = 4.0


@pytest.fixture(autouse=True)
def sixty_bits():
    with precision(60):
        ctx.cap = 1  # what a function needs, it sets itself
        yield


def bounds_of(velocity, degree):
    """Bounds of x' = velocity(x, s) over |s| <= 1, s the first of two parameters."""

    class OneVariable:
        def along(self, own, rest=None):
            s = own.parameter(0, arb(0), arb(1), rest)
            return Made([WEIGHT], lambda state: [velocity(state[0], s)])

    return cell_bounds.Bounds(OneVariable(), degree)


def bounds_with_a_clock(velocity, speed=lambda s: 1, degree=2):
    """Bounds of z' = velocity(u, s), u' = speed(s)."""

    class TwoVariables:
        def at(self, s):
            return Made([WEIGHT] * 2, lambda state: [velocity(state[1], s), state[1] * 0 + speed(s)])

        def along(self, own, rest=None):
            return self.at(own.parameter(0, arb(0), arb(1), rest))

        def everywhere(self):
            return self.at(arb(0, 1))

    return cell_bounds.Bounds(TwoVariables(), degree)


def along(bounds, polynomial):
    """The same polynomial in time at all settings."""
    return [[arb_poly(polynomial)] + [arb_poly([0])] * (len(bounds.basis) - 1)]


@pytest.mark.parametrize("degree", range(5))
@pytest.mark.parametrize("line", [[0, 1], [1, -1]])
def test_the_defect_beyond_the_degree_is_all_that_is_cut_off(degree, line):
    """x/(1 - s/2) = x (1 + s/2 + s^2/4 + ..): x 2^-n at s = 1, of which two terms are known and the others a rest."""
    bounds = bounds_of(lambda x, s: x / (1 - s * 0.5), degree)
    assert near(bounds.defect_in_settings(along(bounds, line), arb(0.5)), WEIGHT * max(line[0], 0.5) / 2**degree)


@pytest.mark.parametrize("order", [2, 5, 7])
def test_the_defect_in_time_of_a_cut_exponential_is_that_of_its_last_term(order):
    """p' + 2 p = 2 (-2 t)^n / n! at the end."""
    bounds = bounds_of(lambda x, s: x * -2, 1)
    taylor = [(-2) ** k / math.factorial(k) for k in range(order + 1)]
    found = bounds.defect_in_time(along(bounds, taylor), arb(0.75))
    assert near(found, WEIGHT * 2 * 1.5**order / math.factorial(order))


def test_the_defect_in_time_has_the_remainder_of_the_whole_step():
    """exp(3 t) along p = 3 t: seven terms at the start, with the one of p', and the eighth at the end."""
    bounds = bounds_of(lambda x, s: x.exp(), 0)
    terms = [abs(3.0**k / math.factorial(k) - 3 * (k == 0)) for k in range(8)]
    assert near(
        bounds.defect_in_time(along(bounds, [0, 3]), arb(1)),
        WEIGHT * (sum(terms) + 3**8 * math.exp(3) / math.factorial(8)),
    )


def test_the_defect_is_that_of_settings_and_times():
    bounds = bounds_of(lambda x, s: x * -2 + s.exp(), 2)
    taylor = along(bounds, [0, 1])
    parts = bounds.defect_in_time(taylor, arb(0.5)), bounds.defect_in_settings(taylor, arb(0.5))
    assert near(parts[1], WEIGHT * (math.e - 2.5))
    assert near(bounds.defect(taylor, arb(0.5)), float(parts[0] + parts[1]))


def square(x, s):
    """x' = x^2/2, of the Jacobian x."""
    return x * x * 0.5


@pytest.mark.parametrize("power", [1, 2, 3, 5])
@pytest.mark.parametrize("radius", [0.0, 0.125])
def test_a_step_is_bounded_by_the_largest_jacobian_of_its_tube(power, radius):
    """Along p = t^k, all of whose terms about the middle of the step are positive: at the end h^k, and r/w beside it.

    Terms of a degree above 2 are in the rest.
    """
    bounds, length, delta = bounds_of(square, 0), 0.75, arb(1) / 1024
    line = along(bounds, [0] * power + [1])
    parts, rests = bounds.jacobian(line, arb(length), arb(radius))
    largest = length**power + radius / WEIGHT
    sizes = sum(term[0][0].abs_upper() for term in parts) + rests[0][0]
    assert near(sizes, largest) and near(cell_bounds.log_norm(parts, rests), largest, 3e-6)
    assert near(rests[0][0], (length / 2) ** power * sum(math.comb(power, k) for k in range(3, power + 1)), zero=True)
    if radius:
        found = bounds.step(line, arb(length), [[arb(0)]], arb(radius) / 64, delta, arb(radius))
        # That of the velocity is by how large the error is, which is less than the radius.
        assert found.radius == radius and near(found.speed, largest * float(found.error) + 1 / 1024, 1e-5)
        grown = math.exp(largest * length)
        assert near(found.error, radius / 64 * grown + length / 1024 * grown, 1e-5)


def test_an_error_at_the_start_of_a_step_is_that_of_the_last_and_the_gap_between_polynomials():
    bounds = bounds_of(lambda x, s: x * 0, 1)
    line = [[arb_poly([1 / 64]), arb_poly([1 / 128]), arb_poly([-1 / 256])]]
    found = bounds.step(line, arb(1), [[arb(0)] * 3], arb(1) / 32, arb(0), None)
    assert near(found.error, 1 / 32 + WEIGHT * 7 / 256) and found.radius > found.error


@pytest.mark.parametrize(("radius", "holds"), [(0.5, False), (0.99, False), (1.01, True)])
def test_a_tube_holds_an_error_that_falls_from_its_start_on(radius, holds):
    bounds = bounds_of(lambda x, s: x * -2, 0)
    found = bounds.step(along(bounds, [0]), arb(0.5), [[arb(0)]], arb(1e-3), arb(0), arb(radius * 1e-3))
    assert (found is not None) is holds
    assert found is None or near(found.error, 1e-3 / math.e, 1e-5)


@pytest.mark.parametrize(("error", "holds"), [(0.08, True), (0.12, False)])
def test_a_tube_that_is_found_holds_the_error_that_its_own_jacobians_allow(error, holds):
    """x' = 2 w x^2 at rest: eps exp(4 r) < r has no solution r for eps above 1/(4 e)."""
    bounds = bounds_of(lambda x, s: x * x * (2 * WEIGHT), 0)
    line = along(bounds, [0])
    found = bounds.step(line, arb(1), [[arb(0)]], arb(error), arb(0), None)
    assert (found is not None) is holds
    if holds:
        assert error * math.exp(4 * float(found.radius)) <= found.radius
        assert bounds.step(line, arb(1), [[arb(0)]], arb(error), arb(0), found.radius) is not None


def test_the_norm_of_a_jet_of_matrices_is_that_of_their_sum():
    parts = [[[1.0, -2.0], [0.0, 3.0]], [[-0.5, 0.0], [1.0, 0.0]]]
    found = cell_bounds._norm([[[arb(x) for x in row] for row in part] for part in parts], [[arb(0.25)] * 2] * 2)
    assert near(found, np.linalg.norm(np.abs(parts).sum(axis=0) + 0.25))


def test_the_logarithmic_norm_is_attained_where_nothing_is_negative_beside_the_diagonal():
    """Of D + A s + R with a diagonal D and A, R >= 0 all matrices lie below that at s = 1, by Perron and Frobenius."""
    rng = np.random.default_rng(0)
    middle = np.diag([-3.0, 1.0, -1.0, 0.5])
    part, rests = (rng.uniform(0, 0.2, (4, 4)) for _ in range(2))
    balls = [[[arb(x) for x in row] for row in table.tolist()] for table in (middle, part, rests)]
    mu = float(cell_bounds.log_norm(balls[:2], balls[2]))
    whole = middle + part + rests
    assert 0 <= mu - np.linalg.eigvalsh((whole + whole.T) / 2)[-1] < 1e-5


@pytest.mark.parametrize(
    ("size", "wrong", "finite"), [(1, 0.9, True), (1, 1.1, True), (3, 0.97, True), (3, 1.03, True), (3, 0.8, False)]
)
def test_what_eigenvectors_lack_in_length_is_added_to_the_logarithmic_norm(size, wrong, finite, monkeypatch):
    rng, eigh = np.random.default_rng(1), np.linalg.eigh
    bent = wrong * np.eye(size) + rng.uniform(-0.005, 0.005, (size, size))
    monkeypatch.setattr(np.linalg, "eigh", lambda table: (None, eigh(table)[1] @ bent))
    for shift in np.linspace(-9, 9, 20):
        table = rng.normal(size=(size, size)) + shift * np.eye(size)
        balls = [[arb(x) for x in row] for row in table.tolist()]
        mu = float(cell_bounds.log_norm([balls], [[arb(0)] * size] * size))
        above = mu - np.linalg.eigvalsh((table + table.T) / 2)[-1]
        assert above > 0 and (above < 8 if finite else above == math.inf)


# Signs


def test_a_sum_of_velocities_has_an_error_of_its_coefficients_over_the_weights():
    bounds = bounds_of(square, 1)
    bounds.weights = np.array([4.0, 0.5, 1.0])
    watch = signs.Watch(bounds, np.array([8.0, -1.0]))
    assert near(watch.scale, math.hypot(2, 2))
    bounds.weights = np.array([3.0])
    assert signs.Watch(bounds, np.array([1.0])).scale > arb(1) / 3 > arb(1 / 3)  # rounded upwards


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sign_is_one_at_all_times_and_settings_of_a_box(sign):
    """Answers against the values on a grid, with corners and ends; an open one is near zero, or below the margin."""
    bounds = bounds_of(square, 2)
    watch = signs.Watch(bounds, np.array([1.0]))
    rng = np.random.default_rng(0)
    answers = []
    for _ in range(60):
        table = rng.uniform(-1, 1, (len(bounds.basis), 3)) * [1, 0.3, 0.3]
        table[0, 0] = sign * rng.uniform(0.3, 3.5)
        middle, half, margin = rng.uniform(0, 1), rng.uniform(0, 0.5), rng.uniform(0, 0.5)
        box = signs._WHOLE if rng.random() < 0.5 else ((-0.5, 0.5), (0.25, 0.75))
        slopes = [arb_poly(row) for row in table.tolist()]
        found = watch._has_sign(slopes, sign, arb(middle), arb(half), arb(margin), box, 3)
        t, x, y = np.meshgrid(*(np.linspace(a - h, a + h, 9) for a, h in ((middle, half), *box)))
        powers = zip(table, bounds.basis.exponents, strict=True)
        least = (sign * sum((row[0] + row[1] * t + row[2] * t**2) * x**a * y**b for row, (a, b) in powers)).min()
        answers.append(found)
        assert least > margin - 1e-12 if found else least < margin + 2 * half + 0.3
    assert 15 < sum(answers) < 45


def rising(bounds, polynomials, radius=0.0, start=0.0):
    """The sign of z' seen over a step of length one."""
    width = len(bounds.basis)
    rows = [[arb_poly(p) for p in row] + [arb_poly([0])] * (width - len(row)) for row in polynomials]
    watch = signs.Watch(bounds, np.array([1.0]))
    return watch, CellStep(start, start + 1.0, rows, radius * WEIGHT, 0.0)


@pytest.mark.parametrize("degree", [0, 1, 3])
def test_the_first_terms_at_zero_hold_all_settings(degree):
    """z' = u/(1 - s/4): over t it is 1 + s/4 + s^2/16 + .., which is 1 and up to 1/3 more or less."""
    bounds = bounds_with_a_clock(lambda u, s: u / (1 - s * 0.25), degree=degree)
    first, second = signs.Watch(bounds, np.array([1.0]))._leading()
    assert first.mid() == 1 and near(first.rad(), 1 / 3) and second.is_zero()
    # A quantity that does not begin at zero has no first term to decide by.
    assert signs.Watch(bounds_with_a_clock(lambda u, s: u + 1), np.array([1.0]))._leading() is None


@pytest.mark.parametrize(
    ("velocity", "end"),
    [
        (lambda u, s: u - u * u * u * 0.5, 1.0),  # over t it is 1 - t^2/2
        (lambda u, s: u - u * u * u * 1.5, 0.5),  # negative at 1
        (lambda u, s: u - u * u * 4 + u * u * u * 3.6, 0.125),  # negative at 1/2 and not at 1
    ],
)
def test_from_zero_on_a_sum_is_positive_as_long_as_its_series_over_t(velocity, end):
    watch, step = rising(bounds_with_a_clock(velocity), [[[0]], [[0, 1]]])
    assert watch._from_zero(step) == end


@pytest.mark.parametrize(("factor", "radius", "end"), [(0.022, 0, 1.0), (0.03, 0, 0.5), (0.022, 0.5, 0.5)])
def test_from_zero_on_the_last_term_is_that_of_all_settings_and_of_the_tube(factor, radius, end):
    """z' = u - a u^4, u = (1 + s/2) t: over t at least 1/2 - 4 a t^2 (3/2)^3 (3/2 t + r)."""
    bounds = bounds_with_a_clock(lambda u, s: u - u * u * u * u * factor, lambda s: s * 0.5 + 1)
    watch, step = rising(bounds, [[[0]], [[0, 1], [0, 0.5]]], radius)
    assert watch._from_zero(step) == end
    for time, positive in ((end, True), (2 * end, False)):
        least = 0.5 - 4 * factor * time**2 * 1.5**3 * (1.5 * time + radius)
        assert time > 1 or (least > 0) is positive


def test_a_sum_is_followed_to_where_it_is_negative():
    """z' = 1/16 - (t - 1/2)^2 is positive from 1/4 to 3/4 of the step."""
    watch, step = rising(bounds_of(square, 1), [[[0, -3 / 16, 1 / 2, -1 / 3]]], start=1.0)
    watch.see(step)
    assert not watch.alive and watch.reached == 0 and watch.negative == 2
    watch, step = rising(bounds_of(square, 1), [[[0, 1, 0, -1 / 3 / 0.6]]], start=1.0)  # 1 - t^2/0.6, from 1 to -0.67
    watch.see(step)
    assert not watch.alive and 1.7 < watch.reached <= 1 + math.sqrt(0.6) and watch.negative == 2
