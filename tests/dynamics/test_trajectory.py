"""Trajectories: observables and files."""

import h5py
import numpy as np
import pytest
import reference
import strategies
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import Bags, Layer, SequenceClasses, Trajectory, gradient_flow


def run(data, decoder="full", **options):
    arguments = {"eta_y": 1.0, "eta_z": 1.0, "t_end": 20.0, "n_times": 4}
    return gradient_flow(data, decoder=decoder, **(arguments | options))


@pytest.fixture(scope="module")
def trajectory():
    classes = SequenceClasses(
        [[0.3, 0.2, 0.5, 0, 0], [0.2, 0.3, 0, 0.1, 0.4], [0.4, 0.6, 0, 0, 0]], [2, 4, 2], vocab_size=9
    )
    return run(classes)


@given(strategies.sequence_classes(), st.sampled_from(["full", "modified", "theory"]))
@settings(max_examples=8)
def test_dataset_describes_its_layers(classes, decoder):
    """Loss and attention recorded at each time are those of the layer recorded there."""
    data = classes.population()
    dataset = run(classes, decoder).dataset
    for i in range(dataset.sizes["time"]):
        Z, Y = dataset["z"].values[i], np.repeat(dataset["y"].values[i], dataset["multiplicity"].values, axis=1)
        assert dataset["loss"].values[i] == pytest.approx(reference.loss(data, Z, Y), rel=1e-10)
        for n, counts in enumerate(reference.dense_counts(data)):
            c = reference.attend(counts, Z[data.query[n]])
            np.testing.assert_allclose(dataset["attention"].values[i, n], c, rtol=1e-12)
    for n in range(classes.n_classes):
        np.testing.assert_array_equal(np.flatnonzero(dataset["distinct"].values[n]), classes.distinct_tokens(n))
    np.testing.assert_array_equal(dataset["query_of"], classes.query)


def test_attention_given_a_next_token_is_the_mean_over_its_bags():
    """Two bags of next token 2, of weights 0.1 and 0.3, and one of next token 0; next token 1 never occurs."""
    data = Bags.from_dense([0, 1, 0], [2, 2, 0], [[1, 1, 0], [0, 1, 3], [0, 1, 1]], [0.1, 0.3, 0.6], vocab_size=4)
    dataset = run(data, t_end=1e-6, n_times=2).dataset
    np.testing.assert_array_equal(dataset["next_token"], [0, 2])
    np.testing.assert_allclose(dataset["attention"].values[0], [[0, 1 / 2, 1 / 2], [1 / 8, 5 / 16, 9 / 16]], rtol=1e-14)
    np.testing.assert_array_equal(dataset["distinct"], [[False, False, False], [True, False, False]])
    np.testing.assert_array_equal(dataset["query_of"], [0, -1])


def test_growth_factor_and_relative_gain_by_hand(trajectory):
    z = trajectory.dataset["z"].values
    for next_token, row, token, other, ratio in ((0, 0, 2, 1, 0.5 / 0.2), (1, 1, 4, 0, 0.4 / 0.2)):
        growth = trajectory.growth_factor(next_token, token)
        np.testing.assert_allclose(growth, np.exp(2 * (z[:, row, token] - z[0, row, token])), rtol=1e-14)
        gain = trajectory.relative_gain(next_token, token, other)
        expected = (ratio * np.exp(z[:, row, token] - z[:, row, other])) ** 2 - 1
        np.testing.assert_allclose(gain, expected, rtol=1e-12)
        assert growth.dims == gain.dims == ("time",)


def test_growth_factor_counts_from_the_first_recorded_state(trajectory):
    layer = trajectory.final
    data = Bags.from_dense([0, 1, 0], [0, 1, 2], trajectory.dataset["attention"].values[0], vocab_size=9)
    growth = run(data, init=layer).growth_factor(0, 2).values
    assert growth[0] == 1
    assert growth[-1] != 1


def test_row_sums_count_every_next_token(trajectory):
    sums = trajectory.row_sums()
    dataset = trajectory.dataset
    for i in range(dataset.sizes["time"]):
        dense = Layer(dataset["z"].values[i], dataset["y"].values[i], None, dataset["multiplicity"].values).expand()
        np.testing.assert_allclose(sums["y"].values[i], dense.Y.sum(axis=1), atol=1e-13)
        np.testing.assert_allclose(sums["z"].values[i], dense.Z.sum(axis=1), atol=1e-13)
    layer = Layer(np.ones((1, 2)), [[1, 2, 5], [0, -1, 3]], None, [1, 1, 4])
    data = Bags.from_dense([0], [0], [[1, 1]], vocab_size=6)
    started = run(data, init=layer, n_times=2).row_sums()
    np.testing.assert_array_equal(started["y"].values[0], [23, 11])
    np.testing.assert_array_equal(started["z"].values[0], [2])


def test_growth_needs_a_single_query():
    data = Bags.from_dense([0, 1], [0, 0], [[1, 2], [2, 1]])
    with pytest.raises(ValueError, match=r"^`next_token` must have a single query, but got 0, which has several$"):
        run(data, n_times=2).growth_factor(0, 0)


# Files


@pytest.mark.parametrize("decoder", ["full", "modified", "theory"])
def test_file_holds_the_trajectory(decoder, tmp_path):
    trajectory = run(SequenceClasses.syn_small(), decoder)
    trajectory.save(tmp_path / "run.nc")
    loaded = Trajectory.load(tmp_path / "run.nc")
    xr.testing.assert_identical(loaded.dataset, trajectory.dataset)
    assert loaded.parameters == trajectory.parameters
    for name in ("Z", "Y", "multiplicity"):
        np.testing.assert_array_equal(getattr(loaded.final, name), getattr(trajectory.final, name), strict=True)


def test_file_holds_a_value_matrix(tmp_path):
    data = SequenceClasses.syn_small().population()
    V = np.random.default_rng(0).normal(size=(30, 3))
    trajectory = run(data, init=Layer(np.zeros((2, 30)), np.zeros((3, 34)), V), n_times=2)
    trajectory.save(tmp_path / "run.nc")
    loaded = Trajectory.load(str(tmp_path / "run.nc"))
    np.testing.assert_array_equal(loaded.dataset["v"].values[0], V)
    xr.testing.assert_identical(loaded.dataset, trajectory.dataset)


def test_file_is_plain_netcdf(trajectory, tmp_path):
    """Other tools can open it: the variables stand under their names."""
    trajectory.save(tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc") as file:
        np.testing.assert_array_equal(file["z"][...], trajectory.dataset["z"])
        assert file["time"].attrs["units"] in ("SGD steps", b"SGD steps")


def test_load_names_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.nc"):
        Trajectory.load(tmp_path / "nothing.nc")


@pytest.mark.parametrize("content", [b"", b"time,loss\n0,1\n", bytes(range(256))])
def test_load_refuses_what_is_no_netcdf(content, tmp_path):
    (tmp_path / "run.nc").write_bytes(content)
    with pytest.raises(ValueError, match=r"^`path` must be a trajectory written by yzflow, .*run\.nc"):
        Trajectory.load(tmp_path / "run.nc")


def test_load_refuses_another_netcdf(tmp_path):
    xr.Dataset({"loss": ("time", [1.0, 2.0])}).to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match=r"^`path` must be a trajectory written by yzflow, .*run\.nc"):
        Trajectory.load(tmp_path / "run.nc")
    with pytest.raises(ValueError, match=r"^`dataset` must have the attribute format"):
        Trajectory(xr.Dataset())
