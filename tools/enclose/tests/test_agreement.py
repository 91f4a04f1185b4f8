"""Both checkers of certificates, on the same files: what each refuses, and the words of why."""

import io
import json
import re
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from yzflow_enclose import Enclosure, canonical, enclose_flow
from yzflow_enclose.cells import Cell, CellEnclosure, decide_cell
from yzflow_enclose.formulas import check_says
from yzflow_enclose.verifier import verify

from dynamics import Bags, SequenceClasses
from dynamics.support import archive, sealed

pytestmark = pytest.mark.usefixtures("same_precision")  # a checker sets it and leaves it so

REFUSED = r"^(`\w+` must [\s\S]*, but got|the enclosure proves nothing: )"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Header and arrays of a certificate of two steps, with a predicate that is true and one that is false."""
    flow = enclose_flow(unequal(), eta_y=1.0, eta_z=0.8, t_end=1.0, bits=30)
    flow.record(lambda at: at.loss.rate < 0)
    flow.record(lambda at: at.attention(0, 0) > 0.34, until=0.75)
    assert [made.verdict for made in flow.predicates] == [True, False] and len(flow.steps) > 1
    path = tmp_path_factory.mktemp("agreement") / "flow.npz"
    flow.save(path)
    return archive.decode(path.read_bytes(), name=archive.CLAIM)


def unequal():
    return Bags.from_dense([0, 1], [0, 1], [[1, 2, 0], [0, 1, 3]], [0.3, 0.7], vocab_size=3)


def words_of(path):
    """Words of both checkers on a file: nothing, or why not."""
    found = []
    try:
        flow = Enclosure.load(path)
        found.append("" if flow.verify() else f"the enclosure proves nothing: {flow.fault}")
    except ValueError as error:
        found.append(str(error))
        assert re.match(REFUSED, found[0]), found
    try:
        verify.check(path)
        found.append("")
    except verify.REFUSALS as error:
        found.append(str(error) or "refused")
    return found


def written(tmp_path, header, arrays):
    path = tmp_path / "written.npz"
    path.write_bytes(archive.encode(header, arrays, name=archive.CLAIM))
    return path


def changed(certificate, change):
    """A copy after ``change(header, arrays)``, the population's hash made anew."""
    header, arrays = json.loads(json.dumps(certificate[0])), {name: a.copy() for name, a in certificate[1].items()}
    change(header, arrays)
    found = header["claim"]["population"]
    found["sha256"] = canonical.digest({name: part for name, part in found.items() if name != "sha256"})
    return header, arrays


# Predicates that `record` writes.


def ratio():
    return SequenceClasses.single_common_token(2, 12, common=0.75, distinct=(1.5, 1.0))


@pytest.mark.parametrize(
    ("data", "options", "predicate", "expected"),
    [
        (unequal(), {"t_end": 2.0, "bits": 40}, lambda at: at.z(0, 1) > 1e-4, False),
        (unequal(), {"t_end": 2.0, "bits": 40}, lambda at: at.z(0, 1) < 1, True),
        (unequal(), {"t_end": 0.5, "bits": 40}, lambda at: at.velocity(0, 1) * -3 > -1, True),
        (unequal(), {"t_end": 0.5, "bits": 40}, lambda at: (at.loss - 2) * (at.loss + 1) < 1e-300, True),
        (unequal(), {"t_end": 0.5, "bits": 40}, lambda at: at.loss / at.z(1, 2).exp() < 9, True),
        (unequal(), {"t_end": 0.5, "bits": 40}, lambda at: (1 / at.z(0, 0) > 5) | (at.loss > 0), True),
        (ratio(), {"eta_z": 4.0, "t_end": 5.399, "bits": 60}, lambda at: at.relative_gain(0, 1, 2) > 0, True),
        (ratio(), {"t_end": 0.5, "bits": 30, "decoder": "modified"}, lambda at: at.z(0, 1) <= at.z(0, 2), False),
    ],
)  # fmt: skip
def test_what_is_recorded_is_verified_by_both(tmp_path, data, options, predicate, expected):
    flow = enclose_flow(data, **{"eta_y": 1.0, "eta_z": 0.8, **options})
    assert flow.record(predicate).value is expected
    flow.save(tmp_path / "flow.npz")
    assert words_of(tmp_path / "flow.npz") == ["", ""]


