"""A learning rate of 0 freezes its part to the last bit in every simulator, and the rest follows its equation."""

import numpy as np
import pytest
from balls import enclose_flow
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import (
    Layer,
    Optimizer,
    SequenceClasses,
    Solver,
    gradient_flow,
    gradient_flow_ensemble,
    sgd,
    stochastic_flow,
)
from theory.scan_and_snap import decoder
from yzflow.papers.scan_and_snap.settings import Setting, single_common_token

CLASSES = SequenceClasses(np.array([[0.3, 0.5, 0.2, 0, 0], [0.2, 0, 0, 0.5, 0.3]]), [0, 0], vocab_size=7)
RATES = [(0.05, 0.0), (0.0, 0.05), (0.0, 0.0)]
OPTIMIZERS = [
    Optimizer(),
    Optimizer(weight_decay=0.1),
    Optimizer("adam"),
    Optimizer("adamw", weight_decay=0.1),
    Optimizer("sign"),
]


def start(seed=0):
    rng = np.random.default_rng(seed)
    return Layer(rng.normal(size=(1, 5)), rng.normal(size=(5, 7)))


def assert_frozen(data, eta_y, eta_z):
    """Y and Z keep their bits where their rate is 0, and move elsewhere."""
    for name, rate in (("y", eta_y), ("z", eta_z)):
        values = data[name].values
        assert (values == values[0]).all() if rate == 0 else (values[-1] != values[0]).any()


@pytest.mark.parametrize(("eta_y", "eta_z"), RATES)
@pytest.mark.parametrize("level", ["full", "modified", "theory"])
@given(seed=st.integers(0, 10**6), reduce=st.sampled_from(["auto", "none"]), scale=st.sampled_from(["linear", "log"]))
@settings(max_examples=2, deadline=None)
def test_flows(level, eta_y, eta_z, seed, reduce, scale):
    init = None if level == "theory" else start(seed)
    solver = Solver(reduce=reduce, time_scale=scale)
    run = gradient_flow(
        CLASSES, eta_y=eta_y, eta_z=eta_z, t_end=50.0, n_times=7, decoder=level, init=init, solver=solver
    )
    if init is None and eta_y == 0:  # without a decoder nothing comes back
        assert (run.dataset["z"].values == 0).all() and (run.dataset["y"].values == 0).all()
    else:
        assert_frozen(run.dataset, eta_y, eta_z)
    if eta_z == 0:
        assert (run.dataset["z_velocity"].values == 0).all()
    assert np.isfinite(run.dataset["loss"].values).all()


@pytest.mark.parametrize(("eta_y", "eta_z"), RATES)
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda one: f"{one.name} {one.weight_decay}")
def test_steps_of_every_optimizer(optimizer, eta_y, eta_z):
    given = {"eta_y": eta_y, "eta_z": eta_z, "init": start(), "optimizer": optimizer}
    run = sgd(CLASSES, **given, steps=40, batch_size=4, length=20, seed=0, record_every=10)
    assert_frozen(run.dataset, eta_y, eta_z)


@pytest.mark.parametrize(("eta_y", "eta_z"), RATES[:2])
def test_the_stochastic_flow(eta_y, eta_z):
    run = stochastic_flow(CLASSES, eta_y=eta_y, eta_z=eta_z, t_end=0.5, init=start(), batch_size=4, seed=0)
    assert_frozen(run.dataset, eta_y, eta_z)


@pytest.mark.parametrize("level", ["full", "modified", "theory"])
def test_ensembles_are_the_flows_one_by_one(level):
    sizes = {"n_classes": [3, 3], "vocab_size": [50, 50], "common": [0.4, 0.4], "distinct": [1.0, 0.6]}
    times = [1.0, 100.0]
    made = gradient_flow_ensemble(
        {**sizes, "eta_y": [1.0, 0.0], "eta_z": [0.0, 1.0]}, t_end=100.0, decoder=level, times=times
    )
    classes = SequenceClasses.single_common_token(3, 50, common=0.4, distinct=[1.0, 0.6])
    for n, (eta_y, eta_z) in enumerate([(1.0, 0.0), (0.0, 1.0)]):
        one = gradient_flow(classes, eta_y=eta_y, eta_z=eta_z, t_end=100.0, decoder=level, times=times)
        assert (made["z"].values[n] == 0).all() and (one.dataset["z"].values == 0).all()
        np.testing.assert_allclose(made["loss"].values[n], one.dataset["loss"].values, rtol=1e-6)
        listed = gradient_flow_ensemble([(classes, eta_y, eta_z)], t_end=100.0, decoder=level, times=times)
        np.testing.assert_allclose(listed["loss"].values[0], one.dataset["loss"].values, rtol=1e-6)


@pytest.mark.parametrize("level", ["full", "modified", "theory"])
def test_the_decoder_alone_has_a_closed_form_where_no_token_is_common(level):
    """Orthogonal features: the margin x = M h obeys exp(x) - 1 + (M - 1) x = M eta_Y t/K, Lemma 6 (45)."""
    k, m, eta_y = 3, 9, 0.7
    table = np.zeros((k, 2 * k))
    for n in range(k):
        table[n, 2 * n : 2 * n + 2] = 0.7, 0.3
    classes = SequenceClasses(table, [0] * k, vocab_size=m)
    times = np.array([0.5, 3.0, 30.0, 300.0])
    run = gradient_flow(classes, eta_y=eta_y, eta_z=0.0, t_end=300.0, times=times, decoder=level, rtol=1e-10)
    x = m * decoder.h(times / k, vocab_size=m, eta_y=eta_y)
    np.testing.assert_allclose(np.expm1(x) + (m - 1) * x, m * eta_y * times / k, rtol=1e-12)
    np.testing.assert_allclose(run.dataset["loss"].values, np.log1p((m - 1) * np.exp(-x)), rtol=1e-7)


def test_what_is_about_training_of_both_says_so():
    with pytest.raises(ValueError, match=r"`eta_z` must be positive, but got 0"):
        Setting("frozen", single_common_token(2, 10, 0.3), 1.0, 0, 10.0)
    with pytest.raises(ValueError, match=r"`eta_z` must be positive, but got 0"):
        enclose_flow(CLASSES, eta_y=1.0, eta_z=0.0, t_end=1.0)
    with pytest.raises(ValueError, match=r"`eta_z` must be positive, but got 0"):
        decoder.gamma_integral(1.0, vocab_size=10, n_classes=2, eta_y=1.0, eta_z=0.0)
