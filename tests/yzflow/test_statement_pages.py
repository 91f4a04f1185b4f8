"""The page of one statement: its numbers are those of `yzflow.check`, and a false statement shows on it."""

import html
import math
import re
from dataclasses import replace

import driving
import pytest
from click.testing import CliRunner
from statement_pages import PHONE, PROVED, SCREEN, invented

import yzflow
from theory import statements
from theory.trust import Label, Trust
from yzflow import cli
from yzflow.audits import formulas
from yzflow.audits.check import StatementVerdict
from yzflow.audits.checked_statement import bare, head
from yzflow.audits.report import AuditReport
from yzflow.pages import contents, error_strips
from yzflow.pages import statement as single
from yzflow.pages.files import save

LEMMA_8 = "Scan and Snap: Lemma 8"  # with a check, assumptions and a proof
RANK = "Sparse averaging: Rank bound"  # false as printed
PROOF_ONLY = "Bounded Dyck: Corollary 2"
NAMES = (LEMMA_8, RANK, PROOF_ONLY)
TEXTS = "(all) => all.map((one) => one.textContent)"


@pytest.fixture(scope="module")
def found():
    return {name: yzflow.check(name) for name in NAMES}


@pytest.fixture(scope="module")
def pages(found, tmp_path_factory):
    """Name -> file."""
    folder = tmp_path_factory.mktemp("pages")
    paths = {name: folder / f"{single.slug(verdict.statement)}.html" for name, verdict in found.items()}
    for name, path in paths.items():
        save(single.html(found[name]), path)
    return paths


