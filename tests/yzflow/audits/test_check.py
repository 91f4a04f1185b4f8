"""One statement at a time: found by name, with what was computed of it in words that a false statement changes."""

import json
import re
from html import unescape
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from ours import OURS

import yzflow
from dynamics.support import distributions
from theory import decoder, statements
from yzflow import cli
from yzflow.audits import find_statement
from yzflow.audits.check import StatementVerdict
from yzflow.audits.find_statement import find
from yzflow.audits.report import AuditReport
from yzflow.audits.verdicts import Verdict
from yzflow.pages.contents import index
from yzflow.pages.statement import html

LEMMA_4 = "Scan and Snap: Lemma 4"


@pytest.fixture(scope="module")
def lemma_4():
    return yzflow.check(LEMMA_4)


def command(*arguments):
    return CliRunner().invoke(cli.main, ["check", *arguments])


@pytest.mark.parametrize("name", [LEMMA_4, "Lemma 4", "lemma4", " scan and snap: LEMMA 4 "])
def test_a_statement_is_found_by_id_or_number(name):
    assert find(name) is statements.REGISTER[LEMMA_4]


def test_every_statement_is_found_by_its_id():
    for entry in statements.REGISTER.values():
        assert find(entry.id) is entry


def test_a_number_of_two_papers_is_refused_with_both():
    both = 'one of "Bounded Dyck: Corollary 2", "Scan and Snap: Corollary 2", but got'
    with pytest.raises(ValueError, match=both):
        yzflow.check("Corollary 2")


def test_a_number_that_has_parts_is_refused_with_these():
    """The paper prints Theorem 2; the register has (a) and (b), and what follows from them."""
    with pytest.raises(
        ValueError, match=r'one of "Scan and Snap: Theorem 2\(a\)", "Scan and Snap: Theorem 2\(b\)", '
    ) as told:
        find("Scan and Snap: Theorem 2")
    assert "Theorem 1" not in str(told.value) and "Bounded Dyck" not in str(told.value)
    with pytest.raises(ValueError, match=r'"Sparse averaging: Theorem 2", "Scan and Snap: Theorem 2\(a\)"'):
        find("Theorem 2")


def test_a_theorem_that_has_parts_is_checked_part_by_part(monkeypatch):
    theorem, passes = "Scan and Snap: Theorem 2", True
    monkeypatch.setattr(
        "yzflow.audits.check.check", lambda part, **_: SimpleNamespace(headline=f"Said of {part.id}.", passed=passes)
    )
    ended = command(theorem)
    assert ended.exit_code == 0, ended.output
    titles = [entry for entry in statements.REGISTER.values() if entry.id.startswith(theorem)]
    wanted = [line for part in titles for line in (f"{part.id}. {part.title}", f"  Said of {part.id}.")]
    assert ended.stdout.splitlines()[: len(wanted)] == wanted and len(titles) >= 2
    assert find_statement.parts("Theorem 2") == find_statement.parts("Scan and Snap: Theorem 3") == []
    # A part that fails, or that cannot be run, is no success.
    passes = False
    assert command(theorem).exit_code == 1

    def lacks(*_, **__):
        raise distributions.Missing("it comes with a tool")

    monkeypatch.setattr("yzflow.audits.check.check", lacks)
    ended = command(theorem)
    assert ended.exit_code == 1 and ended.stdout.count("  Not run: it comes with a tool.") == len(titles)


@pytest.mark.parametrize(
    ("typo", "meant"),
    [("Theorm 2(b)", "Scan and Snap: Theorem 2(b)"), ("Scan & Snap: Lemma 14", "Scan and Snap: Lemma 14")],
)  # fmt: skip
def test_a_typo_lists_the_nearest_in_one_line(typo, meant):
    ended = command(typo)
    assert ended.exit_code == 2
    (line,) = ended.stderr.strip().splitlines()
    assert f'"{meant}"' in line and repr(typo) in line


def test_printed_and_corrected_forms_are_counted_apart(lemma_4):
    # Lemma 4 is K times too large as printed (K = 2 or more inside): it misses everywhere it is expected.
    expected = [row for row in lemma_4.rows if row.expected]
    assert expected and all(row.verdict is Verdict.CORRECTED for row in expected)
    demonstrated, proved = lemma_4.checklists().values()
    n = len(expected)
    assert demonstrated.startswith(f"no: the printed form holds within its tolerance in 0 of {n} ")
    assert demonstrated.endswith(f"the corrected form in {n}")
    assert proved.startswith("partial: the corrected form is proved")


@pytest.mark.slow
def test_a_false_formula_fails_and_says_where(monkeypatch):
    right = decoder.Decoder.gamma
    monkeypatch.setattr(decoder.Decoder, "gamma", lambda self, t: right(self, t) * self.n_classes)
    verdict = yzflow.check(LEMMA_4)
    assert not verdict.passed
    assert "FAILS where it should hold: velocity of the logits in the theory flow" in verdict.outcome
    assert verdict.outcome in " ".join(verdict.text(verbose=True).split())
    assert "FAILS where it should hold: velocity" in verdict.text() and "<-" in verdict.text()
    ended = command(LEMMA_4, "--json")
    assert ended.exit_code == 1 and json.loads(ended.stdout)["passed"] is False


def test_one_screen_has_forms_labels_margins_numbers_and_how_to_repeat(lemma_4):
    text = lemma_4.text(verbose=True)
    flat = " ".join(text.split())
    for part in ("As printed:", "Corrected:", "Erratum:", "Rests on", "Margins of the assumptions", "misses by"):
        assert part in flat
    assert str(lemma_4.summary) in flat
    for number, (setting, margins) in enumerate(lemma_4.margins.items(), 1):
        assert f"{number}. {setting.removeprefix('inside: ')}" in flat
        for condition, margin in margins.items():
            line = next(line for line in text.splitlines() if line.startswith(f"  {condition}  "))
            assert (line.removeprefix(f"  {condition}").split()[number - 1].startswith("(")) is (margin < 1)
            assert condition in flat.split("Erratum:")[0]
    assert text.splitlines()[-3:] == lemma_4.python.splitlines()
    assert len(text.splitlines()) <= 80


