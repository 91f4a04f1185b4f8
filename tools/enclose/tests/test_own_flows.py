"""A reader's own flow in balls: closed forms and other solvers lie inside, and what is false is refuted."""

import math
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
import xarray as xr
import yzflow_enclose as enclosures
from flint import arb, arb_mat
from hypothesis import given, settings
from hypothesis import strategies as st
from own_flows import Drawn, Joint, Linear, Logistic, Stationary
from scipy.special import erf as scipy_erf
from yzflow_enclose import FlowMoment, ball, enclose, erf, every, sigmoid, softmax, softplus, some
from yzflow_enclose.elementary import Number
from yzflow_enclose.stepping import precision

import yzflow as yz
from dynamics import integrate


def inside(enclosure, name, time, expected):
    """Whether every entry of a state contains a value that is known to 48 digits."""
    state = enclosure.moment(time).state[name]
    with precision(300):
        pairs = zip(np.ravel(state), np.ravel(expected), strict=True)
        return all((q.ball() + arb(0, 1e-48)).contains(arb(mpmath.nstr(value, 60))) for q, value in pairs)


def largest(enclosure, name, time):
    with precision(300):
        return max(float(quantity.ball().rad()) for quantity in np.ravel(enclosure.moment(time).state[name]))


@settings(max_examples=5)
@given(st.floats(0.01, 0.99), st.sampled_from([40, 100, 160]))
def test_the_logistic_equation(x, bits):
    flow = enclose(Logistic(x), t_end=8.0, bits=bits)
    assert flow.complete
    with mpmath.workdps(70):
        for time in (0.0, 0.125, 3.0, 8.0):
            first = mpmath.mpf(x)
            assert inside(flow, "x", time, [first / (first + (1 - first) * mpmath.exp(-mpmath.mpf(time)))])
    assert 0 < largest(flow, "x", 8.0) < 2.0 ** (8 - bits)
    assert flow.holds(lambda at: (at.velocity["x"] > 0) & (at.state["x"] < 1) & (at.state["x"] >= x)) is True
    assert flow.holds(lambda at: at.state["x"] < x) is False
    assert flow.holds(lambda at: at.state["x"] * (1 - at.state["x"]) - at.velocity["x"] > -1e-6) is True
    assert flow.holds(lambda at: at.state["x"] * (1 - at.state["x"]) - at.velocity["x"] > 0) is None


