"""Saved files made again: the same bits where nothing changed, and what changed where something did."""

import importlib
import json

import numpy as np
import pytest
from balls import enclose_flow
from click.testing import CliRunner
from saved import CLASSES, MADE, RATES, trajectory

import yzflow as yz
from dynamics.support.provenance import environment
from yzflow import reruns
from yzflow.cli import main


@pytest.mark.slow
@pytest.mark.parametrize("kind", MADE)
def test_every_kind_of_file_is_made_again_with_the_same_bits(kind, tmp_path):
    name, make = MADE[kind]
    make(tmp_path / name)
    before = (tmp_path / name).read_bytes()
    report = yz.rerun(tmp_path / name)
    assert report.same and report.kind == kind and report.compared > 5
    assert report.factors == ()
    assert (tmp_path / name).read_bytes() == before


FAKED = {
    "platform": ("Plan 9", "operating system"),
    "cpu": ("6502", "processor"),
    "cores": ("4096", "number of cores"),
    "blas": ("goto 1.13 for p4, 1 threads", "BLAS"),
    "threads": ("77", "threads of numba"),
    "compilation": ("off", "compilation"),
    "source": ("0" * 64, "code of yzflow"),
    "commit": ("1" * 40, "commit"),
    "versions": (json.dumps({**json.loads(environment()["versions"]), "numpy": "0.1"}), "version of numpy"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["a trajectory of sgd", "a check"])
def test_a_file_from_elsewhere_names_the_factors_that_differ(kind, tmp_path, monkeypatch):
    name, make = MADE[kind]
    make(tmp_path / name)
    known = {factor: faked for factor, faked in FAKED.items() if environment()[factor]}
    others = environment() | {factor: value for factor, (value, _) in known.items()}
    monkeypatch.setattr(reruns, "environment", lambda: others)
    report = yz.rerun(tmp_path / name)
    assert report.same
    assert sorted(factor.name for factor in report.factors) == sorted(called for _, called in known.values())
    for factor, (value, called) in known.items():
        assert (called in report.text() and value[:40] in report.text()) or factor == "versions"


def test_the_last_bit_counts_and_its_size_is_said(tmp_path):
    run = trajectory(tmp_path / "run.nc")
    values = run.dataset["attention"].values.copy()
    place = (-1, 0, 1)
    values[place] = np.nextafter(values[place], 1)
    size = abs(values[place] - run.dataset["attention"].values[place])
    run.dataset["attention"] = run.dataset["attention"].copy(data=values)
    run.save(tmp_path / "changed.nc")
    report = yz.rerun(tmp_path / "changed.nc")
    assert not report.same and [found.name for found in report.differences] == ["attention"]
    assert report.differences[0].largest == size > 0
    assert report.differences[0].scale == values.max()
    ended = CliRunner().invoke(main, ["rerun", str(tmp_path / "changed.nc")])
    assert ended.exit_code == 1 and "Other bits" in ended.output and "attention" in ended.output


def test_the_sign_of_zero_is_a_bit(tmp_path):
    run = trajectory(tmp_path / "run.nc")
    z = run.dataset["z"].values.copy()
    z[0] = -0.0
    run.dataset["z"] = run.dataset["z"].copy(data=z)
    run.save(tmp_path / "changed.nc")
    [found] = yz.rerun(tmp_path / "changed.nc").differences
    assert (found.name, found.largest) == ("z", 0.0)


def test_what_is_missing_or_of_another_shape_is_said(tmp_path):
    run = trajectory(tmp_path / "run.nc")
    run.dataset = run.dataset.drop_vars("batch_loss").isel(time=slice(0, 3))
    run.save(tmp_path / "changed.nc")
    found = {one.name for one in yz.rerun(tmp_path / "changed.nc").differences}
    assert {"batch_loss", "time", "attention"} <= found


def test_a_changed_number_of_an_audit_is_found(tmp_path):
    report = yz.audit(["Scan and Snap: Lemma 9"], quick=True)
    report.to_json(tmp_path / "audit.json")
    content = json.loads((tmp_path / "audit.json").read_text())
    content["rows"][5]["printed"] += 1e-12
    (tmp_path / "audit.json").write_text(json.dumps(content))
    [found] = yz.rerun(tmp_path / "audit.json").differences
    assert found.name == "rows[5].printed" and found.largest == pytest.approx(1e-12, rel=1e-3)


@pytest.mark.slow
def test_a_certificate_that_stopped_is_made_again_as_far_as_it_came(tmp_path):
    enclose_flow(CLASSES, **RATES, t_end=1e4, max_steps=3).save(tmp_path / "short.npz")
    assert yz.rerun(tmp_path / "short.npz").same


def test_another_precision_of_a_certificate_is_found(tmp_path, monkeypatch):
    enclose_flow(CLASSES, **RATES, t_end=1.0, bits=80).save(tmp_path / "flow.npz")
    evidence = importlib.import_module("yzflow_enclose.evidence")
    again = evidence.enclosed_again
    monkeypatch.setattr(evidence, "enclosed_again", lambda made, **options: again(_with_bits(made, 90), **options))
    report = yz.rerun(tmp_path / "flow.npz")
    assert "radius" in {found.name for found in report.differences}


def _with_bits(enclosure, bits):
    enclosure.bits = bits
    return enclosure


def test_files_that_say_nothing_of_their_making_are_refused(tmp_path):
    run = trajectory(tmp_path / "run.nc")
    run.call = None
    run.save(tmp_path / "mute.nc")
    (tmp_path / "other.json").write_text('{"rows": []}')
    (tmp_path / "text.txt").write_text("nothing")
    (tmp_path / "damaged.nc").write_bytes((tmp_path / "run.nc").read_bytes()[:-1])
    for name, message in {
        "mute.nc": "`path` must hold the call that made it",
        "other.json": "`path` must be JSON of an audit or a check that says how it was made",
        "text.txt": "`path` must be a trajectory, a sweep, a survival table, an audit, a check or a certificate",
        "damaged.nc": "`path` must be",
    }.items():
        with pytest.raises(ValueError, match=message):
            yz.rerun(tmp_path / name)
        ended = CliRunner().invoke(main, ["rerun", str(tmp_path / name)])
        assert ended.exit_code == 2 and len(ended.output.strip().splitlines()) == 1
    with pytest.raises(ValueError, match="`data` must be left out for this file"):
        yz.rerun(tmp_path / "other.json", data=CLASSES)


def test_a_loaded_file_keeps_what_it_says_of_the_machine_that_made_it(tmp_path):
    run = trajectory(tmp_path / "run.nc")
    run.environment = {**environment(), "cpu": "6502"}
    run.save(tmp_path / "other.nc")
    yz.Trajectory.load(tmp_path / "other.nc").save(tmp_path / "again.nc")
    [factor] = yz.rerun(tmp_path / "again.nc").factors
    assert (factor.name, factor.then) == ("processor", "6502")
