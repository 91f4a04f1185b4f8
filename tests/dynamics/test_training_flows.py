"""The flow of each option: SGD tends to it at the expected order; clocks, scales and invariants."""

import numpy as np
import pytest
import strategies
import training
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dynamics import (
    IntegrationError,
    Layer,
    Objective,
    Optimizer,
    Schedule,
    SequenceClasses,
    Solver,
    gradient_flow,
    sgd,
)

FULL = {"batch_size": None, "length": None}
BAGS, LAYER = training.BAGS, training.LAYER
PLAIN = Optimizer(momentum=0.0)


def states(run):
    return np.concatenate([run.final.Z.ravel(), run.final.Y.ravel()])


def gap(rate, optimizer, objective=None, *, span=6.0, decoder="full", solver=None, data=BAGS, start=LAYER):
    """Largest difference of SGD and its flow after rate x steps = span, eta_Y = rate and eta_Z = rate / 2."""
    steps = round(span / rate)
    own = {"eta_y": rate, "eta_z": rate / 2, "init": start, "objective": objective, "decoder": decoder}
    train = sgd(data, steps=steps, optimizer=optimizer, record_every=steps, **FULL, **own)
    flow = gradient_flow(data, t_end=steps, n_times=2, optimizer=optimizer, solver=solver, rtol=1e-10, **own)
    return np.abs(states(train) - states(flow)).max()


def order(gaps, rates):
    """Slope of ln(gap) over ln(rate), by regression."""
    return np.polyfit(np.log(rates), np.log(gaps), 1)[0]


