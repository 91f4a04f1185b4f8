"""Events, kinks and stalls of open flows, in closed form: oscillators, sliding modes, dry friction."""
# ruff: noqa: RUF012  # states of a class that nobody writes to

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import IntegrationError, Layer, SequenceClasses, Solver, gradient_flow, integrate
from dynamics._engine.drive import Clock, Guard
from dynamics._engine.steps import METHODS


class Oscillator:
    """x = cos t, v = -sin t."""

    initial = {"x": 1.0, "v": 0.0}

    def derivative(self, t, state):
        return {"x": state["v"], "v": -state["x"]}

    def events(self, t, state):
        return {"zero": state["x"], "turn": state["v"], "late": t - 7.25}


class Bang:
    """x'' = -sign x from x = 1/2: parabolas, through zero at t = 1, 3, 5, .."""

    initial = {"x": 0.5, "v": 0.0}
    kinds = {"zero": "kink"}

    def derivative(self, t, state):
        return {"x": state["v"], "v": -np.sign(state["x"])}

    def events(self, t, state):
        return {"zero": state["x"]}


class Held:
    """x' = -sign x + t/2 + drift: held at zero until t/2 + drift is 1."""

    kinds = {"kink": "kink"}

    def __init__(self, start=0.5, drift=0.0):
        self.initial, self.drift = {"x": start, "clock": 0.0}, drift

    def derivative(self, t, state):
        return {"x": -np.sign(state["x"]) + t / 2 + self.drift, "clock": 1.0}

    def events(self, t, state):
        return {"kink": state["x"]}


def with_kinds(flow, **kinds):
    flow.kinds = kinds
    return flow


@pytest.mark.slow
@pytest.mark.parametrize(("method", "scale"), list(zip(METHODS, itertools.cycle(["linear", "log"]), strict=False)))
def test_zeros_are_found_where_they_are(method, scale):
    run = integrate(Oscillator(), t_end=8.0, solver=Solver(method=method, time_scale=scale), rtol=1e-6)
    np.testing.assert_allclose(run.events["zero"], np.pi / 2 + np.pi * np.arange(3), atol=1e-3)
    np.testing.assert_allclose(run.events["turn"], np.pi * np.arange(1, 3), atol=1e-3)  # not the one at the start
    np.testing.assert_allclose(run.events["late"], [7.25], atol=1e-12)


def test_zeros_are_as_exact_as_the_tolerance():
    errors = []
    for rtol in (1e-6, 1e-9, 1e-12):
        run = integrate(Oscillator(), t_end=20.0, rtol=rtol, atol=rtol)
        errors.append(np.abs(run.events["zero"] - np.pi / 2 - np.pi * np.arange(6)).max())
    assert errors[0] < 1e-4 and errors[1] < 1e-7 and errors[2] < 1e-10 and errors[0] > errors[1] > errors[2]


@given(st.floats(0.3, 12), st.floats(0, 6))
@settings(deadline=None, max_examples=12)
def test_zeros_inside_a_step_are_not_missed(frequency, phase):
    class Idle:  # whose steps are as long as they can be
        initial = {"x": 0.0}

        def derivative(self, t, state):
            return {"x": 0.0}

        def events(self, t, state):
            return {"wave": np.cos(frequency * t + phase)}

    run = integrate(Idle(), t_end=1.5 / frequency, n_times=2)
    zeros = (np.pi / 2 + np.pi * np.arange(5) - phase) / frequency
    expected = [zero for zero in zeros if 1e-6 < zero < 1.5 / frequency - 1e-6]
    found = [zero for zero in run.events["wave"] if 1e-6 < zero < 1.5 / frequency - 1e-6]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_sign_takes_zeros_of_one_direction():
    run = integrate(with_kinds(Oscillator(), zero="record -", turn="record +"), t_end=13.0)
    np.testing.assert_allclose(run.events["zero"], [np.pi / 2, 5 * np.pi / 2], atol=1e-7)
    np.testing.assert_allclose(run.events["turn"], [np.pi, 3 * np.pi], atol=1e-7)


