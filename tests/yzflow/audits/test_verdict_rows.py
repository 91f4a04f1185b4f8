"""Rows of verdicts: settings merged into one row, whose words are the same for a terminal, Markdown, HTML and JSON."""

import html
import json
import math
import re
from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st

from theory.statements import Check, Statement
from theory.trust import Label, Trust
from yzflow.audits.check import StatementVerdict
from yzflow.audits.enclosing import Decided
from yzflow.audits.rendered import as_json, columns, html_table, markdown_table
from yzflow.audits.report import AuditReport
from yzflow.audits.verdicts import Row, describe, verdict_rows

TOLERANCE = 0.1
ERRORS = st.sampled_from([0.0, 1e-9, 0.05, 0.1, 0.2, 3.0, 40.0, math.inf, math.nan])
CHECKS = ("first", "second")
LEVELS = ("flow", "full flow")


@st.composite
def tables(draw):
    """Rows of an audit of one statement, in any order and with any error."""
    found = []
    for number in range(draw(st.integers(1, 8))):
        check, level = draw(st.sampled_from(CHECKS)), draw(st.sampled_from(LEVELS))
        printed, corrected = draw(ERRORS), draw(st.none() | ERRORS)
        inside = draw(st.booleans())
        error = printed if corrected is None else corrected
        scope = {"level": level, "setting": f"setting {number}", "error": error}
        found.append(
            Row("Paper: 1", check, level, f"setting {number}", inside, {"small": 2.0 if inside else 0.5}, printed,
                corrected, TOLERANCE, inside and draw(st.booleans()), Label(Trust.MEASURED, scope))
        )  # fmt: skip
    return found


def holds(row):
    error = row.printed if row.corrected is None else row.corrected
    return error <= TOLERANCE  # which no number that is none fulfils


def worst(errors):
    """The largest, where NaN is larger than any."""
    return math.nan if any(map(math.isnan, errors)) else max(errors)


@given(tables(), st.booleans())
def test_a_row_has_the_worst_of_its_settings(table, everywhere):
    merged = verdict_rows(table, everywhere=everywhere)
    assert sorted(id(row) for one in merged for row in one.rows) == sorted(map(id, table))
    assert [(one.check, one.level) for one in merged] == list(dict.fromkeys((row.check, row.level) for row in table))
    for one in merged:
        inside = [row for row in one.rows if row.inside or everywhere]
        outside = [row for row in one.rows if row not in inside]
        check, level, printed, corrected, expected, elsewhere = one.words
        assert (check, level) == (one.check, one.level)
        assert one.alarming == any(row.expected and not holds(row) for row in one.rows)
        assert elsewhere.endswith(" <- should hold") == one.alarming
        assert (elsewhere.removesuffix(" <- should hold") == "-") == (not outside)
        assert printed == (describe(worst([row.printed for row in inside]), TOLERANCE) if inside else "-")
        known = [row.corrected for row in inside if row.corrected is not None]
        assert corrected == (describe(worst(known), TOLERANCE) if known else "-")
        assert expected == ("within 10%" if any(row.expected for row in inside) else "no claim")
        failing = [row for row in outside if not holds(row) and not row.printed <= TOLERANCE]
        assert elsewhere.startswith("fails") == bool(failing)
        assert one.label.scope["settings"] == tuple(row.setting for row in one.rows)
        assert one.label.scope["error"] in [row.error for row in one.rows] or math.isnan(one.label.scope["error"])


@given(st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=4), st.floats(1, 9))
def test_balls_say_the_weakest_and_how_many_they_decide(values, reached):
    label = Label(Trust.MEASURED, {"error": 0.0})
    decided = [Decided(value, 10.0, reached, (9.0, 9.5), "too wide") for value in values]
    rows = [
        Row("Paper: 1", "first", "flow", f"{number}", True, {}, 0.0, None, TOLERANCE, True, label, one)
        for number, one in enumerate(decided)
    ]
    weakest = Decided(min(values, key=(False, None, True).index), 10.0, reached, (9.0, 9.5), "too wide")
    said = f"{weakest.words} ({len(values) - values.count(None)} of {len(values)} decided)"
    assert [one.in_balls for one in verdict_rows(rows)] == [said]