EASY = {"betas": (0.5, 0.6), "epsilon": 0.05}
SMOOTH = {
    "plain": (PLAIN, None),
    "coupled decay": (Optimizer(momentum=0.0, weight_decay=0.1), None),
    "decoupled decay": (Optimizer(momentum=0.0, weight_decay=0.1, decoupled=True), None),
    "momentum, first order": (Optimizer(momentum=0.5), None),
    "momentum, second order": (Optimizer(momentum=0.5), None),
    "momentum and decoupled decay": (Optimizer(momentum=0.5, weight_decay=0.1, decoupled=True), None),
    "clip": (Optimizer(momentum=0.0, clip=0.15), None),
    "adam": (Optimizer("adam", **EASY), None),
    "adamw": (Optimizer("adamw", weight_decay=0.1, **EASY), None),
    "smoothing": (PLAIN, Objective(label_smoothing=0.2)),
    "temperature": (PLAIN, Objective(temperature=2.0)),
    "layer": (PLAIN, Objective(normalisation="layer")),
    "none": (PLAIN, Objective(normalisation=None)),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_sgd_tends_to_its_flow_at_first_order(name):
    """At a fixed momentum, whose own time, 1/(1 - momentum) steps, is then a share of the whole of order eta."""
    optimizer, objective = SMOOTH[name]
    solver = Solver(momentum="first order") if "first" in name else None
    rates = [0.1, 0.05]
    gaps = [gap(rate, optimizer, objective, solver=solver) for rate in rates]
    assert order(gaps, rates) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("kind", ["cosine", "linear", "warm-up", "function"])
def test_sgd_tends_to_the_flow_of_its_schedule(kind):
    rates, gaps = [0.1, 0.05], []
    for rate in rates:
        schedule = {
            "cosine": Schedule(warm_up=1 / rate, decay="cosine", floor=0.1),
            "linear": Schedule(decay="linear"),
            "warm-up": Schedule(warm_up=4 / rate),
            "function": lambda t, rate=rate: 1 / (1 + rate * t),
        }[kind]
        gaps.append(gap(rate, Optimizer(momentum=0.0, schedule=schedule)))
    assert order(gaps, rates) == pytest.approx(1, abs=0.1)


def test_momentum_has_a_flow_of_second_order_with_a_clock_of_its_own():
    """With eta = h^2 and 1 - momentum = gamma h the flow lives on the clock h k: SGD tends to it at first order in h,
    while the flow of first order, with eta/(1 - momentum), misses it by what does not fall with h."""
    gaps: dict[str, list[float]] = {"second order": [], "first order": []}
    sizes = [0.1, 0.05]
    for h in sizes:
        steps, optimizer = round(5 / h), Optimizer(momentum=1 - 1.5 * h)
        own = {"eta_y": h * h, "eta_z": h * h / 2, "init": LAYER}
        train = states(sgd(BAGS, steps=steps, record_every=steps, optimizer=optimizer, **FULL, **own))
        for kind, found in gaps.items():
            flow = gradient_flow(BAGS, t_end=steps, n_times=2, optimizer=optimizer, solver=Solver(momentum=kind), **own)
            found.append(np.abs(train - states(flow)).max())
    assert order(gaps["second order"], sizes) == pytest.approx(1, abs=0.1)
    assert gaps["first order"][-1] > 0.5 * gaps["first order"][0] > 5 * gaps["second order"][-1]


def test_first_order_is_enough_where_the_rate_is_small_against_the_square_of_what_momentum_forgets():
    """Flows of first and second order part by a share of eta/(1 - momentum)^2, whatever momentum: order one in it."""
    for momentum in (0.5, 0.9):
        rates, gaps = [x * (1 - momentum) ** 2 for x in (0.04, 0.02)], []
        for rate in rates:
            optimizer, span = Optimizer(momentum=momentum), 2 * (1 - momentum) / rate
            own = {"eta_y": rate, "eta_z": rate / 2, "init": LAYER, "t_end": span, "n_times": 2}
            first, second = (
                states(gradient_flow(BAGS, optimizer=optimizer, solver=Solver(momentum=kind), **own))
                for kind in ("first order", "second order")
            )
            gaps.append(np.abs(first - second).max())
        assert order(gaps, rates) == pytest.approx(1, abs=0.1)


def test_sign_descent_follows_the_sign_flow_where_it_exists():
    """Within two steps for each sign that may have changed; until a gradient stays at zero, which stops the flow."""
    optimizer = Optimizer("sign", momentum=0.0)
    for rate in (0.02, 0.01):
        assert gap(rate, optimizer, span=0.3) < 4 * rate
    with pytest.raises(IntegrationError, match="the gradient stays at zero") as caught:
        gradient_flow(BAGS, eta_y=0.02, eta_z=0.01, t_end=50.0, init=LAYER, optimizer=optimizer)
    assert 0.3 < 0.02 * caught.value.time < 0.6


@pytest.mark.parametrize("decoder", ["full", "modified"])
def test_weight_decay_and_clipping_in_both_decoders(decoder):
    classes = SequenceClasses([[0.5, 0.3, 0.2, 0], [0.5, 0.1, 0, 0.4]], [0, 0], vocab_size=5)
    start = strategies.generic_layer(classes.population(), scale=0.5)
    optimizer = Optimizer(momentum=0.0, weight_decay=0.05, clip=0.2)
    rates = [0.1, 0.05]
    gaps = [gap(rate, optimizer, decoder=decoder, data=classes, start=start) for rate in rates]
    assert order(gaps, rates) == pytest.approx(1, abs=0.1)


# Clocks and scales


@settings(max_examples=6, deadline=None)
@given(
    st.sampled_from(["constant", "cosine", "linear"]),
    st.floats(0, 30),
    st.floats(0, 1),
    st.sampled_from(["full", "modified", "theory"]),
)
def test_a_common_schedule_is_a_change_of_clock(decay, warm_up, floor, decoder):
    """The flow under a schedule is at t where that of constant rates is at the integral of the schedule."""
    classes = SequenceClasses.single_common_token(3, 20, common=0.5)
    schedule = Schedule(warm_up, decay, **({} if decay == "constant" else {"steps": 80.0, "floor": floor}))
    times = np.array([5.0, 40.0, 79.0, 100.0])
    own = {"eta_y": 1.0, "eta_z": 0.5, "decoder": decoder}
    under = gradient_flow(
        classes, t_end=100.0, times=times, optimizer=Optimizer(momentum=0.0, schedule=schedule), **own
    )
    clock = np.array([schedule.clock(t) for t in times])
    # Equal times have no place in a trajectory.
    keep = np.append(True, np.diff(clock) > 1e-9)
    usual = gradient_flow(classes, t_end=clock[-1] + 1, times=clock[keep], **own)
    np.testing.assert_allclose(under.dataset["z"][keep], usual.dataset["z"], rtol=0, atol=1e-5)
    # Between steps both are interpolated.
    np.testing.assert_allclose(under.dataset["loss"][keep], usual.dataset["loss"], rtol=1e-4)


@given(st.sampled_from(["constant", "cosine", "linear"]), st.floats(0, 50), st.floats(0, 1), st.floats(0, 200))
def test_the_clock_is_the_integral_of_the_schedule(decay, warm_up, floor, t):
    schedule = Schedule(warm_up, decay, **({} if decay == "constant" else {"steps": 100.0, "floor": floor}))
    at = np.linspace(0, t, 5_001)
    factors = np.array([schedule(s) for s in at])
    assert schedule.clock(t) == pytest.approx(np.trapezoid(factors, at), abs=1e-4 * max(1, t))
    assert ((factors >= 0) & (factors <= 1)).all()


@settings(max_examples=5, deadline=None)
@given(st.floats(0.2, 5), strategies.SEEDS)
@example(2.0, 0)
def test_temperature_is_a_scale_of_attention(tau, seed):
    """Z(eta_Z, tau) = tau Z(eta_Z / tau^2, 1), from a start that is scaled as well: in SGD and in the flow."""
    rng = np.random.default_rng(seed)
    Z, Y = rng.normal(size=(2, 5)), rng.normal(size=(5, 6))
    hot, cold = Layer(Z, Y), Layer(Z / tau, Y)
    own = {"eta_y": 0.3, "eta_z": 0.2 * tau**2}
    scaled = {"eta_y": 0.3, "eta_z": 0.2}
    objective = Objective(temperature=tau)
    draw = {"steps": 30, "batch_size": 3, "length": None, "seed": seed}
    for one, other in (
        (sgd(BAGS, init=hot, objective=objective, **own, **draw), sgd(BAGS, init=cold, **scaled, **draw)),
        (
            gradient_flow(BAGS, init=hot, objective=objective, t_end=20.0, n_times=5, **own),
            gradient_flow(BAGS, init=cold, t_end=20.0, n_times=5, **scaled),
        ),
    ):
        atol = 1e-6 if one.dataset.attrs["simulator"] == "gradient_flow" else 1e-10
        np.testing.assert_allclose(one.dataset["z"] / tau, other.dataset["z"], rtol=0, atol=atol)
        np.testing.assert_allclose(one.dataset["attention"], other.dataset["attention"], rtol=0, atol=atol)
        np.testing.assert_allclose(one.dataset["loss"], other.dataset["loss"], rtol=0, atol=atol)


# Invariants


def sums(layer):
    return np.concatenate([layer.Z.sum(axis=1), layer.Y @ layer.multiplicity])


KEEP = ["momentum", "clip", "smoothing", "temperature", "layer", "none", "warm-up", "cosine", "function"]
BREAK = ["adam", "adamw", "sign", "squared"]
DECAY = ["coupled decay", "decoupled decay"]


def test_of_every_option_it_is_known_whether_row_sums_stay():
    assert sorted([*KEEP, *BREAK, *DECAY, "betas"]) == sorted(training.OPTIONS)


@settings(max_examples=3, deadline=None)
@given(strategies.SEEDS, st.sampled_from([None, 3]))
def test_row_sums_stay_or_move_exactly_where_they_must(seed, batch_size):
    """Of Z over the tokens and of Y over all M next tokens (Lemma 1), whatever the batches.

    Weight decay of plain steps takes a factor 1 - eta lambda off them each step, and so keeps sums of zero; Adam and
    the sign scale each entry by itself, and the squared loss has residuals whose sum is not zero.
    """
    rng = np.random.default_rng(seed)
    start = Layer(rng.normal(size=(2, 5)), rng.normal(size=(5, 4)), None, [1, 1, 1, 3])
    own = {"steps": 30, "init": start, "batch_size": batch_size, "length": None, "seed": seed, **training.RATES}
    before, rates = sums(start), np.repeat([training.RATES["eta_z"], training.RATES["eta_y"]], [2, 5])
    for name in training.OPTIONS:
        optimizer, objective = training.values([name])
        after = sums(sgd(BAGS, optimizer=optimizer, objective=objective, **own).final)
        if name in KEEP:
            np.testing.assert_allclose(after, before, rtol=0, atol=1e-12)
        elif name in DECAY:
            np.testing.assert_allclose(after, before * (1 - 0.2 * rates) ** 30, rtol=0, atol=1e-12)
        else:
            assert np.abs(after - before).max() > 1e-3
