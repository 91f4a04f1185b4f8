"""Commands that are made from signatures: what each parameter becomes, and the defaults of the functions behind."""

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import dynamics
import yzflow as yz
from dynamics import Objective, Optimizer, Schedule, SequenceClasses
from yzflow import cli
from yzflow.audits.audit import Enclose
from yzflow.commands.common import FILE
from yzflow.commands.options import command


@dataclass
class Rates:
    eta_y: Annotated[float, "Of the decoder."] = 1.0
    eta_z: float | None = None


KINDS = {int: st.integers(), float: st.floats(allow_nan=False), str: st.text("abc", min_size=1)}


@st.composite
def options(draw):
    """(annotation, default, value) of an option: of one value, of one or none, or of several."""
    kind = draw(st.sampled_from([int, float, str]))
    values = KINDS[kind]
    return draw(
        st.sampled_from(
            [
                (kind, draw(values), draw(values)),
                (kind | None, None, draw(values)),
                (tuple[kind, ...], (), tuple(draw(st.lists(values, min_size=1, max_size=3)))),
            ]
        )
    )


def parsed(annotations, defaults, words):
    """The values that a command gets whose options have these annotations and defaults."""
    found = {}

    def asked(**values):
        found.update(values)

    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=defaults[name])
        for name, annotation in annotations.items()
    ]
    asked.__signature__ = inspect.Signature(parameters)
    ended = CliRunner().invoke(command()(asked), words)
    assert ended.exit_code == 0, ended.output
    return found


@given(st.lists(options(), min_size=1, max_size=4))
def test_every_option_has_the_type_and_the_default_of_its_parameter(asked):
    names = [f"of_{number}" for number in range(len(asked))]
    annotations = {name: kind for name, (kind, _, _) in zip(names, asked, strict=True)}
    defaults = {name: default for name, (_, default, _) in zip(names, asked, strict=True)}
    assert parsed(annotations, defaults, []) == defaults
    values = {name: value for name, (_, _, value) in zip(names, asked, strict=True)}
    words = [
        f"--{name.replace('_', '-')}={each}"
        for name, value in values.items()
        for each in (value if isinstance(value, tuple) else (value,))
    ]
    assert parsed(annotations, defaults, words) == values


def made():
    """A command of everything that a signature can have, and where its values go."""
    found = {}

    @command("all-of-it", more=[click.Option(["--besides"])])
    def all_of_it(
        context: click.Context,
        file: Annotated[Path, FILE],
        names: Annotated[tuple[str, ...], {"metavar": "NAME .."}] = (),
        *,
        must: int,
        rates: Rates,
        everything: Annotated[bool, "--all", "Each of them."] = False,
        unsaid: bool | None = None,
        out: Path | None = None,
        **others: str | None,
    ) -> None:
        """Do it."""
        found.update(vars(rates), file=file, names=names, must=must, everything=everything, unsaid=unsaid, out=out)
        found.update(others, called=context.info_name)

    return all_of_it, found


def test_a_signature_with_everything(tmp_path):
    one, found = made()
    path = tmp_path / "here.txt"
    path.write_text("")
    words = [str(path), "a", "b", "--must", "3", "--eta-z", "2", "--all", "--out", "out.txt", "--besides", "it"]
    assert CliRunner().invoke(one, words).exit_code == 0
    assert found == {
        "eta_y": 1.0, "eta_z": 2.0, "file": path, "names": ("a", "b"), "must": 3, "everything": True, "unsaid": None,
        "out": Path("out.txt"), "besides": "it", "called": "all-of-it",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nope.txt", "--must", "3"], "nope.txt"),
        ([__file__], "--must"),
        ([__file__, "--must", "three"], "three"),
        ([__file__, "--must", "3", "--out", ""], "`--out` must be the path of a file or a folder, but got ''"),
        (["--must", "3"], "FILE"),
    ],
)
def test_what_the_signature_excludes_is_refused(words, said):
    one, found = made()
    ended = CliRunner().invoke(one, words)
    assert ended.exit_code == 2 and said in ended.output and not found


def test_the_help_says_what_is_annotated():
    said = " ".join(CliRunner().invoke(made()[0], ["--help"]).output.split())
    for words in (
        "Usage: all-of-it [OPTIONS] FILE NAME ..",
        "Do it.",
        "--eta-y FLOAT Of the decoder. [default: 1.0]",
        "--eta-z FLOAT ",
        "--all Each of them.",
        "--must INTEGER [required]",
    ):
        assert words in said


SERVES = {
    "audit": (yz.audit, Enclose),
    "check": (yz.check,),
    "flow": (yz.gradient_flow, SequenceClasses.single_common_token, Objective, Schedule, Optimizer),
    "fuzz": (yz.fuzz,),
    "page": (yz.page,),
    "sgd": (dynamics.sgd, Objective, Schedule, Optimizer),
    "survival": (yz.survival,),
    "sweep": (yz.sweep,),
}
# An option of several values has no None, the word of a schedule stands for one that ends with the run, a flow has a
# name for "without an optimizer", CONFIG has the number of seeds, and a function that trains has no number of steps.
OTHERS = {
    ("audit", "enclose"): False,
    ("audit", "only"): (),
    ("flow", "momentum"): 0.0,
    ("flow", "optimizer"): "sgd",
    ("flow", "schedule"): "constant",
    ("sgd", "schedule"): "constant",
    ("sgd", "steps"): 100,
    ("survival", "options"): (),
    ("survival", "statements"): (),
    ("sweep", "seeds"): None,
}


@pytest.mark.parametrize("name", SERVES)
def test_a_command_has_the_defaults_of_the_function_that_it_serves(name):
    parameters = [one for served in reversed(SERVES[name]) for one in inspect.signature(served).parameters.values()]
    defaults = {one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty}
    options = {one.name: one.default for one in cli.main.get_command(None, name).params if one.name in defaults}
    others = {option: value for (command, option), value in OTHERS.items() if command == name}
    assert options and options == {key: defaults[key] for key in options} | others
