"""The page of one statement: one HTML file with its forms, grounds, numbers and proof.

It needs no network. Formulas are pictures (`yzflow.audits.formulas`). Colours are light or dark as on the reader's
system. All numbers and words come from a result of `yzflow.check`. If the paper has a view of the statement, the first
screen shows a plot with sliders (`yzflow.pages.live`); other pages run no script.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from dynamics.support import checks
from dynamics.version import __version__
from theory.statements import SHARPER, Statement
from theory.symbolic import Derivation, derived
from theory.trust import Label, Trust
from yzflow.audits import formulas
from yzflow.audits.checked_statement import MARGINS, Examined, bare, head, margin_rows
from yzflow.audits.outcomes import Column, Outcome
from yzflow.audits.rendered import html_table
from yzflow.audits.report import assumed
from yzflow.pages import error_strips, kernel, live
from yzflow.pages.explorer.registry import Panel, panels
from yzflow.pages.files import file

__all__ = [
    "Attached",
    "badge",
    "badge_of",
    "document",
    "html",
    "kind",
    "outcomes",
    "slug",
    "standing",
]


@dataclass(frozen=True)
class Attached:
    """A section of a page that another distribution makes.

    Attributes
    ----------
    section : str
        HTML.
    scripts : str
        Elements at the page's end.
    policy : str
        Sources for the content security policy of the page, beyond inline scripts.
    commands : tuple of str
        Commands of a shell that check what the section holds.
    """

    section: str
    scripts: str = ""
    policy: str = ""
    commands: tuple[str, ...] = ()


def html(
    verdict: Examined,
    *,
    derivations: Sequence[Derivation] | None = None,
    index: str | None = None,
    note: str = "",
    attached: Attached | None = None,
    tried: str = "",
) -> str:
    """The page of a result of `yzflow.check`.

    Parameters
    ----------
    verdict : Examined
    derivations : sequence of theory.symbolic.Derivation, optional
        The proofs of its clauses. Default: derive them now, which decides nothing and takes a second or two.
    index : str, optional
        Address of the index of all pages, for a link.
    note : str, optional
        Text below the badge.
    attached : Attached, optional
        A further section with its scripts.
    tried : str, optional
        The report of a campaign of `yzflow.fuzz` on it.
    """
    checks.instance("verdict", verdict, Examined)
    statement = verdict.statement
    if derivations is None and statement.id in verdict.report.labels_of_proofs:
        derivations = [derived(prove) for prove in statement.proofs]
    views = live.views(statement)
    back = "" if index is None else f'<nav><a href="{escape(index)}">All statements</a></nav>'
    title = escape(f"{statement.id}. {statement.title}")
    said = f"<p>{escape(note)}</p>" if note else ""
    name, theme = ("", "") if views is None else (" id='live'", live.THEME)
    shown = [_statement(statement), _plot(verdict)] if views is None else [_statement(statement), live.FORM, live.PLOT]
    parts = [
        f"<header>{back}<h1>{title}</h1>{_trust(verdict)}{said}{theme}</header>",
        f"<main>\n<div class='first'{name}>\n{chr(10).join(shown)}\n</div>",
        "" if views is None else live.WORDS,
        _sharper(statement),
        _question(statement),
        _numbers(verdict, "" if views is None else _plot(verdict, "errors")),
        "" if attached is None else attached.section,
        f"<section id='tried'><h2>What was tried</h2><pre>{escape(tried)}</pre></section>" if tried else "",
        _margins(verdict),
        _errata(statement),
        _grounds(verdict, derivations or ()),
        _again(verdict, () if attached is None else attached.commands),
        "</main>",
    ]
    scripts = "" if views is None else live.scripts(statement, views)
    return document(
        f"{statement.id}. {statement.title}",
        "\n".join(filter(None, parts)),
        scripts=scripts if attached is None else scripts + attached.scripts,
        controls=views is not None,
        policy="" if attached is None else attached.policy,
    )


def document(title: str, body: str, *, scripts: str = "", controls: bool = False, policy: str = "") -> str:
    """A complete page from its body and scripts; ``controls`` adds the style of the explorer's controls and plots.

    ``policy`` has sources for the content security policy, beyond inline scripts.
    """
    first, last = live.styles()
    style = file("yzflow.pages", "statement.css")
    if controls:
        style = first + style + last
    else:
        light, dark = re.findall(r":root[^{]*\{([^}]*)\}", first)[:2]
        style = f":root {{{light}}}\n@media (prefers-color-scheme: dark) {{ :root {{{dark}}} }}\n{style}"
    sources = " ".join(filter(None, ["script-src 'unsafe-inline'", policy])) + "; "
    parts = {
        "VERSION": __version__,
        "TITLE": escape(title),
        "STYLE": style,
        "BODY": body,
        "POLICY": sources if scripts else "",
        "NOTE": f"This page needs no network{'' if scripts else ' and runs no script'}.",
        "SCRIPTS": scripts,
    }
    # One pass, so that a part with a text such as @NAME@ stays as it is.
    return re.sub(r"@([A-Z]+)@", lambda match: parts[match[1]], file("yzflow.pages", "statement.html"))


def slug(statement: Statement) -> str:
    """The statement's id as a file name without suffix."""
    return re.sub(r"[^a-z0-9]+", "_", statement.id.lower()).strip("_")


