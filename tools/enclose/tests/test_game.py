"""The standing game: change anything in a certificate, seal it again, and see what the two checkers make of it.

What `record` writes is verified by both. A mutant is refused by both, in words, or verified by both: then a judge,
which asks neither checker, must find its claim true. Each certificate is read as a stranger would, and every refusal
is a ValueError. Populations, precisions and predicates are drawn, too, in `forging`; `judging` is the judge.
"""

import copy
import os
import re
from collections import Counter

import forging
import judging
import numpy as np
import pytest
from driving import LONG
from forging import DECODERS, mutant
from yzflow_enclose import Enclosure, canonical, enclose_flow
from yzflow_enclose.cells import Cell, CellEnclosure, decide_cell
from yzflow_enclose.verifier import verify

from dynamics import SequenceClasses, gradient_flow
from dynamics.support import archive

pytestmark = pytest.mark.usefixtures("same_precision")  # a checker sets it and leaves it so

# In the long form seeds roll on: a new one each time, in the test's name.
SEED = int(os.environ.get("YZFLOW_SEED", np.random.SeedSequence().entropy % 2**32)) if LONG else 20261123
ROUNDS = 2000 if LONG else 60
# Of what is drawn: how many certificates, how many forgeries of each, and of what size; the same of cells.
DRAWN, FORGED, LARGEST = (100, 20, 700) if LONG else (6, 3, 250)
CELLS, FORGED_CELLS = (10, 20) if LONG else (1, 3)
REFUSED = r"^(`\w+` must [\s\S]*, but got|the enclosure proves nothing: )"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    found = {}
    for decoder in DECODERS:
        classes = SequenceClasses.single_common_token(2, 3, common=0.5, distinct=(1.0, 0.5))
        flow = enclose_flow(classes, eta_y=1.0, eta_z=2.0, t_end=1.0, bits=30, decoder=decoder)
        flow.record(lambda at: (at.velocity(0, 0) < 0) & (at.velocity(0, 1) > 0))
        flow.record(lambda at: at.loss.rate < 0, until=0.75)
        flow.record(lambda at: at.attention(0, 0) > 0.249)
        path = tmp_path_factory.mktemp("game") / f"{decoder}.npz"
        flow.save(path)
        found[decoder] = archive.decode(path.read_bytes(), name=archive.CLAIM)
    return found


# The truth.


def false_in_the_simulator(claim, arrays):
    """Why a claim is false, by the simulator at many times; nothing if it finds none."""
    bags = canonical.bags_of(claim["population"])
    times = np.linspace(0, claim["t_reached"], 801)
    run = gradient_flow(
        bags, eta_y=claim["eta_y"], eta_z=claim["eta_z"], t_end=times[-1], times=times, decoder=claim["decoder"],
        rtol=1e-11,
    ).dataset  # fmt: skip
    x = [logit(name, run, claim["population"]) for name in verify.field_of(claim)[1]]
    steps = zip(arrays["start"], arrays["end"], arrays["limbs"].sum(axis=-1), strict=True)
    for start, end, coefficients in steps:
        inside = (times >= start) & (times <= end)
        for own, row, error in zip(x, coefficients, claim["errors"], strict=True):
            gap = np.polynomial.polynomial.polyval(times[inside] - start, row) - own[inside]
            if (abs(gap) > error + 1e-8).any():
                return "a variable is elsewhere"
    for told in claim["predicates"]:
        sizes = slacks(told["says"], x, times)
        first, last = told.get("times", (0.0, told["until"]))
        inside = (times > first) & (times <= last) & (times > 0.01) & (times < times[-1])
        if told["verdict"] and (sizes[inside] < -1e-5).any():
            return "a predicate is false"
        if not told["verdict"] and np.interp(last, times, sizes) > 1e-4:
            return "a predicate is true"
    return ""


def logit(name, run, population):
    """The values in time of what a checker names."""
    kind, first, second = re.fullmatch(r"(z|Y|M h)\((\d+)(?:, (\d+))?\)(?: of bag \d+)?", name).groups()
    if kind == "z":
        return run["z"].values[:, population["query_tokens"].index(int(first)), int(second)]
    if kind == "Y":
        columns = run["y"].values[:, int(first)]
        return columns[:, min(int(second), columns.shape[1] - 1)]
    place = int(name.rpartition(" ")[2]) if "bag" in name else [bag[1] for bag in population["bags"]].index(int(first))
    return run["h"].values[:, place] * population["vocab_size"]


