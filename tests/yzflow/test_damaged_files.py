"""Saved files with wrong bytes and words in them, as their readers, `rerun` and the commands read them."""

import copy
import functools
import hashlib
import json
import os
import random
import re
import secrets
import shutil
import warnings
from contextlib import suppress
from pathlib import Path

import hostile
import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from driving import LONG, ROOT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from saved import CLASSES, MADE, STATEMENT
from saved_kinds import all_files, changed, make_all, places

import yzflow as yz
from dynamics.support import archive, netcdf, sealed
from theory import statements
from yzflow.cli import main

FILES = all_files()


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Kind -> a file that `rerun` knows, made when it is first asked for."""
    folder = tmp_path_factory.mktemp("made")

    @functools.cache
    def of(kind):
        name, make = MADE[kind]
        make(folder / name)
        return folder / name

    return of


def refused(path):
    """One line of our grammar, from the function and from the command."""
    with pytest.raises(ValueError, match=hostile.GRAMMAR):
        yz.rerun(path)
    ended = CliRunner().invoke(main, ["rerun", str(path)])
    assert ended.exit_code == 2 and len(ended.output.strip().splitlines()) == 1, ended.output
    assert not isinstance(ended.exception, ValueError)


WRONG = st.one_of(st.none(), st.booleans(), st.integers(-3, 10**30), st.floats(), st.text(max_size=5),
                  st.just([]), st.just({}), st.just([{"a": [None]}]))  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["an audit", "a check"])
@given(data=st.data())
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_wrong_value_of_a_json_file_is_refused_or_found(kind, original, tmp_path, data):
    """A changed record of how a file was made is refused or makes something else; a changed result differs."""
    content = json.loads(original(kind).read_text())
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
    (tmp_path / "file.json").write_text(json.dumps(changed))
    try:
        with pytest.MonkeyPatch.context() as patch:  # of all statements, as without `only`, one
            patch.setattr(statements, "REGISTER", {STATEMENT: statements.REGISTER[STATEMENT]})
            report = yz.rerun(tmp_path / "file.json")
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
def test_arguments_that_nothing_takes_are_refused(kind, place, value, original, tmp_path):
    content = json.loads(original(kind).read_text())
    if value is None:
        del content["made"]["arguments"][place]
    else:
        content["made"]["arguments"][place] = value
    (tmp_path / "file.json").write_text(json.dumps(content))
    refused(tmp_path / "file.json")


# All kinds, from their table


# In the long form other damages each time; `YZFLOW_SEED` gives those of an earlier time again.
SEED = int(os.environ.get("YZFLOW_SEED", secrets.randbits(32))) if LONG else 0
DAMAGES, MUTANTS = 1000 if LONG else 10, 6  # of each kind; of mutants all in the long form


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    print(f"YZFLOW_SEED={SEED}")
    return make_all(tmp_path_factory.mktemp("kinds"), FILES)


@pytest.fixture
def copies(originals, tmp_path):
    """Kind -> a copy of its file, which a test may damage, in a copy of its folder."""

    def of(kind):
        folder = tmp_path / originals[kind].parent.name
        if not folder.exists():
            shutil.copytree(originals[kind].parent, folder)
        return folder / originals[kind].name

    return of


def read(kind, path):
    """Content of a file to a reader, or its error, which must be in our grammar; and the warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = FILES[kind].read(path)
        except ValueError as error:
            assert hostile.GRAMMAR.match(str(error)), (kind, error)
            found = error
    return found, [str(one.message) for one in told]


def damaged(content, rng):
    """A damage by accident."""
    lo, hi = sorted(rng.choices(range(len(content)), k=2))
    how = rng.choice(["flip", "cut", "append", "zero", "without", "moved"])
    if how == "flip":
        return how, content[:lo] + bytes([content[lo] ^ 1 << rng.randrange(8)]) + content[lo + 1 :]
    if how == "cut":
        return how, content[:lo]
    if how == "append":
        return how, content + rng.randbytes(rng.choice([1, 64, 1000]))
    if how == "zero":
        return how, content[:lo] + bytes(hi - lo + 1) + content[hi + 1 :]
    if how == "without":
        return how, content[:lo] + content[hi:]
    return how, content[hi:] + content[lo:hi] + content[:lo]


def test_every_kind_of_file_has_a_test():
    assert set(FILES) == set(sealed.kinds())


def test_every_format_in_the_sources_is_in_the_table():
    """Older ones are read, and a folder's is no file's."""
    found = set()
    for package in ("dynamics", "theory", "yzflow"):
        for file in (ROOT / package).rglob("*.py"):
            found |= set(re.findall(r'"(yzflow-[a-z-]+-\d+)"', file.read_text(encoding="utf-8")))
    assert found - set(sealed.kinds()) == {"yzflow-bags-1", "yzflow-ensemble-2"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILES)
