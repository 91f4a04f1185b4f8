"""The proofs that Coq checks: the table of theorems is that of the sources, and what is not proved is refused.

Tests that compile need coqc, on Debian in the packages coq and libcoq-coquelicot; they are skipped where it is missing.
"""

import functools
import importlib
import json
import re
import shutil
import subprocess

import pytest
from beside import beside

from formal import checking, typeset, variants
from theory import papers, statements
from yzflow.audits import formulas

FILES = checking.sources()
ROWS = json.loads(checking.TABLE.read_text())


def of_installed(row):
    """Whether the paper of a theorem's statement is installed."""
    return papers.named(row["statement"].partition(":")[0]) is not None


needs_coq = pytest.mark.skipif(checking.compiler() is None, reason="coqc is not installed: apt-get install coq")


@functools.cache
def proved():
    return [one for file in FILES for one in checking.theorems(file)]


def test_table_has_the_sources_theorems():
    written = [{key: row[key] for key in vars(one)} for one, row in zip(proved(), ROWS, strict=True)]
    assert written == [vars(one) | {"uses": list(one.uses)} for one in proved()]
    seals = {file: checking.seal(file) for file in FILES}
    changed = {row["file"] for row in ROWS if row["sha256"] != seals[row["file"]]}
    assert not changed, f"{sorted(changed)} changed: run formal/check"


def test_where_yzflow_is_not_installed_one_line_says_how(tmp_path):
    for folder in ("formal", "bin"):
        (tmp_path / folder).mkdir()
    shutil.copy(checking.FOLDER / "check", tmp_path / "formal")
    (tmp_path / "bin" / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin" / "python3").chmod(0o755)
    environment = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    command = [tmp_path / "formal" / "check"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1 and len(ended.stderr.splitlines()) == 1
    assert ended.stderr.endswith("python3 -m venv .venv && .venv/bin/pip install -e .\n")


def test_table_names_allowed_axioms_only():
    assert {name for row in ROWS for name in row["axioms"]} <= checking.ALLOWED.keys()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["theorem"])
def test_table_names_statements_of_the_register(row):
    if not of_installed(row):
        pytest.skip("its paper is not installed")
    statement = statements.REGISTER[row["statement"]]
    # Theorems on what is false as printed, or true besides, may belong to the whole.
    whole = {""} if row["kind"] in ("erratum", "besides") else set()
    assert row["clause"] in {clause.name for clause in statement.clauses} | whole
    assert row["kind"] != "erratum" or statement.errata


# Theorems without a test of their meaning, and why.
NOT_EVALUATED: dict[str, str] = {}


def test_every_theorem_is_evaluated():
    modules = [importlib.import_module("test_formal_meaning"), *beside("test_formal_meaning")]
    tests = [test for module in modules for test in vars(module).values() if hasattr(test, "theorems")]
    evaluated = {name for test in tests for name in test.theorems}
    named = {row["theorem"] for row in ROWS if of_installed(row)}
    assert evaluated | NOT_EVALUATED.keys() == named and not evaluated & NOT_EVALUATED.keys()
    assert all(NOT_EVALUATED.values())


def test_a_section_gives_its_theorems_what_it_declares():
    source = """Section One. Variables (M : nat) (F : nat -> R).
Hypotheses (HM : (2 <= M)%nat) (HF : forall a, F a = 1).
Section Two. Hypothesis K : 0 < 1. End Two. Let s := F 0. (* Hypothesis no : False. *)"""
    assert checking.sections(source) == (
        "forall (M : nat) (F : nat -> R), ((2 <= M)%nat) -> (forall a, F a = 1) -> let s := F 0 in "
    )
    inside = {row["theorem"]: row["coq"] for row in ROWS}
    assert "inverse_of K Ginv (gram M F)) -> forall h n l" in inside["theorem1"]


def test_names_stand_for_the_nearest_definition():
    uses = checking.used("bounded_dyck/Bounds.v", "forall P size, u V Z q s < size P")
    assert uses == ("bounded_dyck/Words.bracket", "bounded_dyck/Words.state", "bounded_dyck/Words.u")  # not Pairs.u
    assert checking.used("bounded_dyck/Pairs.v", "u") == ("bounded_dyck/Pairs.u",)
    assert checking.used("bounded_dyck/Pairs.v", "forall u, let LN := 1 in exists (norm : R), u LN norm") == ()
    assert checking.used("bounded_dyck/Words.v", "At") == ("bounded_dyck/Words.bracket", "bounded_dyck/Words.state")


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ("forall x, 0 < x -> ln x <= x - 1", [r"\forall\, {x}:", "0 < x", r"\Rightarrow\quad \ln(x) \le x - 1"]),
        ("forall a b c : R, a - (b - c) = a - b + c", [r"\forall\, {a, b, c}: \quad a - (b - c) = a - b + c"]),
        ("(a + b) * c / (2 * d) ^ 2 <> - / x", [r"\frac{(a + b)\,c}{(2\,d)^{2}} \ne -\frac{1}{x}"]),
        ("Sum (S n) (fun i => f i + 1) = Others K n g", [
            r"\sum_{i < n + 1}\ (f(i) + 1) = \sum_{i < K,\ i \ne n}\ g(i)",
        ]),
        ("(exists s, c < s /\\ h s = 0) <-> ~ P", [
            r"(\exists\, {s}:\ c < s\quad\mathrm{and}\ h(s) = 0) \Leftrightarrow\quad \mathrm{not}\ P",
        ]),
        ("A x -> (B -> C) /\\ (forall n, (n < K)%nat -> D n)", [
            "A(x)", r"\Rightarrow\quad (1)\quad B", r"\Rightarrow\quad C", r"(2)\quad \forall\, {n}:", "n < K",
            r"\Rightarrow\quad D(n)",
        ]),
        ("is_derive (fun s => z s) t (q * t)", [r"\left.\tfrac{d}{ds} z(s)\right|_{s = t} = q\,t"]),
        ("let e := a / b in exp (c / d) = e", [r"e := \frac{a}{b}", r"\Rightarrow\quad e^{c/d} = e"]),
    ],
)  # fmt: skip
def test_statements_as_latex(statement, shown):
    assert typeset.lines(typeset.read(statement)) == shown