@settings(max_examples=6)
@given(st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_linear_systems_against_the_exponential_of_a_matrix(size, seed):
    rng = np.random.default_rng(seed)
    matrix, start = rng.normal(size=(size, size)), rng.normal(size=size)
    flow = enclose(Linear(matrix, start), t_end=2.5, bits=80)
    with precision(300):
        whole = arb_mat(size, size, [arb(x) * arb(2.5) for x in matrix.ravel().tolist()]).exp()
        expected = whole * arb_mat(size, 1, [arb(x) for x in start.tolist()])
        for i, quantity in enumerate(flow.moment(2.5).state["x"]):
            assert quantity.ball().contains(expected[i, 0])
            assert quantity.ball().rad() < 1e-18


def test_a_rotation_of_unequal_units_is_followed_by_weights():
    """With equal weights the error would grow by exp(40 t / 2)."""
    flow = enclose(Linear([[0, 1], [-1600, 0]], [1, 0]), t_end=2.0, bits=60)
    assert flow.complete
    with mpmath.workdps(70):
        assert inside(flow, "x", 2.0, [mpmath.cos(80), -40 * mpmath.sin(80)])
    assert largest(flow, "x", 2.0) < 1e-12
    first, second = flow._reading.field.weights
    assert first / second == pytest.approx(40, rel=0.1)


@pytest.mark.slow
def test_a_stationary_gradient_is_an_error_function():
    """sqrt(pi/2) erf(v / sqrt 2) = Delta t, and z = v^2 / 2."""
    delta, times = (-2.0, 1.0), (0.25, 0.5)
    flow = enclose(Stationary(delta), t_end=max(times), bits=100)
    with mpmath.workdps(70):
        for time in times:
            shares = [
                mpmath.sqrt(2 / mpmath.pi) * mpmath.mpf(float(d)) * mpmath.mpf(time) for d in np.array(delta, float)
            ]
            v = [mpmath.sqrt(2) * mpmath.erfinv(share) for share in shares]
            assert inside(flow, "v", time, v) and inside(flow, "z", time, [x * x / 2 for x in v])
        root = math.sqrt(math.pi / 2)
        assert flow.holds(
            lambda at: abs_below(root * erf(at.state["v"] / math.sqrt(2)) - np.array(delta) * at.t, 1e-14)
        )
        assert flow.holds(lambda at: abs_below(at.state["z"] - at.state["v"] ** 2 / 2, 1e-17)) is True


def abs_below(array, bound):
    return every(array < bound) & every(array > -bound)


def test_it_stops_before_a_blow_up_and_says_where():
    flow = enclose(Stationary([1.0, 0.6, 0.3, 0.1]), t_end=2.0, bits=80)
    end = math.sqrt(math.pi / 2)
    assert not flow.complete and end - 1e-4 < flow.t_reached < end
    assert "no step is short enough" in flow.reason and "the fastest entry, z[0] =" in flow.reason
    assert flow.holds(lambda at: at.state["v"] >= 0) is None
    assert flow.decide(lambda at: at.state["v"] >= 0).reached == flow.t_reached
    with pytest.raises(ValueError, match=r"`t` must lie in \[0, .*\], where it ended since no step"):
        flow.at(1.5)


@pytest.mark.slow
def test_a_conserved_quantity_of_several_units():
    """z - (1/2) sum_k v_k^2 is conserved (entry by entry); a wrong factor is refuted."""
    flow = enclose(Joint([[1.0, -0.5], [0.5, 0.75]]), t_end=0.25)

    def drift(at, factor):
        return at.state["z"] - factor * (at.state["v"] ** 2).sum(axis=0)

    assert flow.holds(lambda at: abs_below(drift(at, 0.5), 1e-17)) is True
    assert flow.holds(lambda at: abs_below(drift(at, 0.5), 1e-60)) is None
    assert flow.holds(lambda at: abs_below(drift(at, 0.501), 1e-17)) is False
    assert flow.holds(lambda at: abs_below(drift(at, 0.5).rate, 1e-17)) is True


def test_a_sign_in_the_field_gives_another_enclosure():
    right, wrong = (enclose(Joint([[1.0, -0.5]], sign), t_end=1.0, bits=60) for sign in (1.0, -1.0))
    for name in ("v", "z"):
        for first, second in zip(right.moment(0.75).state[name].flat, wrong.moment(0.75).state[name].flat, strict=True):
            assert not first.ball().overlaps(second.ball())


@settings(max_examples=4)
@given(st.lists(st.floats(-2, 2), min_size=1, max_size=3), st.floats(-0.5, 0.5))
def test_dop853_lies_inside_from_any_start(mu, first):
    flow = Drawn(mu)
    start = {"v": np.full(len(mu), first)}
    enclosure = enclose(flow, t_end=0.75, start=start, bits=50)
    flow.initial = start
    run = integrate(flow, t_end=0.75, times=[0.25, 0.75], rtol=1e-13, atol=1e-14).dataset
    found = enclosure.at([0.25, 0.75])
    assert (abs(found.v - run.v) <= found.v_radius + 1e-11).all()
    assert found.v_radius.max() < 1e-11
    assert (enclosure.at(0.0).v == first).all()


class Forced:
    """x' = sin t - x, which depends on time."""

    initial = {"x": xr.DataArray([1.0, 2.0], dims="unit", coords={"unit": ["a", "b"]})}  # noqa: RUF012

    def derivative(self, t, state):
        return {"x": np.sin(t) - state["x"]}


def test_a_field_may_depend_on_time():
    flow = enclose(Forced(), t_end=6.0, bits=60)
    with mpmath.workdps(50):
        for time in (1.5, 6.0):
            t = mpmath.mpf(time)
            steady = (mpmath.sin(t) - mpmath.cos(t)) / 2
            expected = [steady + (first + mpmath.mpf(1) / 2) * mpmath.exp(-t) for first in (1, 2)]
            assert inside(flow, "x", time, expected)
    assert largest(flow, "x", 6.0) < 1e-15
    found = flow.at([0.0, 6.0])
    assert found.x.dims == ("time", "unit") == found.x_radius.dims
    assert found.unit.values.tolist() == ["a", "b"] and found.attrs["flow"].endswith(":Forced")
    assert flow.holds(lambda at: abs_below(at.state["x"] + at.velocity["x"] - np.sin(at.t), 1e-12)) is True


class Everything:
    """A field with each function that numpy's arrays of objects offer, and ours."""

    initial = {"x": np.array([0.3, 0.6]), "y": 0.25}  # noqa: RUF012

    def derivative(self, t, state):
        x, y = state["x"], state["y"]
        a = np.tanh(x) + np.expm1(x) * np.log1p(x) - np.sinh(y) / np.cosh(x) + np.exp2(-x) ** 3 + np.square(x)
        a = a + np.log2(2 + x) * np.log10(3 + x) + np.tan(x) * np.arctan(x) + np.sqrt(x) ** -1.5 + x**2.5 / 7
        b = sigmoid(x) @ softmax(x) + softplus(x).sum() - erf(y) + (x.mean() - 1) ** 0 + 2.0**y + y ** (1 + y) / 3
        b = b + enclosures.logsumexp(x) + np.sin(y) * np.cos(y) + np.outer(x, x).sum() + np.positive(-y)
        return {"x": a / 4, "y": b / 4}


def test_every_function_equals_that_of_floats_and_its_own_derivative():
    enclosure = enclose(Everything(), t_end=0.5, bits=50)
    run = integrate(Everything(), t_end=0.5, times=[0.5], rtol=1e-13, atol=1e-14).dataset
    found = enclosure.at(0.5)
    for name in ("x", "y"):
        assert (abs(found[name] - run[name]) < 1e-11).all() and (found[f"{name}_radius"] < 1e-12).all()

    def functions(at):
        x = at.state["y"]
        return [np.tanh(x), np.arctan(x), np.sin(x), np.cos(x), erf(x), sigmoid(x), softplus(x), x**-2, x**1.5, 3**x]

    h = 2.0**-12
    before, middle, after = (functions(enclosure.moment(0.25 + k * h)) for k in (-1, 0, 1))
    for a, b, c in zip(before, middle, after, strict=True):
        assert float(c.ball() - a.ball()) / (2 * h) == pytest.approx(float(b.rate.ball()), rel=1e-5)
        second = float(c.ball() - 2 * b.ball() + a.ball()) / h**2
        assert second == pytest.approx(float(b.rate.rate.ball()), rel=1e-4, abs=1e-5)
    x = float(enclosure.at(0.25).y[0])
    expected = [np.tanh(x), np.arctan(x), np.sin(x), np.cos(x), scipy_erf(x), 1 / (1 + np.exp(-x)), np.log1p(np.exp(x))]
    assert [float(b.ball()) for b in middle[:7]] == pytest.approx(expected, rel=1e-12)


def test_rates_of_rates_end_where_the_series_do():
    flow = enclose(Logistic(), t_end=1.0, bits=60)
    quantity = flow.moment(0.25, 0.5).state["x"][()]
    with flow.computing():
        for _ in range(6):
            quantity = quantity.rate
        assert quantity.ball().is_finite()
        with pytest.raises(ValueError, match="only the first 6 derivatives in time are enclosed"):
            quantity.rate  # noqa: B018


def test_a_start_of_balls_holds_every_solution_from_it():
    flow = enclose(Logistic(), start={"x": ball(0.25, 1e-6)}, t_end=3.0)
    for x in (0.25 - 0.9e-6, 0.25, 0.25 + 0.9e-6):
        point = enclose(Logistic(x), t_end=3.0)
        for time in (0.0, 1.0, 3.0):
            with precision(200):
                assert flow.moment(time).state["x"][()].ball().contains(point.moment(time).state["x"][()].ball())
    assert 1e-6 <= largest(flow, "x", 0.0) < 1.1e-6
    tenth = enclose(Logistic(), start={"x": ball("0.1")}, t_end=1.0)
    with mpmath.workdps(60):
        assert inside(tenth, "x", 0.0, [mpmath.mpf("0.1")]) and not inside(tenth, "x", 0.0, [mpmath.mpf(0.1)])
    assert "the radius grew to" in enclose(Logistic(), start={"x": ball(0.25, 0.1)}, t_end=1.0).reason


def test_an_equilibrium_stays():
    flow = enclose(Drawn([0.0, 0.0]), t_end=3.0)
    assert flow.complete and flow.verify() and largest(flow, "v", 3.0) < 1e-30
    assert flow.holds(lambda at: abs_below(at.state["v"], 1e-30)) is True


def test_two_precisions_overlap_and_the_finer_is_narrower():
    coarse, fine = (enclose(Drawn([1.0, 2.0]), t_end=1.0, bits=bits) for bits in (36, 90))
    for time in (0.0, 1e-9, 0.4, 1.0):
        for first, second in zip(coarse.moment(time).state["v"], fine.moment(time).state["v"], strict=True):
            assert first.ball().contains(second.ball())
    assert largest(fine, "v", 1.0) < 1e-12 * largest(coarse, "v", 1.0)


def test_signs_at_an_exact_start_are_those_of_the_first_term():
    flow = enclose(Drawn([1.0, -2.0]), t_end=0.5, bits=50)
    assert flow.holds(lambda at: (at.state["v"][0] > 0) & (at.state["v"][1] < 0)) is True
    assert flow.holds(lambda at: at.state["v"][0] ** 2 > 0) is True
    assert flow.holds(lambda at: some(at.state["v"] > 0) & ~every(at.state["v"] > 0)) is True


def test_without_a_proof_there_is_no_answer(monkeypatch):
    """A step whose defect is dropped, or whose tube is too narrow, is not verified."""
    flow = enclose(Drawn([1.0, 2.0]), t_end=0.5, bits=50)
    assert flow.verify() and flow.fault == ""
    flow.steps = tuple(type(s)(s.start, s.end, s.limbs, s.radius / 64, s.pieces) for s in flow.steps)
    assert not flow.verify() and "is not within its radius" in flow.fault


def wrong(velocity=None, field=None, initial=(1.0, 2.0)):
    """A flow that cannot be enclosed: its velocity of x, and perhaps a field that says another."""
    flow = SimpleNamespace(initial={"x": np.array(initial)})
    if velocity:
        flow.derivative = lambda t, state: {"x": velocity(t, state["x"])}
    if field:
        flow.field = lambda t, state: {"x": field(state["x"])}
    return flow


def of_floats(t, x):
    out = np.zeros(2)
    out[0] = x[1]
    return out


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        (wrong(lambda t, x: np.where(x > 0, -x, 0)), "a comparison has a kink or a jump"),
        (wrong(lambda t, x: abs(x)), "abs has a kink or a jump"),
        (wrong(lambda t, x: x - x.max()), "a comparison has a kink or a jump"),
        (wrong(lambda t, x: -x if t < 1 else x), "a comparison has a kink or a jump"),
        (wrong(of_floats), r"make arrays with np\.zeros_like"),
        (
            wrong(lambda t, x: -x, lambda x: x),
            r"`flow` must have a `field` that equals its `derivative`, -1 for x\[0\] at t = 0 and .*, but got 1",
        ),
        # Equal at the start alone.
        (wrong(lambda t, x: 1 - x, lambda x: 1 + x, 0.0), "`flow` must have a `field` that equals its `derivative`"),
        (
            wrong(lambda t, x: np.log(x - 1)),
            "`flow` must have a finite field at its start, but got log is not defined on 0",
        ),
        (wrong(lambda t, x: x[:1]), r"`field` must return `x` in the shape \(2,\), but got \(1,\)"),
        (wrong(lambda t, x: ["a", "b"]), "`field` must be computed with .* but got an entry of type str"),
        (
            SimpleNamespace(initial={"x": 1.0}, derivative=lambda t, state: {"y": state["x"]}),
            "`field` must return a mapping with the names x, but got y",
        ),
        (wrong(), r"`flow` must have `initial`, and a method `field\(t, state\)` or `derivative\(t, state\)`, but got"),
    ],
)
def test_what_has_no_power_series_is_refused(flow, message):
    with pytest.raises(ValueError, match=message):
        enclose(flow, t_end=1.0)