def test_a_stop_ends_the_run_at_its_state():
    run = integrate(with_kinds(Oscillator(), zero="stop +"), t_end=20.0, times=[0.0, 1.0, 6.0], rtol=1e-10)
    np.testing.assert_allclose(run.dataset["time"], [0.0, 1.0, 3 * np.pi / 2], atol=1e-8)
    assert abs(run.final["x"].item()) < 1e-12 and run.final["v"].item() == pytest.approx(1.0, abs=1e-8)
    np.testing.assert_allclose(run.events["turn"], [np.pi], atol=1e-8)  # and nothing beyond
    assert run.events["late"].size == 0
    assert run.notes == (f"stopped at event 'zero', t = {run.events['zero'][-1]:.10g}",)


def test_events_are_found_to_the_end_though_outputs_end_before():
    run = integrate(Oscillator(), t_end=20.0, times=[1.0])
    assert run.events["zero"].size == 6 and run.dataset.sizes["time"] == 1


def test_a_touch_is_no_zero_and_a_number_that_stays_zero_is_counted_once():
    class Touch(Oscillator):
        def events(self, t, state):
            return {"touch": (t - 3.0) ** 2, "flat": min(max(t - 4.0, 0.0) - max(2.0 - t, 0.0), 1.0)}

    run = integrate(Touch(), t_end=6.0)
    assert run.events["touch"].size == 0
    assert run.events["flat"].size == 1 and 2.0 <= run.events["flat"][0] <= 4.0


# Kinks


def test_a_kink_is_stepped_to_and_over():
    run = integrate(Bang(), t_end=20.0)
    np.testing.assert_allclose(run.events["zero"], np.arange(1, 20, 2), atol=1e-9)
    t = run.dataset["time"].values
    phase = (t + 1) % 4 - 1  # from -1 on: a hill, then a valley
    expected = np.where(phase < 1, (1 - phase**2) / 2, -(1 - (phase - 2) ** 2) / 2)
    np.testing.assert_allclose(run.dataset["x"], expected, atol=1e-8)
    assert run.notes == ("kink 'zero': crossed 10 times",)


def test_a_bend_is_crossed():
    class Bend:
        """x' = 1 + max(x, 0)."""

        initial = {"x": -1.0}
        kinds = {"bend": "kink"}

        def derivative(self, t, state):
            return {"x": 1 + max(float(state["x"]), 0.0)}

        def events(self, t, state):
            return {"bend": state["x"]}

    run = integrate(Bend(), t_end=3.0)
    np.testing.assert_allclose(run.events["bend"], [1.0], atol=1e-10)
    assert run.final["x"].item() == pytest.approx(np.expm1(2.0), rel=1e-7)


@pytest.mark.parametrize("start", [0.5, -0.5])
@pytest.mark.parametrize("method", ["auto", "LSODA", "RK45"])
def test_a_flow_slides_until_a_side_lets_it_go(start, method):
    """From 1/2: 1/2 - t + t^2/4 is zero at 2 - sqrt 2, held until t = 2, then (t - 2)^2/4; the other side likewise."""
    run = integrate(Held(start), t_end=4.0, solver=Solver(method=method))
    t = run.dataset["time"].values
    touch = 2 - np.sqrt(2) if start > 0 else np.sqrt(6) - 2
    np.testing.assert_allclose(run.events["kink"], [touch], atol=1e-7)
    before = start + (-t if start > 0 else t) + t**2 / 4
    expected = np.where(t < touch, before, np.where(t < 2, 0.0, (t - 2) ** 2 / 4))
    np.testing.assert_allclose(run.dataset["x"], expected, atol=1e-7)
    np.testing.assert_allclose(run.dataset["clock"], t, atol=1e-7)
    [note] = run.notes
    assert note.startswith("kink 'kink': slid along from t = ") and float(note.split()[-1]) == pytest.approx(
        2, abs=1e-6
    )


def test_a_flow_that_starts_held_slides_from_the_start():
    run = integrate(Held(0.0, 0.5), t_end=2.0)
    assert run.events["kink"].tolist() == [0.0]
    t = run.dataset["time"].values
    np.testing.assert_allclose(run.dataset["x"], np.where(t < 1, 0.0, (t - 1) ** 2 / 4), atol=1e-7)
    away = integrate(Held(0.0, 2.0), t_end=1.0)
    assert away.final["x"].item() == pytest.approx(1.25, abs=1e-7) and away.notes == ()


