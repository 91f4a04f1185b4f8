"""Certificates of cells: what both checkers say of them, and that no mistake passes for a proof in either."""

import dataclasses
import math
import shutil
import subprocess
import sys
from types import SimpleNamespace

import flint
import numpy as np
import pytest
from flint import arb, arb_series, ctx
from yzflow_enclose import Enclosure, cell_bounds, cells, certificate, claims, enclose_flow, fields, keeping
from yzflow_enclose.cell import ORDER
from yzflow_enclose.cells import Cell, CellEnclosure, decide_cell
from yzflow_enclose.keeping import kept_cell
from yzflow_enclose.signs import Sign
from yzflow_enclose.verifier import verify, verify_cell, verify_jets

from dynamics import SequenceClasses

pytestmark = pytest.mark.usefixtures("same_precision")  # a checker sets it and leaves it so

LEAD, FALLS = (0.0, 1.0, -1.0), (1.0, 0.0, 0.0)
SMALL = Cell(2, 2, (2.0, 1.0), 1.0, (0.2, 0.22), (1.4, 1.5))
WITH_UNSEEN = Cell(3, 7, (2.0, 1.0), 1.0, (0.2, 0.22), (1.4, 1.5), "modified")
CELLS = {"full": SMALL, "modified": WITH_UNSEEN, "theory": dataclasses.replace(SMALL, decoder="theory", vocab_size=3)}
NAMES = {"full": 3 + 4, "modified": 3 + 2 + 6, "theory": 3 + 1}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    found = {}
    for name, cell in CELLS.items():
        path = tmp_path_factory.mktemp("cells") / f"{name}.npz"
        made = decide_cell(cell, [LEAD, FALLS], t_end=1.5, degree=1)[1]
        assert [sign.value for sign in made.decided.values()] == [True, False]
        made.save(path)
        found[name] = path
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS)
def test_both_checkers_say_the_same(files, name):
    """Format, formulas and names are written twice."""
    found = CellEnclosure.load(files[name])
    lines = verify.check(str(files[name]))
    assert found.words.splitlines() == [line.removeprefix("verified: ") for line in lines]
    assert len(found.claim["errors"]) == NAMES[name] and len(lines) == NAMES[name] + 7
    assert found.signs == {LEAD: Sign(True, 1.5), FALLS: Sign(False, 0.0, found.signs[FALLS].time)}
    assert found.sign(LEAD, 1.5) == found.signs[LEAD] and found.verify() and "not yet" not in repr(found)


def test_what_comes_back_is_the_same(files, tmp_path):
    found = CellEnclosure.load(files["full"])
    again = decide_cell(SMALL, [LEAD, FALLS], t_end=1.5, degree=1)[1]
    assert found.cell == again.cell and found.degree == again.degree and found.decided == again.decided
    for one, other in zip(found.steps, again.steps, strict=True):
        assert (one.start, one.end, one.radius, one.speed) == (other.start, other.end, other.radius, other.speed)
        with flint.ctx.workprec(200):
            pairs = [(p, q) for row, own in zip(one.polynomials, other.polynomials, strict=True)
                     for p, q in zip(row, own, strict=True)]  # fmt: skip
            assert all(p[k] == q[k] for p, q in pairs for k in range(ORDER + 1))
    found.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == files["full"].read_bytes()


def altered(path, tmp_path, change):
    """A copy of a certificate after ``change(claim, arrays)``, sealed again."""
    claim, notes, arrays = certificate.read(path, kinds=(claims.CELL,))
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(claim, arrays)
    certificate.write(tmp_path / "altered.npz", claim, notes, arrays)
    return tmp_path / "altered.npz"


def of_claim(name, value):
    def change(claim, arrays):
        claim[name] = value(claim[name]) if callable(value) else value

    return change


def of_array(name, index, change):
    def changed(claim, arrays):
        arrays[name][index] = change(arrays[name][index])

    return changed


def of_predicate(number, **parts):
    def change(claim, arrays):
        claim["predicates"][number] |= parts

    return change


def shorter(claim, arrays):
    claim["t_reached"] = claim["t_end"] = claim["predicates"][0]["until"] = 1.0


def longer(claim, arrays):
    claim["t_end"] = claim["t_reached"] = claim["predicates"][0]["until"] = 9.0


def later(claim, arrays):
    longer(claim, arrays)
    arrays["end"][-1] = 9.0


