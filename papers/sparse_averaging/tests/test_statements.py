"""The statements on sparse averaging in the register: measured, and alarmed by injected mistakes."""

import pytest
from yzflow_sparse_averaging import averaging, measures

import yzflow
from theory import statements
from yzflow.audits.verdicts import Verdict

PAPER = "Sparse averaging: "


@pytest.mark.slow
def test_every_check_holds_and_the_printed_slips_show():
    report = yzflow.audit([name for name in statements.REGISTER if name.startswith(PAPER)], quick=True)
    assert report.passed
    verdicts = {}
    for row in report.table:
        verdicts.setdefault((row.statement.removeprefix(PAPER), row.check), set()).add(row.verdict)
    slips = {"Theorem 4", "Rank bound", "Match2", "Conjecture"}
    corrected = {key for key, found in verdicts.items() if found == {Verdict.CORRECTED}}
    assert {name for name, _ in corrected} == slips and len(corrected) == 5  # the conjecture in two forms
    close = {("Theorem 2, exact", "bits of the query of the last q tokens, over that")}
    assert all(
        found == {Verdict.EXACT} or (key in close and found <= {Verdict.EXACT, Verdict.WITHIN})
        for key, found in verdicts.items()
        if key not in corrected
    )


def test_printed_errors_are_those_of_the_mistakes():
    report = yzflow.audit([PAPER + name for name in ("Theorem 4", "Rank bound")], quick=True)
    for row in report.table:
        n = 4 if row.setting.startswith("N = 40") else 2
        if row.statement.endswith("Theorem 4"):
            # DISJ(a, b) and DISJ(not a, b) differ unless both or neither hold: b = 0, or b meets both a and not a.
            both = sum(2**n if b == 0 else 2**n - 2 ** (n - b.bit_count() + 1) for b in range(2**n))
            assert row.printed == pytest.approx(1 - both / 4**n, abs=1e-12)
        else:
            assert row.printed == pytest.approx(2**-n)
        assert row.corrected == 0


def test_the_conjectured_size_is_missed_by_what_the_formula_says():
    rows = {row.check: row for row in yzflow.audit([PAPER + "Conjecture"], quick=True).table}
    # 6 N^(2/3), and 18 N^(2/3) + 12 with m as wide as a token, against N / log2 N at N = 2^30.
    sizes = {"mHD below N / log2 N": 6 * 2**20, "the same with m": 18 * 2**20 + 12}
    for beginning, size in sizes.items():
        (row,) = (row for check, row in rows.items() if check.startswith(beginning))
        assert row.printed == pytest.approx(1 - size / (2**30 / 30), abs=1e-12)
        assert row.corrected == 0


def test_what_is_beyond_a_bound_is_relative_to_it():
    assert measures._beyond(0.2, 0.25) == 0.0
    assert measures._beyond(0.75, 0.25) == pytest.approx(2, rel=1e-6)


# Mistakes that an audit of all checks of a statement sees; `test_false_statements.py` has more, check by check.
MISTAKES = {
    "half the temperature": ("Theorem 2", "temperature", lambda right: lambda **o: right(**o) / 2),
    "a matching unit for another error": ("Match2", "match2", lambda right: lambda **o: right(**{**o, "error": 0.02})),
    "a tensor unit for another error": (
        "Match3, tensor unit", "match3_tensor", lambda right: lambda **o: right(**{**o, "error": 0.02}),
    ),
    "the other encoding": (
        "Theorem 4", "qsa_protocol", lambda right: lambda unit, q, encoding: right(unit, q, encoding="printed"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_alarms_the_right_row(mistake, monkeypatch):
    number, name, wrong = MISTAKES[mistake]
    monkeypatch.setattr(averaging, name, wrong(getattr(averaging, name)))
    report = yzflow.audit([PAPER + number], quick=True)
    assert {row.statement for row in report.table if row.alarming} == {PAPER + number}


def test_a_conjecture_is_never_said_to_hold():
    verdict = yzflow.check("Sparse averaging: Conjecture")
    assert verdict.passed
    demonstrated, proved = verdict.checklists().values()
    assert demonstrated.startswith("n/a: a conjecture;") and proved == "n/a: a conjecture"
    assert " holds" not in verdict.outcome
