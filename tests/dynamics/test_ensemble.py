"""Many flows at once against `gradient_flow`, one by one, and against closed forms."""

import json
import os
import random
import shutil
import signal
import threading
import warnings

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from strategies import SEEDS, sequence_classes

from dynamics import Limits, SequenceClasses, gradient_flow, gradient_flow_ensemble
from dynamics._engine import chunks, lane_field, one_by_one
from dynamics._engine import lanes as ensemble
from dynamics.backend.lanes import LANES, load, store
from dynamics.ensemble import RECORDS
from theory import attention, decoder
from yzflow.testing import GRAMMAR

# The lanes integrate reduced flows, whose steps are compared.
pytestmark = pytest.mark.usefixtures("few_classes_reduced")
DECODERS = ("full", "modified", "theory")
TIGHT = {"rtol": 1e-12, "atol": 1e-14}


@st.composite
def members(draw, *, most_classes=6):
    """K, M, counts and rates of one setting, next tokens unseen or not."""
    n_classes = draw(st.integers(2, most_classes))
    unseen = draw(st.sampled_from([0, 1, 20, 2000]))
    rng = np.random.default_rng(draw(SEEDS))
    return {
        "n_classes": n_classes,
        "vocab_size": n_classes + unseen,
        "common": float(np.exp(rng.uniform(-3, 1))),
        "distinct": rng.uniform(0.2, 1, draw(st.integers(1, 3))),
        "eta_y": float(np.exp(rng.uniform(-2, 2))),
        "eta_z": float(np.exp(rng.uniform(-2, 2))),
    }


def classes_of(member):
    return SequenceClasses.single_common_token(*(member[name] for name in ("n_classes", "vocab_size")),
                                               common=member["common"], distinct=member["distinct"])  # fmt: skip


def rates_of(member):
    return {name: member[name] for name in ("eta_y", "eta_z")}