def test_whatever_happens_to_a_file_is_noticed(kind, originals, copies):
    path, content = copies(kind), originals[kind].read_bytes()
    found, told = read(kind, path)
    assert not isinstance(found, ValueError) and not told
    assert hashlib.sha256(content[:-64]).hexdigest().encode() == content[-64:]
    rng = random.Random(f"{SEED} {kind}")
    for number in range(DAMAGES):
        how, other = damaged(content, rng)
        if other == content:
            continue
        path.write_bytes(other)
        found, told = read(kind, path)
        assert isinstance(found, ValueError), (SEED, number, how)
        if kind == "yzflow-sweep-run-1":
            assert "is damaged" in told[0] and told[0].endswith("to be run again")
    path.write_bytes(content[:-65] + bytes([content[-65] ^ 1]) + content[-64:])
    refused(path)  # nothing of a damaged file is run again


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_another_kind_is_refused_by_name(kind, originals, copies):
    path = copies(kind)
    for other, original in originals.items():
        if other == kind:
            continue
        path.write_bytes(original.read_bytes())
        found, _ = read(kind, path)
        assert isinstance(found, ValueError), other
        if kind not in ("yzflow-certificate-2", "yzflow-cell-3", "yzflow-sweep-run-1"):  # which say it in other words
            assert str(found).endswith(f"another file {str(path)!r}, {sealed.kinds()[other]}")


WRONG_VALUES = [None, True, -1, 2**70, 0.5, float("nan"), "", "x", "[]", '{"a": 1}', [], [[]], {}, {"a": None}, ...]


def mutants(content, rng):
    """Ways to change one field of the file's JSON, to leave it out, or to change an array: what, and the bytes."""

    def some(every):
        every = list(every)
        return every if LONG else rng.sample(every, min(5, len(every)))

    if content.startswith(sealed.ARCHIVE):
        header, arrays = archive.decode(content)
        for place in [("format",), *some(places(header))]:
            for value in WRONG_VALUES[: None if place else -1]:
                yield (
                    (place, value),
                    functools.partial(lambda *one: archive.encode(changed(header, *one), arrays), place, value),
                )
        for name in arrays:
            rest = {other: array for other, array in arrays.items() if other != name}
            yield (name, ...), functools.partial(archive.encode, header, rest)
            yield (name, "words"), functools.partial(archive.encode, header, {**rest, name: np.zeros((2, 3), "U2")})
        return
    dataset = netcdf.decode(sealed.body(content))
    bare = dataset.drop_attrs(deep=False)
    for name, text in dataset.attrs.items():
        rest = {other: own for other, own in dataset.attrs.items() if other != name}
        for value in [*(json.dumps(value) for value in WRONG_VALUES[:-1]), 5, np.nan, ...]:
            yield (name, value), functools.partial(seal, bare, rest if value is ... else {**rest, name: value})
        node = {}
        with suppress(ValueError, TypeError):
            node = json.loads(text)
        for place in some(filter(None, places(node))):
            for value in WRONG_VALUES:
                yield (name, place, value), functools.partial(seal_inside, bare, rest, name, node, place, value)
    for name, variable in some(dataset.variables.items()):
        words = np.full(variable.shape, "word") if variable.ndim else np.array("word")
        yield (name, ...), functools.partial(seal, dataset.drop_vars(name))
        yield (name, "other"), functools.partial(seal, dataset.rename_vars({name: "other"}))
        yield (name, "words"), functools.partial(seal, dataset.drop_vars(name).assign({name: (variable.dims, words)}))


def seal_inside(dataset, attributes, name, node, place, value):
    """With another value at a place of the JSON of an attribute."""
    return seal(dataset, {**attributes, name: json.dumps(changed(node, place, value))})


def seal(dataset, attributes=None):
    content = bytes(netcdf.encode(dataset.assign_attrs(attributes or {})))
    return content + sealed.digest(content)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILES)
def test_a_changed_field_under_a_new_seal_raises_nothing_foreign(kind, originals, copies):
    """Somebody who seals again is believed or refused in our words; a format that is none is always refused."""
    path, content = copies(kind), originals[kind].read_bytes()
    if kind in ("yzflow-certificate-2", "yzflow-cell-3"):
        pytest.skip("tests of certificates change claims, which are verified")
    rng = random.Random(f"{SEED} {kind}")
    every = list(mutants(content, rng))
    formats = [one for one in every if one[0][0] in ("format", ("format",))]
    for what, make in every if LONG else rng.sample(every, min(MUTANTS, len(every))) + rng.sample(formats, 1):
        path.write_bytes(make())
        try:
            found, _ = read(kind, path)
        except Exception as error:
            raise AssertionError(f"{SEED}: {what} raises {error!r}") from error
        if what[0] in ("format", ("format",)) and kind != "yzflow-sweep-run-1":
            assert isinstance(found, ValueError), what


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILES)
def test_bytes_that_nobody_wrote_are_refused(kind, copies):
    path = copies(kind)
    for content in (b"", b"text", bytes(500), b"PK\x03\x04", b"\x89HDF\r\n\x1a\n" + bytes(99)):
        for written in (content, content + sealed.digest(content)):
            path.write_bytes(written)
            assert isinstance(read(kind, path)[0], ValueError), written