def scaled_norm(claim, arrays):
    for name in ("weights", "radius", "speed"):
        arrays[name] *= 2.0**-27
    claim["errors"] = [error * 2.0**-27 for error in claim["errors"]]


def without(place):
    def change(claim, arrays):
        for name in ("start", "end", "radius", "speed", "limbs"):
            arrays[name] = np.delete(arrays[name], place, axis=0)

    return change


def other_verdicts(claim, arrays):
    first, second = claim["predicates"]
    first["coefficients"], second["coefficients"] = second["coefficients"], first["coefficients"]


def twice(claim, arrays):
    claim["predicates"].append({"coefficients": list(LEAD), "verdict": None, "until": 0.0})


def mirrored(claim, arrays):
    """The sensitivity to eta_Z of the other sign."""
    arrays["limbs"][:, :, 1] *= -1


def never_there(claim, arrays):
    claim["predicates"][1] |= {"coefficients": [-1.0, 0.0, 0.0]}


TAMPERED = {
    "a format": of_claim("format", "yzflow-certificate-2"),
    "a kind": of_claim("kind", "population"),
    "a kind that is none": of_claim("kind", ["cell"]),
    "a decoder": of_claim("decoder", "modified"),
    "another decoder": of_claim("decoder", "theory"),
    "a decoder and a blank": of_claim("decoder", "full "),
    "a letter without width": of_claim("decoder", "full\u200b"),
    "another start": of_claim("start", "one"),
    "more classes": of_claim("n_classes", 3),
    "one class": of_claim("n_classes", 1),
    "a larger vocabulary": of_claim("vocab_size", 3),
    "a whole number that is none": of_claim("vocab_size", 2.0),
    "another token": of_claim("distinct", [2.0, 1.001]),
    "a token less": of_claim("distinct", [2.0]),
    "no tokens": of_claim("distinct", []),
    "a negative token": of_claim("distinct", [2.0, -1.0]),
    "eta_y": of_claim("eta_y", lambda x: x * 1.001),
    "a truth": of_claim("eta_y", True),
    "a wider range of eta_z": of_claim("eta_z", [0.2, 0.23]),
    "a shifted range of eta_z": of_claim("eta_z", [0.201, 0.221]),
    "no range of eta_z": of_claim("eta_z", [0.22, 0.2]),
    "three ends": of_claim("eta_z", [0.2, 0.21, 0.22]),
    "a wider range of the common token": of_claim("common", [1.39, 1.5]),
    "no number": of_claim("common", [1.4, float("nan")]),
    "a degree": of_claim("degree", 3),
    "no degree": of_claim("degree", 0),
    "another time": of_claim("t_end", 2.0),
    "no time": of_claim("t_end", -1.0),
    "a time reached": of_claim("t_reached", 1.25),
    "a shorter time": shorter,
    "a longer time": longer,
    "a later end": later,
    "closer errors": of_claim("errors", lambda errors: [error / 8 for error in errors]),
    "an error less": of_claim("errors", lambda errors: errors[:-1]),
    "a part more": of_claim("note", "true"),
    "a part less": lambda claim, arrays: claim.pop("degree"),
    "exchanged sums": other_verdicts,
    "a stronger sum": of_predicate(0, coefficients=[0.0, 1.0, -4.0]),
    "a sum of one": of_predicate(0, coefficients=[1.0]),
    "a sum twice": twice,
    "false for true": of_predicate(0, verdict=False, until=0.5, time=1.0),
    "true for false": lambda claim, arrays: claim["predicates"][1].update(verdict=True, until=1.5),
    "neither": of_predicate(0, verdict="maybe"),
    "open but decided": of_predicate(0, verdict=None),
    "true for less than all": of_predicate(0, until=1.0),
    "true for longer": of_predicate(0, until=3.0),
    "false later than the last": of_predicate(1, time=5.0),
    "false in the beginning": of_predicate(1, time=0.0),
    "false of its opposite": never_there,
    "true for a while": of_predicate(1, until=0.1),
    "words": of_predicate(0, coefficients="\x1b[31mtrue"),
    "a start": of_array("start", 0, lambda x: 1e-6),
    "an end": of_array("end", 0, lambda x: x * 1.01),
    "a smaller radius": of_array("radius", -1, lambda x: x / 10),
    "a first radius": of_array("radius", 0, lambda x: x / 10),
    "no radius": of_array("radius", 0, lambda x: np.nan),
    "a negative radius": of_array("radius", 0, lambda x: -x),
    "a smaller speed": of_array("speed", 1, lambda x: x / 10),
    "a coefficient": of_array("limbs", (1, 1, 0, 1, 0), lambda x: x * 1.1),
    "a low limb": of_array("limbs", (1, 0, 0, 1, 1), lambda x: x + 1e-3),
    "a first coefficient": of_array("limbs", (0, 0, 0, 0, 0), lambda x: x + 1e-3),
    "a sensitivity": mirrored,
    "a sign": of_array("limbs", (slice(None), 0), np.negative),
    "a missing step": without(1),
    "no first step": without(0),
    "no last step": without(-1),
    "no steps": without(slice(None)),
    "a scaled norm": scaled_norm,
    "a weight": of_array("weights", 0, lambda x: x / 8),
    "no weight": of_array("weights", 0, lambda x: 0.0),
    "a weight less": lambda claim, arrays: arrays.update(weights=arrays["weights"][:-1]),
    "one limb each": lambda claim, arrays: arrays.update(limbs=arrays["limbs"][:, :, :, :, :1]),
    "monomials less": lambda claim, arrays: arrays.update(limbs=arrays["limbs"][:, :, :-1]),
    "an array less": lambda claim, arrays: arrays.pop("speed"),
    "an array more": lambda claim, arrays: arrays.update(pieces=np.ones(1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("mistake", TAMPERED)
def test_what_is_tampered_with_is_refused(files, tmp_path, mistake):
    """By the checker, and by the program that made it."""
    path = altered(files["full"], tmp_path, TAMPERED[mistake])
    with pytest.raises(verify.REFUSALS):
        verify.check(str(path))
    with pytest.raises(ValueError, match=r"^(`\w+` must [\s\S]*, but got|the enclosure proves nothing: )"):
        CellEnclosure.load(path).sign(LEAD, 1.0)


def test_a_claim_that_says_less_is_as_true(files, tmp_path):
    """Wider errors, and a sum that is open after a while, or left out."""

    def weaker(claim, arrays):
        claim["errors"] = [error * 2 for error in claim["errors"]]
        claim["predicates"] = [{"coefficients": list(LEAD), "verdict": None, "until": 1.25}]

    path = altered(files["full"], tmp_path, weaker)
    assert CellEnclosure.load(path).signs == {LEAD: Sign(None, 1.25)}
    assert verify.check(str(path))[-1].startswith("positive for every t with 0 < t <= 1.25, open after that: ")


def test_what_a_file_says_is_escaped(files, tmp_path):
    path = altered(files["full"], tmp_path, of_claim("decoder", "\x1b[31mfull"))
    done = subprocess.run([sys.executable, verify.__file__, str(path)], capture_output=True, text=True)
    assert done.returncode == 1 and "\x1b" not in done.stdout + done.stderr and "not verified" in done.stderr
    with pytest.raises(ValueError, match="decoder") as told:
        CellEnclosure.load(path)
    assert "\x1b" not in str(told.value)


def test_a_loaded_one_answers_nothing_before_it_is_verified(files, tmp_path):
    path = altered(files["full"], tmp_path, of_array("radius", 0, lambda x: x / 10))
    found = CellEnclosure.load(path)
    assert "not yet verified" in repr(found) and found.claimed["eta_y"] == 1.0
    asked = [lambda: found.signs, lambda: found.claim, lambda: found.words, lambda: found.sign(LEAD, 1.0),
             lambda: found.save(tmp_path / "again.npz")]  # fmt: skip
    for ask in asked:
        with pytest.raises(ValueError, match="the enclosure proves nothing: the error of step 0 is not within"):
            ask()
    assert not (tmp_path / "again.npz").exists()
    assert CellEnclosure.load(path, trust=True).signs[LEAD] == Sign(True, 1.5)


def test_kinds_of_certificates_are_not_taken_for_each_other(files, tmp_path):
    classes = SequenceClasses.single_common_token(2, 2, common=1.45, distinct=(2.0, 1.0))
    enclose_flow(classes, eta_y=1.0, eta_z=0.21, t_end=1.0, bits=36).save(tmp_path / "flow.npz")
    with pytest.raises(ValueError, match="hold a claim whose format is yzflow-cell-3"):
        CellEnclosure.load(tmp_path / "flow.npz")
    with pytest.raises(ValueError, match="hold a claim whose format is yzflow-certificate-2"):
        Enclosure.load(files["full"])
    with pytest.raises(FileNotFoundError):
        CellEnclosure.load(tmp_path / "none.npz")
    with pytest.raises(ValueError, match="without steps proves nothing, but 1e-09 seconds were over"):
        decide_cell(SMALL, [LEAD], t_end=1.0, degree=1, max_seconds=1e-9)[1].save(tmp_path / "empty.npz")


def test_a_kept_file_answers_its_own_question_only(tmp_path, monkeypatch):
    asked = {"t_end": 0.5, "degree": 1}
    other = dataclasses.replace(SMALL, eta_z=(0.21, 0.23))
    first = kept_cell(tmp_path, SMALL, [LEAD], **asked)
    (path,) = tmp_path.glob("*.npz")
    assert verify.check(str(path)) and first == [Sign(True, 0.5)]
    second = kept_cell(tmp_path, other, [LEAD, FALLS], **asked)
    (beside,) = set(tmp_path.glob("*.npz")) - {path}
    right = path.read_bytes()
    for wrong, why in ((beside.read_bytes(), "does not prove what is asked"), (right[:-1], "checksum is wrong")):
        path.write_bytes(wrong)
        with pytest.warns(UserWarning, match=why):
            assert kept_cell(tmp_path, SMALL, [LEAD], **asked) == first
        assert path.read_bytes() == right
    shutil.copy(altered(path, tmp_path, of_array("radius", 0, lambda x: x / 10)), path)
    with pytest.warns(UserWarning, match="does not prove what is asked"):
        assert kept_cell(tmp_path, SMALL, [LEAD], **asked) == first
    monkeypatch.setattr(keeping.cells, "decide_cell", None)
    assert kept_cell(tmp_path, other, [LEAD, FALLS], **asked) == second and second[1].value is False
    assert kept_cell(tmp_path, SMALL, [LEAD], **asked) == first


# Mistakes of the program that makes certificates.


def opposite(function):
    return lambda *args: [-value for value in function(*args)]


def displaced(monkeypatch):
    """Polynomials that start beside zero, and a distance between steps that nobody sees."""
    right = cell_bounds.Bounds.series

    def series(self, state):
        return right(self, [[row[0] + 1e-3, *row[1:]] for row in state])

    monkeypatch.setattr(cell_bounds.Bounds, "series", series)
    monkeypatch.setattr(cell_bounds, "_distance", lambda first, second: arb(0))


def on_bounds(name, change):
    return lambda m: m.setattr(cell_bounds.Bounds, name, change(getattr(cell_bounds.Bounds, name)))


MISTAKES = {
    "a radius of a hundredth": lambda m: m.setattr(cells, "above", lambda value: float(value) / 100),
    "no defect in time": on_bounds("defect_in_time", lambda right: lambda *a: arb(2) ** -60),
    "no defect in settings": on_bounds("defect_in_settings", lambda right: lambda *a: arb(0)),
    "a sixth of the defect in settings": on_bounds("defect_in_settings", lambda right: lambda *a: right(*a) / 6),
    "errors that shrink": lambda m: m.setattr(
        cell_bounds, "grow", lambda e, d, mu, h, f=cell_bounds.grow: f(e, d, mu, h) / 9
    ),
    "a logarithmic norm that is less": lambda m: m.setattr(
        cell_bounds, "log_norm", lambda *a, right=cell_bounds.log_norm: right(*a) - 6
    ),
    "the sign of dz/dt": lambda m: m.setattr(fields.Symmetric, "_velocities", opposite(fields.Symmetric._velocities)),
    "the sign of dY/dt": lambda m: m.setattr(fields.Symmetric, "_full", opposite(fields.Symmetric._full)),
    "another start": displaced,
}
SIZES = {"no defect in time": (0.5, 5)}  # of time and degree


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_the_program_is_not_verified(mistake, tmp_path):
    with pytest.MonkeyPatch.context() as monkeypatch:
        MISTAKES[mistake](monkeypatch)
        t_end, degree = SIZES.get(mistake, (1.5, 1))
        made = decide_cell(SMALL, [LEAD], t_end=t_end, degree=degree)[1]
    assert made.steps
    made.save(tmp_path / "wrong.npz")
    assert not made.verify()
    with pytest.raises(ValueError, match="the error is not within its radius"):
        verify.check(str(tmp_path / "wrong.npz"))


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_sign_that_is_read_wrongly_is_not_verified(sign, tmp_path, monkeypatch):
    made = decide_cell(SMALL, [LEAD], t_end=0.5, degree=1)[1]
    wrong = Sign(True, 0.5) if sign < 0 else Sign(False, 0.0, 0.4)
    made.decided = {tuple(sign * c for c in LEAD): wrong}
    made.save(tmp_path / "wrong.npz")
    with pytest.raises(ValueError, match=r"it is not (positive|negative)"):
        verify.check(str(tmp_path / "wrong.npz"))
    assert not CellEnclosure.load(tmp_path / "wrong.npz").verify()


# The bounds of the small checker, at points.


@pytest.fixture(scope="module")
def checked(files):
    """Cells as the checker reads them."""
    found = {}
    for name, path in files.items():
        claim, arrays = verify.opened(str(path))
        ctx.prec = verify_cell.BITS
        found[name] = verify_cell.cell_of(claim, arrays, verify_cell.names_of(claim))
    return found


def values(cell, p, t, s, beside=None):
    """The weighted size of p' - f(p), and the scaled Jacobian, at a time of a step and a setting, or beside p there."""
    monomials = [arb(s[0]) ** a * arb(s[1]) ** b for a, b in cell.powers]
    at = [sum(q(arb(t)) * m for q, m in zip(row, monomials, strict=True)) for row in p]
    if beside is not None:
        at = [x + float(e) / w for x, e, w in zip(at, beside, cell.W, strict=True)]
    slope = [sum(q.derivative()(arb(t)) * m for q, m in zip(row, monomials, strict=True)) for row in p]
    ctx.cap = 2
    field = cell.field([arb(x) for x in s])
    columns = [field([arb_series([v, int(i == j)], 2) for i, v in enumerate(at)]) for j in range(len(at))]
    gap = [a - b[0] for a, b in zip(slope, columns[0], strict=True)]
    W = [float(w) for w in cell.W]
    J = np.array([[float(columns[j][i][1]) * W[i] / W[j] for j in range(len(at))] for i in range(len(at))])
    return np.linalg.norm([float(g) * w for g, w in zip(gap, W, strict=True)]), J


@pytest.mark.parametrize("name", CELLS)
def test_the_checker_s_bounds_hold_at_points_and_are_near(checked, name):
    cell, rng = checked[name], np.random.default_rng(5)
    ctx.prec = verify_cell.BITS
    start, end, radius, _, p = cell.steps[-1]
    h = arb(end) - arb(start)
    bound = float(cell.in_time(p, h) + cell.in_settings(p, h, 1))
    quarters = {x: cell.jacobian(p, h, radius, [arb(x[0]), arb(x[1])]) for x in ((-0.5, -0.5), (0.5, 0.5))}
    largest = 0.0
    for s in [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], *rng.uniform(-1, 1, (6, 2)).tolist()]:
        for t in (0.0, float(h), float(h) * rng.uniform()):
            defect, J = values(cell, p, t, s)
            largest = max(largest, defect)
            if s[0] * s[1] > 0:
                found = quarters[(0.5, 0.5) if s[0] > 0 else (-0.5, -0.5)]
                top = np.linalg.eigvalsh((J + J.T) / 2)[-1]
                assert top <= float(verify_jets.growth(found)) < top + 0.1
                assert np.linalg.norm(J, 2) <= float(verify_jets.size(found)) < 3 * np.linalg.norm(J, 2)
    assert largest <= bound < 5 * largest


@pytest.mark.parametrize("name", CELLS)
def test_the_checker_s_tube_holds_what_is_beside_the_polynomials(checked, name):
    """In the middle of a quarter and of a step, where only the first matrix counts."""
    cell, rng, radius = checked[name], np.random.default_rng(6), 0.01
    ctx.prec = verify_cell.BITS
    start, end, *_, p = cell.steps[-1]
    h = arb(end) - arb(start)
    first = cell.jacobian(p, h, radius, [arb(0.5), arb(-0.5)])[0]
    for beside in rng.normal(size=(5, len(p))):
        J = values(cell, p, float(h) / 2, [0.5, -0.5], beside / np.linalg.norm(beside) * radius)[1]
        for (i, j), entry in np.ndenumerate(J):
            assert abs(first[i, j] - float(entry)).lower() < 1e-14 and first[i, j].rad() < 0.1


@pytest.mark.parametrize("name", CELLS)
def test_the_checker_s_field_is_that_of_the_program(checked, name):
    cell, own = checked[name], CELLS[name]
    ctx.prec = 80
    for s in ([-1.0, 0.5], [0.25, 1.0]):
        numbers = [
            arb(a) + (arb(b) - arb(a)) * (1 + arb(x)) / 2 for (a, b), x in zip((own.eta_z, own.common), s, strict=True)
        ]
        theirs = own.field(*numbers)
        ctx.cap = 1
        state = [arb_series([arb(x)], 1) for x in np.random.default_rng(2).normal(size=theirs.size).tolist()]
        for first, second in zip(cell.field([arb(x) for x in s])(state), theirs.derivative(state), strict=True):
            assert abs(float(first[0]) - float(second[0])) < 1e-14
        assert theirs.names() == verify_cell.names_of(cell.c)


@pytest.mark.parametrize("degree", [1, 3, 8])
def test_a_remainder_is_weighed_by_where_it_is_taken(degree):
    """Of exp at 2: what its Taylor polynomial leaves out is below the sum of bounds, and not far below."""
    ctx.prec = 100
    left = np.exp(2.0) - sum(2.0**k / math.factorial(k) for k in range(degree))
    bound = sum(float(share * (reach * 2).exp()) for reach, share in verify_cell.remainder(degree))
    assert left < bound * 2.0**degree / math.factorial(degree) < left * (1.5 + 1 / degree)
    assert sum(float(share) for _, share in verify_cell.remainder(degree)) == pytest.approx(1)


@pytest.mark.parametrize(("end", "expected"), [(0.3, True), (0.45, False)])
def test_a_velocity_is_positive_from_zero_on_up_to_where_it_is_zero(end, expected):
    """x = t^2 - 2 t^3, which is positive until 1/2 and rises until 1/3, beside a clock."""
    ctx.prec = 100
    flow = SimpleNamespace(field=lambda s: lambda x: [x[0] * 0 + 1, x[0] * 2 - x[0] * x[0] * 6])
    box = [arb(end / 2, end / 2), arb(0, 1)]
    assert (verify_cell.CheckedCell.from_zero(flow, [0.0, 1.0], [], box, end) > 0) is expected
    assert verify_cell.CheckedCell.from_zero(flow, [1.0, 0.0], [], box, end).is_nan()  # not zero at the start


FUNCTIONS = {
    "exp": lambda a, b: (a * b).exp(),
    "rsqrt": lambda a, b: (a + b * b).rsqrt(),
    "quotient": lambda a, b: (a - 1) / (2 - b) * 3,
    "of a negative one": lambda a, b: 1 / (b - a - 5),
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_jet_is_a_taylor_polynomial(function):
    """Of a function of two variables around a point, read beside it; and its slope that of differences."""
    ctx.prec, compute, step = 100, FUNCTIONS[function], 1e-3
    a, b = (verify_jets.Jet({0: arb(x), verify_jets.TOP + 64**i: arb(step)}, 4) for i, x in enumerate((1.5, 0.75)))
    found = compute(a, b)
    for x, y in ((1.0, 1.0), (-1.0, 0.5)):
        value = sum((v * arb(x) ** (k % 64) * arb(y) ** (k // 64 % 64) for k, v in found.terms.items()), arb(0))
        exact = compute(*(verify_jets.Jet({0: arb(c)}, 0) for c in (1.5 + step * x, 0.75 + step * y))).terms[0]
        assert 0 < abs(float(value - exact)) < 1e-12
    slopes = [verify_jets.Slope(arb(x), flint.arb_mat(1, 2, [i == 0, i == 1])) for i, x in enumerate((1.5, 0.75))]
    along = compute(*(verify_jets.Jet({0: slope}, 0) for slope in slopes)).terms[0]
    for i, key in enumerate((verify_jets.key(1), verify_jets.key(0, 1))):
        assert float(along.slope[0, i]) * step == pytest.approx(float(found.terms[key]), rel=1e-12)
