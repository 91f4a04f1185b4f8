"""Options of training by name: on the command line, in sweeps' grids, and as the values that they make up."""

import dataclasses

import driving
import numpy as np
from click.testing import CliRunner

from dynamics import Objective, Optimizer, Schedule, SequenceClasses, Trajectory, options, sgd
from yzflow import cli
from yzflow.commands import training
from yzflow.papers.scan_and_snap.tasks import synthetic

NAMES = {*options.OF_OPTIMIZER, *options.OF_OBJECTIVE}
LITTLE = {"steps": 4, "batch_size": 4, "length": 6}
ASKED = {
    "optimizer": "adamw",
    "weight_decay": 0.02,
    "clip": 0.5,
    "warm_up": 1.0,
    "schedule": "cosine",
    "label_smoothing": 0.1,
    "temperature": 2.0,
    "normalisation": "none",
}


def run(*arguments):
    return CliRunner().invoke(cli.main, list(map(str, arguments)))


def test_names_are_the_same_everywhere():
    """Of the fields of the values, the options of commands, what their help lists, and the keys of grids."""
    fields = {field.name for kind in (Optimizer, Objective) for field in dataclasses.fields(kind)}
    # Pairs, functions and bags have no place on a command line.
    assert fields | {"warm_up"} == NAMES | {"name", "momentum", "betas", "contrast", "contrast_weight", "terms"}
    for command in (training.sgd, training.flow):
        assert {"optimizer", "momentum", *NAMES} <= {parameter.name for parameter in command.params}
        shown = run(command.name, "--help").output
        assert all(f"--{name.replace('_', '-')}" in shown for name in NAMES)
    for task in synthetic.TASKS:
        assert {"optimizer", "momentum", *NAMES} <= set(task.keys)
    given = training.sgd.make_context("sgd", []).params
    assert {name: given[name] for name in NAMES} == options.OF_OPTIMIZER | options.OF_OBJECTIVE


def test_the_command_trains_as_the_function_does(tmp_path):
    out = tmp_path / "run.nc"
    words = [part for name, value in (ASKED | LITTLE).items() for part in (f"--{name.replace('_', '-')}", value)]
    result = run("sgd", *words, "--eta-y", 0.1, "--eta-z", 0.1, "--epochs", "--out", out)
    assert result.exit_code == 0, result.output
    optimizer = Optimizer("adamw", weight_decay=0.02, clip=0.5, schedule=Schedule(1.0, "cosine"))
    objective = Objective(label_smoothing=0.1, temperature=2.0, normalisation=None)
    own = {"eta_y": 0.1, "eta_z": 0.1, "optimizer": optimizer, "objective": objective, "replacement": False}
    expected = sgd(SequenceClasses.syn_small(), **own, **LITTLE)
    saved = Trajectory.load(out)
    np.testing.assert_array_equal(saved.dataset["z"], expected.dataset["z"])
    assert (saved.optimizer, saved.objective) == (optimizer, objective)
    assert saved.parameters == expected.parameters


def test_the_flow_of_the_command(tmp_path):
    out = tmp_path / "flow.nc"
    words = ["--t-end", 2, "--classes", 3, "--vocab-size", 5, "--n-times", 3, "--out", out]
    assert run("flow", *words, "--momentum", 0.5, "--weight-decay", 0.1, "--label-smoothing", 0.2).exit_code == 0
    saved = Trajectory.load(out)
    assert saved.optimizer == Optimizer(momentum=0.5, weight_decay=0.1)
    assert saved.objective == Objective(label_smoothing=0.2)


def test_grids_take_the_options(tmp_path):
    """Each is a dimension; a run in a grid is the run with that option."""
    grid = {"optimizer": ["sgd", "adamw"], "temperature": [1.0, 2.0], "weight_decay": [0.1], "eta_z": [0.1]}
    grid |= {name: [value] for name, value in LITTLE.items()}
    found = driving.quietly("syn_small", grid, store=tmp_path / "store")
    assert found["loss"].sel(optimizer="adamw", temperature=2.0).size == 1
    assert len(np.unique(found["loss"].values)) == 4
    asked = {"optimizer": "adamw", "temperature": 2.0, "weight_decay": 0.1, "eta_z": 0.1, **LITTLE}
    configuration = synthetic._complete_small(asked)
    direct = synthetic.syn_small(configuration, 0)["loss"].values
    assert float(direct) == float(found["loss"].sel(optimizer="adamw", temperature=2.0).squeeze())
    flows = driving.quietly("flow", {"momentum": [0.0, 0.9], "t_end": [3.0], "n_times": [2]}, store=tmp_path / "flows")
    assert len(np.unique(flows["loss"].isel(time=-1))) == 2


def test_stores_of_before_still_hold():
    """The name of a run is made of its configuration, to which options that are as by default add nothing."""
    added = NAMES - {"criterion"} | {"replacement"}
    usual = {"weight_decay": 0.0, "temperature": 1.0, "normalisation": "unit", "schedule": "constant", "warm_up": 0}
    for complete in (synthetic._complete_small, synthetic._complete_medium, synthetic._complete_flow):
        plain = complete({})
        assert not plain.keys() & added
        assert complete(dict(usual)) == plain
    assert synthetic._complete_flow({}).keys().isdisjoint({"optimizer", "momentum", "criterion"})
