"""Commands about statements of the register: audit, check, page and survival."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from yzflow.commands.common import (
    PATH,
    Command,
    copy_option,
    files_to_write,
    json_option,
    of_paper,
    paper_option,
    print_facts,
    print_text,
    read,
)


@click.command(cls=Command)
@click.option("--only", multiple=True, help="A statement, by id or number; may be repeated. Default: all.")
@paper_option
@click.option("--quick", is_flag=True, help="Only some of the settings.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the SGD runs.")
@click.option("--enclose", is_flag=True, help="Decide what is said of flows for every time, in ball arithmetic.")
@click.option("--until", type=float, default=1e4, show_default=True, help="With --enclose: last time, in SGD steps.")
@click.option("--max-seconds", type=float, default=60.0, show_default=True, help="With --enclose: for each flow.")
@click.option("--certificates", type=PATH, help="With --enclose: their folder.")
@json_option
@click.option("--out", type=PATH, help="Folder for audit.json and audit.html.")
@click.pass_context
def audit(
    context: click.Context,
    only: tuple[str, ...],
    paper: str | None,
    quick: bool,
    seed: int,
    enclose: bool,
    until: float,
    max_seconds: float,
    certificates: Path | None,
    as_json: bool,
    out: Path | None,
) -> None:
    """Run the proofs and measure the checks of the register; exit status 1 if what should hold does not.

    With --enclose the flows are enclosed in balls too, and their certificates kept (default: in OUT/certificates).

    Example: yzflow audit --only "Scan and Snap: Theorem 3" --quick --enclose --out audit
    """
    from dynamics.support.files import folder
    from yzflow.audits.audit import Enclose
    from yzflow.audits.audit import audit as run

    if out is not None:
        folder("--out", out)
    how = None
    if enclose:
        where = out / "certificates" if certificates is None and out is not None else certificates
        how = Enclose(until, max_seconds, None if where is None else folder("--certificates", where))
    chosen = of_paper("--only", only, paper)
    report = run(chosen, quick=quick, seed=seed, enclose=how, progress=True)
    click.echo(report.json() if as_json else report.text())
    if out is not None:
        report.to_json(out / "audit.json")
        report.to_html(out / "audit.html")
        click.echo(f"wrote {out / 'audit.json'} and {out / 'audit.html'}", err=as_json)
    context.exit(0 if report.passed else 1)


@click.command(cls=Command)
@click.argument("statement")
@click.option("--full", is_flag=True, help="All the audit's settings, not only the quick ones.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the SGD runs.")
@click.option("--markdown", is_flag=True, help="Print a card to paste into a review.")
@click.option("--verbose", is_flag=True, help="Print all that was computed: every part, setting and scope.")
@click.option("--data", type=PATH, help="Your own data, in place of the register's settings.")
@click.option("--vocab-size", type=int, help="With --data: M of classes; of a text, the size of its vocabulary.")
@click.option("--length", type=int, help="With --data FILE.txt: T, tokens in a window of the text.")
@click.option("--eta-y", type=float, help="With --data: learning rate of the decoder, per step. Default: 1.")
@click.option("--eta-z", type=float, help="With --data: learning rate of attention, per step. Default: 0.5.")
@click.option("--t-end", type=float, help="With --data: SGD steps. Default: 4 K ln M/eta_Y.")
@click.option("--optimizer", help="With --data: sgd, adam, adamw or sign. Default: plain steps.")
@click.option("--level", help="With --data: one level, as 'full flow'. Default: those of training.")
@click.option("--page", type=PATH, help="Write the verdict as an HTML page to this file, too.")
@json_option
@copy_option
@click.pass_context
def check(
    context: click.Context,
    statement: str,
    full: bool,
    seed: int,
    markdown: bool,
    verbose: bool,
    data: Path | None,
    vocab_size: int | None,
    length: int | None,
    page: Path | None,
    as_json: bool,
    out: Path | None,
    **training: Any,
) -> None:
    """Run the proof and the simulations of one STATEMENT; exit status 1 if what should hold does not.

    With --data the checks are run on your own data and training, and the margins of the assumptions are those there.
    What is printed fits on a screen; --verbose has the rest. `yzflow statements` lists what there is.

    Example: yzflow check "Scan and Snap: Theorem 3"

    Example: yzflow check "Scan and Snap: Theorem 3" --data classes.csv --vocab-size 2000 --optimizer adamw
    """
    from yzflow.audits.check import check as run

    if markdown and as_json:
        raise ValueError("`--markdown` must be left out beside --json, but got both")
    if verbose and (markdown or as_json):
        beside = "--markdown" if markdown else "--json"
        raise ValueError(f"`--verbose` must be left out beside {beside}, which has everything, but got both")
    files_to_write(out, page)
    for option, value in (("--vocab-size", vocab_size), ("--length", length)):
        if data is None and value is not None:
            raise ValueError(f"`{option}` must come with --data, but got {value}")
    own = None if data is None else read(data, length=length, vocab_size=vocab_size)
    verdict = run(statement, data=own, **training, quick=not full, seed=seed, progress=True)
    if page is not None:
        verdict.page(page)
    text = verdict.json() if as_json else verdict.markdown() if markdown else verdict.text(verbose=verbose)
    print_text(text, out)
    context.exit(0 if verdict.passed else 1)


@click.command(cls=Command)
@click.argument("statement", required=False)
@click.option("--out", type=PATH, help="HTML file. Default: the statement's name with .html.")
@click.option("--all", "everything", type=PATH, help="Folder for the pages of all statements.")
@click.option("--full", is_flag=True, help="All the audit's settings, not only the quick ones.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the SGD runs.")
@click.option("--certificate", "certificates", multiple=True, type=PATH, help="File to verify there.")
@click.option("--verifier", type=PATH, help="Folder of the packages of verifier.js: write it, too.")
@json_option
@click.pass_context
def page(
    context: click.Context,
    statement: str | None,
    out: Path | None,
    everything: Path | None,
    full: bool,
    seed: int,
    certificates: tuple[Path, ...],
    verifier: Path | None,
    as_json: bool,
) -> None:
    """Write the page of one STATEMENT, or of all with an index: HTML that works offline.

    It shows the statement, what it rests on, its errors by level, its errata and its proof. Exit status 1 if what
    should hold does not; the page says so too. With --all the audit runs once, which takes some minutes.

    A --certificate that audit --enclose kept is verified by a button on the page, in the browser. It needs verifier.js
    beside the page, a large file: --verifier writes it, from two packages that pip and npm bring into its folder.

    Example: yzflow page "Scan and Snap: Theorem 4" --out theorem4.html
    """
    from yzflow.audits.chosen import find
    from yzflow.pages import contents, writing
    from yzflow.pages import statement as single

    if (statement is None) == (everything is None):
        given = "neither" if statement is None else "both"
        raise ValueError(f"`STATEMENT` must be given or else `--all`, but got {given}")
    if everything is not None:
        for name, value in (("--out", out), ("--certificate", certificates), ("--verifier", verifier)):
            if value:
                raise ValueError(f"`{name}` must be left out beside --all, but got both")
        report = contents.write_all(everything, quick=not full, seed=seed, progress=True)
        start, n = everything / contents.INDEX, len(report.statements)
        facts = {"statements": n, "passed": report.passed, "out": str(start)}
        print_facts(
            as_json, facts, [f"{n} statements, {'passed' if report.passed else 'not passed'}", f"wrote {start}"]
        )
        context.exit(0 if report.passed else 1)
    assert statement is not None
    out = Path(f"{single.slug(find(statement))}.html") if out is None else out
    files_to_write(out)
    verdict = writing.page(
        statement,
        out,
        quick=not full,
        seed=seed,
        progress=True,
        certificates=certificates,
        verifier=verifier,
    )
    facts = {"statement": verdict.statement.id, "summary": str(verdict.summary), "passed": verdict.passed}
    print_facts(as_json, {**facts, "out": str(out)}, [verdict.outcome, f"wrote {out}"])
    context.exit(0 if verdict.passed else 1)


@click.command(cls=Command)
@click.option("--statements", multiple=True, help="One, by id or number; may be repeated. Default: all on training.")
@click.option("--paper", help="All of this paper. Default: of the first with options of training.")
@click.option("--options", multiple=True, help="A change of an assumption; may be repeated. Default: all.")
@click.option("--quick", is_flag=True, help="Two settings and fewer seeds.")
@click.option("--seed", type=int, default=0, show_default=True, help="The first of the seeds.")
@click.option("--store", type=PATH, help="Folder of the runs. Default: OUT with .store.")
@click.option("--workers", type=int, default=1, show_default=True, help="Processes.")
@json_option
@click.option("--out", type=PATH, default=Path("survival.nc"), show_default=True, help="netCDF file.")
@click.pass_context
def survival(
    context: click.Context,
    statements: tuple[str, ...],
    paper: str | None,
    options: tuple[str, ...],
    quick: bool,
    seed: int,
    store: Path | None,
    workers: int,
    as_json: bool,
    out: Path,
) -> None:
    """Ask which statements survive which change of an assumption; the same command resumes it.

    Example: yzflow survival --statements "Theorem 3" --options plain --options adamw --quick
    """
    from dynamics.support.netcdf import save_dataset
    from yzflow.audits import survival_report
    from yzflow.audits.report import as_json as printed
    from yzflow.audits.survival import survival as run

    files_to_write(out)
    store = out.with_suffix(".store") if store is None else store
    context.meta["interrupted"] = f"what is done is in {store}; the same command goes on from there"
    chosen = of_paper("--statements", statements, paper)
    how: dict[str, Any] = {"quick": quick, "seed": seed, "store": store, "progress": True, "workers": workers}
    table = run(chosen, options or None, **how)
    save_dataset(table, out)
    facts = survival_report.facts(table) | {"store": str(store), "out": str(out)} if as_json else None
    click.echo(survival_report.text(table) if facts is None else printed(facts))
    click.echo(f"runs are in {store}\nwrote {out}", err=as_json)