def slacks(says, x, times):
    """By how much a predicate is true at each time, in floating point."""
    found = []
    operations = {
        "variable": lambda i: x[i], "number": lambda c: np.full(times.size, float(c)), "time": lambda: times,
        "+": np.add, "*": np.multiply, "/": np.divide, "-": np.negative, "exp": np.exp, "log": np.log,
        "sqrt": np.sqrt, "rsqrt": lambda a: 1 / np.sqrt(a), "rate": lambda a: np.gradient(a, times, edge_order=2),
        ">": np.array, ">=": np.array, "and": np.minimum, "or": np.maximum, "not": np.negative,
    }  # fmt: skip
    for name, *given in says:
        leaf = name in ("variable", "number", "time")
        found.append(operations[name](*(given if leaf else [found[i] for i in given])))
    return found[-1]


def said(path, verified):
    """Whether the program and the small checker verify a file; ``verified(path)`` is the program's word."""
    words = []
    try:
        words.append(verified(path))
    except ValueError as error:
        assert re.match(REFUSED, str(error)), (SEED, error)
        words.append(False)
    try:
        words.append(bool(verify.check(path)))
    except verify.REFUSALS:
        words.append(False)
    return words


def is_between(path, verified, before, header, arrays):
    """Whether steps that no program wrote have a radius between the bounds of both checkers, which differ.

    Then the claim is true, as one of them proves. With other radii both say the same: the bounds of short steps in few
    digits were found to differ by 2^9.
    """
    return not same(before, arrays) and all(
        len(set(said(scaled(path, header, arrays, factor), verified))) == 1 for factor in (2.0**-12, 2.0**12)
    )


def scaled(path, header, arrays, factor):
    """The file with all radii larger or smaller, and with them the errors that it claims."""
    arrays = arrays | {name: arrays[name] * factor for name in ("radius", "speed") if name in arrays}
    errors = [error * factor for error in header["claim"]["errors"]]
    header = {**header, "claim": {**header["claim"], "errors": errors}}
    path.write_bytes(archive.encode(header, arrays, name=archive.CLAIM))
    return path


def same(first, second):
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


def played(certificate, path, game, verified, false, rounds=ROUNDS):
    """The game with one certificate: ``verified(path)`` is the program's word, ``false(claim, arrays)`` the judge's."""
    passed = refused = 0
    for number in range(rounds):
        header, arrays = mutant(*certificate, np.random.default_rng([SEED, number, game]))
        path.write_bytes(archive.encode(header, arrays, name=archive.CLAIM))
        words = said(path, verified)
        assert words[0] == words[1] or is_between(path, verified, certificate[1], header, arrays), (SEED, number, words)
        if any(words):
            passed += 1
            why = false(header["claim"], arrays)
            assert not why, (SEED, number, why, words)
        else:
            refused += 1
    # Both happen: what only relabels, or claims less, is true.
    assert passed > rounds / 50 and refused > rounds / 2, (passed, refused)


def answers(path):
    flow = Enclosure.load(path)
    return flow.verify() and flow.holds(lambda at: at.time >= 0) is not False


@pytest.mark.slow
@pytest.mark.parametrize("decoder", DECODERS)
def test_no_mutant_passes_that_is_false(certificates, tmp_path, decoder):
    game = DECODERS.index(decoder)
    played(certificates[decoder], tmp_path / "mutant.npz", game, answers, false_in_the_simulator)


@pytest.mark.parametrize("decoder", DECODERS)
def test_what_the_simulator_is_told_is_judged(certificates, decoder):
    """The judge can say no: a rate, a variable, a sign and an error that are false."""
    header, arrays = certificates[decoder]
    assert false_in_the_simulator(header["claim"], arrays) == ""
    for change in (
        lambda claim: claim.update(eta_z=2.01),
        lambda claim: claim.update(decoder="theory" if decoder == "full" else "full"),
        lambda claim: claim["predicates"][0]["says"].append(["not", len(claim["predicates"][0]["says"]) - 1]),
        lambda claim: claim["predicates"][2].update(verdict=True, until=1.0, times=[0.0, 1.0]),
        lambda claim: claim["population"]["bags"][0][4].__setitem__(0, 0.6),
    ):
        claim = copy.deepcopy(header["claim"])
        change(claim)
        if claim["decoder"] == "theory" and decoder != "theory":
            continue  # of other variables
        assert false_in_the_simulator(claim, arrays) != ""