def test_a_file_is_the_page_s_text_on_every_system(tmp_path):
    save("<p>\n</p>\n", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_bytes() == b"<p>\n</p>\n"


def plain(text):
    """Visible part of a text whose mathematics is set in letters."""
    return html.unescape(re.sub(r"<[^>]*>", "", formulas.readable(text)))


def tables(page):
    """The texts of all tables: a list of rows for each, the head first."""
    rows = "[...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent))"
    return page.eval_on_selector_all("table", f"(all) => all.map((table) => {rows})")


def false_rank_bound():
    """The rank bound as it is printed, where the register has it corrected: the rank is 2^n - 1 and not 2^n."""
    right = statements.REGISTER[RANK]
    checks = tuple(replace(check, corrected=None) for check in right.checks)
    return replace(right, corrected=None, clauses=(), checks=checks, argued=(), not_examined=(), prove=right.proofs[0])


def command(*arguments):
    return CliRunner().invoke(cli.main, ["page", *map(str, arguments)])


# Content


@pytest.mark.parametrize("name", [LEMMA_8, RANK])
def test_numbers_are_those_of_check(browser, found, pages, name):
    verdict = found[name]
    clauses = bool(verdict.statement.clauses[0].name)
    worst, each, *margins = tables(browser(pages[name]))
    margins = margins[: len(margins) - clauses]  # the parts' table is the last
    assert worst == [head(verdict.statement), *(list(map(plain, row.words)) for row in verdict.errors)]
    assert [row[4:] for row in each[1:]] == [list(row.forms) for row in verdict.rows]
    names = [[plain(row.check), row.level, plain(bare(row.setting))] for row in verdict.rows]
    assert [row[:3] for row in each[1:]] == names
    assert browser(pages[name]).eval_on_selector_all("#margins ol li", TEXTS) == [
        plain(bare(name)) for name in verdict.margins
    ]
    rows = [row for table in margins for row in table[1:]]
    assert {row[0] for row in rows} == {plain(text) for held in verdict.margins.values() for text in held}
    for text, *cells in rows:
        for cell, held in zip(cells, verdict.margins.values(), strict=True):
            margin = {plain(one): value for one, value in held.items()}[text]
            assert float(cell.strip("()")) == pytest.approx(margin, rel=6e-2 if margin < 1 else 5e-3)
            assert cell.startswith("(") == (margin < 1)


@pytest.mark.parametrize("name", NAMES)
def test_badge_labels_and_words_are_those_of_the_verdict(browser, found, pages, name):
    verdict, page = found[name], browser(pages[name])
    assert page.inner_text("#trust .badge") == single.kind(verdict.summary)
    assert plain(verdict.headline) in page.inner_text("#found")
    assert page.locator("#grounds details").first.get_attribute("open") is None
    assert "not run" not in page.inner_text("#trust") and page.text_content("body").count(plain(verdict.headline)) == 1
    items = page.eval_on_selector_all("#rests li", TEXTS)
    assert len(items) == len(verdict.labels)
    for item, label in zip(items, verdict.labels, strict=True):
        said, clause = item.replace(single.kind(label), "", 1).strip(), f"{plain(label.clause)}: "
        assert said.startswith(clause) or not label.clause
        assert said.removeprefix(clause) in plain(label.words)
    programs = page.eval_on_selector_all("#again pre", TEXTS)
    assert programs[0] == verdict.python and programs[1].splitlines()[0] == verdict.command


def test_the_proof_is_shown_with_every_step(browser, pages):
    derivation = statements.REGISTER[LEMMA_8].proofs[0]()
    page = browser(pages[LEMMA_8])
    assert page.locator("ol.proof li").count() == len(derivation.steps)
    assert page.text_content("#proof summary") == f"{len(derivation.steps)} steps"


def test_the_axis_is_logarithmic_and_holds_everything():
    assert error_strips.place(0.0) == error_strips.place(1e-12) == 3
    assert [error_strips.place(error) for error in (20.0, 1e9, math.nan, math.inf)] == [97] * 4
    steps = [error_strips.place(10.0**power) - error_strips.place(10.0 ** (power - 1)) for power in range(-11, 2)]
    assert steps == pytest.approx([steps[0]] * len(steps)) and steps[0] > 0


def test_a_false_statement_shows_on_its_page(browser, tmp_path, monkeypatch, found):
    assert found[RANK].passed
    monkeypatch.setitem(statements.REGISTER, RANK, false_rank_bound())
    verdict = yzflow.page(RANK, tmp_path / "false.html")
    assert not verdict.passed
    page = browser(tmp_path / "false.html")
    assert page.inner_text("#trust .badge") == "fails"
    assert "FAILS where it should hold" in page.inner_text("#numbers")
    missed = max(row.printed for row in verdict.rows)
    assert missed > 0.01
    assert tables(page)[0][1][2] == f"misses by {100 * missed:.3g}%"
    assert page.locator("#plot [role=img] circle.wrong").count() == sum(row.alarming for row in verdict.rows) > 0
    ended = command(RANK, "--out", tmp_path / "again.html")
    assert ended.exit_code == 1
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "false.html").read_bytes()


def test_what_a_statement_says_is_no_markup(browser, tmp_path):
    words = "<script>document.title = 'x'</script> & \"quotes\" 'here' @STYLE@ <b>"
    statement = replace(
        statements.REGISTER[RANK],
        title=words,
        text=words,
        printed=words,
        errata=(words,),
        clauses=(),
        checks=(),
        not_examined=(),
        argued=(words,),
    )
    path = tmp_path / "page.html"
    save(single.html(invented(statement)), path)
    page = browser(path)
    assert words in page.inner_text("h1") and page.locator("script, b").count() == 0
    for part in ("statement", "errata", "rests"):
        assert words in page.text_content(f"#{part}"), part
    assert page.title() == f"{statement.id}. {words}"


# Formulas


@pytest.mark.parametrize(
    ("formula", "broken"),
    [
        (r"a = 1,\ b = 2", r"a = 1,\quad b = 2"),
        (r"f(a,\ b) \le \left[a,\ b\right]", r"f(a,\ b) \le \left[a,\ b\right]"),
        (r"\{x: y\}: \langle x, y\rangle, z", r"\{x: y\}:\quad \langle x, y\rangle,\quad z"),
        ("x" * 80 + r" = y = z", "x" * 80 + r" \quad = y = z"),
        ("x" * 40 + r"\text{ for } y", "x" * 40 + r"\quad \text{ for } y"),
        (r"\text{" + "x" * 80 + r" = y}", r"\text{" + "x" * 80 + r" = y}"),
    ],
)
def test_parts_are_told_apart_outside_brackets(formula, broken):
    assert formulas.parts(formula) == broken


