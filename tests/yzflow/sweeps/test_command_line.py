"""The command line of sweeps and figures: files in, files and JSON out, one line for what is wrong."""

import json
from pathlib import Path
from types import SimpleNamespace

import click
import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from driving import ROOT, assert_same_bits, python, quietly, told

from dynamics import SequenceClasses, gradient_flow, sgd
from yzflow import cli, figures
from yzflow.sweeps import cache, config
from yzflow.sweeps.store import Store

SMALL = 'task = "syn_small"\nseeds = 2\n[grid]\neta_z = [0.5, 1]\nsteps = [3]\n'


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def yzflow(*arguments):
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


def written(text):
    Path("small.toml").write_text(text)
    return "small.toml"


def test_sweep_writes_the_dataset_of_the_library(folder):
    result = yzflow("sweep", written(SMALL))
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "4 runs of syn_small, 0 failed",
        "runs are in small.store",
        "wrote small.nc",
    ]
    expected = quietly("syn_small", {"eta_z": [0.5, 1], "steps": [3]}, store=folder / "other", seeds=2)
    assert_same_bits(quietly("syn_small", {"eta_z": [0.5, 1], "steps": [3]}, store="small.store", seeds=2), expected)
    assert xr.load_dataset("small.nc").equals(expected)
    assert {path.name for path in folder.iterdir()} == {"small.toml", "small.store", "small.nc", "other"}


def test_options_go_before_the_file_and_json_tells_a_machine(folder):
    text = 'store = "a"\nout = "a.nc"\n' + SMALL
    result = yzflow("sweep", written(text), "--store", "b", "--out", "b.nc", "--seeds", 3, "--workers", 2, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"task": "syn_small", "runs": 6, "failed": 0, "store": "b", "out": "b.nc"}
    assert xr.load_dataset("b.nc").sizes["seed"] == 3 and not Path("a").exists() and len(Store("b")) == 6
    assert yzflow("sweep", "small.toml", "--workers", 1).exit_code == 0
    assert xr.load_dataset("a.nc").sizes["seed"] == 2 and len(Store("a")) == 4


def test_a_failed_run_is_told_and_exits_1():
    result = yzflow("sweep", written('task = "syn_small"\n[grid]\neta_z = [1.0, 1e308]\nsteps = [20]\n'))
    assert result.exit_code == 1
    assert "2 runs of syn_small, 1 failed" in result.stdout
    assert told(result.stderr)[0].startswith("Warning: 1 of 2 runs failed, the first with DivergenceError")
    assert xr.load_dataset("small.nc")["failed"].sum() == 1


