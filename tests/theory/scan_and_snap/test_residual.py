"""The residual connection: what Section 7 says of it, by algebra, by flows and by SGD."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamics import SequenceClasses, gradient_flow, sgd
from dynamics.extensions import residual_connection
from theory import decoder, statements
from theory.scan_and_snap import residual
from yzflow.audits import audit
from yzflow.audits.verdicts import Verdict, judge
from yzflow.papers.scan_and_snap.settings import Setting, single_common_token

RUNS = audit.Simulations(Setting("inside", single_common_token(2, 1000, 0.3), 1.0, 1e-3, 100.0), seed=0)
STATEMENT = "Scan and Snap: Section 7, residual connection"


def classes_of(features, query, vocab_size):
    shares = features / features.sum(axis=1, keepdims=True)
    return SequenceClasses(shares, query + vocab_size - 1 - query.max(), vocab_size=vocab_size)


@pytest.mark.parametrize("connected", [True, False])
@pytest.mark.parametrize("shape", [(2, 2), (3, 2)])
def test_the_modified_flow_moves_at_this_speed(shape, connected):
    """dz/dt = eta_Z gamma(t)/K times `speed`, features still: Theorem 1 with the Gram matrix of the connection."""
    features, query = residual.random_classes(1, *shape)
    data = classes_of(features, query, 300)
    init = {"init": residual_connection(data)[1]} if connected else {}
    times = [1.0, 40.0, 400.0]
    options = {"eta_y": 1.0, "eta_z": 1e-9, "t_end": 400.0, "times": times, "decoder": "modified", "rtol": 1e-10}
    velocity = gradient_flow(data, **options, **init).dataset["z_velocity"].values
    expected = residual.speed(features, query, 300, connected=connected)
    for t, found in zip(times, velocity, strict=True):
        gamma = decoder.gamma(t, vocab_size=300, n_classes=len(query), eta_y=1.0)
        np.testing.assert_allclose(found, 1e-9 * gamma / len(query) * expected, rtol=0, atol=1e-8 * np.abs(found).max())


@given(st.integers(2, 4), st.integers(2, 6), st.floats(0.005, 0.03), st.floats(0.2, 3))
def test_which_shared_tokens_gain(n_queries, n_each, common, ratio):
    edge = residual.local_share(n_queries, n_each)
    features, query = residual.local_classes(n_queries, n_each, common, common * np.sqrt(ratio * edge))
    found = residual.speed(features, query, 10**9)[0]
    if abs(ratio - 1) > 0.05:
        assert np.sign(found[n_queries]) == np.sign(1 - ratio)
    assert found[0] < 0 < found[n_queries + n_each]  # the common token loses, the one of the class alone gains


def test_beta_of_equal_classes_without_overlaps_is_two_over_one_more_than_their_number():
    for n_each in (2, 3, 7):
        query = np.repeat([0, 1], n_each)
        found = residual.beta(residual.gram(np.eye(2 * n_each), query), 10**12)
        np.testing.assert_allclose(found[0, 1:n_each], 2 / (n_each + 1), rtol=1e-9)
        np.testing.assert_allclose(found[0, n_each:], 0, atol=1e-9)


@pytest.mark.parametrize(("shared", "sign"), [(0.1, 1), (0.3, -1)])
def test_flows_and_sgd_agree_on_who_gains(shared, sign):
    """Two queries of two classes, common feature 0.2: the edge is at a shared one of 0.2 sqrt(3/5) = 0.155."""
    features, query = residual.local_classes(2, 2, 0.2, shared)
    data = classes_of(features, query, 300)
    layer = residual_connection(data)[1]
    rates = {"eta_y": 1.0, "eta_z": 0.05, "init": layer}
    finals = [
        gradient_flow(data, t_end=60.0, n_times=2, decoder="modified", **rates).final,
        sgd(data, steps=60, batch_size=None, length=None, momentum=0.0, decoder="modified", **rates).final,
    ]
    for final in finals:
        assert (sign * final.Z[[0, 0, 1, 1], [2, 3, 2, 3]] > 1e-4).all()
        assert (final.Z[[0, 1], [0, 1]] < -1e-4).all()
    plain = gradient_flow(data, eta_y=1.0, eta_z=0.05, t_end=60.0, n_times=2, decoder="modified").final
    assert (plain.Z[[0, 0, 1, 1], [2, 3, 2, 3]] < finals[0].Z[[0, 0, 1, 1], [2, 3, 2, 3]]).all()


def test_the_register_has_both_forms():
    found = {}
    for check in statements.REGISTER[STATEMENT].checks:
        printed, corrected = (
            check.printed(RUNS, "closed form"),
            check.corrected and check.corrected(RUNS, "closed form"),
        )
        found[check.name] = (printed, corrected)
        assert judge(printed if corrected is None else corrected, check.tolerance) is not Verdict.FAILS
    printed = found["beta within a query, 200 random sets"][0]
    assert printed == pytest.approx(0.661, abs=0.01)
    assert found["locally distinct tokens that do not gain"][0] == pytest.approx(0.752, abs=0.01)


def halved(right):
    return lambda *arguments: right(*arguments) / 2


# Check, what is replaced, by what.
FALSE = {
    "beta's constant: 1/2": (residual.beta_corrected, "gram", lambda right: lambda f, q: right(f, q) * 2),
    "Psi left out": (
        residual.beta_corrected, "gram", lambda right: lambda f, q: right(f, np.arange(len(q))),
    ),
    "not apart": (residual.beta_apart, "gram", lambda right: lambda f, q: right(f, np.arange(len(q)) % 2)),
    "half of the share": (residual.local_distinct_corrected, "local_share", halved),
    "common tokens gain": (residual.local_common, "speed", lambda right: lambda *a, **o: -right(*a, **o)),
    "tokens of one class lose": (residual.own_distinct, "speed", lambda right: lambda *a, **o: -right(*a, **o)),
}  # fmt: skip


@pytest.mark.parametrize("name", FALSE)
def test_false_variants_fail(name, monkeypatch):
    check, attribute, wrap = FALSE[name]
    tolerance = 0.1 if check is residual.beta_corrected else 0
    assert check(RUNS, "closed form") <= tolerance
    monkeypatch.setattr(residual, attribute, wrap(getattr(residual, attribute)))
    assert check(RUNS, "closed form") > tolerance
