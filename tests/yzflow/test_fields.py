"""Fields from outside in files, sweeps, processes, levels and the command line."""

import importlib
import json
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from click.testing import CliRunner
from own_fields import blend, plain, register_blends, tilted
from own_fields import table as table

import yzflow as yz
from dynamics.fields import table as registry
from yzflow.cli import main
from yzflow.papers.scan_and_snap.settings import settings
from yzflow.sweeps import cache, tasks

pytestmark = pytest.mark.usefixtures("table")
CLASSES = yz.SequenceClasses.single_common_token(3, 20)
RATES = {"eta_y": 1.0, "eta_z": 0.5}
GRID = {"decoder": ["full", "blend 0.5"], "n_classes": [3], "vocab_size": [20], "t_end": [20.0], "n_times": [3]}


def saved(path):
    register_blends(0.5)
    yz.gradient_flow(CLASSES, **RATES, t_end=5.0, decoder="blend 0.5").save(path)


@pytest.mark.slow
def test_a_file_is_made_again_where_its_field_is_known_and_names_other_code(tmp_path):
    saved(tmp_path / "flow.nc")
    report = yz.rerun(tmp_path / "flow.nc")
    assert report.same and report.factors == ()
    yz.register_field(yz.Field("blend 0.5", partial(blend, share=0.4), inverts=True))
    report = yz.rerun(tmp_path / "flow.nc")
    assert not report.same
    assert [factor.name for factor in report.factors] == ["functions of blend 0.5"]


def half(layer, bags):
    return blend(layer, bags, 0.5)


def test_a_field_of_another_module_is_another_code_though_it_gives_the_same_bits(tmp_path, table):
    saved(tmp_path / "flow.nc")
    del table["blend 0.5"]
    yz.register_field(yz.Field("blend 0.5", half, inverts=True))
    report = yz.rerun(tmp_path / "flow.nc")
    assert report.same
    found = {factor.name: (factor.then, factor.now) for factor in report.factors}
    assert found["module of blend 0.5"] == ("own_fields", __name__)
    assert set(found) == {"code of own_fields", "module of blend 0.5", "functions of blend 0.5"}


def test_a_file_whose_field_nobody_registered_is_refused_by_its_name(tmp_path, table):
    saved(tmp_path / "flow.nc")
    del table["blend 0.5"]
    message = "`decoder` must be registered before the file is made again: import own_fields, .* but got 'blend 0.5'"
    with pytest.raises(ValueError, match=message):
        yz.rerun(tmp_path / "flow.nc")
    assert yz.Trajectory.load(tmp_path / "flow.nc").parameters["decoder"] == "blend 0.5"
    result = CliRunner().invoke(main, ["rerun", str(tmp_path / "flow.nc")])
    assert result.exit_code == 2 and "import own_fields" in result.output


def test_another_code_is_another_run(tmp_path, monkeypatch):
    register_blends(0.5)
    task = tasks.named()["flow"]
    plain_flow = task.identity({"decoder": "full"}, 0)["configuration"]
    first = task.identity({"decoder": "blend 0.5"}, 0)["configuration"]
    assert "field" not in plain_flow and json.loads(first["field"])["module"] == "own_fields"
    yz.register_field(yz.Field("blend 0.5", partial(blend, share=0.4), inverts=True))
    assert task.identity({"decoder": "blend 0.5"}, 0)["configuration"] != first
    with pytest.raises(ValueError, match="`decoder` must have the code that it had when the sweep began"):
        task.run(first, 0)


def test_a_store_of_trajectories_knows_the_code(tmp_path):
    given = {**RATES, "t_end": 5.0, "n_times": 3, "store": tmp_path}
    ends = []
    for share in (0.5, 0.4, 0.5):
        yz.register_field(yz.Field("mine", partial(blend, share=share), inverts=True))
        run = cache.trajectory(yz.gradient_flow, CLASSES, decoder="mine", **given)
        ends.append(run.dataset["loss"].values[-1])
    assert ends[0] == ends[2] != ends[1]


