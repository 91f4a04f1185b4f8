"""Measured sizes, figures and the tour of sparse averaging."""

import math

import driving
import matplotlib
import numpy as np
import pytest
import xarray as xr

from dynamics.data import averaging as tasks
from theory import averaging
from yzflow import figures
from yzflow.papers.sparse_averaging import constructions as measured


@pytest.fixture(scope="module")
def dimensions():
    return measured.smallest_dimensions(n_tokens=(24, 48), subset_sizes=(1, 2, 8), n_sets=12)


@pytest.mark.slow
def test_smallest_dimensions_leave_out_sets_beyond_a_quarter(dimensions):
    m = dimensions["dimension"]
    assert np.isnan(m.sel(n_tokens=24, q=8)).all()
    filled = m.sel(q=[1, 2])
    assert (filled.sel(certificate="exclusion") <= filled.sel(certificate="minimum norm")).all()
    assert (m.sel(n_tokens=48, q=8) > m.sel(n_tokens=48, q=2)).all()


def test_match2_margins_are_those_of_the_formula():
    data = measured.match2_margins(n_tokens=(2, 50), moduli=(31, 101))
    np.testing.assert_allclose(data["measured"], data["predicted"], rtol=1e-9)
    assert data["measured"].sel(n_tokens=50, modulus=101) < 0 < data["measured"].sel(n_tokens=2, modulus=101)


def test_rounding_errors_fall_by_half_a_bit():
    data = measured.rounding_errors(n_tokens=256, subset_sizes=(4,))
    error = data["error"].sel(q=4)
    assert float(error.sel(bits=int(data["sufficient"].sel(q=4)))) <= 1e-3 < float(error.sel(bits=4))
    # The first p from which on eps holds, by the search of `theory`, on the same keys.
    keys = averaging.random_keys(256, math.ceil(12 * 4 * math.log(256)), rng=np.random.default_rng(0))
    subset = tasks.adversarial_subsets(keys, 4)[0]
    query = averaging.certificate(keys, subset).query
    tau = averaging.temperature(n_tokens=256, q=4, error=5e-4)
    needed = averaging.smallest_bits(keys, query, subset, tau=tau, error=1e-3)
    assert float(error.sel(bits=needed)) <= 1e-3 < float(error.sel(bits=needed - 1))
    # From 8 to 20 bits by 2^12, within what one query's luck with rounding makes of it.
    assert -14.5 < np.log2(float(error.sel(bits=20) / error.sel(bits=8))) < -9.5


def test_query_bits_by_construction():
    data = measured.query_bits(n_tokens=64, subset_sizes=(2, 8))
    assert (data["own_lengths"] < data["moment_curve"]).all()
    # q four times as large: sixteen times the bits of the moment curve, up to its lower-order terms.
    assert float(data["moment_curve"][1] / data["moment_curve"][0]) == pytest.approx(16, rel=0.2)


@pytest.fixture(scope="module")
def triples():
    return measured.triple_sizes(n_tokens=(8, 12, 27), promised=(2**6, 2**14, 2**30))


def test_sizes_of_triples_are_counted_and_those_of_the_formulas(triples):
    one = triples.sel(construction="groups")
    assert np.isnan(one["depth"].sel(n_tokens=12)) and (one["dimension"].sel(n_tokens=[8, 27]) == [4, 9]).all()
    assert float(triples["wrong"].sum()) == 0 and float(triples["outputs"].sum()) > 500
    # What is promised is enough for what is counted at the same size.
    again = measured.triple_sizes(n_tokens=(64,), promised=(64,))
    counted = (again["depth"] * again["heads"] * again["dimension"]).isel(n_tokens=0)
    assert (counted <= again["product"].isel(promised=0) + 1e-9).all()
    assert counted.sel(construction="transform") == again["product"].sel(construction="transform", promised=64)
    # The order of the three, and who is below N / log2 N where.
    below = triples["product"] < triples["bound"]
    assert not below.sel(promised=2**6).any() and below.sel(promised=2**30).all()
    assert below.sel(promised=2**14).values.tolist() == [False, False, True]


