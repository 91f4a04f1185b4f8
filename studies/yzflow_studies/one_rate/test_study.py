"""Kernels of the original parameters against finite differences and exact cases; what the figure claims."""

import numpy as np
import pytest
from figure_rules import drawn
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import SequenceClasses
from yzflow_studies.one_rate import study


@given(st.floats(0.2, 2), st.floats(0, 2), st.floats(0, 2), st.floats(0.2, 2), st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_kernels_of_the_original_parameters(kappa, v, q, k, seed):
    # Traces of the kernels, by finite differences in no formula: random gradients in place of the layer's.
    rng = np.random.default_rng(seed)
    scales = {"embedding": kappa, "value": v, "query": q, "key": k}
    first = study.start(rng, tokens=9, width=9, **scales)
    G_Y, G_Z = rng.normal(size=(2, 9, 9))
    rate = study.velocity(first, G_Y, G_Z, 0.3)
    step = 1e-5
    ahead, back = (study.Parameters(*(X + sign * step * dX for X, dX in zip(first, rate, strict=True))).logits()
                   for sign in (1, -1))  # fmt: skip
    for found, plus, minus in zip(study.moved(first, rate), ahead, back, strict=True):
        np.testing.assert_allclose(found, (plus - minus) / (2 * step), rtol=1e-5, atol=1e-5)
    # Gradient flow: <G, velocity of the logits> is eta^-1 |velocity of the parameters|^2.
    dY, dZ = study.moved(first, rate)
    assert (dY * G_Y).sum() + (dZ * G_Z).sum() == pytest.approx(sum((dX**2).sum() for dX in rate) / 0.3, rel=1e-9)


def test_induced_rates_are_exact_without_values_and_queries():
    rng = np.random.default_rng(0)
    first = study.start(rng, tokens=8, width=8, embedding=1.3, value=0.0, query=0.0, key=0.7)
    G_Y, G_Z = rng.normal(size=(2, 8, 8))
    eta_y, eta_z = study.induced_rates(eta=0.2, width=8, embedding=1.3, value=0.0, query=0.0, key=0.7)
    dY, dZ = study.moved(first, study.velocity(first, G_Y, G_Z, 0.2))
    np.testing.assert_allclose(dY, eta_y * G_Y, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(dZ, eta_z * G_Z, rtol=1e-10, atol=1e-12)


def test_induced_rates_in_the_mean():
    # Symmetric gradients of one matrix at a time, where the square of a rotation, of mean I/d, adds 1/d of the term
    # that it is in: 300 starts; six standard errors, false alarm below 1e-8.
    for which in (0, 1):
        found = []
        for seed in range(300):
            rng = np.random.default_rng([seed, which])
            first = study.start(rng, tokens=6, width=6, embedding=1.1, value=0.8, query=0.9, key=1.2)
            G = [np.zeros((6, 6)), np.zeros((6, 6))]
            G[which] = rng.normal(size=(6, 6))
            G[which] += G[which].T
            moved = study.moved(first, study.velocity(first, *G, 1.0))[which]
            found.append((moved * G[which]).sum() / (G[which] ** 2).sum())
        claim = study.induced_rates(eta=1.0, width=6, embedding=1.1, value=0.8, query=0.9, key=1.2)[which]
        more = (2 * (1.1 * 0.8) ** 2, 2 * (1.1 * 0.9 * 1.2) ** 2 / 6)[which] / 6
        assert abs(np.mean(found) - claim - more) < 6 * np.std(found) / np.sqrt(300)
        assert np.std(found) / np.sqrt(300) < 0.03 * claim


def test_norms_of_the_original_parameters_are_conserved_and_rates_drift():
    classes = SequenceClasses.single_common_token(3, 7, common=0.5, distinct=[0.3, 0.2])
    bags, rng = classes.population(), np.random.default_rng(1)
    first = study.start(rng, tokens=7, width=7, value=0.3, query=0.4, key=0.8)
    states, loss = study.simulate(bags, first, eta=0.1, times=[0.0, 40.0, 80.0], rtol=1e-9)
    for state in states:
        np.testing.assert_allclose(study.conserved(state), study.conserved(first), atol=1e-7)
    assert (np.diff(loss) < 0).all()


def test_one_rate_follows_the_induced_rates_at_first_and_leaves_them():
    found = study.against_induced(t_end=60.0, n_times=7)
    assert found["eta_y"].values[0] == pytest.approx(found.attrs["predicted_eta_y"], rel=1e-12)
    assert found.attrs["predicted_eta_y"] / found.attrs["predicted_eta_z"] == pytest.approx(13)
    start = found["loss"].values[0] - found["loss"].values[1]
    simple = found["loss_induced"].values[0] - found["loss_induced"].values[1]
    assert start == pytest.approx(simple, rel=0.25)
    assert found["eta_y"].values[-1] > 5 * found.attrs["predicted_eta_y"]


def test_refusals():
    with pytest.raises(ValueError, match=r"`width` must be 5, the number of tokens, .* but got 4"):
        study.start(np.random.default_rng(0), tokens=5, width=4)


def small_drift():
    return {"small": study.against_induced(n_distinct=2, t_end=20.0, n_times=4)}


def test_the_figure_draws_its_data_and_claims_what_it_shows():
    data, (entry,) = small_drift(), study.FIGURES
    _, claims = drawn(entry, data)
    assert "small: eta_Y/eta_Z is 9 at the start" in claims
