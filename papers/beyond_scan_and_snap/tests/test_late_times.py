"""Flows to ln t = 100, where the problem may get stiff: what integrates is chosen on the way, and said."""

import functools

import numpy as np
import pytest
from yzflow_beyond_scan_and_snap.late import late_flow

from dynamics import SequenceClasses, Solver, gradient_flow
from dynamics._engine import steps

K, M, COMMON = 3, 30, 0.4


def classes():
    """K equal classes of one common token and five distinct ones, all equal, as `late_flow` has them."""
    table = np.zeros((K, 1 + 5 * K))
    table[:, 0] = COMMON
    for n in range(K):
        table[n, 1 + 5 * n : 6 + 5 * n] = (1 - COMMON) / 5
    return SequenceClasses(table, np.zeros(K, dtype=int), vocab_size=M)


def flow(ln_t, *, eta_z=0.5, decoder="full", method="auto", scale="log", **options):
    times = np.exp(np.atleast_1d(ln_t).astype(float))
    solver = Solver(method=method, time_scale=scale)
    return gradient_flow(
        classes(), eta_y=1.0, eta_z=eta_z, t_end=times[-1], times=times, decoder=decoder, solver=solver, **options
    )


LATE = np.array([5.0, 30.0, 100.0])


@functools.cache
def in_logarithms(eta_z):
    """The common token's logit at `LATE`."""
    own = {"n_classes": K, "vocab_size": M, "common": COMMON, "n_distinct": 5}
    return late_flow(LATE, **own, eta_z=eta_z, rtol=1e-9)["z"].values


@pytest.mark.slow
@pytest.mark.parametrize(("eta_z", "scale"), [(0.5, "linear"), (100.0, "linear"), (0.5, "log"), (1e4, "log")])
def test_the_full_flow_is_that_of_the_problem_in_logarithms(eta_z, scale):
    """Radau on four variables, the logarithms of the probabilities among them: another route, of another package."""
    run = flow(LATE, eta_z=eta_z, scale=scale)
    np.testing.assert_allclose(run.dataset["z"].values[:, 0, 0], in_logarithms(eta_z), rtol=2e-6)
    assert run.dataset.attrs["method"].startswith("DOP853")
    if eta_z > 1:
        assert run.dataset.attrs["method"].endswith(" on LSODA")


def test_a_flow_that_is_not_stiff_keeps_dop853():
    assert flow([30.0]).dataset.attrs["method"] == "DOP853"


@pytest.mark.parametrize("eta_z", [0.5, 100.0])
def test_the_theory_at_late_times_is_its_closed_form(eta_z):
    """(44): x = M h has (M - 1) x + exp(x) - 1 = p M eta_Y t."""
    ln_t = np.array([10.0, 40.0, 100.0])
    x = M * flow(ln_t, eta_z=eta_z, decoder="theory").dataset["h"].values
    found = np.log((M - 1) * x + np.expm1(x))  # to what x is known, 1e-4 of 100
    np.testing.assert_allclose(found, np.log(M / K) + ln_t[:, None] * np.ones(K), atol=1e-4)


def test_margins_grow_like_the_logarithm_of_time():
    """Softmax's gradient is a probability: margins grow by one where t grows by e, up to terms of order 1/ln t."""
    run = flow([60.0, 80.0, 100.0])
    loss = run.dataset["loss"].values
    np.testing.assert_allclose(np.diff(np.log(loss)) / 20, -1, atol=0.05)


def stiff_steps(method, calls=None):
    """dy/ds = 1000 (cos(s) - y), whose solution soon changes slowly; ``calls`` gets an entry for each evaluation."""

    def bind(state, out):
        def evaluate(s):
            out[:] = 1000 * (np.cos(s) - state)
            if calls is not None:
                calls.append(s)

        return evaluate

    return steps.steps_of(method, bind, 20.0, np.zeros(2), rtol=1e-6, atol=1e-8)


def test_stiffness_is_found_and_left_behind():
    counts = []
    for method in ("DOP853", "auto"):
        run = stiff_steps(method, calls := [])
        while run.s < 20:
            assert run.advance() is None
        counts.append(len(calls))
        np.testing.assert_allclose(run.state, (1e6 * np.cos(20.0) + 1e3 * np.sin(20.0)) / (1e6 + 1), atol=1e-5)
    assert run.method == "LSODA"
    assert 0 < run.switched < 0.5
    assert counts[1] < counts[0] / 3


def test_a_problem_that_is_not_stiff_keeps_its_method():
    def bind(state, out):
        def evaluate(s):
            out[0], out[1] = state[1], -state[0]

        return evaluate

    run = steps.steps_of("auto", bind, 200.0, np.array([1.0, 0.0]), rtol=1e-8, atol=1e-10)
    while run.s < 200:
        assert run.advance() is None
    assert (run.method, run.switched) == ("DOP853", None)
    np.testing.assert_allclose(run.state, [np.cos(200.0), -np.sin(200.0)], atol=1e-5)


def test_a_state_too_large_for_a_jacobian_does_not_switch(monkeypatch):
    monkeypatch.setattr("dynamics._engine.dop853._DENSE", 1)
    run = stiff_steps("auto")
    for _ in range(100):
        assert run.advance() is None
    assert run.switched is None


def test_a_method_that_is_given_is_kept_and_named():
    assert flow([3.0], method="RK45").dataset.attrs["method"] == "RK45"
    assert flow([9.0], method="DOP853", eta_z=100.0).dataset.attrs["method"] == "DOP853"
