"""Labels of what a kernel has checked: from the table alone, and gone where the register says something else."""

import json
import re
from dataclasses import replace

import pytest
from errata_page import errata_page

from formal import checking
from theory import kernel
from theory.statements import REGISTER, Assumption, Clause, Statement
from theory.trust import Label, Trust, weakest
from yzflow.audits.check import StatementVerdict
from yzflow.audits.report import AuditReport
from yzflow.pages import kernel as section

LEMMA_4 = REGISTER["Scan and Snap: Lemma 4"]
THEOREM_3 = REGISTER["Scan and Snap: Theorem 3"]
LEMMA_11 = REGISTER["Scan and Snap: Lemma 11"]
SIGNAL = REGISTER["Scan and Snap: Equations 86 to 93"]


def report(*statements):
    return AuditReport([], statements, {})


def test_the_table_asks_what_the_register_says():
    for row in kernel.table():
        source = next(one for one in checking.theorems(row.file) if one.theorem == row.theorem)
        assert row.asked == checking.asked(source), f"{row.name}: the clause changed; is it still what Coq was asked?"


def test_no_text_limits_to_sizes_what_a_kernel_has_checked_for_all():
    for statement in REGISTER.values():
        if any(kernel.label(statement.theorems(clause), clause.name) for clause in statement.clauses):
            assert not re.search(r"sizes (that are )?named|at (some|these) sizes", statement.text), statement.id


def test_all_of_a_clause_has_the_label_and_its_proof_is_a_further_look():
    (clause,) = LEMMA_4.clauses
    found = report(LEMMA_4).labels_of(LEMMA_4, clause)
    assert found[0].trust is Trust.KERNEL_CHECKED and found[0].trust < Trust.PROVED
    assert found[0].scope["theorem"] == ("scan_and_snap/Attention.lemma4",)
    proof = Label(Trust.PROVED)
    assert LEMMA_4.with_kernel(clause, [proof]) == [found[0], replace(proof, needed=False)]
    assert weakest(LEMMA_4.with_kernel(clause, [proof])) == found[0]
    failing = Label(Trust.PROVED, failures=("an expression",))
    assert not weakest(LEMMA_4.with_kernel(clause, [failing])).holds


def test_a_part_of_a_clause_and_a_negation_give_no_label():
    kinds = {one.kind for one in SIGNAL.checked}
    assert kinds == {"part", "erratum"}
    assert not any(label.trust is Trust.KERNEL_CHECKED for label in SIGNAL.trust)
    (negation,) = SIGNAL.negations
    assert negation.theorem == "equation_88_as_printed_is_false"


@pytest.mark.parametrize(
    "changed",
    [
        replace(LEMMA_4, printed=LEMMA_4.printed.replace("+", "-", 1).replace("\\gamma", "\\gamma^2", 1) + "x"),
        replace(LEMMA_4, corrected=(LEMMA_4.corrected or "") + "+ 1"),
        replace(LEMMA_4, assumptions=LEMMA_4.assumptions[1:]),
        replace(LEMMA_4, assumptions=(*LEMMA_4.assumptions, Assumption("eta_Z = 0", lambda setting: 1.0))),
        replace(LEMMA_4, number="Lemma 40"),
        replace(LEMMA_4, paper="JoMA"),
    ],
)
def test_the_label_goes_where_the_statement_changes(changed):
    assert LEMMA_4.theorems(LEMMA_4.clauses[0]) and not changed.theorems(changed.clauses[0])


def test_the_label_goes_with_the_formula_of_one_clause():
    first, *others = THEOREM_3.clauses
    changed = replace(
        THEOREM_3,
        clauses=(replace(first, formula=first.formula + "^2"), *others),
        checks=(),
        argued=(),
        not_examined=(),
    )
    assert THEOREM_3.theorems(first) and not changed.theorems(changed.clauses[0])
    assert all(changed.theorems(own) == THEOREM_3.theorems(own) for own in others)


def test_what_lapsed_is_said():
    assert not LEMMA_4.lapsed and not any(one.lapsed for one in REGISTER.values())
    changed = replace(LEMMA_4, assumptions=LEMMA_4.assumptions[1:])
    assert changed.lapsed == LEMMA_4.checked
    (said, *_) = (one.lapse for one in changed.lapsed)
    assert said.startswith("scan_and_snap/Attention.lemma4 does not count: a formula or an assumption of the statement")


