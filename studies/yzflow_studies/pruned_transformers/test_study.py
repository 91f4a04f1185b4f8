"""The law of widths at a small size: what is drawn, what is claimed, and slopes against lines known beforehand."""

import numpy as np
import pytest
import xarray as xr

from yzflow_studies.pruned_transformers import study


@pytest.fixture(scope="module")
def data():
    return study.width_law(numbers=(10, 12), layers=(1,), spare=(0,), seeds=2)


def test_no_sampled_error_is_above_its_certificate(data):
    assert (data["error"] <= data["certificate_on_inputs"] * (1 + 1e-9)).all()
    assert (data["certificate_on_inputs"] <= data["certificate"] * (1 + 1e-9)).all()
    assert data.attrs["n_spare"] == 12 and (data["error_spare"] > 0).all()


def test_slopes_and_ratios_are_those_of_lines_written_down():
    n, seed = xr.DataArray([8, 10, 12, 14], dims="n"), xr.DataArray([0.0, 1.0], dims="seed")
    # A line of slope -1 and one of slope -1.5; what stands below n = 10 lies on neither.
    certificate = 2.0 ** (-(1 + seed / 2) * n).where(n >= 10, 50).expand_dims(layers=[1])
    data = xr.Dataset({"certificate": certificate, "error": certificate / 4}, {"n": n, "seed": [0, 1]})
    slopes, errors = study.slopes(data, "certificate")
    assert slopes == pytest.approx([-1.25]) and errors == pytest.approx([0.25])
    assert study.looseness(data, "certificate") == pytest.approx([4])


def test_the_figure_draws_its_data_and_claims_what_it_shows(data):
    (entry,) = study.FIGURES
    left, right = entry.draw(data).axes
    np.testing.assert_allclose(left.lines[0].get_ydata(), data["certificate"].sel(layers=1).median("seed"))
    assert right.get_xlabel() and "n = 12" in right.get_title()
    assert "No sampled error is above its certificate." in entry.claims(data)
    above = data.assign(error=2 * data["certificate_on_inputs"])
    assert "Some sampled errors are above" in entry.claims(above)
