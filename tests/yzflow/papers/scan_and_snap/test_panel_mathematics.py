"""The panel's mathematics in JavaScript gives what Python's gives."""

import itertools

import numpy as np
import pytest
from explorer_pages import close, mathematics

from dynamics import SequenceClasses, Solver, gradient_flow
from theory import attention, decoder
from theory.scan_and_snap.tokens import weak_correlation
from yzflow.papers.scan_and_snap.panel import PANEL


@pytest.fixture(scope="module")
def run(shared_browser, tmp_path_factory):
    """Evaluate an expression beside the panel's mathematics, with `x` as its argument."""
    return mathematics(shared_browser, tmp_path_factory, PANEL)


DISTINCT = [1.0, 0.8, 0.6, 0.4, 0.2]


def test_decoder_over_the_range_of_the_sliders_and_beyond(run):
    times = [0.0, *np.geomspace(1e-9, 1e7, 33)]
    for m, eta_y in itertools.product([2, 3, 34, 1000, 10**6], [1e-3, 0.5, 20.0]):
        k = min(10, m)
        sizes = {"vocab_size": m, "n_classes": k}
        setting = {"M": m, "K": k, "etaY": eta_y, "etaZ": 0.3}
        x = {"t": times, "s": setting}
        close(run("x.t.map((t) => yzflow.decoder.h(t, x.s))", x), decoder.h(times, vocab_size=m, eta_y=eta_y), 1e-12)
        expected = decoder.gamma(times, **sizes, eta_y=eta_y)
        close(run("x.t.map((t) => yzflow.decoder.gamma(t, x.s))", x), expected, 1e-11)
        expected = decoder.gamma_integral(times, **sizes, eta_y=eta_y, eta_z=0.3)
        close(run("x.t.map((t) => yzflow.decoder.gammaIntegral(t, x.s))", x), expected, 1e-11)
        for script, python in [
            ("transitionTime", decoder.transition_time),
            ("scanningTime", decoder.scanning_time),
            ("snappingTime", decoder.snapping_time),
        ]:
            close(run(f"yzflow.decoder.{script}(x)", setting), python(**sizes, eta_y=eta_y), 1e-13)
        close(run("yzflow.decoder.hSteps(60, x)", setting), decoder.h_steps(60, vocab_size=m, eta_y=eta_y), 1e-12)


def test_growth_exponent_and_growth_of_distinct_tokens(run):
    times = list(np.geomspace(0.01, 1e5, 15))
    for c0 in [1.0, 50.0, 1e7]:
        x = {"t": times, "s": {"M": 1000, "K": 10, "etaY": 2.0, "etaZ": 0.5}, "c0": c0}
        expected = attention.growth_exponent(times, vocab_size=1000, n_classes=10, eta_y=2.0, eta_z=0.5, c0=c0)
        close(run("x.t.map((t) => yzflow.attention.growthExponent(t, x.s, x.c0))", x), expected, 1e-12)
    exponents = [0.0, 1e-6, 0.1, 1.0, 7.0, 40.0]
    for p in [DISTINCT, [1.0] * 5, [0.3, 0.3, 0.1], [0.05, 1.0, 0.999, 0.01, 0.5]]:
        grown = run("x.b.map((b) => yzflow.attention.distinctGrowth(b, x.p))", {"b": exponents, "p": p})
        expected = np.log(attention.distinct_growth(exponents, p))
        np.testing.assert_allclose(grown, expected, rtol=1e-11, atol=1e-15)


def test_regime(run):
    for k, m, common in itertools.product([2, 3, 10], [10, 1000, 10**6], [0.02, 0.15, 2.0]):
        classes = SequenceClasses.single_common_token(k, m, common=common, distinct=DISTINCT)
        overlap = classes.overlap()
        rho = run("yzflow.attention.overlap(x)", {"common": common, "distinct": DISTINCT})
        close(rho, overlap[0, 1], 1e-13)
        close(
            run(f"yzflow.attention.speedConstant({k}, x)", rho),
            attention.speed_constant(n_classes=k, overlap=rho),
            1e-13,
        )
        expected = attention.full_flow_slowdown(vocab_size=m, n_classes=k, overlap=rho)
        close(run(f"yzflow.attention.fullFlowSlowdown({m}, {k}, x)", rho), expected, 1e-13)
        margins = run(f"yzflow.attention.assumption2({m}, {k}, x)", rho)
        weak = weak_correlation(overlap, vocab_size=m)
        close([margins["upper"], margins["lower"]], [weak.upper_margin, weak.lower_margin], 1e-9)


FLOWS = [
    (10, 1000, 1.0, 0.5, 0.15, 700.0),
    (2, 2, 0.1, 3.0, 0.7, 1e3),
    (10, 10, 1.0, 0.01, 0.15, 300.0),
    (3, 10**6, 20.0, 5.0, 2.0, 1e5),
    (50, 5000, 5.0, 0.05, 0.02, 1e5),
]


@pytest.mark.parametrize("level", ["theory", "modified", "full"])
@pytest.mark.parametrize(("k", "m", "eta_y", "eta_z", "common", "t_end"), FLOWS)
def test_flow_of_one_class_is_the_flow_of_all(run, level, k, m, eta_y, eta_z, common, t_end):
    """Logits over time against the general integrator, which holds all classes."""
    times = np.concatenate([[0.0], np.geomspace(t_end / 1e3, t_end, 12)])
    classes = SequenceClasses.single_common_token(k, m, common=common, distinct=DISTINCT)
    options = {"rtol": 1e-11, "atol": 1e-13, "solver": Solver(time_scale="log")}
    flow = gradient_flow(classes, eta_y=eta_y, eta_z=eta_z, t_end=t_end, times=times, decoder=level, **options)
    expected = flow.dataset["z"].to_numpy()[:, 0, :6]
    setting = {"M": m, "K": k, "etaY": eta_y, "etaZ": eta_z}
    x = {"s": setting, "p": [common, *DISTINCT], "t": times.tolist()}
    actual = run(f"yzflow.flow.logits('{level}', x.s, x.p, x.t)", x)
    np.testing.assert_allclose(actual, expected, rtol=2e-7, atol=2e-9)
