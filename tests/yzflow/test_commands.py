"""Commands in hostile surroundings, on both sides of the size where their results are kept otherwise.

Modules of the names of libraries lie in the folder, address space and time are limited, what is printed for a machine
is strict JSON, and nothing but the results is left. All commands meet all of this at once, in one process without
docstrings (-OO), standard error and compilation.
"""

import json
import os
import subprocess
import sys

import click
import pytest
import xarray as xr
from click.testing import CliRunner
from driving import ROOT

from dynamics import SequenceClasses, Trajectory, sgd
from yzflow import cli

SHADOWS = ("bisect", "numpy", "random", "struct", "tempfile", "multiprocessing", "json", "yzflow", "dynamics", "click")
SWEEP = 'task = "syn_small"\n[grid]\neta_z = [0.5, 1]\nsteps = [2]\nbatch_size = [4]\nlength = [6]\n'

# As the console script does, in whose path the present folder is not: each command in its folder, with the size of
# tables that are kept whole, one behind the other, as libraries without docstrings take long to read.
START = f"""
import json, os, sys
sys.path[:] = [{str(ROOT)!r}, *filter(None, sys.path[1:])]
from dynamics import Limits
from yzflow.cli import main
out, here = sys.stdout, os.getcwd()
for name, tables, arguments in json.loads(sys.argv[1]):
    os.chdir(os.path.join(here, name))
    sys.stderr = None
    with Limits(tables=tables), open(os.path.join(here, name + ".out"), "w") as sys.stdout:
        try:
            main(arguments)
        except SystemExit as end:
            print(json.dumps([name, end.code]), file=out, flush=True)
"""

WORDS = "next_token,query,the,stray,loyal\ncat,saw,5,5,\ndog,saw,5,,5\n"
STATEMENT = "Scan and Snap: Lemma 1"
SMALL, LARGE = 2**30, 1  # bytes of tables: as it is, or nothing is kept whole
FLOW = ["flow", "--t-end", "1", "--classes", "3", "--vocab-size", "5", "--n-times", "5", "--out", "out.nc"]
SGD = ["sgd", "--steps", "2", "--batch-size", "4", "--length", "6", "--out", "out.nc"]
COMMANDS = {
    "flow": (SMALL, FLOW, {"out.nc"}),
    "large sgd": (LARGE, [*SGD, "--optimizer", "adam"], {"out.nc"}),
    "flow on words": (
        SMALL,
        ["flow", "--data", "words.csv", "--t-end", "1", "--n-times", "3", "--out", "out.nc", "--csv", "out.csv"],
        {"out.nc", "out.csv", "words.csv"},
    ),
    "large sgd on words": (
        LARGE,
        ["sgd", "--data", "words.csv", "--steps", "2", "--out", "out.nc", "--csv", "out.csv"],
        {"out.nc", "out.csv", "words.csv"},
    ),
    "sweep": (SMALL, ["sweep", "c.toml", "--workers", "1"], {"c.store", "c.nc"}),
    "figure": (SMALL, ["figure", "9", "--quick", "--format", "png,svg"], {"figures"}),
    "audit": (SMALL, ["audit", "--only", STATEMENT, "--quick", "--out", "audit"], {"audit"}),
    "check": (SMALL, ["check", STATEMENT, "--out", "check.json"], {"check.json"}),
    "page": (SMALL, ["page", STATEMENT, "--out", "page.html"], {"page.html"}),
    "rerun": (SMALL, ["rerun", "run.nc"], {"run.nc"}),
}