def test_a_proof_cannot_claim_it():
    forged = Label(Trust.KERNEL_CHECKED, {"theorem": ("forged",)})
    with pytest.raises(ValueError, match="`labels` must be those of proofs, none of them kernel-checked"):
        LEMMA_4.with_kernel(LEMMA_4.clauses[0], [forged])


def test_layout_of_latex_changes_no_hash():
    for one, other in (("x_{1} + 2", "x_1+2"), ("\\left(x\\right)", "(x)"), ("a\\,b", "ab")):
        assert kernel.asked("s", "c", [one], ()) == kernel.asked("s", "c", [other], ())
    for one, other in (("x_{1} + 2", "x_1-2"), ("x", "y"), ("", "x")):
        assert kernel.asked("s", "c", [one], ()) != kernel.asked("s", "c", [other], ())
    assert kernel.asked("s", "c", ["x"], ()) != kernel.asked("s", "c", ["x"], ("a",))


def test_a_statement_cannot_claim_it_in_words():
    own = Statement("Scan and Snap", "Claim", "kernel-checked", "kernel-checked", "x = y", argued=("kernel-checked",))
    assert not own.checked
    assert [label.trust for label in own.trust] == [Trust.ARGUED]


def test_counts_are_those_of_the_table():
    clauses = {(one.statement, one.clause) for one in kernel.table() if one.kind == "clause"}
    found = report(*(one for one in REGISTER.values() if one.paper != "JoMA"))
    assert found.counts()["kernel"] == len(clauses) and f"has checked {len(clauses)} parts" in found.counted()


def test_check_and_pages_show_theorems_with_hypotheses_and_errata_name_them():
    verdict = StatementVerdict(LEMMA_4, report(LEMMA_4), True, 0)
    (theorem,) = (one for one in LEMMA_4.checked if one.kind == "clause")
    words = " ".join(verdict.text(verbose=True).split())
    assert f"{theorem.name}: all of the statement: {theorem.formula}." in words and theorem.hypotheses in words
    assert "kernel-checked" in verdict.text()
    page = section.section(LEMMA_4)
    assert theorem.name in page and "ClassicalDedekindReals.sig_forall_dec" in page
    assert "Not checked" not in page
    assert "Not checked</strong> by a kernel, or not all of it: the whole" in section.section(SIGNAL)
    assert section.section(replace(LEMMA_4, number="Lemma 40")) == ""
    refuted = (
        "Refuted in Coq, under the hypotheses that stand on its page: `scan_and_snap/Visits.lemma11_as_printed_is_"
    )
    assert refuted in errata_page([LEMMA_11])
    (negation,) = LEMMA_11.negations
    assert negation.hypotheses in " ".join(
        StatementVerdict(LEMMA_11, report(LEMMA_11), True, 0).text(verbose=True).split()
    )


def test_a_formula_stands_beside_the_printed_one_with_its_definitions():
    (theorem,) = (one for one in LEMMA_11.checked if one.theorem == "lemma11_growth")
    shown = section.item(LEMMA_11, theorem)
    printed, clause, checked = re.findall("<span class='soft'>(.*?)</span>(<svg.*?)</div>", shown)
    assert (printed[0], clause[0], checked[0]) == ("Printed", "Part: (61), growth", "Checked by the kernel")
    titles = [" ".join(re.findall("<title>(.*?)</title>", one[1])) for one in (printed, clause, checked)]
    assert r"\lesssim" in titles[0] and r"\lesssim" not in titles[1]
    assert r"|h(N_n) - h(\bar N)| \le h(\bar N)\,\frac{\Delta}{\bar N}" in titles[2]
    assert shown.index("Definition rate") < shown.index("Definition solves") and "Fixpoint steps" not in shown


def test_definitions_are_those_that_theorems_name():
    named = {name for one in kernel.table() for name in one.uses}
    assert kernel.definitions() == {name: says for name, says in checking.definitions().items() if name in named}


def test_a_theorem_about_no_clause_is_refused():
    source = checking.theorems("scan_and_snap/Attention.v")[0]
    for wrong in ({"statement": "Scan and Snap: Lemma 40"}, {"clause": "no clause"}):
        with pytest.raises(ValueError, match=r"lemma4 must be about a clause of the register"):
            checking.asked(replace(source, **wrong))


def test_the_table_is_installed_and_complete():
    rows = json.loads(kernel.TABLE.read_text())
    assert len(rows) == len(kernel.table()) and all(re.fullmatch("[0-9a-f]{64}", row["sha256"]) for row in rows)
    assert Clause().name == ""  # a negation may be of the whole