def test_balls_are_made_of_what_says_a_number():
    for value in ("0.1", [1, "2.5"], np.array([0.5]), 3):
        assert np.size(ball(value)) == np.size(value)
    for value in ("x", float("nan"), [None], "nan"):
        with pytest.raises(ValueError, match="`value` must be finite numbers, or strings that say them"):
            ball(value)
    with pytest.raises(ValueError, match="`radius` must"):
        ball(1.0, -1.0)


def test_a_moment_shows_states_by_name():
    at = enclose(Joint([[1.0, -0.5]]), t_end=0.5, bits=40).moment(0.25)
    assert isinstance(at, FlowMoment) and list(at.state) == ["v", "z"] == list(at.velocity) and len(at.state) == 2
    assert at.state["v"].shape == (1, 2) and at.state["v"].rate.shape == (1, 2)
    with pytest.raises(ValueError, match="`name` must be one of 'v', 'z', but got 'w'"):
        at.state["w"]
    with pytest.raises(TypeError, match="cannot prove that two quantities are equal"):
        at.state["v"] == at.state["v"]  # noqa: B015
    with pytest.raises(TypeError, match="a claim can be open"):
        bool(at.state["z"][0] > 0)
    with pytest.raises(ValueError, match="`claims` must be Claims"):
        every([True])


def test_numbers_are_no_floats():
    for value in (np.float32(0.1), np.int8(3), True, 0.1):
        series = enclosures.elementary.exact(value)
        assert float(series) == float(value)
    assert enclosures.elementary.exact(1j) is None and enclosures.elementary.exact(np.longdouble(1)) is None
    assert issubclass(Number, enclosures.elementary.Elementary)


def test_an_enclosure_of_a_flow_is_drawn():
    flow = enclose(Forced(), t_end=2.0, bits=40)
    ax = flow.plot()
    assert [line.get_label() for line in ax.lines] == ["a", "b"] and "radius at most" in ax.get_title()
    assert flow.plot("x", labels=["first", "second"]).lines[0].get_label() == "first"
    with pytest.raises(ValueError, match="`name` must be one of 'x', but got 'y'"):
        flow.plot("y")
    with pytest.raises(ValueError, match="`labels` must be 2 texts, one for each entry, but got 1"):
        flow.plot(labels=["a"])
    with pytest.raises(ValueError, match="`next_token` must be left out for a flow of named states"):
        flow.plot(next_token=0)
    assert "Forced" in flow._repr_html_() and "2 variables" not in repr(flow)  # time is the third
    assert yz.enclose is enclose
