"""Errata of Scan and Snap: their settings are inside the assumptions, and their numbers come out by other routes."""

import copy
import math

import numpy as np
import pytest
from scipy.optimize import brentq

from dynamics import SequenceClasses, gradient_flow
from theory import statements
from theory.scan_and_snap import residual
from theory.statements import Erratum, FalseAsPrinted, RefutedInPart, Remark, Slip
from yzflow.audits.check import StatementVerdict
from yzflow.audits.report import AuditReport
from yzflow.papers.scan_and_snap.settings import Setting, single_common_token

REGISTER = statements.REGISTER
ACCUSED = [
    one.number
    for one in REGISTER.values()
    if one.paper == "Scan and Snap"
    and any(isinstance(erratum, FalseAsPrinted | RefutedInPart) for erratum in one.errata)
]


def erratum(number):
    return next(one for one in REGISTER[f"Scan and Snap: {number}"].errata if not isinstance(one, Remark))


def classes_of(numbers):
    """The classes that an erratum's numbers describe; where they name no overlap any will do."""
    if "queries" in numbers:
        shares, query = residual.local_classes(
            numbers["queries"], numbers["each"], numbers["common"], numbers["shared"], every=False
        )
        return SequenceClasses(shares / shares.sum(axis=1, keepdims=True), query, vocab_size=numbers["m"])
    m = min(numbers["m"], 10**6)  # margins of a larger vocabulary are larger
    return single_common_token(numbers.get("k", 2), int(m), numbers.get("rho", 0.01))


@pytest.mark.parametrize("number", ACCUSED)
def test_the_setting_is_inside_the_statement_s_own_assumptions(number):
    one, numbers = REGISTER[f"Scan and Snap: {number}"], erratum(number).numbers
    eta_y, steps = numbers.get("eta_y", 1.0), numbers.get("n", numbers.get("t", 200.0))
    eta_z = numbers.get("eta_z", 1e-3 * eta_y)
    setting = Setting(number, classes_of(numbers), eta_y, eta_z, steps, length=None)
    assert min(one.margins(setting).values()) >= 1, one.margins(setting)


def omega_0(m):
    """The excess of Lemma 8, from h = M^-(2 - omega_0) at the lower zero of exp(x) - (M - 1) x."""
    return 1 + math.log(brentq(lambda x: math.exp(x) - (m - 1) * x, 0, 1)) / math.log(m)


def test_lemma_8_s_number_is_of_its_range_and_two_is_enough():
    one = next(found for found in REGISTER["Scan and Snap: Lemma 8"].errata if found.numbers)
    ratios = {m: omega_0(m) * m**0.99 * math.log(m) for m in (100, 200, 1000, 10**5)}
    assert one.numbers["m"] == 100 and one.numbers["ratio"] == pytest.approx(ratios[100], rel=1e-6)
    assert max(ratios.values()) == ratios[100] < 2 < omega_0(4) * 4**0.99 * math.log(4)
    assert "1.93 times" in one.found
    check = next(check for check in REGISTER["Scan and Snap: Lemma 8"].checks if check.name.startswith("omega_0"))
    assert check.printed(Runs(single_common_token(2, 1000, 0.3)), "closed form") == 0


def test_no_constant_serves_theorem_1_b_for_all_vocabularies():
    """The check has no constant of its own: it sees the least one grow with M, and with M in the logarithm 2 serve."""
    (check,) = REGISTER["Scan and Snap: Theorem 1(b)"].checks
    for m in (1000, 10_000):
        runs = Runs(single_common_token(2, m, 0.1))
        start = [2 * brentq(lambda x, n=n: x - math.log((n - 1) * x), 2, 99) for n in (m, m**2)]
        least = [
            n * brentq(lambda h, n=n, tau=tau: math.expm1(n * h) / n + (n - 1) * h - tau, 0, 99 / n)
            for n, tau in zip((m, m**2), start, strict=True)
        ]
        gamma = [(n - 1) ** 2 * (x / n) / (n - 1 + math.exp(x)) for n, x in zip((m, m**2), least, strict=True)]
        needed = [g * tau / math.log(tau) for g, tau in zip(gamma, start, strict=True)]
        assert needed[1] > 1.4 * needed[0]
        assert check.printed(runs, "closed form") == pytest.approx(needed[1] / needed[0] - 1, rel=1e-6)
        assert check.corrected(runs, "closed form") == 0


def test_cards_and_screens_name_the_class_of_an_erratum():
    for number, label in (("Theorem 2(a)", "Remark"), ("Lemma 3", "Slip"), ("Lemma 4", "Erratum")):
        one = REGISTER[f"Scan and Snap: {number}"]
        card = StatementVerdict(one, AuditReport([], (one,), {}), True, 0).markdown()
        assert f"- {label}: Stands: " in card
        assert len(one.accused) == (label != "Remark")


