"""Closed forms under options, against independent integrations and against the simulators."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp

from dynamics import Objective, Optimizer, Schedule, SequenceClasses, gradient_flow, sgd
from theory.scan_and_snap import changed
from theory.scan_and_snap.decoder import Decoder

CLASSES = SequenceClasses.single_common_token(3, 40, common=0.4, distinct=[1.0, 0.5])
SIZES = {"vocab_size": 40, "n_classes": 3, "eta_y": 0.7}
TIMES = np.concatenate([[0.0], np.geomspace(1e-3, 3000.0, 60)])
KINDS = {
    "smoothed": (changed.Smoothed(**SIZES, label_smoothing=0.2), {"objective": Objective(label_smoothing=0.2)}),
    "decayed": (
        changed.Decayed(**SIZES, weight_decay=0.03),
        {"optimizer": Optimizer(momentum=0.0, weight_decay=0.03)},
    ),
}


def rate(decoder, x):
    """dx/dt in the time of the run, written again."""
    m, k, eta = decoder.vocab_size, decoder.n_classes, decoder.eta_y
    if isinstance(decoder, changed.Smoothed):
        return m * eta / k * (1 / (m - 1 + np.exp(x)) - decoder.label_smoothing / m)
    return m * eta / k / (m - 1 + np.exp(x)) - eta * decoder.weight_decay * x


@pytest.mark.parametrize("kind", KINDS)
def test_h_and_gamma_against_an_integration(kind):
    """h by DOP853, gamma by its definition from the margin, Gamma as a third variable."""
    decoder, _ = KINDS[kind]
    m = decoder.vocab_size

    def field(t, state):
        x = state[0]
        miss = 1 / (m - 1 + np.exp(x)) - getattr(decoder, "label_smoothing", 0.0) / m
        return [rate(decoder, x), (m - 1) ** 2 * x / m * miss]

    found = solve_ivp(field, (0, TIMES[-1]), [0.0, 0.0], t_eval=TIMES, method="DOP853", rtol=1e-12, atol=1e-14)
    x, whole = found.y
    np.testing.assert_allclose(m * decoder.h(TIMES / decoder.n_classes), x, rtol=1e-8, atol=1e-12)
    gamma = [field(0, [one])[1] for one in x]
    np.testing.assert_allclose(decoder.gamma(TIMES), gamma, rtol=1e-7, atol=1e-9 * max(gamma))
    np.testing.assert_allclose(decoder.gamma_integral(TIMES, eta_z=0.3), 0.3 * whole, rtol=1e-7, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_h_is_that_of_the_modified_flow(kind):
    """Attention that stands still: row n of F^T Y is M h (e_n - 1/M), so that two logits are M h apart."""
    decoder, option = KINDS[kind]
    own = {"decoder": "modified", "times": [0.0, 3.0, 60.0, 1000.0], "t_end": 1000.0, "rtol": 1e-11, "atol": 1e-13}
    run = gradient_flow(CLASSES, eta_y=0.7, eta_z=1e-30, **own, **option)
    layer_logits = run.final.features(CLASSES.population()) @ run.final.Y
    expected = 40 * decoder.h(1000.0 / 3)
    for n, row in enumerate(layer_logits):
        np.testing.assert_allclose(row[n] - np.delete(row, n), expected, rtol=1e-8)


def test_bounds():
    """Limits of h: ln(1 + M (1 - eps)/eps)/M, and the root of x (M - 1 + e^x) = M/(K lambda)."""
    smoothed, decayed = KINDS["smoothed"][0], KINDS["decayed"][0]
    assert smoothed.bound == pytest.approx(np.log(161) / 40, rel=1e-14)
    assert smoothed.h(1e9) == pytest.approx(smoothed.bound, rel=1e-12) and smoothed.gamma(1e9) < 1e-300
    # Gamma is bounded, by (128): eta_Z K (M - 1)^2 h_inf^2/(2 eta_Y).
    last = 0.3 * 3 * 39**2 * smoothed.bound**2 / 1.4
    assert smoothed.gamma_integral(1e9, eta_z=0.3) == pytest.approx(last, rel=1e-12)
    x = 40 * decayed.bound
    assert x * (39 + np.exp(x)) == pytest.approx(40 / (3 * 0.03), rel=1e-12)
    assert decayed.h(1e5) == pytest.approx(decayed.bound, rel=1e-9)
    assert decayed.gamma(1e5) == pytest.approx(decayed.last_gamma, rel=1e-8)


def test_time_to_a_margin_by_quadrature():
    """The time at which a class has a margin is the integral of one over the rate: another way to h."""
    for decoder, _ in KINDS.values():
        x = 0.7 * 40 * decoder.bound
        time, _ = quad(lambda u, one=decoder: 1 / rate(one, u), 0, x, epsabs=0, epsrel=1e-12)
        assert 40 * decoder.h(time / 3) == pytest.approx(x, rel=1e-9)


@settings(max_examples=13, deadline=None)
@given(
    st.integers(2, 10**5), st.floats(1e-3, 5), st.floats(1e-6, 0.9), st.floats(0.01, 1e6), st.booleans(),
)  # fmt: skip
def test_options_hold_the_decoder_back(m, eta, strength, t, smoothing):
    """0 <= h <= h without the option, below the bound, and rising."""
    sizes = {"vocab_size": m, "n_classes": 2, "eta_y": eta}
    kind, name = (changed.Smoothed, "label_smoothing") if smoothing else (changed.Decayed, "weight_decay")
    decoder, plain = kind(**sizes, **{name: strength}), Decoder(**sizes)
    first, second = decoder.h([t / 2, t])
    assert 0 < first <= second * (1 + 1e-9) and second <= min(plain.h(t), decoder.bound) * (1 + 1e-7)


def test_a_weak_option_is_none():
    for decoder in (changed.Smoothed(**SIZES, label_smoothing=1e-9), changed.Decayed(**SIZES, weight_decay=1e-12)):
        for name in ("h", "gamma"):
            expected = getattr(Decoder(**SIZES), name)(TIMES)
            np.testing.assert_allclose(getattr(decoder, name)(TIMES), expected, rtol=1e-4, atol=1e-15)


def test_the_exponent_under_weight_decay():
    """It tends to W(..)/4, where gain and decay are equal; with little decay of Z, to 1/4 ln(1 + ..)."""
    decayed = KINDS["decayed"][0]
    law = changed.Law(decayed, decay=0.1 * 0.03)
    last = law.last_exponent(eta_z=0.1, c0=50.0)
    assert 0.1 * decayed.last_gamma * np.exp(-4 * last) / 50 == pytest.approx(0.003 * last, rel=1e-10)
    assert law.exponent(1e5, eta_z=0.1, c0=50.0) == pytest.approx(last, rel=1e-6)
    freely = changed.Law(decayed).exponent(TIMES, eta_z=0.1, c0=50.0)
    np.testing.assert_allclose(freely, 0.25 * np.log1p(4 * decayed.gamma_integral(TIMES, eta_z=0.1) / 50), rtol=1e-14)
    little = changed.Law(decayed, decay=1e-9).exponent(TIMES, eta_z=0.1, c0=50.0)
    np.testing.assert_allclose(little, freely, rtol=1e-4, atol=1e-15)
    with pytest.raises(ValueError, match=r"^`decoder` must be Decayed"):
        changed.Law(Decoder(**SIZES), decay=0.1).exponent(1.0, eta_z=0.1, c0=1.0)


@pytest.mark.parametrize("decoder", ["modified", "full"])
def test_temperature_is_another_rate(decoder):
    own = {"decoder": decoder, "t_end": 80.0, "n_times": 9, "rtol": 1e-11, "atol": 1e-13}
    hot = gradient_flow(CLASSES, eta_y=0.7, eta_z=0.4, objective=Objective(temperature=3.0), **own)
    plain = gradient_flow(CLASSES, eta_y=0.7, eta_z=0.4 / 9, **own)
    seen = changed.cooled(hot.dataset, 3.0)
    for name in ("z", "z_velocity", "attention"):
        np.testing.assert_allclose(seen[name], plain.dataset[name], rtol=1e-7, atol=1e-11)


@pytest.mark.parametrize("schedule", [Schedule(7.0), Schedule(3.0, "cosine", steps=100.0)])
def test_a_schedule_is_a_clock(schedule):
    times = np.linspace(0, 60, 13)
    own = {"eta_y": 0.7, "eta_z": 0.4, "rtol": 1e-11, "atol": 1e-13}
    run = gradient_flow(CLASSES, times=times, t_end=60.0, optimizer=Optimizer(momentum=0.0, schedule=schedule), **own)
    clock, speed = (np.array([of(t) for t in times]) for of in (schedule.clock, schedule))
    seen = changed.on_clock(run.dataset, clock, speed)
    plain = gradient_flow(CLASSES, times=clock, t_end=clock[-1], **own).dataset
    np.testing.assert_allclose(seen["time"], clock)
    for name in ("z", "z_velocity"):
        np.testing.assert_allclose(seen[name][1:], plain[name][1:], rtol=1e-7, atol=1e-11)


def test_a_clock_that_stands_still_leaves_no_velocity():
    run = sgd(CLASSES, eta_y=0.7, eta_z=0.4, steps=4, batch_size=4, length=8).dataset
    seen = changed.on_clock(run, np.array([0.0, 0.0, 1.0, 2.0, 2.0]), np.array([0.0, 1.0, 1.0, 1.0, 0.0]))
    assert seen["time"].values.tolist() == [0.0, 1.0, 2.0]


def test_momentum_clock():
    """Against the recursion v = mu v + 1, w = w + v, and against the flow's own equation, at a constant gradient."""
    v = w = 0.0
    for n in range(1, 30):
        v = 0.9 * v + 1.0
        w += v
        clock, speed = changed.momentum_clock(float(n), momentum=0.9, steps=True)
        assert clock == pytest.approx(w, rel=1e-12) and speed == pytest.approx(0.9 * v + 1.0, rel=1e-12)
    field = {"fun": lambda t, s: [s[1], 1 - 0.1 * s[1]], "method": "DOP853", "rtol": 1e-12, "atol": 1e-14}
    end = solve_ivp(t_span=(0, 25), y0=[0.0, 0.0], **field).y[:, -1]
    np.testing.assert_allclose(changed.momentum_clock(25.0, momentum=0.9), end, rtol=1e-10)
    assert changed.momentum_clock(7.0, momentum=0.0)[0] == pytest.approx(7.0 - 1 + np.exp(-7.0))


def test_velocities_without_decay():
    """z' + eta_Z lambda z is the gradient's part: of the modified flow, that of plain steps from the same layer."""
    option = Optimizer(momentum=0.0, weight_decay=0.05)
    own = {"eta_y": 0.7, "eta_z": 0.4, "rtol": 1e-10, "atol": 1e-12, "decoder": "modified"}
    run = gradient_flow(CLASSES, t_end=40.0, optimizer=option, n_times=3, **own)
    seen = changed.without_decay(run.dataset, 0.4 * 0.05)["z_velocity"][-1]
    plain = gradient_flow(CLASSES, t_end=1.0, init=run.final, n_times=3, **own).dataset["z_velocity"][0]
    np.testing.assert_allclose(seen, plain, rtol=1e-6, atol=1e-12)
    assert not np.allclose(run.dataset["z_velocity"][-1], plain, rtol=1e-2)
