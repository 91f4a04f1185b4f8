"""An enclosure is of one function: that which is integrated, whatever else a flow says of itself, or none."""

import re

import numpy as np
import own_flows
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from yzflow_enclose import Enclosure, enclose
from yzflow_enclose import elementary as ours
from yzflow_enclose.elementary import Number

from dynamics import integrate


def compiled(x):
    """The arctangent of floats alone, as of compiled code."""
    return np.arctan(np.asarray(x, float))


class Slows:
    """The velocity is written twice, and one of them differs away from t = 0."""

    initial = {"v": 1.0}  # noqa: RUF012

    def derivative(self, t, state):
        return {"v": -state["v"] * (1 + t)}

    def field(self, t, state):
        return {"v": -state["v"] * (1 - t)}


class Elsewhere:
    """They differ where the state has gone, by a factor."""

    initial = {"v": 0.0, "w": np.array([1.0, 2.0])}  # noqa: RUF012

    def derivative(self, t, state):
        return {"v": 1 + 0 * compiled(state["v"]), "w": -state["w"] * np.exp(-state["v"])}

    def field(self, t, state):
        v = state["v"]
        return {"v": 1 + 0 * v, "w": -state["w"] * np.exp(-v) * (1 + 1e-3 * v**8)}


class Compiled:
    """A derivative that only takes floats, and a field that misses it by a factor of one of two terms."""

    initial = {"v": 0.5}  # noqa: RUF012
    factor = 1.0

    def derivative(self, t, state):
        return {"v": 1e3 * (1 - compiled(state["v"])) - 0.1 * t}

    def field(self, t, state):
        return {"v": 1e3 * (1 - self.factor * np.arctan(state["v"])) - 0.1 * t}


class Off(Compiled):
    factor = 1.001


class Late(Compiled):
    """A field that forgets the time."""

    def field(self, t, state):
        return {"v": 1e3 * (1 - np.arctan(state["v"]))}


class Inherits(own_flows.Logistic):
    """A base with both, of which a subclass changes one."""

    def field(self, t, state):
        return {"x": state["x"] * (1 - state["x"])}


class Overrides(Inherits):
    def derivative(self, t, state):
        return {"x": state["x"] * (1 - state["x"]) ** 2}


def whole(x):
    try:
        return int(x)
    except TypeError:
        return 0


class Catches:
    """x' = 1 - x for floats: ``inside`` a try, and another sign where that ends in one of these errors."""

    def __init__(self, inside, errors=TypeError, method="derivative"):
        def velocity(t, state):
            try:
                return {"x": inside(t, state["x"])}
            except errors:
                return {"x": 1 + state["x"]}

        self.initial = {"x": 0.25}
        setattr(self, method, velocity)


def asks(of_balls, method="derivative"):
    """Another sign where ``of_balls`` says that x is one."""
    return Catches(lambda t, x: 1 + x if of_balls(t, x) else 1 - x, (), method)


EQUALS = "`flow` must have a `field` that equals its `derivative`, .* for .* at t = .*, but got"
PASS = "`flow` must pass on what numbers in balls refuse, and catch no such error, but got one that goes on after "
SAME = "`flow` must have a `{}` that is the same function of floats, .* for x at t = .*, and of balls, but got"


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        (Slows, EQUALS),
        (Elsewhere, EQUALS),
        (Off, EQUALS),
        (Late, EQUALS),
        (
            Overrides,
            "`field` that belongs to the `derivative` of Overrides: write one beside it, or `field = None`",
        ),
        (lambda: Catches(lambda t, x: 1 - x if x > -9 else x), f"{PASS}a comparison"),
        (lambda: Catches(lambda t, x: 1 - float(x)), f"{PASS}a number in balls is no float"),
        (lambda: Catches(lambda t, x: 1 - x if x else x), f"{PASS}a condition"),
        (lambda: Catches(lambda t, x: 1 - abs(x)), f"{PASS}abs"),
        # Floats do not show it at any point looked at.
        (lambda: Catches(lambda t, x: 1 - x + 0 * whole(x + 0 * t)), f"{PASS}a number in balls is no float"),
        # Where a ball holds zero, and only there, it says another thing.
        (lambda: Catches(lambda t, x: 1 - x + 0 / (x - 0.25), ValueError), f"{PASS}a quotient"),
        (lambda: asks(lambda t, x: x.dtype == object), SAME.format("derivative")),
        (lambda: asks(lambda t, x: isinstance(x.item(), Number)), SAME.format("derivative")),
        (lambda: asks(lambda t, x: hasattr(x.item(), "series")), SAME.format("derivative")),
        # A type that matters only after the start, by a term of a thousandth.
        (
            lambda: Catches(lambda t, x: 1 - x - (1e-3 * (x - 0.25) if x.dtype == object else 0)),
            SAME.format("derivative"),
        ),
        (lambda: Catches(lambda t, x: 1 - x * (1 if isinstance(t, float) else 1 + t)), SAME.format("derivative")),
        (lambda: asks(lambda t, x: x.dtype == object, "field"), SAME.format("field")),
    ],
)
def test_another_function_is_not_enclosed(flow, message):
    with pytest.raises(ValueError, match=message):
        enclose(flow(), t_end=1.0, bits=40)