def test_a_predicate_is_recorded_with_room(tmp_path):
    """A claim that holds by less than four radii of a step stays open, though it may be decided."""
    flow = enclose_flow(unequal(), eta_y=1.0, eta_z=0.8, t_end=0.5, bits=30)
    radius = max(step.radius for step in flow.steps) / float(flow.opened().field.weights.max())
    last = flow.moment(0.5)
    bounds = {share: last.z(0, 1).lower - radius * share for share in (0.1, 40.0)}
    decided = {share: flow.holds(lambda at, b=b: ~(at.z(0, 1) < b) | (at.time < 0.499)) for share, b in bounds.items()}
    recorded = {
        share: flow.record(lambda at, b=b: ~(at.z(0, 1) < b) | (at.time < 0.499)).value for share, b in bounds.items()
    }
    assert recorded[40.0] is True and decided[40.0] is True and recorded[0.1] is not True


def test_what_has_no_value_is_not_recorded():
    flow = enclose_flow(unequal(), eta_y=1.0, eta_z=0.8, t_end=0.5, bits=30)
    with pytest.raises(ValueError, match="`predicate` must have a value at the end of each step"):
        flow.record(lambda at: ((at.loss - 9).log() > 0) | (at.loss > 0))
    assert flow.predicates == ()
    undefined = {
        "a rate": lambda at: (at.loss - 9).sqrt().rate >= 0,
        "a rate of a root of -1": lambda at: (at.time * 0 - 1).sqrt().rate >= 0,
        "nothing known times zero": lambda at: (at.loss - 9).log() * 0 >= 0,
    }
    assert [flow.holds(predicate) for predicate in undefined.values()] == [None] * 3


def test_nothing_is_verified_of_what_has_no_value(certificate, tmp_path):
    """Of the logarithm of a negative number, times zero, plus one."""
    operations = [["number", -1], ["log", 0], ["number", 0], ["*", 1, 2], ["number", 1], ["+", 3, 4], [">", 5]]
    path = written(tmp_path, *changed(certificate, says(*operations)))
    assert all("predicate" in words for words in words_of(path)), words_of(path)


def test_features_that_are_dependent_end_an_enclosure_in_words():
    bags = Bags.from_dense([0, 0], [0, 1], [[1.0, 1.0], [1.0, 1.0]], [0.3, 0.7], vocab_size=3)
    for decoder in ("modified", "theory"):
        flow = enclose_flow(bags, eta_y=1.0, eta_z=1.0, t_end=1.0, bits=30, decoder=decoder)
        assert not flow.steps and "no power series" in flow.reason


# Spans.


def test_the_expansion_of_a_step_beyond_its_end_proved_what_is_false(tmp_path):
    """A variable that is positive on all of the flow, said to be not positive just after a step that bends away."""
    classes = SequenceClasses.single_common_token(2, 2, common=1.0, distinct=(2.0, 1.0))
    flow = enclose_flow(classes, eta_y=1.0, eta_z=0.05, t_end=0.2, bits=30)
    flow.save(tmp_path / "flow.npz")
    header, arrays = archive.decode((tmp_path / "flow.npz").read_bytes(), name=archive.CLAIM)
    rows = {name: arrays[name][:1] for name in ("start", "end", "radius", "pieces", "limbs")}
    arrays |= {name: np.concatenate([row, row]) for name, row in rows.items()}
    arrays["end"][0] = arrays["start"][1] = 0.1
    t, degree = 0.1, arrays["limbs"].shape[2]
    whole = rows["limbs"][0].sum(axis=-1)
    for i in range(whole.shape[0]):  # the polynomial of the second step is the first one's, about its own start
        moved = np.polynomial.Polynomial(whole[i])(np.polynomial.Polynomial([t, 1])).coef
        arrays["limbs"][1, i] = 0
        arrays["limbs"][1, i, : moved.size, 0] = moved[:degree]
    arrays["limbs"][0, 1, 8, 0] -= 2e-3 / 0.15**8
    arrays["radius"][:] = 8e-3
    header["claim"]["errors"] = [float(8e-3 / w * (1 + 1e-9)) for w in arrays["weights"]]
    says = [["variable", 1], [">", 0], ["time"], ["-", 2], ["number", 0.2 - 1e-6], ["+", 3, 4], [">", 5], ["and", 1, 6]]
    told = {"says": says, "verdict": False, "until": 0.2, "times": [0.0999, 0.2], "margin": -9e-7}
    path = written(tmp_path, {**header, "claim": {**header["claim"], "predicates": [told]}}, arrays)
    assert all("leave their step" in words for words in words_of(path))
    inside = {**told, "times": [0.09, 0.1]}
    path = written(tmp_path, {**header, "claim": {**header["claim"], "predicates": [inside]}}, arrays)
    assert all("predicate" in words and "leave" not in words for words in words_of(path))