@pytest.mark.parametrize(
    "wrong", ["0 < ", "match x with end", "(0 < 1", "forall x y", "0 < 1)", "forall Sum, Sum 1 f = 0"]
)
def test_what_cannot_be_set_is_refused(wrong):
    with pytest.raises(ValueError, match="a statement must"):
        typeset.typeset(wrong)


def test_the_table_has_the_latex_of_its_theorems():
    assert [row["latex"] for row in ROWS] == [typeset.typeset(row["coq"]) for row in ROWS]


def every_command():
    """Rows that have every command of LaTeX of the table, the shorter ones first."""
    seen, rows = set(), []
    for row in sorted(ROWS, key=lambda row: len("".join(row["latex"]))):
        commands = set(re.findall(r"\\(?:[A-Za-z]+|.)", "".join(row["latex"])))
        if commands - seen:
            rows.append(row)
            seen |= commands
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("row", every_command(), ids=lambda row: row["theorem"])
def test_every_formula_is_a_picture(row):
    shown = formulas.as_html(formulas.parts(row["latex"]))
    assert "<svg" in shown and "<code>" not in shown


def test_theorems_have_names_of_their_own():
    names = [(row["file"], row["theorem"]) for row in ROWS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    "added",
    [
        "Lemma l : False. Admitted.",
        "Lemma l : False. admit. Qed.",
        "Axiom a : False.",
        "Parameter p : False.",
        "Conjecture c : False.",
        "Axioms (a b : False).",
    ],
)
def test_open_goals_and_axioms_are_refused(added):
    text = (checking.FOLDER / FILES[0]).read_text()
    assert checking.theorems(FILES[0], text + "(* no (* nested *) Admitted in comments matters *)") is not None
    with pytest.raises(ValueError, match="must have no goal left open and no axiom"):
        checking.theorems(FILES[0], f"{text}\n{added}\n")