@given(st.floats(-0.9, 0.9), st.floats(-0.9, 0.9), st.floats(-1, 1))
@settings(deadline=None, max_examples=8)
def test_the_mean_along_a_surface_is_filippovs(push, pull, tilt):
    """x' = -1 + push above, 1 + pull below the line x = tilt y, y' = 1 above, -1 below."""

    class Surface:
        initial = {"x": 2.0, "y": 0.0}
        kinds = {"line": "kink"}

        def derivative(self, t, state):
            above = state["x"] > tilt * state["y"]
            return {"x": -3.0 + push if above else 3.0 + pull, "y": 1.0 if above else -1.0}

        def events(self, t, state):
            return {"line": state["x"] - tilt * state["y"]}

    run = integrate(Surface(), t_end=3.0)
    touch = 2.0 / (3.0 - push + tilt)
    above, below = -3.0 + push - tilt, 3.0 + pull + tilt  # rates of x - tilt y
    share = above / (above - below)  # of below
    speed = (1 - share) * 1.0 + share * -1.0
    np.testing.assert_allclose(run.events["line"], [touch], atol=1e-8)
    assert run.final["y"].item() == pytest.approx(touch + speed * (3.0 - touch), abs=1e-6)
    assert run.final["x"].item() == pytest.approx(tilt * run.final["y"].item(), abs=1e-6)


def test_another_kink_is_crossed_while_sliding():
    class Both:
        """x is held at zero; y' doubles beyond y = 1."""

        initial = {"x": 0.3, "y": 0.0}
        kinds = {"x": "kink", "y": "kink"}

        def derivative(self, t, state):
            return {"x": -np.sign(state["x"]) + 0.5, "y": 1.0 + (state["y"] > 1)}

        def events(self, t, state):
            return {"x": state["x"], "y": state["y"] - 1}

    run = integrate(Both(), t_end=2.0)
    np.testing.assert_allclose(run.events["x"], [0.6], atol=1e-9)
    np.testing.assert_allclose(run.events["y"], [1.0], atol=1e-7)
    assert run.final["y"].item() == pytest.approx(3.0, abs=1e-6) and abs(run.final["x"].item()) < 1e-7


def test_two_kinks_at_once_are_not_slid_along_and_the_run_says_so():
    class Corner:
        initial = {"x": 0.3, "y": 0.7}
        kinds = {"left": "kink", "down": "kink"}

        def derivative(self, t, state):
            return {"x": -np.sign(state["x"]), "y": -np.sign(state["y"])}

        def events(self, t, state):
            return {"left": state["x"], "down": state["y"]}

    with pytest.raises(IntegrationError, match=r"two kinks at once, 'left' and 'down', which is not done") as caught:
        integrate(Corner(), t_end=2.0)
    assert caught.value.time == pytest.approx(0.7, abs=1e-6)
    assert "slid along from t = 0.3" in caught.value.run.notes[0]


def test_a_start_on_two_kinks_that_both_hold_it_is_refused():
    class Corner:
        initial = {"x": 0.0, "y": 0.0}
        kinds = {"left": "kink", "down": "kink"}

        def derivative(self, t, state):
            x, y = (np.where(state[name] >= 0, 1.0, -1.0) for name in ("x", "y"))
            return {"x": -x, "y": -2 * y}

        def events(self, t, state):
            return {"left": state["x"], "down": state["y"]}

    with pytest.raises(IntegrationError, match="two kinks at once, 'left' and 'down', which is not done") as caught:
        integrate(Corner(), t_end=2.0)
    assert 0 <= caught.value.time < 1e-6


def test_kinks_without_end_are_given_up():
    class Ball:
        """x'' = -sign x - (1/2) sign v: swings that last a third less each, and so end, without end, at a time."""

        initial = {"x": 1.0, "v": 0.0}
        kinds = {"zero": "kink", "turn": "kink"}

        def derivative(self, t, state):
            return {"x": state["v"], "v": -np.sign(state["x"]) - 0.5 * np.sign(state["v"])}

        def events(self, t, state):
            return {"zero": state["x"], "turn": state["v"]}

    with pytest.raises(
        IntegrationError, match=r"'(zero|turn)' is met 200 times in a row without progress; it meets '(zero|turn)'"
    ):
        integrate(Ball(), t_end=1e3)


# Stalls


def undeclared(flow):
    return with_kinds(flow)