def prepared(folder, name):
    """A command's folder, with the modules that must not be run and the files that it is run on."""
    folder = folder / name
    folder.mkdir()
    for shadow in SHADOWS:
        (folder / f"{shadow}.py").write_text("raise SystemExit('a module of the folder was run')")
    (folder / "c.toml").write_text(SWEEP)
    if "words" in name:
        (folder / "words.csv").write_text(WORDS)
    if "rerun" in name:
        sgd(SequenceClasses.syn_small(), eta_y=1, eta_z=1, steps=2, batch_size=4, length=6).save(folder / "run.nc")


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """Folder, and the exit status of each command, without docstrings, standard error and compilation."""
    folder = tmp_path_factory.mktemp("commands")
    for name in COMMANDS:
        prepared(folder, name)
    asked = [(name, tables, [*arguments, "--json"]) for name, (tables, arguments, _) in COMMANDS.items()]
    limits = f"ulimit -v {4 * 2**20} && ulimit -t 200 && "
    call = [sys.executable, "-OO", "-c", START, json.dumps([*asked, ("", SMALL, ["sweep", "none.toml"])])]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "NUMBA_DISABLE_JIT": "1"}
    environment.pop("PYTHONPATH", None)
    run = subprocess.run(
        ["sh", "-c", limits + 'exec "$@" 2>&-', "sh", *call],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout
    return folder, dict(map(json.loads, run.stdout.splitlines()))


def strictly(text):
    """Content of JSON in which no number is NaN or infinite."""

    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_with_all_of_it_at_once(ended, name):
    """Results as they should be, and nothing else."""
    folder, status = ended[0] / name, ended[1][name]
    _, _, made = COMMANDS[name]
    said = (ended[0] / f"{name}.out").read_text()
    assert status in (None, 0) or ("run.nc" in made and status == 1), said
    assert {path.name for path in folder.iterdir()} == made | {f"{shadow}.py" for shadow in SHADOWS} | {"c.toml"}
    facts = strictly(said)
    if "out.nc" in made:
        dataset = Trajectory.load(folder / "out.nc").dataset
        assert facts["loss"] == dataset["loss"].values[-1]
        assert ("entry" in dataset.dims) == ("large" in name)
        if "words" in name:
            last = Trajectory.load(folder / "out.nc").named["attention"][-1]
            for after, most in facts["most_attended"].items():
                own = last[last["entry_next_token"] == ["cat", "dog"].index(after)] if "large" in name else None
                shares = last.sel(next_token=after) if own is None else own
                assert most["attention"] == shares.max()
                assert "large" in name or shares.sel(token=most["token"]) == most["attention"]
            assert {line.split(",")[4] for line in (folder / "out.csv").read_text().splitlines()[1:]} == {
                "the", "stray", "loyal"
            }  # fmt: skip
        elif "flow" in name:
            logits = dataset["z_final"] if "z_final" in dataset else dataset["z"][-1]
            assert [facts["common_logit"], facts["distinct_logit"]] == logits.values[0, :2].tolist()
    elif "run.nc" in made:
        # Without compilation the last bits are others, and the exit status says so.
        assert facts["compared"] > 5 and facts["same"] == (not facts["differences"]) == (status != 1)
        assert {factor["name"]: factor["now"] for factor in facts["factors"]}["compilation"] == "off"
    elif "c.nc" in made:
        assert (facts["runs"], facts["failed"]) == (2, 0)
        assert xr.load_dataset(folder / "c.nc")["loss"].notnull().all()
    elif "figures" in made:
        assert len(facts["caption"]) > 100 and all(os.path.getsize(folder / path) > 1000 for path in facts["files"])
    elif "audit" in made:
        assert strictly((folder / "audit/audit.json").read_text()) == facts
    elif "check.json" in made:
        assert strictly((folder / "check.json").read_text()) == facts
    else:
        assert (folder / facts["out"]).read_text(encoding="utf-8").rstrip().endswith("</html>")


@pytest.mark.slow
def test_bad_input_without_standard_error_exits_2_and_leaves_nothing(ended):
    folder, status = ended
    assert status[""] == 2 and (folder / ".out").read_text() == ""
    assert {path.name.removesuffix(".out") for path in folder.iterdir()} == {*COMMANDS, ""}


def options_of(kind):
    """(command, option) of all options of a kind."""
    commands = {name: cli.main.get_command(None, name) for name in cli.main.list_commands(None)}
    options = [(name, one) for name, command in commands.items() for one in command.params]
    return [(name, one.opts[0]) for name, one in options if isinstance(one, click.Option) and kind(one)]


def refused(folder, arguments):
    """The one line that a command says of bad input, which leaves nothing."""
    ended = CliRunner().invoke(cli.main, arguments)
    assert ended.exit_code == 2, ended.output
    assert not list(folder.iterdir())
    return ended.output.splitlines()[-1]


REQUIRED = {"check": [STATEMENT], "example": ["certificates"], "figure": ["9"], "fuzz": [STATEMENT], "manifest": ["."],
            "new-paper": ["Mine"], "page": [STATEMENT], "study": ["adam_reverses"]}  # fmt: skip


@pytest.mark.parametrize(("name", "option"), options_of(lambda option: isinstance(option.type, click.Path)))
def test_an_empty_word_is_no_path(tmp_path, monkeypatch, name, option):
    """As `--out "$OUT"` gives it where OUT is not set: it would be the present folder."""
    monkeypatch.chdir(tmp_path)
    said = refused(tmp_path, [name, option, "", *REQUIRED.get(name, [])])
    assert said == f"Error: `{option}` must be the path of a file or a folder, but got ''"


@pytest.mark.parametrize(("name", "option"), options_of(lambda option: option.name == "data"))
def test_data_that_are_not_there_are_named(tmp_path, monkeypatch, name, option):
    monkeypatch.chdir(tmp_path)
    arguments = {"rerun": [str(ROOT / "setup.cfg")]} | REQUIRED
    said = refused(tmp_path, [name, *arguments.get(name, []), option, "nope.csv"])
    assert "nope.csv" in said and "Errno" not in said and ("`--data` must" in said or "'--data'" in said)


def test_a_text_is_read_as_pairs_of_query_and_next_token(tmp_path):
    """Its next tokens follow several queries each: the check was refused."""
    (tmp_path / "corpus.txt").write_text("the cat sat on the mat and the dog sat on the log " * 3)
    text = ["--data", str(tmp_path / "corpus.txt"), "--length", "4", "--t-end", "5"]
    arguments = ["check", "Scan and Snap: Theorem 3", *text]
    result = CliRunner().invoke(cli.main, arguments)
    assert result.exit_code == 0, result.output
    assert "corpus.txt is read as 11 pairs of query and next token" in result.output