# Populations, precisions and predicates are drawn, too; the judge has seventy digits.


@pytest.fixture(scope="module")
def tally():
    """Counts of the long form, which are printed in the end (``-s``)."""
    found = Counter({"disagreements": 0})
    yield found
    print(f"\nseed {SEED}: " + ", ".join(f"{count} {name}" for name, count in sorted(found.items())))


def drawn(path, made, number, rounds, verified, forge, false, tally):
    """The game with what was drawn: the honest certificate, and so many forgeries of it."""
    made.save(path)
    tally["honest"] += 1
    words = said(path, verified)
    tally["honest but refused"] += words != [True, True]
    assert words == [True, True], (SEED, number, words, made)
    header, arrays = archive.decode(path.read_bytes(), name=archive.CLAIM)
    flows: dict = {}
    assert false(header["claim"], arrays, flows) == ""
    for round_ in range(rounds):
        rng = np.random.default_rng([SEED, number, round_])
        header_, arrays_ = (mutant if rng.random() < 0.3 else forge)(header, arrays, rng)
        content = archive.encode(header_, arrays_, name=archive.CLAIM)
        path.write_bytes(forging.rewritten(content, rng) if rng.random() < 0.03 else content)
        words = said(path, verified)
        why = false(header_["claim"], arrays_, flows) if any(words) else ""
        tally.update({"forged": 1, "forged but true": any(words) and not why, "false but verified": why != ""})
        assert not why, (SEED, number, round_, words, why)
        if words[0] != words[1]:
            between = is_between(path, verified, arrays, header_, arrays_)
            tally["true, a radius between two bounds" if between else "disagreements"] += 1
            assert between, (SEED, number, round_, words)


def loaded(path):
    return Enclosure.load(path).verify()


@pytest.mark.parametrize("number", range(DRAWN))
def test_both_checkers_agree_on_what_is_drawn(tmp_path, tally, number):
    made = forging.honest(np.random.default_rng([SEED, number]), LARGEST)
    drawn(tmp_path / "drawn.npz", made, number, FORGED, loaded, forging.forged, judging.falsehood, tally)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(CELLS))
def test_both_checkers_agree_on_cells_that_are_drawn(tmp_path, tally, number):
    made = forging.honest_cell(np.random.default_rng([SEED, number]))
    verified = lambda path: CellEnclosure.load(path).verify()  # noqa: E731
    drawn(
        tmp_path / "drawn.npz",
        made,
        number,
        FORGED_CELLS,
        verified,
        forging.forged_cell,
        judging.falsehood_of_cell,
        tally,
    )


def test_the_judge_of_what_is_drawn_says_no():
    """A rate, a verdict, a margin, an error, a threshold and a polynomial that are false, by little."""
    flow = enclose_flow(SequenceClasses.single_common_token(2, 3), eta_y=1.0, eta_z=2.0, t_end=0.5, bits=36)
    flow.record(lambda at: at.z(0, 1) > -1e-12)
    flow.record(lambda at: (at.attention(0, 0) > 0.4) & (at.time < 0.3))
    claim, arrays, flows = flow.claim, flow.arrays(), {}
    assert [told["verdict"] for told in claim["predicates"]] == [True, False]
    assert judging.falsehood(claim, arrays, flows) == ""
    for change in (
        lambda claim, arrays: claim.update(eta_z=2.0 + 1e-6),
        lambda claim, arrays: claim["predicates"][0].update(verdict=False, times=[0.25, 0.25]),
        lambda claim, arrays: claim["predicates"][0].update(margin=0.5),
        lambda claim, arrays: claim["predicates"][1].update(verdict=True),
        lambda claim, arrays: claim["errors"].__setitem__(0, 1e-30),
        lambda claim, arrays: claim["predicates"][0]["says"].append(["not", len(claim["predicates"][0]["says"]) - 1]),
        lambda claim, arrays: arrays["limbs"].__setitem__((0, 0, 1, 0), arrays["limbs"][0, 0, 1, 0] + 1e-7),
    ):
        other, rows = copy.deepcopy(claim), {name: array.copy() for name, array in arrays.items()}
        change(other, rows)
        assert judging.falsehood(other, rows, flows) != ""