def test_exponentials_of_a_row_are_those_of_the_library():
    @njit(error_model="numpy")
    def exponentials(x, out):
        for i in range(x.shape[0]):
            store(out, i, lane_field.exp(load(x, i)))

    rng = np.random.default_rng(0)
    x = rng.uniform(-700, 700, (5000, LANES)) * rng.uniform(size=(5000, 1)) ** 3
    out = np.empty_like(x)
    exponentials(x, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=5e-16)
    edges = np.tile([0.0, -800.0, 800.0, np.inf, -np.inf, np.nan, 1e-300, -0.0], (1, LANES // 8))
    out = np.empty_like(edges)
    exponentials(edges, out)
    assert (out[0, [0, 6, 7]] == 1).all() and np.isnan(out[0, 5])
    assert (out[0, [1, 4]] > 0).all() and (out[0, [1, 4]] < 1e-306).all()
    assert np.isfinite(out[0, [2, 3]]).all() and (out[0, [2, 3]] > 1e306).all()


def compared(member, decoder, t_end, times, **options):
    """The variables of an ensemble of one, and those of `gradient_flow` at the tokens of class 0."""
    names = ("z", "attention", "loss", "z_velocity", "y")
    own = gradient_flow_ensemble(member, t_end=t_end, times=times, decoder=decoder, record=names, threads=1, **options)
    run = gradient_flow(classes_of(member), **rates_of(member), t_end=t_end, times=times, decoder=decoder, **options)
    data, width = run.dataset, 1 + len(member["distinct"])
    y = data["y"].values
    columns = [y[:, :1, 0], y[:, 1:width, 0], y[:, 1:width, 1]]
    columns += [y[:, 1:width, -1], y[:, :1, -1]] if member["vocab_size"] > member["n_classes"] else []
    expected = {
        "z": data["z"].values[:, 0, :width],
        "attention": data["attention"].values[:, 0, :width],
        "loss": data["loss"].values,
        "z_velocity": data["z_velocity"].values[:, 0, :width],
        "y": np.concatenate(columns, axis=1),
    }
    return own, expected


@given(members(), st.sampled_from(DECODERS), st.floats(1, 300))
def test_each_member_is_the_flow_of_its_setting(member, decoder, t_end):
    """At a tolerance at which neither method's own error shows: their steps differ where symmetry is not used."""
    own, expected = compared(member, decoder, t_end, np.linspace(0, t_end, 7), **TIGHT)
    assert not own["failed"]
    for name, values in expected.items():
        found = own[name].values[..., : values.shape[1]] if name == "y" else own[name].values
        scale = np.abs(values).max()
        np.testing.assert_allclose(found, values, atol=1e-8 * scale, err_msg=name)
    unseen = own["y"].sel(logit=[name for name in own["logit"].values if name.endswith("unseen")])
    assert unseen.isnull().all() == (member["vocab_size"] == member["n_classes"])


@pytest.mark.parametrize("vocab_size", [10, 1000])
@pytest.mark.parametrize("name", DECODERS)
def test_where_symmetry_is_used_the_steps_are_those_of_the_flow(name, vocab_size):
    """Then the two do the same sums: at any tolerance they agree to rounding. No next token may be unseen."""
    member = {"n_classes": 10, "vocab_size": vocab_size, "common": 0.15, "distinct": (1.0, 0.8, 0.6), "eta_y": 1.0,
              "eta_z": 0.5}  # fmt: skip
    own, expected = compared(member, name, 700.0, [3.0, 60.0, 700.0], rtol=1e-5, atol=1e-7)
    for variable, values in expected.items():
        found = own[variable].values
        found = found[..., : values.shape[1]] if variable == "y" else found  # without those of unseen next tokens
        np.testing.assert_allclose(found, values, rtol=1e-9, atol=1e-11)


def test_the_theory_decoder_meets_the_closed_forms():
    """h of (44) through the loss, ln(1 + (M - 1) exp(-M h)), and -z of the common token against B (Theorem 4)."""
    n_classes, vocab_size, eta_y, eta_z, rho = 10, 100_000, 1.0, 1e-3, 1e-3
    distinct = np.array([1.0, 0.8, 0.6, 0.4, 0.2])
    common = np.sqrt(rho / (1 - rho) * (distinct**2).sum())
    times = np.geomspace(1, 1e4, 9)
    own = gradient_flow_ensemble(
        {"n_classes": n_classes, "vocab_size": vocab_size, "common": common, "eta_y": eta_y, "eta_z": eta_z},
        t_end=1e4, times=times, decoder="theory", **TIGHT,
    )  # fmt: skip
    h = decoder.h(times / n_classes, vocab_size=vocab_size, eta_y=eta_y)
    np.testing.assert_allclose(own["loss"], np.log1p((vocab_size - 1) * np.exp(-vocab_size * h)), rtol=1e-9)
    rates = {"vocab_size": vocab_size, "n_classes": n_classes, "eta_y": eta_y, "eta_z": eta_z}
    expected = attention.growth_exponent(times, **rates, c0=attention.speed_constant(n_classes=n_classes, overlap=rho))
    # rho_0 is taken as constant there, and 1/M against rho adds a hundredth.
    np.testing.assert_allclose(-own["z"].sel(kind="common"), expected, rtol=0.02)


@pytest.mark.parametrize("name", ["modified", "theory"])
def test_with_slow_attention_the_largest_speed_is_at_the_transition_time(name):
    own = gradient_flow_ensemble(
        {"n_classes": [3, 10, 40], "vocab_size": [50, 1000, 100], "eta_y": [0.3, 1.0, 5.0], "eta_z": 1e-7},
        t_end=3000.0, decoder=name, **TIGHT,
    )  # fmt: skip
    for i in range(3):
        sizes = {"n_classes": int(own["n_classes"][i]), "vocab_size": int(own["vocab_size"][i])}
        expected = decoder.transition_time(**sizes, eta_y=float(own["eta_y"][i]))
        np.testing.assert_allclose(own["fastest_time"][i], expected, rtol=1e-5)


def test_the_largest_speed_is_that_of_the_recorded_velocity():
    settings = {"n_classes": 10, "vocab_size": [30, 1000], "common": [0.3, 1.0], "eta_y": 1.0, "eta_z": 0.5}
    times = np.geomspace(1, 5000, 4000)
    own = gradient_flow_ensemble(settings, t_end=5000.0, times=times, record=["z_velocity"], rtol=1e-10, atol=1e-12)
    speed = np.abs(own["z_velocity"])
    np.testing.assert_allclose(own["largest_speed"], speed.max("time"), rtol=1e-5)
    where = speed["time"].values[speed.argmax("time").values]
    np.testing.assert_allclose(own["fastest_time"], where, rtol=2.2e-3)  # the ratio of neighbouring times
    short = gradient_flow_ensemble(settings, t_end=5.0)  # before any of them
    assert short["fastest_time"].isnull().all()
    np.testing.assert_allclose(
        short["largest_speed"],
        np.abs(gradient_flow_ensemble(settings, t_end=5.0, record=["z_velocity"])["z_velocity"][:, -1]),
        rtol=1e-5,
    )


def test_states_are_the_same_where_no_largest_speed_is_looked_for():
    """At a tolerance at which steps are as long as is stable, where speeds at their ends have many maxima.

    A sequence whose second data are not recognised as Theorem 4's, which is integrated by scipy.
    """
    given = {"n_classes": [6, 28, 3], "vocab_size": [53060, 6453, 20], "common": [1.19, 1.38, 0.15]}
    given |= {"eta_y": [0.0107, 0.0198, 1.0], "eta_z": [0.78, 0.654, 0.5]}
    classes = SequenceClasses.single_common_token(4, 60, distinct=(1.0, 0.5))
    weights = np.full(4, 0.25) + np.array([1, 0, 0, -1]) * 2.0**-54
    other = SequenceClasses(classes.probabilities, classes.query, vocab_size=60, class_weights=weights)
    options = {"t_end": 1000.0, "times": [10.0, 1000.0], "rtol": 1e-3, "atol": 1e-5}
    for several in (given, [(classes, 1.0, 0.5), (other, 1.0, 0.5)]):
        whole, less = (gradient_flow_ensemble(several, **options, fastest=fastest) for fastest in (True, False))
        assert set(whole) - set(less) == {"fastest_time", "largest_speed"} and set(less) < set(whole)
        for name in ("z", "attention", "loss", "reached"):
            np.testing.assert_array_equal(whole[name], less[name])
        assert (less["evaluations"] < whole["evaluations"]).all()


# A stiff member, which takes too many steps; one whose features are dependent in float64; one that overflows.
BROKEN = {"n_classes": [10, 4, 10, 3, 10], "vocab_size": [1000, 10**6, 1000, 30, 50],
          "common": [0.15, 3.0, 1e9, 1.0, 0.3], "eta_y": [1.0, 1e4, 1.0, 1e308, 2.0],
          "eta_z": [0.5, 1e4, 0.5, 1e308, 0.1]}  # fmt: skip


@pytest.mark.parametrize("name", DECODERS)
def test_a_member_that_fails_is_marked_and_changes_no_other(name, monkeypatch):
    monkeypatch.setattr(ensemble, "MOST_EVALUATIONS", 600)
    times = [1.0, 300.0]
    together = gradient_flow_ensemble(BROKEN, t_end=300.0, times=times, decoder=name, threads=2)
    reasons = together["reason"].values
    expected = [ensemble.DONE, ensemble.TOO_LONG, ensemble.DONE, None, ensemble.DONE]
    if name != "full":
        expected[2] = ensemble.DEPENDENT
    for found, own in zip(reasons, expected, strict=True):
        assert found == own if own is not None else found != ensemble.DONE
    np.testing.assert_array_equal(together["failed"], reasons != ensemble.DONE)
    assert (together["reached"].values[[0, 4]] == 300).all() and (together["reached"].values[reasons != 0] < 300).all()
    assert together["z"].isel(setting=[0, 4]).notnull().all() and together["z"].isel(setting=3).isnull().any()
    meanings = together["reason"].attrs["flag_meanings"].split()
    assert "evaluations" in meanings[ensemble.TOO_LONG] and len(meanings) == len(ensemble.REASONS)
    for i in (0, 4):
        alone = gradient_flow_ensemble(
            {key: values[i] for key, values in BROKEN.items()}, t_end=300.0, times=times, decoder=name
        )
        for variable in alone.data_vars:
            np.testing.assert_array_equal(together[variable][i], alone[variable])


@settings(max_examples=8)
@given(st.integers(1, 50), st.sampled_from(DECODERS), SEEDS)
def test_no_bit_of_a_member_depends_on_the_others(n, name, seed):
    """Some fail, some are stiff and take long; whatever is beside them, in whatever order, and alone."""
    rng = np.random.default_rng(seed)
    given = {
        "n_classes": rng.integers(2, 9, n),
        "vocab_size": 9 + rng.choice([-1, 0, 30, 10**5], n),
        "common": np.exp(rng.uniform(-3, 1, n)) * rng.choice([1.0, 1e9], n, p=[0.9, 0.1]),
        "distinct": rng.uniform(0.1, 1, (n, 2)),
        "eta_y": np.exp(rng.uniform(-3, 3, n)) * rng.choice([1.0, 1e306], n, p=[0.9, 0.1]),
        "eta_z": np.exp(rng.uniform(-3, 3, n)),
    }
    options = {"t_end": 100.0, "times": [0.0, 1.0, 40.0, 41.0], "decoder": name, "record": RECORDS}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ensemble, "MOST_EVALUATIONS", 3000)
        together = gradient_flow_ensemble(given, **options)
        other = rng.permutation(n)
        turned = gradient_flow_ensemble({key: values[other] for key, values in given.items()}, threads=1, **options)
        one = int(rng.integers(n))
        alone = gradient_flow_ensemble({key: values[[one]] for key, values in given.items()}, **options)
    for variable in together.data_vars:
        np.testing.assert_array_equal(turned[variable], together[variable][other], err_msg=variable)
        np.testing.assert_array_equal(alone[variable][0], together[variable][one], err_msg=variable)


def test_the_lanes_are_compiled_once_for_all_shapes_and_strides_of_settings():
    rates = np.linspace(0.1, 2, 6)
    for eta_y in (1.0, rates, rates[::-1], np.tile(rates, (2, 1))[:, 0]):
        gradient_flow_ensemble({"n_classes": 2, "vocab_size": 5, "eta_y": eta_y, "eta_z": 1}, t_end=1.0, threads=7)
    assert len(ensemble.integrate.signatures) == 1


def test_dimensions_are_those_of_the_settings():
    rate = xr.DataArray([0.1, 0.5, 1.0], dims="rate", coords={"rate": [1, 2, 3]})
    sizes = xr.DataArray([20, 30], dims="size")
    own = gradient_flow_ensemble(
        {"n_classes": 3, "vocab_size": sizes, "eta_y": rate, "eta_z": 0.5 * rate, "distinct": [1.0, 0.5]},
        t_end=10.0, times=[5.0, 10.0],
    )  # fmt: skip
    assert dict(own.sizes) == {"size": 2, "rate": 3, "time": 2, "kind": 3, "distinct_token": 2}
    assert own["kind"].values.tolist() == ["common", "distinct 0", "distinct 1"]
    assert own["rate"].values.tolist() == [1, 2, 3] and own["z"].dims == ("size", "rate", "time", "kind")
    cell = gradient_flow_ensemble(
        {"n_classes": 3, "vocab_size": 30, "eta_y": 0.5, "eta_z": 0.25, "distinct": [1.0, 0.5]},
        t_end=10.0, times=[5.0, 10.0],
    )  # fmt: skip
    assert cell["z"].dims == ("time", "kind")
    np.testing.assert_array_equal(own["z"].isel(size=1).sel(rate=2), cell["z"])
    np.testing.assert_array_equal(own["fastest_time"].isel(size=1).sel(rate=2), cell["fastest_time"])
    table = xr.DataArray([[1.0, 0.5], [0.3, 0.2]], dims=("distinct_token", "rate"))
    turned = gradient_flow_ensemble(
        {"n_classes": 3, "vocab_size": 30, "eta_y": 0.5, "eta_z": 0.25, "distinct": table},
        t_end=10.0,
        times=[5.0, 10.0],
    )
    other = gradient_flow_ensemble(
        {"n_classes": 3, "vocab_size": 30, "eta_y": 0.5, "eta_z": 0.25, "distinct": [0.5, 0.2]},
        t_end=10.0, times=[5.0, 10.0],
    )  # fmt: skip
    np.testing.assert_array_equal(turned["z"].isel(rate=1), other["z"])


@settings(max_examples=6)
@given(st.lists(sequence_classes(), min_size=1, max_size=3), st.sampled_from(DECODERS))
def test_a_sequence_of_any_data(data, name):
    """Of Theorem 4's setting and of others, each against `gradient_flow`."""
    data = [SequenceClasses.single_common_token(3, 40, distinct=(1.0, 0.5)), *data]
    given = [(one, 1.0, 0.2 + i) for i, one in enumerate(data)]
    own = gradient_flow_ensemble(given, t_end=20.0, times=[1.0, 20.0], decoder=name, record=["z", "attention", "loss"],
                                 rtol=1e-11, atol=1e-13)  # fmt: skip
    for i, (one, eta_y, eta_z) in enumerate(given):
        run = gradient_flow(one, eta_y=eta_y, eta_z=eta_z, t_end=20.0, times=[1.0, 20.0], decoder=name, rtol=1e-11,
                            atol=1e-13).dataset  # fmt: skip
        member = own.isel(setting=i)
        assert not member["failed"]
        entries = one_by_one.Entries.of(one.population())
        z = run["z"].values[:, entries.query, entries.token]
        np.testing.assert_allclose(member["z"].sel(kind=entries.kinds()), z, atol=1e-8)
        shares = run["attention"].values[:, entries.support.row, entries.support.token]
        np.testing.assert_allclose(member["attention"].sel(pair=entries.pairs()), shares, atol=1e-8)
        np.testing.assert_allclose(member["loss"], run["loss"], rtol=1e-8)
        assert int(member["z"].notnull().sum()) == z.size
        assert int(member["attention"].notnull().sum()) == shares.size


def test_both_engines_of_a_sequence_agree_on_theorem_4():
    """Data with the classes' weights off by an ulp is not recognised, and goes the way of any other."""
    classes = SequenceClasses.single_common_token(4, 60, distinct=(1.0, 0.5))
    weights = np.full(4, 0.25) + np.array([1, 0, 0, -1]) * 2.0**-54
    assert (weights != 0.25).any()
    probabilities = classes.probabilities
    other = SequenceClasses(probabilities, classes.query, vocab_size=60, class_weights=weights)
    for name in DECODERS:
        own = gradient_flow_ensemble([(classes, 1.0, 0.5), (other, 1.0, 0.5)], t_end=200.0, times=[20.0, 200.0],
                                     decoder=name, record=["z", "attention", "loss", "z_velocity"])  # fmt: skip
        first, second = own.isel(setting=0), own.isel(setting=1)
        alike = gradient_flow_ensemble([(classes, 1.0, 0.5), (other, 1.0, 0.5)], t_end=200.0, times=[20.0, 200.0],
                                       decoder=name, fastest=False)["evaluations"]  # fmt: skip
        assert min(alike) > 100 and abs(alike[0] - alike[1]) <= 24  # as many steps as the other, but for rounding
        for variable in ("z", "attention", "loss", "z_velocity", "fastest_time", "largest_speed"):
            np.testing.assert_allclose(second[variable], first[variable], rtol=1e-6, atol=1e-9, err_msg=variable)


def test_a_sequence_is_the_same_in_any_number_of_chunks():
    """Two threads take three and two of five settings."""
    classes = SequenceClasses.single_common_token(4, 60, distinct=(1.0, 0.5))
    given = [(classes, 1.0, eta_z) for eta_z in (0.1, 0.2, 0.3, 0.4, 0.5)]
    one, two = (gradient_flow_ensemble(given, t_end=20.0, threads=threads) for threads in (1, 2))
    assert one["z"].notnull().all() and one["z"].sel(time=20.0).std("setting").min() > 0
    assert two.equals(one)


def grid():
    rate = xr.DataArray(np.geomspace(0.1, 1, 7), dims="rate")
    return {"n_classes": 3, "vocab_size": xr.DataArray([20, 30], dims="size"), "eta_y": rate, "eta_z": 0.5}


@Limits(members=4)
def test_a_folder_is_taken_up_where_it_was_left(tmp_path, monkeypatch):
    whole = gradient_flow_ensemble(grid(), t_end=10.0)
    computed = []
    run = chunks.work

    def counting(compute, *arguments, **options):
        def one(lo, hi):
            computed.append((lo, hi))
            if len(computed) == 3 and fail:
                raise MemoryError
            return compute(lo, hi)

        return run(one, *arguments, **options)

    monkeypatch.setattr(chunks, "work", counting)
    fail, path = True, tmp_path / "map"
    with pytest.raises(MemoryError):
        gradient_flow_ensemble(grid(), t_end=10.0, path=path, threads=1)
    fail = False
    kept = len(computed) - 1
    assert 0 < kept <= 3
    found = gradient_flow_ensemble(grid(), t_end=10.0, path=path, threads=2)
    xr.testing.assert_identical(found, whole)
    assert isinstance(found["z"].variable._data.base, np.memmap) or isinstance(found["z"].variable._data, np.memmap)
    assert 4 <= len(computed) <= 7  # four chunks, one of which was interrupted, and those that were queued with it
    computed.clear()
    xr.testing.assert_identical(gradient_flow_ensemble(grid(), t_end=10.0, path=path), whole)
    assert not computed
    # A byte that is not as it was written.
    with open(path / "loss.npy", "r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(b"\1")
    with pytest.warns(UserWarning, match="chunk 3 is damaged, and is computed again"):
        xr.testing.assert_identical(gradient_flow_ensemble(grid(), t_end=10.0, path=path), whole)
    assert computed == [(12, 14)]
    with pytest.raises(ValueError, match=r"`path` must hold the ensemble of these settings and arguments"):
        gradient_flow_ensemble(grid(), t_end=11.0, path=path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "text").write_text("kept")
    with pytest.raises(ValueError, match="`path` must be an ensemble's folder, or a new or empty one"):
        gradient_flow_ensemble(grid(), t_end=10.0, path=tmp_path / "other")


@pytest.mark.slow
@Limits(members=4)
def test_whatever_happens_to_the_files_of_a_folder_is_noticed_and_computed_again(tmp_path):
    """Damages by accident, missing files, and those of another ensemble; a marker that is one is believed."""
    whole = gradient_flow_ensemble(grid(), t_end=10.0, path=tmp_path / "whole")
    gradient_flow_ensemble(grid(), t_end=11.0, path=tmp_path / "other")
    rng = random.Random(8)
    for name in ("ensemble.json", "done.npy", "loss.npy", "z.npy"):
        content = (tmp_path / "whole" / name).read_bytes()
        places = [rng.randrange(min(100, len(content))), rng.randrange(len(content))]
        damages = [content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :] for at in places]
        damages += [content[: places[-1]], b"", content + b"\0", bytes(len(content)), None]
        damages += [(tmp_path / "other" / name).read_bytes()]
        for number, damaged in enumerate(damages):
            folder = tmp_path / f"{name} {number}"
            shutil.copytree(tmp_path / "whole", folder)
            if damaged is None:
                (folder / name).unlink()
            else:
                (folder / name).write_bytes(damaged)
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                try:
                    found = gradient_flow_ensemble(grid(), t_end=10.0, path=folder)
                except ValueError as error:
                    assert name == "ensemble.json" and GRAMMAR.match(str(error)), (name, number)
                    continue
            xr.testing.assert_identical(found, whole)
            if name not in ("done.npy", "ensemble.json") and damaged not in (content, None):
                assert any("is damaged" in str(one.message) for one in told) or damaged[:128] != content[:128], number
            shutil.rmtree(folder)


@Limits(members=4)
def test_files_of_another_ensemble_are_computed_again(tmp_path):
    """All of them at once, digests too: these are of their settings."""
    whole = gradient_flow_ensemble(grid(), t_end=10.0)
    for t_end, folder in ((10.0, tmp_path / "mine"), (11.0, tmp_path / "other")):
        gradient_flow_ensemble(grid(), t_end=t_end, path=folder)
    for file in (tmp_path / "other").glob("*.npy"):
        shutil.copy(file, tmp_path / "mine")
    with pytest.warns(UserWarning, match="chunk . is damaged, and is computed again"):
        xr.testing.assert_identical(gradient_flow_ensemble(grid(), t_end=10.0, path=tmp_path / "mine"), whole)
    # Two chunks of one ensemble that changed places, with their digests.
    for file in (tmp_path / "mine").glob("*.npy"):
        array = np.load(file, mmap_mode="r+")
        rows = 1 if file.name == "done.npy" else 4
        array[: 2 * rows] = np.roll(array[: 2 * rows], rows, axis=0)
        del array
    with pytest.warns(UserWarning, match="chunk [01] is damaged"):
        xr.testing.assert_identical(gradient_flow_ensemble(grid(), t_end=10.0, path=tmp_path / "mine"), whole)


def test_a_folder_that_does_not_say_of_which_version_it_is_is_refused(tmp_path):
    gradient_flow_ensemble(grid(), t_end=10.0, path=tmp_path)
    marker = tmp_path / chunks.MARKER
    said = json.loads(marker.read_text())
    assert said.pop("yzflow")
    marker.write_text(json.dumps(said, sort_keys=True))
    with pytest.raises(ValueError, match=r"`path` must hold the ensemble of these settings .*, made by yzflow"):
        gradient_flow_ensemble(grid(), t_end=10.0, path=tmp_path)


def test_ctrl_c_ends_it_within_a_member():
    """A million members that each take thousands of steps: without a look at the flag this takes hours."""
    given = {"n_classes": 2, "vocab_size": 10**6, "eta_y": np.full(10**6, 1e3), "eta_z": 1e3, "common": 5.0}
    gradient_flow_ensemble({"n_classes": 2, "vocab_size": 5, "eta_y": 1.0, "eta_z": 1.0}, t_end=1.0)  # compiles
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        gradient_flow_ensemble(given, t_end=1e9, threads=1)
    timer.join()


@Limits(seconds_between_lines=0)
def test_progress_is_reported(capsys):
    gradient_flow_ensemble(grid(), t_end=10.0, progress=True)
    assert "flows (full): 100% 14 of 14 flows" in capsys.readouterr().err


def test_a_decoder_without_an_inverse_is_marked_in_a_sequence_too():
    same = SequenceClasses([[0.5, 0.5], [0.5, 0.5]], [0, 0], vocab_size=5)
    own = gradient_flow_ensemble([(same, 1.0, 1.0), (SequenceClasses.syn_small(), 1.0, 1.0)], t_end=5.0,
                                 decoder="modified")  # fmt: skip
    assert own["failed"].values.tolist() == [True, False]
    assert own["reason"].values.tolist() == [ensemble.DEPENDENT, ensemble.DONE]
    assert own["z"].isel(setting=0).isnull().all()