@pytest.mark.parametrize("method", [pytest.param("auto", marks=pytest.mark.slow), "LSODA"])
def test_a_flow_held_at_a_kink_is_given_up_soon_and_says_where(method):
    flow, calls = undeclared(Held(0.5)), [0]
    derivative = flow.derivative
    flow.derivative = lambda t, state: calls.__setitem__(0, calls[0] + 1) or derivative(t, state)
    flow.events = None
    with pytest.raises(IntegrationError, match=r"steps stall, and the slope of x jumps by .*'kink'") as caught:
        integrate(flow, t_end=100.0, solver=Solver(method=method))
    assert caught.value.time == pytest.approx(2 - np.sqrt(2), abs=1e-2) and calls[0] < 100_000
    assert caught.value.run.dataset["time"].values[-1] <= caught.value.time


def test_a_hidden_unit_held_where_its_relu_bends_is_told_at_once():
    rng = np.random.default_rng(0)
    classes = SequenceClasses(rng.dirichlet(np.ones(5), 3), [0, 0, 1], vocab_size=6)
    hidden = np.concatenate([rng.normal(size=(5, 4)) * 0.5, rng.normal(size=(1, 4)) * 0.2])
    layer = Layer(np.zeros((2, 5)), rng.normal(size=(4, 6)) * 0.3, None, None, hidden)
    with pytest.raises(
        IntegrationError, match=r"steps stall, and the slope of hidden\[\d, \d\] jumps .* ReLU"
    ) as caught:
        gradient_flow(classes, eta_y=1, eta_z=1, t_end=300, init=layer)
    assert 0.1 < caught.value.time < 0.2 and caught.value.trajectory is not None


@pytest.mark.parametrize("method", ["auto", "DOP853", "LSODA", pytest.param("Radau", marks=pytest.mark.slow)])
def test_stiff_and_long_flows_do_not_stall(method):
    class Relaxation:
        """Van der Pol's oscillator: slow, then suddenly fast."""

        initial = {"x": 2.0, "v": 0.0}

        def derivative(self, t, state):
            return {"x": state["v"], "v": 20 * (1 - state["x"] ** 2) * state["v"] - state["x"]}

    class Long(Oscillator):
        events = None

    run = integrate(Relaxation(), t_end=40.0, solver=Solver(method=method), rtol=1e-6, atol=1e-8)
    assert np.isfinite(run.dataset["x"]).all()
    run = integrate(Long(), t_end=100.0, solver=Solver(method=method), rtol=1e-6, atol=1e-6)
    assert run.dataset["time"].values[-1] == 100.0


class _Paced:
    """Steps of given sizes, of which some are tried several times."""

    def __init__(self, sizes, trials):
        self.s, self.trials = 0.0, None if trials[-1] is None else 0
        self._parts = zip(sizes, trials, strict=True)

    def __iter__(self):
        for size, tried in self._parts:
            self.s += size
            self.trials = None if self.trials is None else self.trials + tried
            yield size


@pytest.mark.parametrize(
    ("small", "tried", "end", "stalls"),
    [
        (1e-9, 1, 1e3, True),  # hopeless
        (1e-5, 2, 50.0, True),  # slow, and rejected
        (1e-5, 1, 50.0, False),  # slow, but never rejected
        (1e-2, 2, 1e6, False),  # not much shorter than they were
        (1e-5, 2, 1.5, False),  # there soon
        (1e-5, None, 50.0, True),  # slow, of a method that does not say what it rejects
        (1e-5, None, 5.0, False),
    ],
)
def test_what_a_stall_is(small, tried, end, stalls):
    guard, steps = Guard(Clock(0.0, end, logarithmic=False)), _Paced([1.0] + [small] * 2999, [1] + [tried] * 2999)
    assert any(guard.stalls(steps, size) for size in steps) == stalls


@pytest.mark.parametrize("solver", [Solver(), Solver(time_scale="log"), Solver(method="LSODA")])
def test_output_times_find_zeros_that_lie_close_in_a_long_step(solver):
    """Steps are as long as the states allow, and a number made of them may turn much faster."""

    class Clock:
        initial = {"x": 0.0}

        def derivative(self, t, state):
            return {"x": 1.0}

        def events(self, t, state):
            return {"wave": np.cos(20 * np.pi * state["x"])}

    zeros = (np.arange(20) + 0.5) / 20
    found = integrate(Clock(), t_end=1.0, n_times=101, solver=solver).events["wave"]
    np.testing.assert_allclose(found, zeros, atol=1e-6)