BAD = [
    ("sedes = 3\n" + SMALL, "`CONFIG` must have the keys task, grid, seeds, store, out, but got 'sedes' in small.toml"),
    ("[grid]\na = [1]\n", "`CONFIG` must have the key 'task', a string, but got none in small.toml"),
    ('task = "syn_small"', "`CONFIG` must have the key 'grid', a table of lists of values, but got none in small.toml"),
    (SMALL.replace("2", '"2"'), "`seeds` must be an integer or a list of integers, but got '2' in small.toml"),
    (SMALL.replace('"syn_small"', "3"), "`task` must be a string, but got 3 in small.toml"),
    (SMALL.replace("[grid]", "grid = 3\n[more]"), "`CONFIG` must have the keys task, grid, seeds, store, out, but got"),
    (SMALL.replace("0.5", "-0.5"), "`eta_z` must be positive, but got -0.5"),
    ("task = syn_small", "`CONFIG` must be a TOML file, but got small.toml ("),
    (b"\xff\xfe", "`CONFIG` must be a TOML file, but got small.toml ("),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_files_end_in_one_line_and_leave_nothing(folder, text, message):
    Path("small.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    result = yzflow("sweep", "small.toml")
    assert result.exit_code == 2 and result.stdout == ""
    assert result.stderr.startswith(f"Error: {message}") and len(result.stderr.splitlines()) == 1
    assert [path.name for path in folder.iterdir()] == ["small.toml"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "missing/out.nc"], "`--out` must lie in a folder that exists, but got missing/out.nc"),
        (["--workers", "1000000000"], "`workers` must leave at most "),
        (["--dask", "local", "--workers", "1000000000"], "`workers` must leave at most "),
        (["--store", "."], "`store` must be a store, or a new or empty folder, but got ., which holds other files"),
        (
            ["--dask", "tcp://127.0.0.1:9", "--workers", "2"],
            "`--workers` must be left out with the address of a cluster",
        ),
    ],
)
def test_bad_options(folder, arguments, message):
    if "--dask" in arguments:
        pytest.importorskip("distributed")
    result = yzflow("sweep", written(SMALL), *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {message}")
    assert [path.name for path in folder.iterdir()] == ["small.toml"]


def test_the_example_is_a_valid_sweep():
    asked = config.load(ROOT / "examples" / "sweep.toml")
    assert asked.task == "syn_medium" and set(asked.grid) == {"n_queries", "eta_z", "ratio"}
    assert asked.grid["ratio"] == [1.0, 2.0, 5.0] and (str(asked.store), str(asked.out)) == ("sweep.store", "sweep.nc")


# Figures


def drawn(folder):
    return sorted(path.name for path in folder.iterdir() if path.is_file())


@pytest.mark.slow
def test_a_figure_in_another_format_simulates_nothing_again(folder, monkeypatch):
    small = ("figure", 12, "--quick", "--steps", 3, "--out", "drawn")
    result = yzflow(*small, "--format", "svg", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["files"] == ["drawn/figure12.svg"]
    assert drawn(folder / "drawn") == ["figure12.svg"]
    assert len(Store(folder / "drawn" / "store")) == 2 * 4 * 4 * 2  # queries, eta_Z, ratios, seeds
    monkeypatch.setattr("dynamics._engine.sgd.steps.sgd_steps", None)  # it cannot run any more
    assert yzflow(*small, "--format", "png,pdf").exit_code == 0
    assert drawn(folder / "drawn") == ["figure12.pdf", "figure12.png", "figure12.svg"]


def test_trajectories_of_figures_are_kept(folder, monkeypatch):
    first = figures.find("5")(store=folder / "kept")
    assert len(list((folder / "kept").glob("*.nc"))) == 3
    for simulate in ("dynamics._engine.sgd.steps.sgd_steps", "scipy.integrate.solve_ivp"):
        monkeypatch.setattr(simulate, None)
    again = figures.find("5")(store=folder / "kept")
    for one, other in zip(first.axes, again.axes, strict=True):
        for a, b in zip(one.get_lines(), other.get_lines(), strict=True):
            np.testing.assert_array_equal(a.get_ydata(), b.get_ydata())
        for a, b in zip(one.images, other.images, strict=True):
            np.testing.assert_array_equal(a.get_array(), b.get_array())


def test_kept_trajectories_are_told_apart_and_come_back_as_they_were(folder):
    small, other = (SequenceClasses.single_common_token(2, 5, common=common) for common in (0.5, 0.6))
    settings = [
        (sgd, small, {"eta_y": 1.0, "eta_z": 1.0, "steps": 2, "seed": 0}),
        (sgd, small, {"eta_y": 1.0, "eta_z": 1.0, "steps": 2, "seed": 1}),
        (sgd, other, {"eta_y": 1.0, "eta_z": 1.0, "steps": 2, "seed": 0}),
        (gradient_flow, small, {"eta_y": 1.0, "eta_z": 1.0, "t_end": 2.0, "decoder": "theory"}),
    ]
    fresh = [simulate(classes, **arguments).dataset for simulate, classes, arguments in settings]
    for _ in range(2):
        for (simulate, classes, arguments), expected in zip(settings, fresh, strict=True):
            kept = cache.trajectory(simulate, classes, store=folder / "store", **arguments)
            xr.testing.assert_identical(kept.dataset, expected)
    assert len(list((folder / "store").glob("*.nc"))) == 4 and len(Store(folder / "store")) == 0


def test_figures_have_numbers_and_names():
    found = {asked: figures.find(asked).name for asked in ("3", "figure12", "audit", "attention")}
    assert found == {
        "3": "figure3", "figure12": "figure12", "audit": "audit_errors", "attention": "attention_over_training",
    }  # fmt: skip
    for name in ("99", "figure", "figure99", "save", ""):  # no study has those, either
        with pytest.raises(
            ValueError,
            match=r"^`NAME` must be the number (of a figure that is drawn|or the name of one figure, such as (.*, ){2})"
            r".*but got",
        ):
            figures.find(name)


def test_a_number_is_looked_for_in_a_paper_and_then_in_its_studies(monkeypatch):
    """A paper's own entry comes before a study's of the same number, unless another paper is asked for."""

    def drawn(data):
        """A map."""

    here = figures.Entry("map_of_ours", "Bounded Dyck", drawn, lambda effort: 0, number=(3, 10))
    there = figures.Entry("given_runs", "Scan and Snap", drawn, number=7, trained_by="python train.py")
    room = SimpleNamespace(name="a_room", figures=(here, there))
    monkeypatch.setattr("yzflow.studies.rooms", lambda: {"a_room": room})
    assert figures.find("3").name == "figure3" and figures.find("map").name == "map_of_ours"
    assert figures.find("3", "bounded_dyck") is figures.find("10") is here
    assert here.title == "Bounded Dyck, Figures 3 and 10"
    with pytest.raises(ValueError, match=r"^`NAME` must be the number .* but got '10'"):
        figures.find("10", "Scan and Snap")
    with pytest.raises(ValueError, match=r"^`paper` must have figures here; .*yzflow-studies.* but got 'Sparse aver"):
        figures.find("3", "Sparse averaging")
    shown = " ".join(yzflow("figure", "--help").stdout.split())
    assert "Figures 3 and 10, study a_room" in shown and "Trained and drawn by: python train.py" in shown
    refused = yzflow("figure", 7)
    assert refused.exit_code == 2 and "`python train.py` trains and draws it, but got given_runs" in refused.stderr


# Every command


def test_every_command_has_an_example_in_its_help():
    context = click.Context(cli.main)
    names = cli.main.list_commands(context)
    assert set(names) >= {"flow", "sgd", "sweep", "audit", "figure"}
    for name in names:
        result = yzflow(name, "--help")
        assert result.exit_code == 0 and f"Example: yzflow {name} " in result.output
        assert ("--out" in result.output) == (name not in {"example", "manifest"}), (
            name
        )  # into the folder; the example's own
        assert ("--json" in result.output) == (name != "example"), name
        assert cli.main.get_command(context, name).name == name


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        (["flow", "--t-end", "2", "--classes", "2", "--vocab-size", "5"], {"loss", "common_logit", "distinct_logit"}),
        (["sgd", "--steps", "2"], {"loss", "entropy"}),
    ],
)
def test_simulations_tell_a_machine(arguments, keys):
    result = yzflow(*arguments, "--json", "--out", "out.nc")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert set(facts) == keys | {"out"} and facts["out"] == "out.nc"
    assert facts["loss"] == xr.load_dataset("out.nc")["loss"].values[-1]


def test_ctrl_c_exits_130_in_one_line(monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dynamics.sgd", interrupt)
    result = yzflow("sgd", "--out", "out.nc")
    assert result.exit_code == 130
    assert result.stderr.strip() == "interrupted: every file that is there is complete; the same command starts over"


def test_help_imports_no_numerical_library():
    names = cli.main.list_commands(click.Context(cli.main))
    program = f"import sys; from yzflow.cli import main; [main.get_command(None, name) for name in {names}]"
    loaded = {name.split(".")[0] for name in python(f"{program}; print(*sys.modules)").split()}
    assert "click" in loaded
    assert not loaded & {"numpy", "scipy", "numba", "xarray", "matplotlib", "sympy", "dynamics", "theory", "tqdm"}