def test_the_caption_of_sizes_follows_the_data(triples):
    claims = figures.match3_sizes.claims
    outputs = int(triples["outputs"].sum())
    assert f"to N = 27: 0 of {outputs} outputs wrong" in claims(triples) and "transform from N = 1.64e+04" in claims(
        triples
    )
    worse = triples.assign(wrong=triples["wrong"] + 1, product=triples["product"] * 1e12)
    assert "groups at none" in claims(worse) and f": 8 of {outputs} outputs wrong" in claims(worse)


def test_the_caption_of_dimensions_follows_the_data():
    """Twice q ln N, and 8 q^2 ln(N/q) with a factor that falls from 1.5 to 1, with sets that are too large left out."""
    n, q = xr.DataArray([64, 256], dims="n_tokens"), xr.DataArray([1, 4, 32], dims="q")
    q = q.assign_coords(q=q)
    factor = xr.DataArray([1.5, 1.25, 1.0], dims="q")
    rules = {"exclusion": 2 * q * np.log(n) * xr.ones_like(factor), "minimum norm": factor * 8 * q**2 * np.log(n / q)}
    m = xr.concat(list(rules.values()), "certificate").assign_coords(certificate=list(rules), n_tokens=n)
    m = xr.concat([m, 0.1 * m], "sets").assign_coords(sets=["adversarial", "random"])
    data = m.where(4 * q <= n).to_dataset(name="dimension")
    text = figures.qsa_smallest_dimension.claims(data)
    assert text.startswith("Pinned, it is at most 2.0 q ln N.")
    assert "1.00 to 1.50 times 8 q^2 ln(N/q)" in text and "1.00 at the largest q and 1.50 at the smallest" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["match2_margins", "match3_sizes", "qsa_precision", "qsa_query_bits", "qsa_smallest_dimension"]
)
def test_figures_label_their_axes_and_show_their_data(name, dimensions, triples):
    data = {
        "match2_margins": lambda: measured.match2_margins(n_tokens=(2, 50), moduli=(31, 101, 201)),
        "match3_sizes": lambda: triples,
        "qsa_precision": lambda: measured.rounding_errors(n_tokens=64, subset_sizes=(2, 4), bits=8),
        "qsa_query_bits": lambda: measured.query_bits(n_tokens=16, subset_sizes=(1, 2)),
        "qsa_smallest_dimension": lambda: dimensions,
    }[name]()
    before = dict(matplotlib.rcParams)
    figure = getattr(figures, name)(data)
    assert dict(matplotlib.rcParams) == before
    figure.draw_without_rendering()
    assert all(axes.get_xlabel() for axes in figure.axes) and figure.axes[0].get_ylabel()
    shown = {float(y) for axes in figure.axes for line in axes.get_lines() for y in np.atleast_1d(line.get_ydata())}
    first = {
        "match2_margins": "measured",
        "match3_sizes": "product",
        "qsa_precision": "error",
        "qsa_query_bits": "random_keys",
    }
    values = data[first.get(name, "dimension")].values.ravel()
    assert shown >= {float(value) for value in values if value == value}


@pytest.mark.slow
def test_the_tour_writes_what_it_says(tmp_path, capsys):
    tour = driving.example("sparse_averaging")
    assert tour.main(["--quick", "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    names = ["qsa_smallest_dimension", "qsa_precision", "qsa_query_bits", "match2_margins", "qsa_training"]
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {f"{name}.{kind}" for name in names for kind in ("png", "nc")} | {
        "summary.txt",
        "captions.txt",
    }
    assert xr.load_dataset(tmp_path / "out" / "match2_margins.nc").attrs["scale"] == 2000
    assert "0 of 16000 outputs wrong" in out and "no certificate, best rho" in out
    with pytest.raises(SystemExit) as caught:
        tour.main(["--out", __file__])
    assert caught.value.code == 2
