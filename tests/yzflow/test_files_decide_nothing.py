"""A file never decides what runs: what it names is looked up among what is installed or was handed over."""

import importlib
import io
import json
import sys

import h5py
import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from driving import quietly

import yzflow as yz
from dynamics.support import files, origins, sealed
from dynamics.support.calls import Call
from dynamics.support.netcdf import save_dataset
from yzflow.cli import main
from yzflow.sweeps import tasks
from yzflow.sweeps.sweep import load_sweep

SEEN = (
    "from pathlib import Path\nPath('seen').touch()\n\ndef walk(configuration, seed):\n    return {'end': 1.0 * seed}\n"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The present folder, with a module in it that leaves a trace when it is imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "traced.py").write_text(SEEN)
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("traced", None)
    for name in [name for name in tasks._handed if name.startswith("traced:")]:
        del tasks._handed[name]


def a_sweep(task, grid, **more):
    """A sealed file of a sweep that says of itself what it likes."""
    configuration = {"grid": grid, "seeds": [0], "fixed": {}}
    attributes = {"format": "yzflow-sweep-1", "task": task, "configuration": json.dumps(configuration), **more}
    save_dataset(xr.Dataset({"end": ("seed", [0.0])}, {"seed": [0]}, attributes), "evil.nc")
    return "evil.nc"


@pytest.mark.parametrize(
    ("task", "grid"),
    [
        ("subprocess:call", {"sh": [1], "-c": [1], "touch seen": [1]}),
        ("os:system", {"touch seen": [1]}),
        ("builtins:exec", {"open('seen', 'w')": [1]}),
        ("traced:walk", {"a": [1]}),
        ("yzflow.examples:run", {"a": [1]}),
        ("nothing of this name", {"a": [1]}),
    ],
)
def test_a_sweep_s_file_runs_nothing_that_it_names(folder, task, grid):
    path = a_sweep(task, grid)
    with pytest.raises(ValueError, match="`task` must be handed over by the person who calls, as a file does not"):
        yz.rerun(path)
    result = CliRunner().invoke(main, ["rerun", path])
    assert result.exit_code == 2 and "--task MODULE:FUNCTION" in result.output
    assert not (folder / "seen").exists() and "traced" not in sys.modules


def test_a_person_hands_the_function_over(folder):
    path = a_sweep("traced:walk", {"a": [1]})
    result = CliRunner().invoke(main, ["rerun", path, "--task", "traced:walk"])
    assert result.exit_code == 1 and "Other bits" in result.output and (folder / "seen").exists()
    traced = importlib.import_module("traced")
    save_dataset(quietly(traced.walk, {"a": [1]}, store="store"), "honest.nc")
    traced.extra = 1
    report = yz.rerun("honest.nc")  # this process knows the function
    assert report.same and report.factors == ()

    def another(configuration, seed):
        return {}

    with pytest.raises(ValueError, match="`task` must be"):
        yz.rerun("honest.nc", task=another)
    with pytest.raises(ValueError, match="`task` must be traced:walk, whose runs are in the file, but got syn_small"):
        yz.rerun("honest.nc", task="syn_small")
    with pytest.raises(ValueError, match="`flow` must be left out for a sweep"):
        yz.rerun("honest.nc", flow=traced)


@pytest.mark.parametrize("package", ["traced", "traced.below", "antigravity.x"])
def test_looking_whether_code_is_here_imports_nothing(folder, package):
    path = a_sweep("syn_small", {"a": [1]}, code=json.dumps({"x": {"package": package}}))
    before = set(sys.modules)
    with pytest.raises(ValueError, match=r"`path` must|`grid` must"):
        yz.rerun(path)
    assert not (folder / "seen").exists() and not {"traced", "antigravity"} & (set(sys.modules) - before)


def test_a_toml_file_runs_nothing_that_it_names(folder):
    (folder / "evil.toml").write_text('task = "traced:walk"\n[grid]\na = [1]\n')
    for arguments, message in (
        ([], "`--task` must be given as --task traced:walk to run it, as a file does not decide what runs"),
        (["--task", "os:system"], "`--task` must be traced:walk, the task of evil.toml"),
    ):
        result = CliRunner().invoke(main, ["sweep", "evil.toml", *arguments])
        assert result.exit_code == 2 and message in result.output
        assert not (folder / "seen").exists() and not (folder / "evil.store").exists()
    result = CliRunner().invoke(main, ["sweep", "evil.toml", "--task", "traced:walk"])
    assert result.exit_code == 0 and (folder / "seen").exists(), result.output


