"""Saved files with wrong bytes and words in them, as `rerun`, the crate and the commands read them."""

import copy
import json
from contextlib import suppress

import hostile
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from saved import MADE, STATEMENT

import yzflow as yz
from theory import statements
from theory.enclosures import Enclosure
from yzflow import crates
from yzflow.cli import main

SEALED = [kind for kind in MADE if kind not in ("an audit", "a check")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("made")
    for name, make in MADE.values():
        make(made / name)
    return made


def refused(path):
    """One line of our grammar, from the function and from the command."""
    with pytest.raises(ValueError, match=hostile.GRAMMAR):
        yz.rerun(path)
    ended = CliRunner().invoke(main, ["rerun", str(path)])
    assert ended.exit_code == 2 and len(ended.output.strip().splitlines()) == 1, ended.output
    assert not isinstance(ended.exception, ValueError)


@pytest.mark.parametrize("kind", SEALED)
@given(data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_one_wrong_byte_of_a_sealed_file_is_refused(kind, folder, tmp_path, data):
    """Nothing of a damaged file is run again: neither a changed byte, nor an end that is missing or too much."""
    name, _ = MADE[kind]
    content = bytearray((folder / name).read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    how = data.draw(st.sampled_from(["change", "cut", "more"]))
    if how == "change":
        content[place] ^= data.draw(st.integers(1, 255))
    elif how == "cut":
        del content[place:]
    else:
        content += data.draw(st.binary(min_size=1, max_size=9))
    (tmp_path / name).write_bytes(content)
    if kind == "a certificate":  # what a zip file holds beside its content, such as dates, is not sealed
        with suppress(ValueError):
            kept = Enclosure.load(tmp_path / name).arrays()
            first = Enclosure.load(folder / name).arrays()
            assert all(kept[part].tobytes() == first[part].tobytes() for part in first)
            return
    refused(tmp_path / name)
    described = crates.describe(tmp_path)  # a file like any other: nothing is said of what made it
    assert not described[name].startswith(("a trajectory", "a sweep", "a survival", "a certificate"))


def places(node, path=()):
    """Every place of JSON."""
    yield path
    parts = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, part in parts:
        yield from places(part, (*path, key))


WRONG = st.one_of(st.none(), st.booleans(), st.integers(-3, 10**30), st.floats(), st.text(max_size=5),
                  st.just([]), st.just({}), st.just([{"a": [None]}]))  # fmt: skip


@pytest.mark.parametrize("kind", ["an audit", "a check"])
@given(data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_wrong_value_of_a_json_file_is_refused_or_found(kind, folder, tmp_path, data):
    """What says how it was made is refused or makes something else; what was found differs."""
    name, _ = MADE[kind]
    content = json.loads((folder / name).read_text())
    top = data.draw(st.sampled_from(sorted(content)))
    place = data.draw(st.sampled_from(sorted(places(content[top], (top,)), key=repr)))
    wrong = data.draw(WRONG)
    changed = copy.deepcopy(content)
    node = changed
    for key in place[:-1]:
        node = node[key]
    if type(node[place[-1]]) is type(wrong) and node[place[-1]] == wrong:
        return
    if isinstance(node, dict) and data.draw(st.booleans()):
        del node[place[-1]]
    else:
        node[place[-1]] = wrong
    (tmp_path / name).write_text(json.dumps(changed))
    try:
        with pytest.MonkeyPatch.context() as patch:  # of all statements, as without `only`, one
            patch.setattr(statements, "REGISTER", {STATEMENT: statements.REGISTER[STATEMENT]})
            report = yz.rerun(tmp_path / name)
    except ValueError as error:
        assert place[0] == "made" and hostile.GRAMMAR.match(str(error)), (place, wrong, error)
        return
    if place[:2] == ("made", "environment"):
        assert report.same and (len(place) == 2 or report.factors or report.unknown), (place, wrong)
    elif place[:2] == ("made", "arguments"):
        # Another value that means the same (1 for true), or something else was made.
        assert report.kind == kind
    elif place[0] != "made":
        assert not report.same, (place, wrong)


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        ("an audit", "more", 1),
        ("an audit", "enclose", [1]),
        ("an audit", "enclose", {"until": 1.0}),
        ("a check", "progress", True),
        ("a check", "quick", None),
    ],
)
def test_arguments_that_nothing_takes_are_refused(kind, place, value, folder, tmp_path):
    name, _ = MADE[kind]
    content = json.loads((folder / name).read_text())
    if value is None:
        del content["made"]["arguments"][place]
    else:
        content["made"]["arguments"][place] = value
    (tmp_path / name).write_text(json.dumps(content))
    refused(tmp_path / name)