class Cells(HTMLParser):
    """The cells of all tables, row by row, and which rows are marked."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.bad, self.heads = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag == "tr":
            self.rows.append([])
            self.bad.append(dict(attributes).get("class") == "bad")
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.heads += [value for name, value in attributes if name == "data-head"]

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


WORDS = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zs", "Zl", "Zp", "Cf")), min_size=1, max_size=8)


@given(st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(WORDS, min_size=width, max_size=width), min_size=1)))
def test_three_renderers_show_the_same_cells(rows):
    assert [re.split(r" {2,}", line.strip()) for line in columns(rows)] == rows
    head, rule, *body = [
        [cell.replace("\\|", "|") for cell in re.split(r"(?<!\\) \| ", line[2:-2])] for line in markdown_table(rows)
    ]
    assert [head, *body] == rows or any("\\" in cell for row in rows for cell in row)
    assert len(rule) == 1
    escaped = [[html.escape(cell) for cell in row] for row in rows]
    heads = [f"<b>{cell}</b>" for cell in escaped[0]]
    shown = Cells(html_table(heads, escaped, "", bad=[True]))
    assert shown.rows == [rows[0], *rows] and shown.heads == rows[0] * len(rows)
    assert shown.bad == [False, True] + [False] * (len(rows) - 1)


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()


@given(st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))
def test_json_has_null_or_a_word_for_what_is_no_finite_number(facts):
    def plain(fact, odd):
        if isinstance(fact, dict):
            return {name: plain(value, odd) for name, value in fact.items()}
        if isinstance(fact, list):
            return [plain(value, odd) for value in fact]
        return odd(fact) if isinstance(fact, float) and not math.isfinite(fact) else fact

    assert json.loads(as_json(facts)) == plain(facts, lambda _: None)
    assert json.loads(as_json(facts, said=True)) == plain(facts, str)


@settings(max_examples=25)
@given(tables())
def test_a_verdict_says_the_same_on_a_terminal_in_markdown_and_as_an_audit(table):
    checks = tuple(Check(name, LEVELS, lambda *_: 0.0, tolerance=TOLERANCE) for name in CHECKS)
    statement = Statement("Paper", "1", "A title", "A text.", "x = y", checks=checks)
    report = AuditReport(table, (statement,), {})
    verdict = StatementVerdict(statement, report, True, 0)
    rows = [row.words for row in verdict.errors]
    lines = {re.sub(r" {2,}", "  ", line.strip()) for line in verdict.text(verbose=True).splitlines()}
    assert {"  ".join(words) for words in rows} <= lines
    assert {f"| {' | '.join(words)} |" for words in rows} <= set(verdict.markdown().splitlines())
    lines = {re.sub(r" {2,}", "  ", line.strip()) for line in report.text().splitlines()}
    assert {"  ".join([statement.id, *words]) for words in rows} <= lines
    marked = sum(line.endswith(" <-") for line in verdict.text().splitlines())
    assert marked == sum(row.alarming for row in verdict.errors)
    assert json.loads(report.json())["passed"] == (marked == 0)


@settings(max_examples=10)
@given(st.sets(st.integers(0, 59), max_size=6))
def test_a_screen_leaves_out_rows_but_none_that_is_alarming(alarming):
    names = [f"check {number}" for number in range(60)]
    checks = tuple(Check(name, LEVELS[:1], lambda *_: 0.0, tolerance=TOLERANCE) for name in names)
    statement = Statement("Paper", "1", "A title", "A text.", "x = y", checks=checks)
    rows = [
        Row("Paper: 1", name, LEVELS[0], "here", True, {}, 1.0 if number in alarming else 0.0, None, TOLERANCE, True,
            Label(Trust.MEASURED, {"setting": "here", "error": 0.0}))
        for number, name in enumerate(names)
    ]  # fmt: skip
    lines = StatementVerdict(statement, AuditReport(rows, (statement,), {}), True, 0).text().splitlines()
    assert len(lines) <= 40 and any(line.endswith("rows more") for line in lines)
    marked = [" ".join(line.split()[:2]) for line in lines if line.endswith(" <-")]
    assert marked == [names[number] for number in sorted(alarming)]