# Cells: the same game as with the flows above, judged by the simulator at some settings.


@pytest.fixture(scope="module")
def cell_certificate(tmp_path_factory):
    cell = Cell(2, 3, (1.0, 0.5), 1.0, (1.95, 2.0), (0.5, 0.52))
    made = decide_cell(cell, [(0.0, 1.0, -1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)], t_end=0.75, degree=1)[1]
    assert [sign.value for sign in made.decided.values()] == [True, False, True]
    path = tmp_path_factory.mktemp("game") / "cell.npz"
    made.save(path)
    return archive.decode(path.read_bytes(), name=archive.CLAIM)


def false_at_a_setting(claim, arrays):
    """Why a claim is false, by the simulator at settings of the cell; nothing if it finds none."""
    times = np.linspace(0, claim["t_reached"], 401)
    weights = claim["distinct"]
    for x, y in ((-1, -1), (-1, 1), (1, -1), (1, 1), (0.3, -0.2)):
        eta_z, common = (
            a + (b - a) * (1 + s) / 2 for (a, b), s in zip((claim["eta_z"], claim["common"]), (x, y), strict=True)
        )
        classes = SequenceClasses.single_common_token(
            claim["n_classes"], claim["vocab_size"], common=common, distinct=tuple(weights)
        )
        rates = {"eta_y": claim["eta_y"], "eta_z": eta_z, "decoder": claim["decoder"]}
        run = gradient_flow(classes, **rates, t_end=times[-1], times=times, rtol=1e-11).dataset
        z = run["z"].values[:, 0, : 1 + len(weights)].T
        monomials = [x ** (d - b) * y**b for d in range(claim["degree"] + 1) for b in range(d + 1)]
        rows = np.einsum("svmkl,m->svk", arrays["limbs"], monomials)
        for start, end, own in zip(arrays["start"], arrays["end"], rows, strict=True):
            inside = (times >= start) & (times <= end)
            for logit, row, error in zip(z, own, claim["errors"], strict=False):
                if (
                    abs(np.polynomial.polynomial.polyval(times[inside] - start, row) - logit[inside]) > error + 1e-8
                ).any():
                    return "a variable is elsewhere"
        for told in claim["predicates"]:
            size = np.gradient(np.array(told["coefficients"]) @ z, times, edge_order=2)
            inside = (times > 0.01) & (times <= told["until"])
            if (size[inside] < -1e-5).any():
                return "a sum is not positive"
            if told["verdict"] is False and np.interp(told["time"], times, size) > 1e-4:
                return "a sum is not negative"
    return ""


@pytest.mark.slow
def test_no_mutant_of_a_cell_passes_that_is_false(cell_certificate, tmp_path):
    path = tmp_path / "mutant.npz"
    # A round takes half a second; `test_cell_certificates.py` has seventy more by hand.
    rounds = ROUNDS if LONG else ROUNDS // 2
    played(cell_certificate, path, 3, lambda own: CellEnclosure.load(own).verify(), false_at_a_setting, rounds)


def test_what_is_told_of_a_cell_is_judged_by_both_judges(cell_certificate):
    header, arrays = cell_certificate
    assert false_at_a_setting(header["claim"], arrays) == ""
    assert judging.falsehood_of_cell(header["claim"], arrays, {}) == ""
    for change in (
        lambda claim: claim.update(eta_z=[1.95, 2.1]),
        lambda claim: claim.update(common=[0.51, 0.53]),
        lambda claim: claim.update(decoder="theory"),
        lambda claim: claim["predicates"][0].update(coefficients=[0.0, -1.0, 1.0]),
        lambda claim: claim["predicates"][1].update(coefficients=[-1.0, 0.0, 0.0]),
    ):
        claim = copy.deepcopy(header["claim"])
        change(claim)
        assert false_at_a_setting(claim, arrays) != ""
        if claim["decoder"] == "full":  # else of other variables
            assert judging.falsehood_of_cell(claim, arrays, {}) != ""