@pytest.mark.parametrize("field", ["statement", "kind", "hypotheses", "formula"])
def test_theorems_without_a_field_are_refused(field):
    file = "scan_and_snap/Growth.v"
    text = (checking.FOLDER / file).read_text()
    changed = re.sub(rf"@{field}\b", "@other", text, count=1)
    with pytest.raises(ValueError, match="must have"):
        checking.theorems(file, changed)


def test_a_changed_definition_changes_the_seals_of_all_that_rest_on_it(tmp_path, monkeypatch):
    for file in FILES:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        shutil.copy(checking.FOLDER / file, tmp_path / file)
    before = {file: checking.seal(file) for file in FILES}
    changed = tmp_path / "scan_and_snap/Growth.v"
    changed.write_text(changed.read_text().replace("eta / (M - 1 + exp (M * x))", "eta / (M + exp (M * x))"))
    monkeypatch.setattr(checking, "FOLDER", tmp_path)
    other = {file for file in FILES if checking.seal(file) != before[file]}
    assert other == {
        f"scan_and_snap/{name}.v" for name in ("Growth", "Lemma7", "Lag", "Decoder", "Peak", "Signal", "Xi")
    } | {f"scan_and_snap/{name}.v" for name in ("Star", "Attention", "Snap", "Visits", "Stages", "Remark1")}


def test_variants_change_statements():
    found = variants.listed()
    assert len({(one.theorem, one.old, one.new) for one in found}) == len(found) >= 40
    for one in found:
        text = (checking.FOLDER / one.file).read_text()
        proof, statement = variants.changed(one, text)
        assert one.new and one.new in statement and proof not in text
        # A hypothesis is dropped as "True ->": with one fewer, a proof would fail by the names of its hypotheses alone.
        assert _premises(one.old) == _premises(one.new), one


def _premises(text):
    """Arrows outside of parentheses."""
    before = [text[:at] for at in range(len(text)) if text.startswith("->", at)]
    return sum(part.count("(") == part.count(")") for part in before)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formal")
    for _ in checking.build(folder):
        pass
    return folder


@needs_coq
@pytest.mark.slow
def test_kernel_accepts_all_and_names_the_axioms(built):
    """Theorems with the same axioms in the table rest on these together, so none on another."""
    of = {checking.label(one): row["axioms"] for one, row in zip(proved(), ROWS, strict=True)}
    for axioms in sorted({tuple(found) for found in of.values()}):
        same = [one for one in proved() if tuple(of[checking.label(one)]) == axioms]
        assert checking.axioms_together(built, same) == list(axioms)


@needs_coq
@pytest.mark.slow
def test_an_axiom_by_another_word_is_seen_by_the_kernel(built):
    line = "Context (hidden : forall x y : R, x = y)."
    text = f"""Require Import Reals.\n{line}\nTheorem wrong : 1%R = 0%R.\nProof. apply hidden. Qed.\n"""
    file = "common/Wrong.v"
    (built / file).write_text(text)
    assert checking.coq(built, file).returncode == 0
    one = checking.Theorem("wrong", file, "", "", "part", "", "", "", "", "", ())
    assert set(checking.axioms(built, [one])[checking.label(one)]) - checking.ALLOWED.keys()


@needs_coq
@pytest.mark.slow
def test_a_variant_is_refused_and_what_is_not_changed_is_not(built):
    # The one behind the least text, all of which is compiled again.
    texts = {one: variants.changed(one, (checking.FOLDER / one.file).read_text())[0] for one in variants.listed()}
    chosen = min(texts, key=lambda one: len(texts[one]))
    assert variants.refused(chosen, built, 0) == ""
    same = variants.Variant(chosen.theorem, chosen.old, chosen.old, "no change")
    assert variants.refused(same, built, 1) == "it is proved"