def test_formulas_in_words():
    shown = formulas.in_words(r"for $x$ < $\frac12$ & more")
    assert shown.count("<svg") == 2 and shown.startswith("for <svg") and shown.endswith("</svg> &amp; more")
    assert formulas.in_words("a < b") == "a &lt; b"


# How it looks


def _hardest():
    """The statements with the longest text, the most strips and the longest formula, and one that is not measured."""
    register = statements.REGISTER.values()
    measures = (
        lambda one: len(one.text),
        lambda one: sum(len(check.levels) for check in one.checks),
        lambda one: len(one.printed + (one.corrected or "")),
    )
    return {max(register, key=measure).id: None for measure in measures} | {PROOF_ONLY: None}


@pytest.mark.parametrize("name", _hardest())
def test_the_first_screen_has_statement_badge_and_plot(shared_browser, tmp_path, name):
    path = tmp_path / "page.html"
    path.write_text(
        single.html(invented(statements.REGISTER[name]), derivations=[PROVED]),
        encoding="utf-8",
    )
    page = shared_browser(path, **SCREEN)
    for part in ("trust", "statement", "plot"):
        box = page.locator(f"#{part}").bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= SCREEN["height"], part
        assert box["x"] >= 0 and box["x"] + box["width"] <= SCREEN["width"] and box["height"] > 15, part
    for scheme in ("light", "dark"):
        narrow = shared_browser(path, **PHONE, color_scheme=scheme)
        narrow.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
        assert narrow.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_light_and_dark_follow_the_system(browser, pages):
    grounds = {
        scheme: browser(pages[LEMMA_8], color_scheme=scheme).evaluate("getComputedStyle(document.body).backgroundColor")
        for scheme in ("light", "dark")
    }
    assert grounds == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 22, 26)"}


def test_axe_finds_nothing_to_mend(shared_browser, pages):
    page = shared_browser(pages[LEMMA_8], **PHONE, color_scheme="dark", bypass_csp=True)
    page.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
    driving.assert_nothing_to_mend(page, least=15)


def test_axe_finds_nothing_on_a_page_that_fails_nor_on_the_index(shared_browser, tmp_path, monkeypatch):
    monkeypatch.setitem(statements.REGISTER, RANK, false_rank_bound())
    contents.write_all(tmp_path, only=[RANK, PROOF_ONLY])
    for name in ("sparse_averaging_rank_bound", "index"):
        page = shared_browser(tmp_path / f"{name}.html", **PHONE, color_scheme="dark", bypass_csp=True)
        assert page.locator(".badge.fails").count() > 0
        driving.assert_nothing_to_mend(page, least=15)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


# Files and the command