def test_a_time_that_is_asked_for_in_a_try_is_one():
    timed = Catches(lambda t, x: 1 - x * np.exp(t), Exception)
    flow = enclose(timed, t_end=0.5, bits=40)
    assert flow.variables == 2
    assert within(flow, timed, 0.5, "x")


def within(enclosure, flow, time, name):
    """Whether an integrator's state is in the balls, but for its own error."""
    found = enclosure.at(time)
    run = integrate(flow, t_end=time, times=[0, time], rtol=1e-11, atol=1e-13).dataset[name].values[-1]
    return bool((abs(found[name].values[0] - run) <= found[f"{name}_radius"].values[0] + 1e-8 * (1 + abs(run))).all())


class Extended(Compiled):
    """A subclass that says both anew, or takes the field off."""

    def derivative(self, t, state):
        return {"v": 2 - state["v"]}

    field = None


def test_the_derivative_is_enclosed_where_balls_can_compute_it():
    both = type("Both", (own_flows.Logistic,), {"field": lambda self, t, s: {"x": s["x"] - s["x"] ** 2}})()
    assert enclose(both, t_end=1.0, bits=40)._reading._enclosed == "derivative"
    assert enclose(Compiled(), t_end=0.01, bits=40)._reading._enclosed == "field"
    assert within(enclose(Extended(), t_end=1.0, bits=40), Extended(), 1.0, "v")


def test_a_field_beside_a_derivative_of_the_object_itself_is_refused():
    flow = Inherits()
    flow.derivative = lambda t, state: {"x": state["x"] * (1 - state["x"])}
    with pytest.raises(ValueError, match="belongs to the `derivative` of the object itself: write one beside it"):
        enclose(flow, t_end=0.5, bits=40)
    flow.field = Inherits().field
    assert enclose(flow, t_end=0.5, bits=40).complete


def test_a_derivative_that_takes_no_floats_is_no_derivative():
    with pytest.raises(ValueError, match="`flow` must have a `derivative` of floats, but got AttributeError"):
        enclose(Catches(lambda t, x: 1 - ours._each(x, "erf"), ()), t_end=0.5, bits=40)


class Stiff:
    """Terms of a million that cancel, so that floats keep nothing of their difference, and an entry that falls fast."""

    initial = {"x": 1.0, "y": 1.0}  # noqa: RUF012
    factor = 1.0

    def derivative(self, t, state):
        return {"x": 1e6 * (np.cos(t) - state["x"]), "y": -900 * state["y"] * (1 + 0 * compiled(state["y"]))}

    def field(self, t, state):
        return {"x": 1e6 * np.cos(t) - 1e6 * self.factor * state["x"], "y": -30 * state["y"] * 30}


def test_rounding_is_no_difference_and_a_thousandth_is_one():
    """Though the terms cancel, and the velocity is as small as it gets."""
    flow = Stiff()
    assert enclose(flow, t_end=2e-5, bits=40).complete
    flow.factor = 1.001
    with pytest.raises(ValueError, match=EQUALS):
        enclose(flow, t_end=2e-5, bits=40)


def test_what_floats_cannot_hold_is_passed_over():
    naive = Catches(lambda t, x: np.exp(x) / np.exp(x).sum(), ())
    naive.initial = {"x": np.array([800.0, 801.0])}
    assert enclose(naive, t_end=0.5, bits=40).complete


