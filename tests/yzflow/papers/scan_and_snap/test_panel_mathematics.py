"""The panel's mathematics in JavaScript gives what Python's gives."""

import numpy as np
import pytest
from explorer_pages import assert_formulas_agree, close, mathematics
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import SequenceClasses, Solver, gradient_flow
from theory import attention, decoder
from yzflow.papers.scan_and_snap.panel import formulas
from yzflow.papers.scan_and_snap.settings import Setting, single_common_token

PANEL = "yzflow.papers.scan_and_snap.panel"
DISTINCT = [1.0, 0.8, 0.6, 0.4, 0.2]


@pytest.fixture(scope="module")
def run(shared_browser, tmp_path_factory):
    """Evaluate an expression beside the panel's mathematics, with `x` as its argument."""
    own = (PANEL, "formulas.py"), (PANEL, "mathematics.js")
    return mathematics(shared_browser, tmp_path_factory, *own)


def test_each_formula_on_the_page_is_the_claim(run):
    assert_formulas_agree(run, "claims", formulas.claims(), {"M": (20, 60), "K": (2, 20)})


@given(
    m=st.sampled_from([2, 3, 4, 34, 1000, 10**6]) | st.integers(2, 10**6),
    k=st.integers(2, 50),
    eta_y=st.floats(1e-3, 50),
    eta_z=st.floats(1e-3, 50),
    rho=st.floats(1e-3, 0.95),
    t=st.just(0.0) | st.floats(-9, 7).map(lambda log: 10**log),
)
@settings(max_examples=10)
def test_closed_forms_over_the_range_of_the_sliders_and_beyond(run, m, k, eta_y, eta_z, rho, t):
    k = min(k, m)
    sizes = {"vocab_size": m, "n_classes": k}
    given_sizes, decoding = {"vocab_size": m, "eta_y": eta_y}, {**sizes, "eta_y": eta_y}
    c0 = attention.speed_constant(n_classes=k, overlap=rho)
    gamma = decoder.gamma_integral(t, **decoding, eta_z=eta_z)
    common = np.sqrt(rho / (1 - rho) * np.square(DISTINCT).sum())
    expected = {
        "decoder.h(x.t, x)": decoder.h(t, **given_sizes),
        "decoder.gamma(x.t, x)": decoder.gamma(t, **decoding),
        "decoder.gammaIntegral(x.t, x)": gamma,
        "decoder.transitionTime(x)": decoder.transition_time(**decoding),
        "decoder.scanningTime(x)": decoder.scanning_time(**decoding),
        "decoder.snappingTime(x)": decoder.snapping_time(**decoding),
        "decoder.hSteps(60, x)": decoder.h_steps(60, **given_sizes),
        "claims.speedConstant(x.K, x.rho)": c0,
        "claims.slowdown(x.M, x.K, x.rho)": attention.full_flow_slowdown(**sizes, overlap=rho),
        "attention.growthExponent(x.t, x, x.c0)": attention.growth_exponent(t, **decoding, eta_z=eta_z, c0=c0),
        "attention.overlap(x)": rho,
    }
    x = {"M": m, "K": k, "etaY": eta_y, "etaZ": eta_z, "rho": rho, "t": t, "c0": c0, "common": common}
    found = run(f"[{', '.join(f'yzflow.{one}' for one in expected)}]", x | {"distinct": DISTINCT})
    for name, value, right in zip(expected, found, expected.values(), strict=True):
        np.testing.assert_allclose(value, right, rtol=1e-11, atol=0, err_msg=name)
    classes = single_common_token(k, m, rho)
    margins = run("Object.entries(yzflow.margins).map(([, of]) => of(x.M, x.K, x.etaY, x.etaZ, x.rho))", x)
    setting = Setting("", classes, eta_y, eta_z, 10.0)
    close(margins, [assumption.margin(setting) for assumption in formulas.ASSUMPTIONS.values()], 1e-7)


def test_growth_of_distinct_tokens(run):
    exponents = [0.0, 1e-6, 0.1, 1.0, 7.0, 40.0]
    for p in [DISTINCT, [1.0] * 5, [0.3, 0.3, 0.1], [0.05, 1.0, 0.999, 0.01, 0.5]]:
        grown = run("x.b.map((b) => yzflow.attention.distinctGrowth(b, x.p))", {"b": exponents, "p": p})
        expected = np.log(attention.distinct_growth(exponents, p))
        np.testing.assert_allclose(grown, expected, rtol=1e-11, atol=1e-15)


FLOWS = [
    (2, 2, 0.1, 3.0, 0.7, 1e3),
    (10, 10, 1.0, 0.01, 0.15, 300.0),
    (3, 10**6, 20.0, 5.0, 2.0, 1e5),
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
