"""Theorem 2 under Adam: against the simulator and closed forms; what the figure shows and claims."""

import numpy as np
import pytest
import xarray as xr

from dynamics import Optimizer, sgd
from yzflow_studies.adam_reverses import study


@pytest.mark.parametrize("name", ["plain", "adam"])
def test_training_y_and_z_apart_is_the_simulator_s_where_both_are_one(name):
    size = study.Size(4, 60, 0.3, (1.0, 0.5))
    rates = {"eta_y": 1.0, "eta_z": 0.1} if name == "plain" else {"eta_y": 0.01, "eta_z": 0.001}
    optimizer = Optimizer("adam") if name == "adam" else Optimizer(momentum=0.0)
    run = sgd(size.classes, optimizer=optimizer, steps=200, batch_size=None, length=None, record_every=1, **rates)
    own = study.trained_apart(size, y=name, z=name, steps=200, **rates)
    np.testing.assert_allclose(own.Z, run.dataset["z"].values[:, 0], atol=1e-12)
    np.testing.assert_allclose(own.Y, run.dataset["y"].values, atol=1e-11)
    np.testing.assert_allclose(own.loss, run.dataset["loss"].values, rtol=1e-11)


@pytest.mark.parametrize("name", ["plain", "adam"])
def test_where_attention_first_moves_is_the_closed_form(name):
    """The bracket of Adam's first step on Y, and that of a plain one, whose signs are Theorem 2's."""
    for size in (*study.SIZES, study.Size(4, 60, 1.5, (1.0, 0.5)), study.Size(10, 40, 0.3, (1.0, 0.9, 0.8))):
        k, m, f = size.n_classes, size.vocab_size, size.features
        eta = 1e-5
        Y = study.trained_apart(size, y=name, z="none", eta_y=eta, eta_z=1.0, steps=1).Y[1]
        Z = np.zeros(len(Y))
        moved = study.trained_apart(size, y="none", z="plain", eta_y=1.0, eta_z=1.0, steps=1, start=(Z, Y)).Z[1]
        slopes = moved[: f.size] * np.array([1.0, *[k] * (f.size - 1)])
        c = (m - k) / (m - 1)
        if name == "adam":
            common, own = study.first_slopes(size)
            expected = 2 * eta * (1 - 1 / m) * f * [common, *own]
        else:
            rest = 1 - f[0] ** 2
            expected = eta / k * (1 - 1 / m) * f**2 * (1 - c) * np.array([-rest, *[f[0] ** 2] * (f.size - 1)])
        np.testing.assert_allclose(slopes, expected, rtol=0.02)


def test_adam_on_y_turns_attention_around_and_adam_on_z_does_not():
    size = study.SIZES[0]
    for (y, z), run in study.crossed(size, steps=150).items():
        common, dominant = run.Z[2:, 0], run.Z[2:, 1]
        turned = y == "adam"
        assert ((common > 0) == turned).all() and ((dominant < 0) == turned).all(), (y, z)
    found = study.held(size, steps=150)
    # Under plain steps from zero, rows stay proportional to f, here as 2 : 1 (fixed features).
    assert found["spread"].sel(y="plain") == pytest.approx(0.5) and found["spread"].sel(y="adam") < 1e-5
    assert found["loss"].sel(y="plain") <= found["loss"].sel(y="adam")
    assert found["common"].sel(y="adam") > 0.1 > -0.01 > found["common"].sel(y="plain")
    assert found["dominant"].sel(y="adam") < -0.1 < 0 < found["dominant"].sel(y="plain")
    # A frequent common token falls under Adam too.
    frequent = study.trained_apart(
        study.Size(4, 60, 1.5, (1.0, 0.5)), y="adam", z="adam", eta_y=0.01, eta_z=0.001, steps=150
    )
    assert frequent.Z[-1, 0] < -0.1 < 0.1 < frequent.Z[-1, 1]


@pytest.mark.parametrize(("holds", "first"), [([0, 1, 0, 1, 1], 3), ([1, 1], 0), ([1, 0], 2)])
def test_from_when_on_something_holds(holds, first):
    assert study.kept_from(holds) == first


def test_runs_are_compared_at_the_same_loss():
    size = study.SIZES[0]
    found = study.survey(
        sizes=[size], ratios=[0.1], rates=[0.01], optimizers=["adam"], decoders=["full"], plain_steps=300
    )
    own = study.crossed(size)
    plain, both = own["plain", "plain"], own["adam", "adam"]
    step = int(found["plain_step"][0])
    assert plain.loss[step] <= both.loss[-1] < plain.loss[step - 1]
    assert float(found["plain_common"][0]) == pytest.approx(plain.Z[step, 0], rel=1e-9)
    assert float(found["dominant"][0]) == pytest.approx(both.Z[-1, 1], rel=1e-9)
    # r = (f_1/f_2)^2 - 1 and f_l is proportional to P(l) exp(z_l).
    lead = (4 * np.exp(2 * (both.Z[-1, 1] - both.Z[-1, 2])) - 1) / 3
    assert float(found["lead"][0]) == pytest.approx(lead, rel=1e-9)
    assert float(found["reversed_from"][0]) == pytest.approx(0.02)
    out_of_reach = study.survey(
        sizes=[size], ratios=[0.1], rates=[0.01], optimizers=["adam"], decoders=["full"], plain_steps=10
    )
    assert np.isnan(out_of_reach["plain_common"][0])


def small_ways():
    size = study.Size(3, 9, 0.3, (1.0, 0.5))
    return {
        "survey": study.survey(
            sizes=[size], ratios=[0.1], rates=[0.05], optimizers=["adam"], reach=2.0, plain_steps=200
        ),
        "crossed": {"small": study.crossed(size, steps=20)},
        "held": {"small": study.held(size, steps=20, frozen_at=5)},
        "foreseen": study.foreseen(shapes=[(4, 4), (4, 60)], commons=[0.3], distincts=[(1.0,)], steps=20),
        "batches": xr.Dataset({"adam_common": ("seed", [0.1, 0.3])}, attrs={"size": "small"}),
    }


def test_the_figure_draws_its_data_and_claims_what_it_shows():
    data, (entry,) = small_ways(), study.FIGURES
    figure = entry.draw(data)
    figure.draw_without_rendering()
    assert all(axes.get_xlabel() and axes.get_ylabel() for axes in figure.axes)
    claims = entry.claims(data)
    assert "reversed at the end of 2 of 2 runs" in claims and "Theorem 2's in 2, and the lead has grown in 2." in claims
    assert "Of 2 sizes under Adam 1 have both signs reversed and 1 both as in Theorem 2" in claims
    # Student's t with one degree of freedom: tan(0.475 pi) times 0.1.
    assert f"adam, common +0.2000 +- {0.1 * np.tan(0.475 * np.pi):.4f}" in claims