def test_a_loaded_file_is_compared_again(tmp_path, monkeypatch):
    enclose(own_flows.Logistic(), t_end=1.0, bits=40).save(tmp_path / "x.npz")
    assert Enclosure.load(tmp_path / "x.npz").verify()
    honest = own_flows.Logistic.derivative

    def asks(self, t, state):
        (velocity,) = honest(self, t, state).values()
        return {"x": velocity if state["x"].dtype == object or t < 0.3 else velocity * 1.001}

    monkeypatch.setattr(own_flows.Logistic, "derivative", asks)
    again = Enclosure.load(tmp_path / "x.npz")
    with monkeypatch.context() as patch:  # as where it agrees at the points that are looked at first
        patch.setattr("yzflow_enclose.flows.FlowReading._check_start", lambda *_: None)
        assert not again.verify()
    assert re.search("must have a `derivative` that is the same function of floats", again.fault)


def test_the_claim_says_whose_function_it_is():
    words = enclose(own_flows.Logistic(), t_end=0.5, bits=40).words
    assert "\nof the field as given: what its code computes in balls, and at drawn points in floats\n" in words


TERMS = {
    "x": lambda x: x,
    "x^2": lambda x: x**2,
    "x^3": lambda x: x**3,
    "sin": np.sin,
    "cos": np.cos,
    "exp": lambda x: np.exp(-x * x),
}


class Generated:
    """A sum of terms, and a change of it: in a region, from a time on, or by type."""

    def __init__(self, terms, start, change, size, where):
        self.terms, self.change, self.size, self.where = terms, change, size, where
        self.initial = {"x": np.array(start)}

    def plainly(self, t, x):
        found = 0 * x
        for name, scale, rate in self.terms:
            found = found + scale * TERMS[name](x) * np.cos(rate * t)
        return found

    def changed(self, t, x):
        """The same but for a smooth bump about a place or a time, or a factor."""
        far = (x.sum() if self.change == "region" else t) - self.where
        bump = 0 * t + 1 if self.change in ("type", "caught") else np.exp(-8 * far * far)
        return self.plainly(t, x) + self.size * bump

    def derivative(self, t, state):
        x = state["x"]
        if self.change in ("region", "time"):
            return {"x": self.changed(t, compiled(x) * 0 + np.asarray(x, float))}
        if self.change == "caught":
            try:
                return {"x": self.plainly(t, x) if x[0] < 1e9 else x}
            except TypeError:
                return {"x": self.changed(t, x)}
        return {"x": self.changed(t, x) if x.dtype == object else self.plainly(t, x)}


class GeneratedPair(Generated):
    def field(self, t, state):
        return {"x": self.plainly(t, state["x"])}

    derivative = Generated.derivative


entry = st.tuples(st.sampled_from(sorted(TERMS)), st.floats(-0.8, 0.8), st.sampled_from([0.0, 1.0, 3.0]))
sizes = st.sampled_from([0.0, 1e-12, 1e-5, 1e-3, -0.1, 1.0])


@settings(max_examples=15)
@given(
    st.lists(entry, min_size=1, max_size=3),
    st.lists(st.floats(-1, 1), min_size=1, max_size=2),
    st.sampled_from(["region", "time", "type", "caught"]),
    sizes,
    st.floats(-1, 1),
)
@example([("sin", 0.5, 1.0)], [0.5], "time", 1.0, 0.7)
@example([("x", -0.5, 0.0)], [0.5], "region", 1e-3, 0.25)
@example([("x", -0.5, 0.0)], [0.5], "caught", 0.0, 0.25)
@example([("x", -0.5, 0.0), ("cos", 0.7, 3.0)], [0.5, -0.5], "type", 0.0, 0.25)
def test_what_is_enclosed_is_what_is_integrated(terms, start, change, size, where):
    """Or it is refused; what is no difference is not."""
    kind = GeneratedPair if change in ("region", "time") else Generated
    flow = kind(terms, start, change, size, where)
    try:
        found = enclose(flow, t_end=1.0, bits=40)
    except ValueError as error:
        assert str(error).startswith("`flow` must") and (size or change == "caught")
        return
    assert change != "caught"
    assert found.complete
    assert all(within(found, flow, time, "x") for time in (0.4, 1.0))
