"""Enclosed flows, the survey and the law of late attention at small sizes, against what is known otherwise."""

import numpy as np
import pytest
from yzflow_beyond_scan_and_snap.late import late_flow
from yzflow_beyond_scan_and_snap.late_attention import LateAttention, random_settings

from yzflow_studies.late_exponent import study


def test_an_enclosed_flow_is_trapped_late_and_not_early():
    flow = LateAttention.of(n_classes=2, vocab_size=3, n_distinct=1)
    late = study.enclosed(flow, t_end=25.0, bits=45, ln_t=(10.0, 1e3), eta_y=1.0)
    early = study.enclosed(flow, t_end=4.0, bits=45, ln_t=(), eta_y=1.0)
    assert late["falls"] and late["trapped"] and early["falls"] and not early["trapped"]
    (low, high), missing = late["exponents"]
    assert np.isnan(missing).all()
    # By an integrator in ln t, with other variables.
    other = float(late_flow([10.0], n_classes=2, vocab_size=3, n_distinct=1, rtol=1e-11)["exponent"][0])
    assert low - 1e-7 < other < high + 1e-7
    with pytest.raises(RuntimeError, match="the enclosure ended at sigma"):
        study.enclosed(LateAttention.of(n_classes=10, vocab_size=1000), t_end=60.0, bits=30, ln_t=(), eta_y=1.0)


def test_the_survey_finds_a_logit_that_rises():
    """Of flows whose sign of N is turned: a survey that cannot count finds none."""

    class Turned(LateAttention):
        def conditions(self, state):
            return {name: -value for name, value in super().conditions(state).items()}

    one = LateAttention(n_classes=2, vocab_size=4, ratio=0.5, speed=0.5)
    other = Turned(**one.config())
    found = study.survey([one, other], rtol=1e-9)
    assert found["least"][0] > 0 > found["least"][1] and found["kappa"].min() > 0.5
    assert 1 < found["entered"][0] < 50 and np.isinf(found["entered"][1])
    assert len(random_settings(4, 51)) == 4


def test_the_next_orders_are_the_flow_s():
    found = study.law((3, 4), [1e3, 1e4], common=0.4, eta_y=1.0, eta_z=0.5)
    excess, said = found["exponent"] - found["limit"], found["predicted"] - found["limit"]
    gap = abs(said / excess - 1)
    assert gap[0] < 0.02 and gap[1] < 0.004


def test_the_counter_example_is_enclosed_on_both_sides_of_its_rise():
    flow = LateAttention.of(n_classes=2, vocab_size=3, common=0.9999, n_distinct=1, eta_y=1.0, eta_z=1.0)
    found = study.rise(flow, sigmas=(9.0, 10.5), t_end=10.5, bits=90, eta_y=1.0)
    assert found["signs"] == [1, -1] and not found["trapped"]
    # By an integrator in ln t, with other variables, around the ln t at which balls have the logit rise.
    s = found["ln_t"][1]
    z = late_flow([s - 0.01, s + 0.01], n_classes=2, vocab_size=3, common=0.9999, n_distinct=1, eta_z=1.0, rtol=1e-10)
    assert float(np.diff(z["z"])[0]) > 0
    with pytest.raises(RuntimeError, match="the enclosure ended at sigma"):
        study.rise(flow, sigmas=(9.0,), t_end=10.5, bits=30, eta_y=1.0)


def test_the_border_of_rising_logits_is_met_between_two_starts():
    found = study.rising_from((2, 3), ratios=(1000.0, 10_000.0, 20_000.0), speeds=(0.1, 1.0), rtol=1e-10)
    assert found == {"last": 1000.0, "first": 10_000.0, "speed": 1.0, "failed": 0, "runs": 4}
    none = study.rising_from((2, 3), ratios=(300.0,), speeds=(1.0,), rtol=1e-10)
    assert none["last"] == 300.0 and np.isnan(none["first"])