def fits(text):
    lines = text.splitlines()
    return len(lines) <= 40 and max(map(len, lines)) <= 100


def test_every_statement_of_the_register_fits_on_a_screen():
    """Those whose proofs take minutes, too: what is not run here is shown as not run."""
    for statement in statements.REGISTER.values():
        assert fits(StatementVerdict(statement, AuditReport([], (statement,), {}), True, 0).text())


def test_a_terminal_shows_the_screen_and_a_notebook_the_card(lemma_4):
    class Printer:
        def text(self, words):
            self.words = words

    assert repr(lemma_4) == lemma_4.text()
    printer = Printer()
    lemma_4._repr_pretty_(printer, False)
    assert printer.words == lemma_4.text()
    lemma_4._repr_pretty_(printer, True)
    assert printer.words == "StatementVerdict(..)"
    assert lemma_4._repr_markdown_() == lemma_4.markdown()


@pytest.fixture
def known(lemma_4, monkeypatch):
    """Commands show the verdict that is there."""
    monkeypatch.setattr("yzflow.audits.check.check", lambda *_, **__: lemma_4)


def test_verbose_prints_all_of_it(lemma_4, known):
    shown = command(LEMMA_4, "--verbose").stdout
    assert shown == lemma_4.text(verbose=True) + "\n" and len(shown) > len(lemma_4.text())
    assert command(LEMMA_4).stdout == lemma_4.text() + "\n"
    for beside in ("--json", "--markdown"):
        ended = command(LEMMA_4, "--verbose", beside)
        assert ended.exit_code == 2 and f"`--verbose` must be left out beside {beside}" in ended.stderr
    with pytest.raises(ValueError, match="`verbose` must be True or False"):
        lemma_4.text(verbose="much")


def test_what_no_paper_prints_is_not_called_printed():
    ours = [statement for statement in statements.REGISTER.values() if statement.own]
    assert any(one.corrected for one in ours) and any(one.corrected is None for one in ours)
    assert all({name for name, _ in one.forms} <= {"From", "Statement"} and not one.errata for one in ours)


def test_what_stands_in_slides_is_called_so_everywhere():
    register = OURS.values()
    slides = [one for one in register if one.paper == "Sparse averaging" and not one.own]
    assert {one.source.where for one in slides} == {"as in the talk's slides"}
    assert {one.source.where for one in register if one not in slides} == {"as printed"}
    rank = yzflow.check("Sparse averaging: Rank bound")
    texts = [rank.text(), rank.text(verbose=True), rank.markdown(), html(rank), index([rank]), rank.report.text()]
    for text in texts:
        text = text.replace("what is called printed is", "")
        assert "s in the talk's slides" in unescape(text) and "rinted form" not in text
    seen = re.sub(r"<style>.*?</style>|<[^>]*>", "", texts[3], flags=re.S)
    assert [text for text in (*texts[:3], seen) if "printed" in text] == []
    assert rank.as_dict()["columns"]["as printed"]["title"] == "as in the talk's slides"
    legend = rank.report.plot(rank.statement.id).get_legend()
    assert "in the talk's slides" in [text.get_text() for text in legend.get_texts()]
    lemma = StatementVerdict(find(LEMMA_4), AuditReport([], (find(LEMMA_4),), {}), True, 0)
    for text in (lemma.text(), lemma.markdown(), html(lemma)):
        assert "As printed" in text and "slides" not in text


@pytest.mark.slow
def test_the_lines_of_python_compute_the_same(lemma_4, capsys):
    assert len(lemma_4.python.splitlines()) == 3
    exec(lemma_4.python, {})
    assert capsys.readouterr().out == lemma_4.text() + "\n"


def test_the_card_is_markdown_with_the_same_facts(lemma_4, known, tmp_path):
    ended = command(LEMMA_4, "--markdown", "--out", str(tmp_path / "card.md"))
    assert ended.exit_code == 0
    card = ended.stdout
    assert (tmp_path / "card.md").read_text() == card.rstrip("\n") + "\n" == lemma_4.markdown()
    tables = [line for line in card.splitlines() if line.startswith("|")]
    conditions = {text for margins in lemma_4.margins.values() for text in margins}
    assert len(tables) == 3 + 2 + len(conditions) + 2 + 3  # the verdict; two heads with rules; three levels
    assert all(f"- {name}: {answer}" in card for name, answer in lemma_4.checklists().items())
    assert lemma_4.command in card


@pytest.mark.slow
def test_json_is_strict_and_alone_on_standard_output():
    ended = command("Scan and Snap: Lemma 1", "--json")

    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    facts = json.loads(ended.stdout, parse_constant=refuse)
    assert facts["statement"] == "Scan and Snap: Lemma 1" and facts["passed"] is True
    assert [one["trust"] for one in facts["labels"]][:2] == ["KERNEL_CHECKED", "PROVED"]


def test_json_and_markdown_together_are_refused():
    ended = command(LEMMA_4, "--json", "--markdown")
    assert ended.exit_code == 2 and "`--markdown` must be left out beside --json" in ended.stderr


def test_help_of_figure_names_every_figure():
    from yzflow import figures

    shown = CliRunner().invoke(cli.main, ["figure", "--help"]).stdout
    assert set(figures.entries()) <= set(shown.split())