def badge(label: Label) -> str:
    """HTML badge with the kind of a label, or its failure."""
    word = kind(label)
    # A proof at sizes has the colour of a proof.
    colour = word.replace("proved at sizes", "proved").replace(" ", "-")
    return f"<strong class='badge {colour}'>{word}</strong>"


def standing(verdict: Examined) -> str:
    """The kind of a statement's weakest ground in a word or two, or "not run"."""
    can_run = verdict.statement.checks or verdict.statement.proofs
    ran = verdict.rows or verdict.report.labels_of_proofs
    return "not run" if can_run and not ran else kind(verdict.summary)


def badge_of(verdict: Examined) -> str:
    """HTML badge of a statement."""
    word = standing(verdict)
    return f"<strong class='badge not-run'>{word}</strong>" if word == "not run" else badge(verdict.summary)


def kind(label: Label) -> str:
    """Kind of a label, in a word or two."""
    if label.trust is Trust.KERNEL_CHECKED and label.holds:
        return "kernel-checked"
    return label.trust.name.lower().replace("_", " ") if label.holds else "fails"


def _set(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[formulas.readable(cell) for cell in row] for row in rows]


def _trust(verdict: Examined) -> str:
    """The verdict in a sentence and in columns, and the badge of the weakest ground with its share of the parts."""
    statement = verdict.statement
    number = len(statement.accused)
    errata = f"<a href='#errata'>{number} errat{'um' if number == 1 else 'a'}</a>" if number else "no erratum found"
    sort = ""
    if statement.conjecture:
        sort = "A conjecture of our own. " if statement.own else "A conjecture of the paper. "
        if not verdict.installed:
            name = formulas.readable(statement.paper)
            sort = f"A conjecture of this page's author, under the name {name}, and of no paper that is installed. "
    of = "" if statement.corrected is None else "the corrected form; "
    return (
        f"<div class='trust' id='trust'><p id='found'>{sort}{formulas.readable(verdict.headline)}</p>"
        f"{outcomes(verdict.columns)}{badge_of(verdict)}<span class='soft'>{of}{_share(verdict)}"
        f"<a href='#grounds'>what it rests on</a>; {errata}</span></div>"
    )


def _share(verdict: Examined) -> str:
    """How many parts have the badge's word, and the words of the others; empty if all parts have it."""
    kinds = [kind(label) for _, label in verdict.report.summaries(verdict.statement)]
    word = standing(verdict)
    others = dict.fromkeys(other for other in kinds if other != word)
    if word not in kinds or not others:
        return ""
    return f"{kinds.count(word)} of {len(kinds)} parts, the others {' or '.join(others)}; "


def outcomes(columns: Sequence[Column]) -> str:
    """The verdict in each column that has one, as a list, with what was not run beside simulations that were."""
    ran = any(part.settings for column in columns for part in column.parts)
    silent = (Outcome.NOT_EXAMINED,) if ran else (Outcome.NOT_EXAMINED, Outcome.NOT_RUN)
    shown = [column for column in columns if column.outcome not in silent]
    items = "".join(
        f"<li class='{column.outcome.value.replace(' ', '-')}'><span class='soft'>{escape(column.title)}</span> "
        f"{formulas.readable(column.words)}</li>"
        for column in shown
    )
    return f"<ul class='outcomes'>{items}</ul>" if items else ""


_NOTHING = "No simulation is asked about this statement, so that there is no plot: below stands what it rests on."
_UNRUN = "No simulation was run for this page, so that there is no plot."
_STILL = "This page has no sliders: the plot shows what the audit found, a mark for each setting."


