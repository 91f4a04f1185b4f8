"""Steps of DOP853 in one kernel, beside the same with calls between the stages and beside NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from dynamics import Bags, Layer, Objective, SequenceClasses, gradient_flow
from dynamics._engine.dop853 import NOT_FINITE_AT_START, Called, Dop853, Trial, take
from dynamics._engine.steps import steps_of
from dynamics._engine.tableau import E3, E5, EXTENDED, STAGES, A
from dynamics._model import small
from dynamics._model.objective import shaped
from dynamics.backend.compiled import address, call
from dynamics.backend.modes import IN_PYTHON
from dynamics.fields.symmetry import find_symmetry, symmetry_of
from dynamics.fields.system import FlowSetting
from dynamics.fields.table import entry_of, system_for

SEEDS = st.integers(0, 2**32 - 1)
RTOL, ATOL = 1e-6, 1e-9


def bags_of(rng, n=6, soft=False):
    """Random bags of up to five tokens, on two queries, with four next tokens of a vocabulary of seven."""
    counts = rng.integers(0, 4, size=(n, 5)).astype(float)
    counts[np.arange(n), rng.integers(5, size=n)] += 1
    target = rng.dirichlet(np.ones(4), size=n) if soft else rng.integers(4, size=n)
    return Bags.from_dense(
        rng.integers(2, size=n), target, counts, rng.dirichlet(np.ones(n)), n_queries=2, vocab_size=7
    )


def layer_of(rng, bags, kind):
    """A start of random weights: plain, with a value matrix, or with a hidden layer."""
    zeros = Layer.zeros(bags)
    V = rng.normal(size=(bags.n_tokens, 3)) if kind == "values" else None
    hidden = rng.normal(size=(bags.n_tokens + 1, 4)) if kind == "hidden" else None
    rows = {"plain": bags.n_tokens, "values": 3, "hidden": 4}[kind]
    Z, Y = rng.normal(size=zeros.Z.shape), rng.normal(size=(rows, zeros.Y.shape[1]))
    return Layer(Z, Y, V, zeros.multiplicity, hidden=hidden)


@st.composite
def flows(draw):
    """A system whose steps are one kernel, and a random state near its start."""
    rng = np.random.default_rng(draw(SEEDS))
    kind = draw(st.sampled_from(["plain", "values", "hidden", "soft", "squared", "contrast", "symmetric", "twins"]))
    objective, init = Objective(), None
    if kind in ("symmetric", "twins"):
        distinct = [1.0, 0.5] if kind == "symmetric" else [1.0, 1.0, 0.5]
        data = SequenceClasses.single_common_token(draw(st.integers(2, 5)), 12, distinct=distinct).population()
    else:
        data = bags_of(rng, soft=kind == "soft")
        init = layer_of(rng, data, kind if kind in ("values", "hidden") else "plain")
        objective = {
            "squared": Objective("squared"),
            "soft": Objective(label_smoothing=0.1),
            "contrast": Objective(contrast=bags_of(rng, n=2), contrast_weight=0.7),
        }.get(kind, objective)
    rates = {"eta_y": 0.7, "eta_z": 1.3, "eta_v": 0.4, "eta_hidden": 0.9}
    setting = FlowSetting(data, Layer.zeros(data) if init is None else init, init, rates, objective)
    system = system_for(setting, entry_of("full"), reduce=True)
    assert (system.reduction != "none") == (init is None)
    return system, system.initial + 0.3 * rng.normal(size=system.initial.size), rng


@settings(max_examples=13)
@given(flows(), st.floats(1e-3, 0.5))
def test_a_step_is_that_of_the_tableau(flow, size):
    """Slopes, error estimates and the test of stiffness, each by NumPy from the system's own derivative."""
    system, state, rng = flow
    frame, n = system.frame, state.size
    speed = rng.uniform(0.5, 2, EXTENDED)
    trial = Trial(np.zeros((EXTENDED, n)), np.empty(n), np.empty(n), RTOL, ATOL)
    assert take(frame, trial, 0, 1, 0.0, speed, state) == (0, 0, 0, 0)
    found = take(frame, trial, 1, STAGES + 1, size, speed, state)
    arguments = [state + size * A[k, :k] @ trial.slopes[:k] for k in range(STAGES + 1)]
    np.testing.assert_allclose(trial.stage, arguments[STAGES - 1], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(trial.new, arguments[STAGES], rtol=1e-12, atol=1e-13)
    ends = trial.slopes[STAGES] - trial.slopes[STAGES - 1]
    assert take(frame, trial, STAGES + 1, EXTENDED, size, speed, state) == (0, 0, 0, 0)
    arguments += [state + size * A[k, :k] @ trial.slopes[:k] for k in range(STAGES + 1, EXTENDED)]
    expected = np.array([speed[k] * system.derivative(at) for k, at in enumerate(arguments)])
    np.testing.assert_allclose(trial.slopes, expected, atol=1e-11 * np.abs(expected).max())
    scale = ATOL + RTOL * np.maximum(np.abs(state), np.abs(trial.new))
    step = trial.slopes[: STAGES + 1]
    apart = trial.new - arguments[STAGES - 1]
    # Errors are small differences of slopes.
    lost = 1e-13 * (np.abs(step).max() / scale.min()) ** 2
    np.testing.assert_allclose(found[:2], [(((e @ step) / scale) ** 2).sum() for e in (E5, E3)], rtol=1e-6, atol=lost)
    np.testing.assert_allclose(found[2:], [apart @ apart, ends @ ends], rtol=1e-9, atol=1e-24)


def test_an_exact_solution():
    """One bag of one token with the squared loss: dY/dt = 2 eta (target - Y), whose loss is exp(-4 eta t)."""
    bags, times = Bags([0], [0], [0, 1], [0], [1.0], vocab_size=2), np.array([0.1, 1.0, 3.0])
    setting = {"eta_y": 0.5, "eta_z": 1.0, "rtol": 1e-11, "atol": 1e-13, "objective": Objective("squared")}
    flow = gradient_flow(bags, t_end=3.0, times=times, **setting)
    np.testing.assert_allclose(flow.dataset["loss"], np.exp(-2 * times), rtol=1e-9)
    np.testing.assert_allclose(flow.final.Y[0], [-np.expm1(-3), 0], rtol=1e-10)


def test_other_weights_of_the_bags_have_a_kernel_of_their_own():
    bags = SequenceClasses.single_common_token(3, 12).population()
    setting = FlowSetting(bags, Layer.zeros(bags), None, {"eta_y": 1.0, "eta_z": 1.0}, Objective())
    whole = system_for(setting, entry_of("full"), reduce=False)
    slopes = small.looked(whole.frame, whole.initial[None])[1]
    twice = whole.weighed(2 * bags.weight)
    np.testing.assert_allclose(small.looked(twice.frame, whole.initial[None])[1], 2 * slopes, rtol=1e-13)


@pytest.mark.parametrize("slope", [np.nan, np.inf])
def test_a_start_without_a_finite_slope_is_the_only_evaluation(slope):
    seen = []

    def bind(state, out):
        def evaluate(_):
            seen.append(state.copy())
            out[:] = slope

        return evaluate

    with np.errstate(all="ignore"):
        steps = steps_of("DOP853", bind, 1.0, np.ones(2), rtol=1e-6, atol=1e-8)
        assert steps.advance() == NOT_FINITE_AT_START
    assert len(seen) == 1


def test_what_has_no_kernel_of_whole_steps():
    bags = SequenceClasses.single_common_token(3, 12).population()
    rates = {"eta_y": 1.0, "eta_z": 1.0}

    def frame(objective=None, decoder="full", start=None):
        start = Layer.zeros(bags) if start is None else start
        system = system_for(
            FlowSetting(bags, start, None, rates, objective or Objective()), entry_of(decoder), reduce=False
        )
        return system.own_frame

    assert frame() is not None
    assert frame(decoder="theory") is None
    assert frame(Objective(temperature=2.0), start=shaped(Objective(temperature=2.0), Layer.zeros(bags))) is None
    assert frame(Objective(terms=(lambda weights: {"Z": -weights.Z},))) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small, "_WORK", 0)
        assert frame() is None