# Files that are kept to save work


@pytest.mark.parametrize("how", ["damaged", "of another question", "of another kind"])
def test_what_is_kept_to_save_work_is_made_again(how, tmp_path):
    """With a line that says so; somebody's own file at its place is left alone."""
    made = []

    def asked(name, value):
        def make():
            made.append(value)
            return xr.Dataset({"x": ((), value)})

        return float(netcdf.kept(tmp_path / name, "yzflow-sweep-1", "a variant", make)["x"])

    assert [asked("a", 1.0), asked("b", 2.0), asked("a", 1.0)] == [1.0, 2.0, 1.0] and made == [1.0, 2.0]
    first = (tmp_path / "a").read_bytes()
    if how == "of another kind":
        (tmp_path / "a").write_text("mine")
        with pytest.raises(ValueError, match=r"^`path` must be a (cell|variant) written by yzflow"):
            asked("a", 1.0)
        assert (tmp_path / "a").read_text() == "mine"
        return
    (tmp_path / "a").write_bytes(first[:-80] + first[-79:] if how == "damaged" else (tmp_path / "b").read_bytes())
    why = "its checksum is wrong" if how == "damaged" else "it was kept for another question"
    with pytest.warns(UserWarning, match=rf"a is damaged \({why}\): set aside as a\.damaged, what it held is made"):
        assert asked("a", 1.0) == 1.0
    assert made == [1.0, 2.0, 1.0] and (tmp_path / "a").read_bytes() == first


def test_bags_of_a_file_without_a_seal_are_read_with_a_warning(tmp_path):
    """Once, and at the line that loads them; a file whose counts somebody wrote anew is such a file."""
    bags = CLASSES.population()
    bags.save(tmp_path / "bags.npz")
    arrays = bags.arrays | {"count": bags.count * 2}
    sizes = [bags.n_queries, bags.n_tokens, bags.vocab_size]
    np.savez_compressed(tmp_path / "bags.npz", format="yzflow-bags-1", sizes=sizes, **arrays)
    with pytest.warns(UserWarning, match=r"bags\.npz', a file without a checksum: a change .* would not be") as told:
        found = yz.Bags.load(tmp_path / "bags.npz")
    assert len(told) == 1 and Path(told[0].filename) == Path(__file__)
    np.testing.assert_array_equal(found.count, arrays["count"])
    # The same with the seal cut off, or that of the file before.
    bags.save(tmp_path / "bags.npz")
    header, arrays = archive.decode((tmp_path / "bags.npz").read_bytes())
    anew = archive.encode(header, arrays | {"count": bags.count * 2}, compressed=True)
    for content in (anew[:-64], anew[:-64] + (tmp_path / "bags.npz").read_bytes()[-64:]):
        (tmp_path / "bags.npz").write_bytes(content)
        with pytest.raises(ValueError, match=r"^`path` must be a file of bags .*\(its checksum is wrong\)$"):
            yz.Bags.load(tmp_path / "bags.npz")


def foreign(folder):
    """Bytes of what people put in the place of another file: nothing, noise, text, JSON, and other kinds of ours."""
    saved_run, bags, unknown = (folder / name for name in ("other.nc", "other.npz", "unknown.nc"))
    yz.gradient_flow(CLASSES, eta_y=1.0, eta_z=0.5, t_end=1.0, n_times=2).save(saved_run)
    yz.Bags.from_dense([0], [0], [[1]]).save(bags)
    netcdf.save_dataset(xr.Dataset(attrs={"format": "unknown"}), unknown)
    plain = {"empty": b"", "noise": bytes(range(256)) * 4, "text": b"hello\n", "JSON": b"{}", "a list": b"[]"}
    return plain | {path.name: path.read_bytes() for path in (saved_run, bags, unknown)}


def test_a_refused_file_is_named(tmp_path):
    """Not only the argument that it came in by: who reads many files looks for the name."""
    # A run of a sweep is read by its store, which names the folder.
    doors = {kind: (file.name, file.read) for kind, file in FILES.items() if kind != "yzflow-sweep-run-1"}
    doors |= {f"rerun of {name}": (name, yz.rerun) for name in ("a.nc", "a.npz", "a.json")}
    doors |= {f"data in {name}": (name, yz.read_data) for name in ("a.npz", "a.csv", "a.tsv", "a.json")}
    doors["text"] = ("a.txt", functools.partial(yz.read_data, length=3))
    for number, content in enumerate(foreign(tmp_path).values()):
        for kind, (name, read) in doors.items():
            path = tmp_path / f"{number} {kind}" / name
            path.parent.mkdir()
            path.write_bytes(content)
            try:
                read(path)
            except ValueError as error:
                assert name in str(error) and "\n" not in str(error), kind
    for name, read in doors.values():
        with pytest.raises((OSError, ValueError), match=re.escape(name)):
            read(tmp_path / "none" / name)