def _statement(statement: Statement) -> str:
    shown = "".join(
        f"<div class='formula'><span class='soft'>{escape(name)}</span>{_formula(formula)}</div>"
        for name, formula in statement.forms
    )
    words = formulas.readable(statement.text.partition(SHARPER)[0])
    return f"<section id='statement' aria-label='Statement'><p>{words}</p>{shown}</section>"


def _sharper(statement: Statement) -> str:
    """Section on forms that go beyond the printed one."""
    words = statement.text.partition(SHARPER)[2]
    if not words:
        return ""
    short, form = escape(statement.source.short), escape(statement.source.form)
    said = f"<p>Beyond the {form}: {formulas.readable(words)}</p>"
    return f"<section id='sharper'><h2>Sharper than {short}</h2>{said}</section>"


def _clauses(verdict: Examined) -> str:
    """Table of the parts of a statement, each with its text and its weakest ground; empty without parts."""
    rows = [
        [
            formulas.readable(clause.name),
            _formula(clause.formula) if clause.formula else "",
            badge(label),
            formulas.readable(_after(label.words, kind(label))),
        ]
        for clause, label in verdict.report.summaries(verdict.statement)
        if clause.name
    ]
    if not rows:
        return ""
    shown = html_table(["part", "what it says", "label", "rests on"], rows, "The whole has the weakest label of these")
    return f"<div id='clauses'><h3>Part by part</h3>{shown}</div>"


def _grounds(verdict: Examined, derivations: Sequence[Derivation]) -> str:
    """One folded list of what a statement rests on: parts, labels, theorems of a kernel, and proof."""
    parts = (_clauses(verdict), _rests(verdict), kernel.section(verdict.statement), _proof(derivations, verdict))
    counts = (
        (len(verdict.labels), "ground", ""),
        (len(verdict.statement.checked), "theorem", " of a kernel"),
        (sum(len(derivation.steps) for derivation in derivations), "step", " of proof"),
    )
    named = ", ".join(f"{count} {noun}{'s' * (count != 1)}{more}" for count, noun, more in counts if count)
    return (
        f"<section id='grounds'><h2>What it rests on</h2><details><summary>{named or 'Nothing was run'}</summary>"
        f"{''.join(parts)}</details></section>"
    )


def _formula(formula: str) -> str:
    return formulas.as_html(formulas.parts(formula) if formulas.is_latex(formula) else formula)


def _plot(verdict: Examined, name: str = "plot") -> str:
    if not verdict.rows:
        words = _UNRUN if verdict.statement.checks else _NOTHING
        return f"<figure id='{name}'><p class='soft'>{words}</p></figure>"
    still = "" if live.views(verdict.statement) else f"<p class='soft'>{_STILL}</p>"
    return f"<figure id='{name}'>{error_strips.drawn(verdict.rows, verdict.statement.source)}{still}</figure>"


def _question(statement: Statement) -> str:
    texts = live.question(statement)
    if texts is None:
        return ""
    question, answer = map(formulas.in_words, texts)
    return (
        f"<section id='question'><h2>A question for students</h2><p>{question}</p>"
        f"<details><summary>Show the answer</summary><p>{answer}</p></details></section>"
    )


def _numbers(verdict: Examined, plot: str = "") -> str:
    extent = f"Run: {verdict.extent}." if verdict.extent else ""
    told = ["" if verdict.passed else verdict.finding, verdict.place, *verdict.unsaid, extent]
    said = "".join(f"<p>{formulas.readable(sentence)}</p>" for sentence in told if sentence)
    if not verdict.rows:
        return f"<section id='numbers'><h2>What was found</h2>{said}</section>" if said else ""
    merged, alarming = _set([row.words for row in verdict.errors]), [row.alarming for row in verdict.errors]
    source, caption = verdict.statement.source.short, "Largest errors over the settings inside the assumptions"
    worst = html_table([escape(name) for name in head(verdict.statement)], merged, caption, bad=alarming)
    names = ["check", "simulation", "setting", "assumptions", escape(source), "corrected", "expected"]
    measurements = [
        [row.check, row.level, bare(row.setting), "hold" if row.inside else "broken", *row.forms]
        for row in verdict.rows
    ]
    alarming = [row.alarming for row in verdict.rows]
    points = html_table(names, _set(measurements), "One row for each point of the plot", bad=alarming)
    return (
        f"<section id='numbers'><h2>What was found</h2>{said}{plot}{worst}"
        f"<details><summary>Each setting: {len(measurements)} measurements</summary>{points}</details></section>"
    )


