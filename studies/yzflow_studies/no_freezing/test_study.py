"""The slow exponent against the flow and its limit; what the figure draws and claims."""

import numpy as np
import pytest
from figure_rules import drawn
from yzflow_beyond_scan_and_snap import late
from yzflow_beyond_scan_and_snap.proofs import late_full_flow

from yzflow_studies.no_freezing import study


def test_the_slow_exponent_predicts_the_flow_s():
    flow = late.late_flow([100.0, 1000.0], n_classes=5, vocab_size=20, n_distinct=1, rtol=1e-7)
    predicted, ratio = study.slow_exponent(flow["ratio"].values, n_classes=5, vocab_size=20)
    gap = predicted / flow["exponent"].values - 1
    assert abs(gap[0]) < 0.09 and abs(gap[1]) < 0.03
    np.testing.assert_allclose(ratio[1], flow["p_over_q"].values[1], rtol=0.01)
    # Far down it is the limit that the proof solves for.
    far, one = study.slow_exponent([1e-4], n_classes=5, vocab_size=20)
    assert far[0] == pytest.approx(float(late_full_flow.exponent(20, 5)), rel=1e-4) and one[0] == pytest.approx(
        1, abs=1e-4
    )


def test_refusals():
    with pytest.raises(ValueError, match="`vocab_size` must be above 5, but got 5"):
        study.slow_exponent([0.1], n_classes=5, vocab_size=5)


def small_falls():
    s = np.geomspace(2, 60, 12)
    found = {}
    for k, m in ((3, 6), (3, 3)):
        flow = late.late_flow(s, n_classes=k, vocab_size=m, n_distinct=1, rtol=1e-6)
        flow["theory"] = ("ln_t", late.theory_logit(s, n_classes=k, vocab_size=m, n_distinct=1))
        if m > k:
            flow["slow"] = ("ln_t", study.slow_exponent(flow["ratio"].values, n_classes=k, vocab_size=m)[0])
        found[k, m, 1] = flow
    return found


def test_the_figure_draws_its_data_and_claims_what_it_shows():
    data, (entry,) = small_falls(), study.FIGURES
    figure, claims = drawn(entry, data)
    last = data[3, 6, 1]["exponent"].values[-1]
    assert f"{last:.3g} at ln t = 10, 100, 60; limit 0.4." in claims
    line = next(line for line in figure.axes[0].get_lines() if line.get_label() == "K = 3, M = 6")
    np.testing.assert_array_equal(line.get_ydata(), data[3, 6, 1]["z"])