# Claims and files in another form.


def says(*operations):
    def change(header, arrays):
        header["claim"]["predicates"][0]["says"] = list(operations)

    return change


def of_notes(**parts):
    return lambda header, arrays: header["notes"].update(parts)


def of_array(name, change):
    def changed_(header, arrays):
        arrays[name] = change(arrays[name])

    return changed_


def of_population(change):
    return lambda header, arrays: change(header["claim"]["population"])


def scaled(factor):
    """The counts of all bags times a factor."""
    return lambda population: population.update(
        bags=[[*bag[:4], [count * factor for count in bag[4]]] for bag in population["bags"]]
    )


def many_bags(population):
    """More variables than a flow of no symmetry may have."""
    population.update(n_tokens=90, vocab_size=90)
    population["bags"] = [[0, n, 1 / 30, [n, n + 1], [1.0, 2.0 + n]] for n in range(30)]


OTHER_FORMS = {
    "a rate of a rate": says(["variable", 0], ["rate", 0], ["rate", 1], [">", 2]),
    "a large number": says(["variable", 0], ["number", 2**53], ["+", 0, 1], [">", 2]),
    "a number of four hundred digits": says(["variable", 0], ["number", 10**400], ["+", 0, 1], [">", 2]),
    "an operation in a mapping": says({"time": 0}, [">", 0]),
    "an operation in a word": says("time", [">", 0]),
    "no operations": says(),
    "a claim of a claim": says(["time"], [">", 0], [">", 1]),
    "a truth for a number": says(["number", True], [">", 0]),
    "no notes": lambda header, arrays: header.pop("notes"),
    "notes of another kind": of_notes(environment=["numpy"]),
    "a note that is no text": of_notes(environment={"numpy": 2}),
    "a note that is long": of_notes(environment={"numpy": "2" * 20_001}),
    "a reason that is not printable": of_notes(reason="\x1b[2J"),
    "another part": lambda header, arrays: header.update(more=1),
    "single precision": of_array("limbs", lambda a: a.astype(np.float32)),
    "the other end first": of_array("radius", lambda a: a.astype(">f8")),
    "another order": of_array("limbs", np.asfortranarray),
    "pieces that are no whole numbers": of_array("pieces", lambda a: a.astype(float)),
    "short pieces": of_array("pieces", lambda a: a.astype(np.int32)),
    "whole numbers": of_array("start", lambda a: np.arange(a.size)),
    "another norm": of_array("weights", lambda a: a * 2),
    "a table too large": of_population(lambda p: p.update(n_tokens=10**9)),
    "counts too large": of_population(scaled(2.0**70)),
    "counts too small": of_population(scaled(2.0**-50)),
    "too many variables": of_population(many_bags),
    "no error": lambda header, arrays: header["claim"]["errors"].__setitem__(0, 0.0),
}  # fmt: skip


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_another_form_is_refused_by_both(certificate, tmp_path, form):
    path = written(tmp_path, *changed(certificate, OTHER_FORMS[form]))
    assert all(words != "" for words in words_of(path)), words_of(path)