def _rests(verdict: Examined) -> str:
    items = "".join(f"<li>{badge(label)} {formulas.readable(_said(label))}</li>" for label in verdict.labels)
    return f"<div id='rests'><h3>Ground by ground</h3><ul>{items}</ul></div>" if items else ""


def _said(label: Label) -> str:
    """The clause of a label, then its words after the badge."""
    words = _after(label.words, kind(label))
    return f"{label.clause}: {words}" if label.clause else words


def _after(text: str, word: str) -> str:
    """Words of a label without the word on its badge."""
    return (text.removeprefix(word) if text.startswith(word) else text.removeprefix(word.split()[0])).lstrip(": ")


def _margins(verdict: Examined) -> str:
    said = "".join(f"<p>{formulas.readable(sentence)}</p>" for sentence in assumed(verdict.statement))
    held = ""
    if verdict.margins:
        head, *rows = margin_rows(verdict)
        names = "".join(f"<li>{formulas.readable(bare(name))}</li>" for name in verdict.margins)
        held = html_table(head, _set(rows), MARGINS) + f"<ol>{names}</ol>"
    return f"<section id='margins'><h2>Assumptions</h2>{said}{held}</section>"


def _errata(statement: Statement) -> str:
    items = "".join(f"<li>{erratum.label}: {formulas.readable(erratum)}</li>" for erratum in statement.errata)
    items += "".join(
        kernel.item(statement, theorem, "Checked by the kernel of Coq, ") for theorem in statement.negations
    )
    listed = f"<ul>{items}</ul>" if items else "<p>No erratum found.</p>"
    return f"<section id='errata'><h2>Errata</h2>{listed}</section>"


def _proof(derivations: Sequence[Derivation], verdict: Examined) -> str:
    labels = verdict.report.labels_of_proofs.get(verdict.statement.id)
    if not derivations or not labels:
        words = "The symbolic proof was not run." if verdict.statement.proofs else "There is no symbolic proof here."
        return f"<div id='proof'><h3>Proof</h3><p>{words}</p></div>"
    badges = " ".join(f"<span>{badge(label)} {formulas.readable(label.clause)}</span>" for label in labels)
    return f"<div id='proof'><h3>Proof</h3><p>{badges}</p>{''.join(map(_derivation, derivations))}</div>"


def _derivation(derivation: Derivation) -> str:
    steps = "".join(f"<li>{formulas.in_words(step)}</li>" for step in derivation.steps)
    scope = f"<p>In detail: {formulas.in_words(derivation.scope)}.</p>" if derivation.scope else ""
    prose = "".join(f"<li>{formulas.in_words(sentence)}</li>" for sentence in derivation.prose)
    prose = f"<p>Argued in words, and not decided by algebra:</p><ul>{prose}</ul>" if prose else ""
    count = len(derivation.steps)
    return (
        f"<p>{formulas.readable(derivation.statement)}</p>"
        f"<details><summary>{count} step{'s' * (count != 1)}</summary><ol class='proof'>{steps}</ol></details>"
        f"{scope}{prose}"
    )


def _again(verdict: Examined, commands: Sequence[str] = ()) -> str:
    statement = verdict.statement
    checked = f"<p>What the page holds is checked by</p><pre><code>{escape(chr(10).join(commands))}</code></pre>"
    if not verdict.installed:
        said = (
            "No installed paper has this statement: its proof and its simulations run again only with its author's code"
        )
        return f"<section id='again'><h2>Run it again</h2><p>{said}.</p>{checked if commands else ''}</section>"
    command = f"{verdict.command} --page {slug(statement)}.html"
    of_paper = [panel for panel in panels() if _paper(panel) == statement.paper]
    links = "".join(
        f"<p>To try it with sliders: <code>yzflow explore</code> writes the explorer, whose panel on this paper is "
        f"<a href='explorer.html#{escape(panel.name)}'>{escape(panel.title)}</a> if the file lies beside this page.</p>"
        for panel in of_paper
    )
    return (
        f"<section id='again'><h2>Run it again</h2><pre><code>{escape(verdict.python)}</code></pre>"
        f"<pre><code>{escape(verdict.command)}\n{escape(command)}</code></pre>{links}</section>"
    )


def _paper(panel: Panel) -> str:
    """Name of a panel's paper in the register, by the panel's folder."""
    room = panel.folder.rpartition(".")[0]
    return str(importlib.import_module(f"{room}.settings").PAPER)
