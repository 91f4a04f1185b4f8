"""Flows at late times: against the simulator, an integral of motion and their limits."""

import numpy as np
import pytest
from yzflow_beyond_scan_and_snap import late

from dynamics import SequenceClasses, Solver, gradient_flow

FIVE = {"n_classes": 10, "vocab_size": 1000, "common": 0.4, "n_distinct": 5}


@pytest.mark.parametrize("decoder", ["full", "theory"])
def test_the_reduced_flow_in_log_time_is_the_simulator_s(decoder):
    classes = SequenceClasses.single_common_token(10, 1000, common=0.4, distinct=[0.12] * 5)
    s = np.array([0.0, 2.5, 5.0, 8.0])
    flow = gradient_flow(
        classes, eta_y=1.0, eta_z=0.5, t_end=np.exp(8.0), times=np.exp(s), decoder=decoder, rtol=1e-10, atol=1e-13,
        solver=Solver(time_scale="log"),
    )  # fmt: skip
    z = flow.dataset["z"].values[:, 0, 0]
    found = late.late_flow(s, **FIVE)["z"] if decoder == "full" else late.theory_logit(s, **FIVE)
    np.testing.assert_allclose(found, z, rtol=1e-7)


def test_k_equal_m_stays_on_its_orbit_and_has_exponent_one():
    # The integral of motion of the proof, which knows nothing of the integrator.
    s = np.geomspace(1, 800, 30)
    flow = late.late_flow(s, n_classes=4, vocab_size=4, n_distinct=1, eta_y=1.0, eta_z=0.5, rtol=1e-9)
    w, gain = flow["ratio"].values, 1 + 1 / 4
    # A^2 from the orbit; ln t = u + O(1) with u = d A.
    A = np.sqrt(((1 / w**2 - 2 * np.log(w)) - (1 / w[0] ** 2 - 2 * np.log(w[0]))) / (3 * gain * 0.5))
    margin = A / np.sqrt(1 + w**2)
    late_part = s > 100
    rest = margin[late_part] - s[late_part]
    assert np.ptp(rest) < 0.05 * abs(rest).max() + 0.3
    assert flow["exponent"].values[-1] == pytest.approx(1, abs=2e-3)


def test_attention_never_freezes_and_the_exponent_goes_to_its_limit():
    s = np.array([20.0, 200.0, 1200.0])
    exponent = late.late_flow(s, n_classes=5, vocab_size=20, n_distinct=1, rtol=1e-7)["exponent"].values
    limit = late.final_exponent(n_classes=5, vocab_size=20)
    excess = exponent - limit
    assert (excess > 0).all() and (np.diff(excess) < 0).all()
    assert excess[-1] < 0.25 * limit
    # In the paper's setting the slope -1/2 of Theorem 4's late form is passed through, not kept.
    exponent = late.late_flow([8.0, 100.0], **FIVE, rtol=1e-7)["exponent"].values
    assert 0.4 < exponent[0] < 0.5 and exponent[1] == pytest.approx(0.302, abs=0.005)


def test_theory_flow_ends_with_exponent_one():
    s = np.array([1e5, 1e5 * 1.01])
    z = late.theory_logit(s, n_classes=5, vocab_size=20, n_distinct=1)
    assert -(1 + 1 / 5) * (z[1] - z[0]) / np.log(1.01) == pytest.approx(1, abs=0.01)