def test_an_audit_s_file_does_not_say_where_to_write(folder):
    yz.audit(["Scan and Snap: Lemma 7"], quick=True).to_json("audit.json")
    content = json.loads((folder / "audit.json").read_text())
    content["made"]["arguments"]["enclose"] = {"until": 1.0, "max_seconds": 1.0, "folder": str(folder / "there")}
    (folder / "evil.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="`path` must leave to you where to write, but got a folder"):
        yz.rerun("evil.json")
    assert not (folder / "there").exists()


def test_an_entry_point_is_the_only_other_way_to_a_flow(monkeypatch):
    target = "yzflow_beyond_scan_and_snap.late_attention:LateAttention"
    monkeypatch.setattr(origins, "_handed", {})
    known = origins.Origin(target, {"n_classes": 2, "vocab_size": 5, "ratio": 1.0, "speed": 0.1})
    assert type(known.make()).__name__ == "LateAttention"
    # Classes of modules that are imported, ours among them, are none of the table.
    for other in ("dynamics.layer:Layer", "yzflow_enclose.enclosure:Enclosure", "subprocess:Popen", target[:-1]):
        with pytest.raises(ValueError, match=r"`path` must name a flow that is known here: hand it over"):
            origins.Origin(other, {}).make()


def test_a_toml_file_does_not_say_what_is_written_over(folder):
    (folder / "sub").mkdir()
    (folder / "thesis.txt").write_text("years of work")
    grid = "[grid]\nsteps = [2]\n"
    for line, message in (
        ('out = "thesis.txt"', "`out` must be a new file or a result of yzflow: say another one by --out"),
        ('out = "../precious.nc"', "`out` must lie below the present folder: say another place by --out"),
        (f'out = "{folder.parent}/precious.nc"', "`out` must lie below the present folder"),
        ('store = "/elsewhere"', "`store` must lie below the present folder: say another place by --store"),
    ):
        (folder / "sub" / "evil.toml").write_text(f'task = "syn_small"\n{line}\n{grid}')
        result = CliRunner().invoke(main, ["sweep", "sub/evil.toml"])
        assert result.exit_code == 2 and message in result.output, result.output
    assert (folder / "thesis.txt").read_text() == "years of work" and not (folder.parent / "precious.nc").exists()
    (folder / "good.toml").write_text(f'task = "syn_small"\nout = "sub/good.nc"\n{grid}')
    for _ in range(2):  # its own result may be replaced
        assert CliRunner().invoke(main, ["sweep", "good.toml"]).exit_code == 0


def sealed_hdf5(path, fill):
    """A sealed file of HDF5 that says it is a sweep's, with what ``fill`` puts into it."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file.attrs["format"] = "yzflow-sweep-1"
        fill(file)
    files.write(path, buffer.getbuffer(), sealed.digest(buffer.getbuffer()))


def test_a_file_reads_no_other_file_and_takes_no_more_memory_than_there_is(folder):
    (folder / "secret.txt").write_text("s" * 64)

    def outside(file):
        file.create_dataset("end", (8,), "f8", external=[(str(folder / "secret.txt"), 0, 64)])

    def linked(file):
        file["end"] = h5py.ExternalLink("secret.h5", "/x")

    def soft(file):
        file["end"] = h5py.SoftLink("/x")

    def virtual(file):
        layout = h5py.VirtualLayout((8,), "f8")
        layout[:] = h5py.VirtualSource("secret.h5", "x", (8,))
        file.create_virtual_dataset("end", layout)

    def huge(file):
        file.create_dataset("end", (10**6, 10**7), "f8", chunks=(1000, 1000))

    for fill in (outside, linked, soft, virtual, huge):
        sealed_hdf5("evil.nc", fill)
        with pytest.raises(ValueError, match="`path` must be"):
            load_sweep("evil.nc")
        with pytest.raises(ValueError, match="`path` must be"):
            yz.rerun("evil.nc")


def test_what_a_call_unpacks_to_is_bounded():
    call = Call("sgd", {"seed": np.random.SeedSequence(1)}).to_bytes()
    assert Call.from_bytes(call).arguments["seed"].entropy == 1
    with np.load(io.BytesIO(call)) as file:
        text = file["call"].tobytes().decode()
    buffer = io.BytesIO()
    np.savez(buffer, call=np.frombuffer(text.replace('"pool_size": 4', '"pool_size": 200000000').encode(), np.uint8))
    with pytest.raises(ValueError, match="`pool_size` must be"):
        Call.from_bytes(buffer.getvalue())


def test_a_report_says_its_own_lines_alone(folder):
    path = a_sweep("syn_small", {"steps": [2]}, cpu="x then\nSame bits: evil.nc\x1b]0;owned\x07")
    text = yz.rerun(path).text()
    assert "\x1b" not in text and "\nSame bits" not in text and "Other bits" in text


@pytest.mark.parametrize(
    "changed",
    [{"configuration": "[]"}, {"configuration": "{}"}, {"configuration": "["}]
    + [{"content": content} for content in ("null", "[1]", "x", "[" * 3000)],
)
def test_words_that_a_sweep_s_file_holds_are_read_before_anything_runs(folder, changed):
    path = a_sweep("syn_small", {"steps": [2]})
    content = load_sweep(path)
    content.attrs.update(changed)
    save_dataset(content, path)
    with pytest.raises(ValueError, match=f"`path` must say its {next(iter(changed))} as JSON"):
        yz.rerun(path)
