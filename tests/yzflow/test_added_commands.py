"""Commands of other distributions: found by entry points, imported when they are asked for, and named where missing."""

from importlib import metadata

import click
import pytest
from click.testing import CliRunner

from yzflow import cli

CONTEXT = click.Context(cli.main)


@click.command()
def hello():
    """Say hello."""
    click.echo("hello")


no_command = "no command"


@pytest.fixture
def added(monkeypatch):
    """A function that puts commands, by name and place, in the group that installed distributions fill."""

    def put(**places):
        points = [metadata.EntryPoint(name, place, cli.GROUP) for name, place in places.items()]
        monkeypatch.setattr(metadata, "entry_points", lambda group: points if group == cli.GROUP else [])
        cli._added.cache_clear()

    yield put
    cli._added.cache_clear()


def run(*arguments):
    return CliRunner().invoke(cli.main, arguments)


def test_a_command_of_another_distribution_runs_and_is_listed(added):
    added(hello=f"{__name__}:hello")
    assert run("hello").stdout == "hello\n"
    assert "hello" in cli.main.list_commands(CONTEXT) and "Say hello." in run("--help").stdout


def test_a_broken_command_is_left_out_with_a_warning(added):
    added(broken="no_such_module:x", empty=f"{__name__}:no_command")
    for name, why in (("broken", "No module named 'no_such_module'"), ("empty", "it is no command of click")):
        ended = run(name)
        assert ended.exit_code == 2 and f"No such command '{name}'" in ended.stderr
        assert [line for line in ended.stderr.splitlines() if line.startswith("Warning: ")] == [
            f"Warning: the command {name} of {cli._added()[name].value} is left out: {why}"
        ]
    listed = run("--help")
    assert listed.exit_code == 0 and "audit" in listed.stdout and "  broken" not in listed.stdout


def test_a_name_of_ours_cannot_be_taken(added):
    added(audit=f"{__name__}:hello")
    listed = run("audit", "--help")
    assert "proofs and simulations" in listed.stdout and "hello" not in listed.stdout
    assert "audit" not in cli._added()
    added(audit=f"{__name__}:hello")
    ended = run("nothing")
    assert f"the command audit of {__name__}:hello is left out: its name is taken" in ended.stderr


def test_nothing_is_imported_for_a_command_of_ours(added):
    added(broken="no_such_module:x")
    assert "no_such_module" not in run("audit", "--help").output


@pytest.mark.parametrize("name", ["verify", "manifest"])
def test_a_command_that_is_not_installed_is_named_with_its_cure(added, name):
    added()
    ended = run(name, "x.npz")
    assert ended.exit_code == 2
    assert ended.stderr == f"Error: `yzflow {name}` comes with yzflow-enclose: pip install -e tools/enclose\n"
    assert name not in cli.main.list_commands(CONTEXT)