@pytest.mark.parametrize("name", ["Theorm 2(b)", "Corollary 2", ""])
def test_bad_names_are_refused_as_check_refuses_them(tmp_path, name):
    ended = command(name, "--out", tmp_path / "page.html")
    other = CliRunner().invoke(cli.main, ["check", name])
    assert ended.exit_code == other.exit_code == 2 and ended.stderr == other.stderr
    assert len(ended.stderr.strip().splitlines()) == 1 and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "`STATEMENT` must be given or else `--all`, but got neither"),
        ([RANK, "--all", "pages"], "`STATEMENT` must be given or else `--all`, but got both"),
        (["--all", "pages", "--out", "page.html"], "`--out` must be left out beside --all"),
        ([RANK, "--out", "none/page.html"], "`--out` must lie in a folder that exists"),
        ([RANK, "--seed", "-1"], "`seed` must be"),
    ],
)
def test_bad_options_are_refused(tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    ended = command(*arguments)
    assert ended.exit_code == 2 and says in ended.stderr and not list(tmp_path.iterdir())


def test_a_page_that_fails_half_way_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("before")

    def broken(*_, **__):
        raise OSError("no space")

    monkeypatch.setattr("pathlib.Path.write_text", broken)
    with pytest.raises(OSError, match="no space"):
        save("<p>\n</p>\n", path)
    monkeypatch.undo()
    assert path.read_text() == "before" and [one.name for one in tmp_path.iterdir()] == ["page.html"]


def test_the_file_has_the_name_of_the_statement(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = command(PROOF_ONLY.lower())
    assert ended.exit_code == 0 and "wrote bounded_dyck_corollary_2.html" in ended.stdout
    assert (tmp_path / "bounded_dyck_corollary_2.html").read_text(encoding="utf-8").endswith("</html>\n")


# All of them


def test_every_statement_has_a_file_of_its_own():
    names = {single.slug(statement) for statement in statements.REGISTER.values()}
    assert len(names) == len(statements.REGISTER) and "index" not in names


def test_one_audit_makes_all_pages_and_an_index_in_reading_order(browser, found, tmp_path, monkeypatch):
    calls = []
    run = contents.audit
    monkeypatch.setattr(contents, "audit", lambda *a, **k: calls.append(a) or run(*a, **k))
    report = contents.write_all(tmp_path / "all", only=NAMES)
    assert len(calls) == 1 and [one.id for one in report.statements] == [PROOF_ONLY, LEMMA_8, RANK]
    for verdict in contents.verdicts(report, quick=True, seed=0):
        own = found[verdict.statement.id]
        path = tmp_path / "all" / f"{single.slug(verdict.statement)}.html"
        assert path.read_text(encoding="utf-8") == single.html(own, index="index.html")
        assert verdict.text() == own.text()
    page = browser(tmp_path / "all" / "index.html")
    assert page.eval_on_selector_all("h2", TEXTS) == [
        "Bounded Dyck", "Scan and Snap", "Sparse averaging", "All in one table"
    ]  # fmt: skip
    links = page.eval_on_selector_all("a", "(all) => all.map((one) => one.getAttribute('href'))")
    assert links[:3] == links[3:] and all((tmp_path / "all" / link).is_file() for link in links)
    badges = page.eval_on_selector_all("td .badge", TEXTS)
    assert badges == [single.kind(report.summary(one)) for one in report.statements]
    [table] = tables(page)
    missed = max(row.printed for row in report.table if row.statement == RANK)
    assert table[3][2:4] == [f"as in the talk's slides: differs by up to {100 * missed:.3g}% (a remark)", "holds"]


@pytest.fixture(scope="module")
def whole_index(tmp_path_factory):
    path = tmp_path_factory.mktemp("index") / "index.html"
    save(contents.index([invented(one, settings=1) for one in statements.REGISTER.values()]), path)
    return path


def test_the_index_has_a_paper_s_statements_by_kind_and_number(browser, whole_index):
    page = browser(whole_index)
    found = page.eval_on_selector_all("section:has(ol.order) li > a", TEXTS)
    numbers = [text.split(". ")[0] for text in found]
    snap = [one for one in statements.REGISTER.values() if one.paper == "Scan and Snap"]
    own = numbers[numbers.index("Lemma 1") :][: len(snap)]
    assert sorted(own) == sorted(one.number for one in snap)
    assert own[:4] == ["Lemma 1", "Lemma 1, zero sums", "Lemma 2", "Lemma 3"]
    for kind in ("Lemma", "Theorem", "Remark"):
        counted = [int(re.match(rf"{kind} (\d+)", one)[1]) for one in own if re.fullmatch(rf"{kind} \d+[^a-z]*", one)]
        assert counted == sorted(counted) and len(counted) > 3
    assert own.index("Lemma 18") < own.index("Theorem 1") < own.index("Theorem 1(a)") < own.index("Theorem 2(a)")
    assert own.index("Theorem 5") < own.index("Corollary 1") < own.index("Remark 1") < own.index("Equations 86 to 93")
    ours = [one.number for one in snap if one.own]
    assert sorted(own[-len(ours) :]) == sorted(ours)
    rows = page.eval_on_selector_all("tbody th", TEXTS)
    assert [row.split(": ", 1)[1] for row in rows] == numbers


def test_the_index_is_searched_by_number_title_and_text(browser, whole_index):
    page = browser(whole_index)
    shown = "section:has(ol.order) li:not([hidden]) > a"

    def search(words):
        page.fill("#search-words", words)
        return page.eval_on_selector_all(shown, TEXTS)

    everything = search("")
    assert len(everything) == len(statements.REGISTER)
    assert [text.split(". ")[0] for text in search("Lemma 1")][:2] == ["Lemma 1", "Lemma 1, zero sums"]
    assert not any(text.startswith(("Lemma 10", "Lemma 11")) for text in search("lemma 1"))
    assert search("phase transition")[0].startswith("Theorem 4. Phase")  # the title
    words = search("adam protocol disjointness alice")
    assert len(words) <= 1
    assert any(text.startswith("Theorem 4. Lower bound") for text in search("alice BOB"))  # the text
    assert page.inner_text("#search-said") == f"{len(search('alice BOB'))} of {len(everything)} statements"
    assert page.locator("h2:visible").all_inner_texts() == ["Sparse averaging", "All in one table"]
    assert page.locator("tbody tr:visible").count() == len(search("alice bob"))
    assert search("zzz") == [] and page.inner_text("#search-said").startswith("0 of")
    search("Snap: Theorem 4")
    page.focus("#search-words")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent").startswith("Theorem 4. Phase")


def test_without_a_script_the_index_has_no_search_and_everything_else(browser, whole_index):
    page = browser(whole_index, java_script_enabled=False)
    assert not page.locator("#search").is_visible()
    assert page.locator("ol.order > li").count() == len(statements.REGISTER)


def test_axe_finds_nothing_to_mend_on_the_whole_index(browser, whole_index):
    page = browser(whole_index, **SCREEN, color_scheme="light", bypass_csp=True)
    page.fill("#search-words", "theorem")
    driving.assert_nothing_to_mend(page, least=15)
    assert page.evaluate("document.documentElement.scrollWidth") <= SCREEN["width"]


def test_the_index_counts_what_fails(tmp_path):
    verdict = invented(statements.REGISTER[RANK])
    rows = [replace(row, expected=True, corrected=None, printed=0.5) for row in verdict.rows]
    text = contents.index([replace(verdict, report=replace(verdict.report, table=rows))])
    assert "1 of them failed where it should hold" in text and "None failed" not in text
    assert "fails by up to 50%" in text and "<tr role='row' class=bad>" in text


def test_the_first_sentence():
    assert contents.first_sentence("Of eta_Y. and 1.5. So it is. (And more.)") == "Of eta_Y. and 1.5."
    assert all(contents.first_sentence(one.text) for one in statements.REGISTER.values())


@pytest.mark.slow
def test_what_was_not_run_is_not_called_unexamined():
    """A statement that has checks or a proof, and of which nothing ran; one that has neither is not examined."""
    register = tuple(statements.REGISTER.values())
    verdicts = [StatementVerdict(one, AuditReport([], (one,), {}, (), {}), True, 0) for one in register]
    words = {verdict.statement.id: single.standing(verdict) for verdict in verdicts}
    asked = {one.id for one in register if one.checks or one.proofs}
    assert {name for name, word in words.items() if word == "not run"} == asked and len(asked) >= 60
    index = "".join(contents.sections(verdicts))
    assert "None of those that were run failed" in index and "badge not-run'>not run<" in index


def test_a_badge_counts_its_parts_and_nothing_is_said_not_to_have_run_beside_a_plot():
    """With the first part proved, the header says how many parts have the badge's word, and what the others have."""
    for statement in statements.REGISTER.values():
        first = statement.clauses[0]
        label = Label(Trust.PROVED, clause=first.name)
        report = AuditReport([], (statement,), {statement.id: (label,)})
        verdict = StatementVerdict(statement, report, True, 0)
        header = html.unescape(re.sub(r"<[^>]*>", "|", single._trust(verdict)))
        kinds = [single.kind(label) for _, label in report.summaries(statement)]
        if len(set(kinds)) > 1:
            word = single.kind(verdict.summary)
            rest = " or ".join(dict.fromkeys(kind for kind in kinds if kind != word))
            assert f"{kinds.count(word)} of {len(kinds)} parts, the others {rest}; " in header, header
        assert "eakest" not in header and "not run" not in header.split("|", 1)[1].replace("was not run", "")