def test_a_field_that_workers_cannot_import_is_refused_before_anything_runs(tmp_path):
    yz.register_field(yz.Field("here alone", lambda layer, bags: layer.gradient(bags)))
    with pytest.raises(ValueError, match="`grid` must name fields whose functions stand at the top level"):
        yz.sweep("flow", {**GRID, "decoder": ["here alone"]}, store=tmp_path / "runs", workers=1, progress=False)


SCRIPT = """
import sys
import numpy as np
import yzflow as yz

def forgets(layer, bags):
    slope = layer.gradient(bags)
    return {{"Z": slope.Z, "Y": slope.Y - 0.1 * layer.Y}}

yz.register_field(yz.Field("forgets", forgets))

def ends(configuration, seed):
    classes = yz.SequenceClasses.single_common_token(3, 20)
    flow = yz.gradient_flow(classes, eta_y=1.0, eta_z=1.0, t_end=20.0, n_times=3, decoder=configuration["decoder"])
    return {{"loss": flow.dataset["loss"].values}}

if __name__ == "__main__":
    grid = {{"decoder": ["forgets"], "n_classes": [3], "vocab_size": [20], "t_end": [20.0], "n_times": [3]}}
    runs = yz.sweep("flow", grid, store={store!r}, workers=1, progress=False)
    other = yz.sweep(ends, {{"decoder": ["forgets"]}}, store={store!r}, workers=1, progress=False)
    here = yz.gradient_flow(yz.SequenceClasses.single_common_token(3, 20), eta_y=1.0, eta_z=1.0, t_end=20.0,
                            n_times=3, decoder="forgets")
    for found in (runs["loss"], other["loss"]):
        np.testing.assert_array_equal(found.values.ravel(), here.dataset["loss"].values)
    here.save({file!r})
    assert here.parameters["field"]["module"] == "script", here.parameters["field"]
    print("done")
"""


@pytest.mark.slow
def test_a_script_registers_a_field_and_sweeps_it(tmp_path, monkeypatch):
    """The functions of a script are those of ``__main__``, which its workers know by another name."""
    script, file = tmp_path / "script.py", tmp_path / "flow.nc"
    script.write_text(SCRIPT.format(store=str(tmp_path / "runs"), file=str(file)))
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.strip() == "done", done.stderr
    # Whoever imports the script makes its file again, with the same code.
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("script")
    monkeypatch.delitem(sys.modules, "script")
    report = yz.rerun(file)
    assert report.same and not report.factors, report.text()


def test_a_level_of_a_paper_s_setting_may_be_a_field_from_outside():
    yz.register_field(yz.Field("plain", plain))
    setting = next(iter(settings(quick=True)))
    own_run = setting.simulate("plain flow", seed=0)
    known = setting.simulate("full flow", seed=0)
    np.testing.assert_allclose(own_run.dataset["z"], known.dataset["z"], rtol=1e-6, atol=1e-9)
    assert own_run.parameters["decoder"] == "plain"
    with pytest.raises(ValueError, match=r"`decoder` must be one of .*, but got 'plane'"):
        setting.simulate("plane flow", seed=0)


def test_the_command_line_takes_a_field_that_is_installed(tmp_path, monkeypatch):
    offers = {"tilted": yz.Field("tilted", tilted)}
    monkeypatch.setattr(registry, "installed", offers.get)
    result = CliRunner().invoke(
        main, ["flow", "--decoder", "tilted", "--classes", "3", "--vocab-size", "20", "--t-end", "3", "--out",
               str(tmp_path / "flow.nc")]
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert yz.Trajectory.load(tmp_path / "flow.nc").parameters["decoder"] == "tilted"
    result = CliRunner().invoke(main, ["flow", "--decoder", "tilt", "--out", str(tmp_path / "flow.nc")])
    assert result.exit_code == 2 and "`decoder` must be one of" in result.output