def test_kernels_are_called_where_they_are():
    @njit  # not on disk, where what it calls could change unnoticed
    def weighed(x, shares, k):
        return k * (x * shares).sum()

    @njit
    def twice(where, arguments):
        return 2 * call(where, arguments)

    x = np.array([1.0, 2.0, 4.0])
    arguments = (x, np.array([1.0, 10.0, 100.0]), 3)
    assert twice(address(weighed, arguments), arguments) == 2 * 3 * 421
    # Of other types it is another one.
    arguments = (x[::2], np.array([1, 10]), 0.5)
    assert twice(address(weighed, arguments), arguments) == 2 * 0.5 * 41


@pytest.mark.skipif(IN_PYTHON, reason="there are no types without numba")
def test_only_floats_come_back():
    @njit
    def whole(n):
        return n + 1

    with pytest.raises(TypeError, match="whole returns int64, and `call` a float64"):
        address(whole, (3,))


@pytest.mark.skipif(IN_PYTHON, reason="Python raises by itself")
def test_what_a_called_kernel_raises_is_raised():
    @njit
    def picky(x):
        if x < 0:
            raise ValueError("below zero")
        return x

    @njit
    def ask(where, arguments):
        return call(where, arguments)

    where = address(picky, (1.0,))
    assert ask(where, (1.0,)) == 1.0
    with pytest.raises(ValueError, match="below zero"):
        ask(where, (-1.0,))


def test_symmetries_are_kept_by_what_the_bags_hold():
    classes = SequenceClasses.single_common_token(4, 20)
    kept = symmetry_of(classes.population())
    assert symmetry_of(SequenceClasses.single_common_token(4, 20).population()) is kept
    assert kept.variables == find_symmetry(classes.population()).variables
    other = symmetry_of(SequenceClasses.single_common_token(4, 20, common=0.2).population())
    assert other is not kept
    wider = symmetry_of(SequenceClasses.single_common_token(4, 21).population())
    assert wider.bags.vocab_size == 21
    population = classes.population()
    arrays = population.arrays | {"weight": [0.1, 0.2, 0.3, 0.4]}
    uneven = Bags(*arrays.values(), **population.sizes)
    assert symmetry_of(uneven) is None


def test_large_bags_are_not_kept():
    bags = SequenceClasses.single_common_token(3000, 3000).population()
    assert symmetry_of(bags) is not symmetry_of(bags)


def test_it_is_of_order_eight():
    """Steps of a fixed size around the circle: the end of a run whose tolerance never bounds it."""

    def bind(place, out):
        def at(_):
            out[:] = place[1], -place[0]

        return at

    errors = []
    for n in (4, 8):
        size, state = 4.0 / n, np.array([1.0, 0.0])
        for _ in range(n):
            steps = Dop853(Called(bind, 2), size, state, rtol=1e3, atol=1e3)
            steps._next_size = size
            assert steps.advance() is None and steps.s == size
            state = steps.state.copy()
        errors.append(np.abs(state - [np.cos(4.0), -np.sin(4.0)]).max())
    assert 7.5 < np.log2(errors[0] / errors[1]) < 9.5