def test_what_it_is_changed_from_is_verified(certificate, tmp_path):
    assert words_of(written(tmp_path, *changed(certificate, lambda header, arrays: None))) == ["", ""]
    weaker = changed(certificate, says(["variable", 0], ["number", -(2**53 - 1)], ["+", 0, 1], [">", 2], ["not", 3]))
    weaker[0]["claim"]["predicates"][0]["margin"] = 1.0
    assert words_of(written(tmp_path, *weaker)) == ["", ""]


def repacked(content, change):
    """The members of an archive after ``change(members)``, each with how it is packed, sealed again."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        parts = [(name, file.read(name), zipfile.ZIP_STORED) for name in file.namelist()]
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as file:
        for name, raw, kind in change(parts):
            file.writestr(name, raw, kind)
    return body.getvalue() + sealed.digest(body.getvalue())


PACKED = {
    "compressed": lambda parts: [(name, raw, zipfile.ZIP_DEFLATED) for name, raw, _ in parts],
    "a name twice in the claim": lambda parts: [
        (name, raw.replace(b'{"claim"', b'{"notes": {}, "claim"') if name == archive.CLAIM else raw, kind)
        for name, raw, kind in parts
    ],
    "an array without its ending": lambda parts: [(name.removesuffix(".npy"), raw, kind) for name, raw, kind in parts],
    "an array of format 2": lambda parts: [
        (name, raw.replace(b"NUMPY\x01\x00v\x00", b"NUMPY\x02\x00v\x00\x00\x00"), kind) for name, raw, kind in parts
    ],
    "another head": lambda parts: [(name, raw.replace(b"'<f8'", b"'=f8'"), kind) for name, raw, kind in parts],
    "a part that is no array": lambda parts: [*parts, ("readme.txt", b"true", zipfile.ZIP_STORED)],
}


@pytest.mark.parametrize("packed", PACKED)
def test_another_archive_is_refused_by_both(certificate, tmp_path, packed):
    path = tmp_path / "packed.npz"
    content = archive.encode(*certificate, name=archive.CLAIM)
    path.write_bytes(repacked(content, lambda parts: parts))
    assert words_of(path) == ["", ""]
    path.write_bytes(repacked(content, PACKED[packed]))
    assert all(words != "" for words in words_of(path)), words_of(path)


LEAF = st.one_of(
    st.tuples(st.just("variable"), st.one_of(st.integers(-1, 3), st.booleans(), st.floats())),
    st.tuples(st.just("number"), st.one_of(st.integers(-(2**54), 2**54), st.floats(), st.booleans(), st.none())),
    st.just(("time",)),
)
NAMES = [
    "+",
    "*",
    "/",
    "-",
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "rate",
    ">",
    ">=",
    "and",
    "or",
    "not",
    "sin",
    "time",
    "number",
]
OPERATION = st.tuples(st.sampled_from(NAMES), st.integers(-1, 6), st.integers(-1, 6)).map(
    lambda given: given[: 3 if given[0] in "+*/andor" else 2]
)


@given(st.lists(st.one_of(LEAF, OPERATION).map(list), max_size=7))
def test_operations_are_refused_by_both_or_by_neither(operations):
    words = []
    for check in (lambda: check_says(operations, 3, rates=1), lambda: verify.check_operations(operations, 3)):
        try:
            check()
            words.append("")
        except ValueError as error:
            words.append(str(error))
    assert (words[0] == "") is (words[1] == ""), (operations, words)


# Cells.


@pytest.mark.parametrize(
    "cell",
    [
        Cell(2, 9, (1.0,), 0.5, (0.8, 0.802160829078108), (0.5, 0.5275073471706864), "modified"),
        Cell(3, 3, (0.5,), 0.5, (0.2, 0.20587416140140782), (1.4, 1.463105665832237), "modified"),
        Cell(2, 3, (0.5, 2.0), 1.0, (0.2, 0.20557593237987098), (1.4, 1.40604288259821), "theory"),
    ],
)
def test_cells_are_verified_by_both(tmp_path, cell):
    made = decide_cell(cell, [(1.0,) * (1 + len(cell.distinct))], t_end=0.4, degree=1)[1]
    made.save(tmp_path / "cell.npz")
    assert CellEnclosure.load(tmp_path / "cell.npz").verify() and verify.check(tmp_path / "cell.npz")
