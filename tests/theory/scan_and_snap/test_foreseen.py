"""Forecasts at a reader's own data: each is held against a simulation of that very case, or it is not made."""

import re

import numpy as np
import pytest
from balls import long_enough
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import yzflow as yz
from dynamics import Objective, Optimizer, SequenceClasses, gradient_flow
from theory.scan_and_snap import foreseen
from yzflow.papers.scan_and_snap.settings import own

WEIGHTS = (0.9, 0.05, 0.05)


def weighed(weights, common=0.3, vocab_size=1000, distinct=0.7):
    k = len(weights)
    rows = np.zeros((k, k + 1))
    rows[:, 0], rows[np.arange(k), np.arange(1, k + 1)] = common, distinct
    return SequenceClasses(rows, [0] * k, vocab_size=vocab_size, class_weights=weights)


def case(classes, eta_y=1.0, **training):
    return own(data=classes, eta_y=eta_y, eta_z=1e-6, t_end=10.0, **training).setting


def fastest(classes, eta_y, t_end, decoder="theory"):
    """The time at which the logit of each class's distinct token moves fastest, with features that hardly move."""
    times = np.geomspace(t_end / 3000, t_end, 2000)
    z = gradient_flow(
        classes, eta_y=eta_y, eta_z=1e-6, t_end=t_end, times=times, decoder=decoder, rtol=1e-10, atol=1e-18
    ).dataset["z"]
    moved = z.values[:, 0, 1 : classes.n_classes + 1]
    speed = np.diff(moved, axis=0) / np.diff(times)[:, None]
    return np.sqrt(times[1:] * times[:-1])[np.abs(speed).argmax(axis=0)]


@settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    st.lists(st.floats(0.5, 3.0), min_size=2, max_size=4),
    st.integers(200, 3000),
    st.floats(0.05, 2.0),
    st.floats(0.1, 0.6),
)
def test_each_class_has_a_clock_of_its_own(raw, vocab_size, eta_y, common):
    """2,000 times in equal ratios tell a peak to .4%; the growth of other classes mixes in with a weight of 1/M."""
    weights = np.array(raw) / np.sum(raw)
    classes = weighed(weights, common, vocab_size, 1 - common)
    words = foreseen.transition(case(classes, eta_y))
    told = [float(number.replace(",", "")) for number in re.findall(r"([\d.,e+]+) steps", words)]
    found = fastest(
        classes,
        eta_y,
        3
        * yz.decoder.transition_time(vocab_size=vocab_size, n_classes=len(weights), eta_y=eta_y)
        / (len(weights) * weights.min()),
    )
    if len(told) == 1:
        assert np.ptp(weights) < 1e-12
        told *= 2
    np.testing.assert_allclose([found[weights.argmax()], found[weights.argmin()]], told, rtol=0.005 + 5 / vocab_size)


def test_a_rare_class_is_late_and_a_frequent_one_early():
    words = foreseen.transition(case(weighed(WEIGHTS)))
    assert "6.267 steps for next token 0 and 112.8 steps for next token 1" in words


@pytest.mark.parametrize(
    "training",
    [
        {"optimizer": "adam"},
        {"optimizer": Optimizer(momentum=0.9)},
        {"optimizer": Optimizer(momentum=0.0, weight_decay=0.05)},
        {"objective": Objective(label_smoothing=0.1)},
    ],
)
@pytest.mark.parametrize("foresee", [foreseen.transition, foreseen.slowdown, foreseen.lengths])
def test_what_is_of_plain_steps_says_so_under_another_training(foresee, training):
    if foresee is foreseen.lengths:
        pytest.importorskip("yzflow_enclose", reason="lengths are decided in balls")
    classes = weighed([1 / 3] * 3)
    plain, other = foresee(case(classes)), foresee(case(classes, **training))
    assert "plain" not in plain and other == f"for plain steps: {plain}"


@settings(max_examples=8, deadline=None)
@given(st.integers(2, 4), st.floats(0.1, 0.9), st.integers(10, 400))
def test_the_full_flow_begins_slower_by_what_is_foreseen(k, common, vocab_size):
    classes = weighed([1 / k] * k, common, vocab_size, 1 - common)
    s = float(re.search(r"begins ([\d.e-]+) times", foreseen.slowdown(case(classes)))[1])
    moved = [
        gradient_flow(classes, eta_y=1.0, eta_z=1e-6, t_end=1e-3, decoder=name, rtol=1e-10, atol=1e-26).final.Z[0, 1]
        for name in ("full", "modified")
    ]
    np.testing.assert_allclose(moved[0] / moved[1], s, rtol=0.01)


def test_a_slowdown_is_not_foreseen_where_it_is_another_one():
    with pytest.raises(ValueError, match="`data` must have classes of equal shares"):
        foreseen.slowdown(case(weighed(WEIGHTS)))
    differ = SequenceClasses([[0.6, 0.4, 0, 0], [0.3, 0, 0.7, 0], [0.5, 0, 0, 0.5]], [0] * 3, vocab_size=9)
    with pytest.raises(ValueError, match="`data` must have equal overlaps, but got"):
        foreseen.slowdown(case(differ))
    apart = SequenceClasses(np.eye(3), [0] * 3, vocab_size=10)
    with pytest.raises(ValueError, match="`data` must have classes that overlap: without common tokens attention"):
        foreseen.slowdown(case(apart))
    flow = gradient_flow(apart, eta_y=1.0, eta_z=0.5, t_end=20.0)
    assert np.abs(flow.final.Z).max() < 1e-12


def test_lengths_are_told_apart_by_the_gradient_that_made_y():
    pytest.importorskip("yzflow_enclose")
    classes = weighed([0.5, 0.5], 0.75, 100, 0.25)
    words = foreseen.lengths(case(classes))
    for name, after in (("modified", "for Lemma 3's"), ("full", "for Lemma 1's"), ("trained", "where the same")):
        found = long_enough(classes, decoder=name)
        assert f"from T = {found.length:,} on{'' if found.exact else ', if not before,'} {after}" in words


def test_an_open_sign_is_not_called_a_false_one():
    open_sign = foreseen._length(long_enough(weighed([0.5, 0.5]), decoder="modified"))
    assert open_sign.startswith("from T = ")
    rising = SequenceClasses(
        [[0.7, 0.2, 0.1, 0, 0], [0.7, 0.0001, 0, 0.2999, 0], [0.7, 0, 0, 0, 0.3]], [0] * 3, vocab_size=50
    )
    found = long_enough(rising)
    assert found.length is None and found.decided and foreseen._length(found).startswith("at no large T (token ")
    tied = long_enough(SequenceClasses(np.eye(2), [0, 0], vocab_size=5))
    assert tied.length is None and not tied.decided and foreseen._length(tied).startswith("at a T that is open")