class Runs:
    """Simulations as a closed form asks them."""

    def __init__(self, classes):
        self.setting = Setting("some", classes, 1.0, 1e-3, 100.0)


def own_speed(features, query, token, m):
    """dz/dt of a token of query 0 from Theorem 1's beta, with no code of `residual`: inverse Gram matrix and (10)."""
    n = len(features)
    gram = (features @ features.T + np.equal.outer(query, query)) / 2
    targets = np.full((n, n), -m / (m - 1) ** 2) + np.eye(n) * (m / (m - 1) + m / (m - 1) ** 2)
    beta = -np.linalg.inv(gram) @ targets
    return sum(
        features[a, token] * beta[b, a] * (features[a, token] * (features[a] @ features[b]) - features[b, token])
        for a in range(n) if query[a] == 0
        for b in range(n) if b != a
    )  # fmt: skip


@pytest.mark.parametrize(("everywhere", "edge"), [(False, 0.75), (True, 0.60)])
def test_section_7_s_two_thresholds_at_two_queries_of_two_classes(everywhere, edge):
    query, common = np.array([0, 0, 1, 1]), 0.01
    for factor, sign in ((0.9, 1), (1.1, -1)):
        shared = common * math.sqrt(factor * edge)
        features = np.zeros((4, 8))
        features[range(4), query] = common
        features[[0, 2], 2] = shared
        if everywhere:
            features[[1, 3], 3] = shared
        features[range(4), range(4, 8)] = np.sqrt(1 - (features**2).sum(axis=1))
        assert np.sign(own_speed(features, query, 2, 10**9)) == sign
    numbers = erratum("Section 7, residual connection").numbers
    assert numbers["every" if everywhere else "edge"] == pytest.approx(edge) and numbers["speed"] < 0


def test_lemma_4_s_factor_is_k():
    """A flow of two and of four classes of one overlap: (10) is K times what a step adds on average."""
    numbers = erratum("Lemma 4").numbers
    k, m, rho, t = (numbers[name] for name in ("k", "m", "rho", "t"))
    classes = single_common_token(k, m, rho)
    flow = gradient_flow(classes, eta_y=1.0, eta_z=1e-3, t_end=t, n_times=2, decoder="modified").dataset
    speed = float(flow["z_velocity"].values[-1, 0, 0])
    assert speed == pytest.approx(numbers["speed"], rel=1e-3)
    assert numbers["printed"] / speed == pytest.approx(k, rel=0.02) and numbers["times"] == pytest.approx(k, rel=0.02)
    assert numbers["log_chi"] < numbers["least"] < numbers["most"]


def test_theorem_4_s_b_is_not_zero_at_the_start():
    numbers = erratum("Theorem 4").numbers
    assert numbers["start"] == pytest.approx(math.log(1 / (numbers["k"] * numbers["rho"] ** 2)) / 4)
    assert numbers["fall"] < 1e-3 < 1 < numbers["start"] < numbers["late"]


PARTS = {
    "stands": "all",
    "quoted": "x = y",
    "setting": "K = {k}",
    "found": "{size:.1e}",
    "numbers": {"k": 2, "size": 2e-5},
}


@pytest.mark.parametrize("kind", [FalseAsPrinted, RefutedInPart])
@pytest.mark.parametrize("missing", ["stands", "quoted", "setting", "found"])
def test_an_accusation_without_a_part_is_refused(kind, missing):
    with pytest.raises(ValueError, match=f"`{missing}` must be given for an erratum of the class {kind.__name__}"):
        kind("x = z", **PARTS | {missing: ""})


def test_parts_are_filled_and_read():
    one = FalseAsPrinted("x = z", **PARTS)
    assert one == "Stands: all Quoted: x = y At K = 2: 2.0e-5 Right: x = z"
    assert (one.setting, one.found, one.right) == ("K = 2", "2.0e-5", "x = z")
    again = copy.deepcopy(one)
    assert again == one and again.stands == "all" and type(again) is FalseAsPrinted
    for numbers in ({"k": 2}, {"k": 2, "size": "much"}):
        with pytest.raises(ValueError, match="`numbers` must fit all that `setting` and `found` name"):
            FalseAsPrinted("x = z", **PARTS | {"numbers": numbers})
    with pytest.raises(ValueError, match="`numbers` must be"):
        FalseAsPrinted("x = z", **PARTS | {"numbers": 5})
    with pytest.raises(ValueError, match="`right` must be given"):
        Remark("")
    with pytest.raises(ValueError, match="be of a class"):
        Erratum("words")
    with pytest.raises(ValueError, match="`quoted` must be given for an erratum of the class Slip"):
        Slip("x", stands="y")


def test_a_plain_text_is_a_remark():
    one = statements.Statement("A paper", "Lemma 1", "Title", "Words.", "x = x", errata=("words",))
    assert type(one.errata[0]) is Remark and one.errata[0] == "words" == one.errata[0].right
