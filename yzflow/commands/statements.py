"""Commands about statements of the register: audit, check, page, survival and which."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click

from yzflow.commands.common import FILE, files_to_write, of_paper, print_facts, print_text, read
from yzflow.commands.options import Copy, Json, OfPaper, command

Full = Annotated[bool, "All the audit's settings, not only the quick ones."]
Seed = Annotated[int, "Seed of the SGD runs."]


@command()
def audit(
    context: click.Context,
    *,
    only: Annotated[tuple[str, ...], "A statement, by id or number; may be repeated. Default: all."] = (),
    paper: OfPaper = None,
    quick: Annotated[bool, "Only some of the settings."] = False,
    seed: Seed = 0,
    enclose: Annotated[bool, "Decide what is said of flows for every time, in ball arithmetic."] = False,
    until: Annotated[float, "With --enclose: last time, in SGD steps."] = 1e4,
    max_seconds: Annotated[float, "With --enclose: for each flow."] = 60.0,
    certificates: Annotated[Path | None, "With --enclose: their folder."] = None,
    verbose: Annotated[bool, "Print every statement and check, not only what fails."] = False,
    as_json: Json = False,
    out: Annotated[Path | None, "Folder for audit.json and audit.html."] = None,
) -> None:
    """Run the proofs and simulations of all statements; exit status 1 if what should hold does not.

    What fails is printed, a line each; --verbose has every check, and the files of --out have all. With --enclose the
    flows are enclosed in balls too, and their certificates kept (default: in OUT/certificates).

    Example: yzflow audit --only "Scan and Snap: Theorem 3" --quick --enclose --out audit
    """
    from dynamics.support.files import folder
    from yzflow.audits.audit import Enclose
    from yzflow.audits.audit import audit as run

    if verbose and as_json:
        raise ValueError("`--verbose` must be left out beside --json, which has everything, but got both")
    if out is not None:
        folder("--out", out)
    how = None
    if enclose:
        where = out / "certificates" if certificates is None and out is not None else certificates
        how = Enclose(until, max_seconds, None if where is None else folder("--certificates", where))
    chosen = of_paper("--only", only, paper)
    report = run(chosen, quick=quick, seed=seed, enclose=how, progress=True)
    short = "\n\n".join(filter(None, (report.counted(), report.decided(), report.failures())))
    click.echo(report.json() if as_json else report.text() if verbose else short)
    if out is not None:
        report.to_json(out / "audit.json")
        report.to_html(out / "audit.html")
        click.echo(f"wrote {out / 'audit.json'} and {out / 'audit.html'}", err=as_json)
    context.exit(0 if report.passed else 1)


@dataclass
class _OwnTraining:
    """Options of a reader's own training, arguments of `yzflow.check`."""

    eta_y: Annotated[float | None, "With --data: learning rate of the decoder, per step. Default: 1."] = None
    eta_z: Annotated[float | None, "With --data: learning rate of attention, per step. Default: 0.5."] = None
    t_end: Annotated[float | None, "With --data: SGD steps. Default: 4 K ln M/eta_Y."] = None
    optimizer: Annotated[str | None, "With --data: sgd, adam, adamw or sign. Default: plain steps."] = None
    level: Annotated[str | None, "With --data: one level, as 'full flow'. Default: those of training."] = None


@command()
def check(
    context: click.Context,
    statement: str,
    *,
    full: Full = False,
    seed: Seed = 0,
    markdown: Annotated[bool, "Print a card to paste into a review."] = False,
    verbose: Annotated[bool, "Print all that was computed: every part, setting and scope."] = False,
    data: Annotated[Path | None, "Your own data, in place of the settings that come with it."] = None,
    vocab_size: Annotated[int | None, "With --data: M of classes; of a text, the size of its vocabulary."] = None,
    length: Annotated[int | None, "With --data FILE.txt: T, tokens in a window of the text."] = None,
    training: _OwnTraining,
    page: Annotated[Path | None, "Write the verdict as an HTML page to this file, too."] = None,
    as_json: Json = False,
    out: Copy = None,
) -> None:
    """Run the proof and the simulations of one STATEMENT; exit status 1 if what should hold does not.

    With --data the checks are run on your own data and training, and the margins of the assumptions are those there. Of
    a text, each pair of query and next token is a class.
    What is printed fits on a screen; --verbose has the rest. Of a theorem with parts, as "Scan and Snap: Theorem 2",
    each part has a sentence. `yzflow statements` lists what there is.

    Example: yzflow check "Scan and Snap: Theorem 3"

    Example: yzflow check "Scan and Snap: Theorem 3" --data classes.csv --vocab-size 2000 --optimizer adamw
    """
    from dynamics.data.reading import TEXTS
    from dynamics.support import distributions
    from yzflow.audits.check import check as run
    from yzflow.audits.find_statement import parts
    from yzflow.audits.screen import wrapped

    if markdown and as_json:
        raise ValueError("`--markdown` must be left out beside --json, but got both")
    if verbose and (markdown or as_json):
        beside = "--markdown" if markdown else "--json"
        raise ValueError(f"`--verbose` must be left out beside {beside}, which has everything, but got both")
    files_to_write(out, page)
    for option, value in (("--vocab-size", vocab_size), ("--length", length)):
        if data is None and value is not None:
            raise ValueError(f"`{option}` must come with --data, but got {value}")
    classes: Any = None if data is None else read(data, length=length, vocab_size=vocab_size)
    if data is not None and data.suffix.lower() in TEXTS:
        classes = classes.pairs()
        click.echo(f"{data.name} is read as {classes.n_targets:,} pairs of query and next token", err=True)
    options = {"data": classes, **vars(training), "quick": not full, "seed": seed, "progress": True}
    if (several := parts(statement)) and not (markdown or verbose or as_json or page):
        lines, passed = [], True
        for entry in several:
            try:
                verdict = run(entry, **options)
                headline, passed = verdict.headline, passed and verdict.passed
            except distributions.Missing as missing:
                headline, passed = f"Not run: {missing}.", False
            lines += [f"{entry.id}. {entry.title}", *wrapped(headline, "  ")]
        print_text("\n".join([*lines, "", "yzflow check with one of these names shows more"]), out)
        context.exit(0 if passed else 1)
    verdict = run(statement, **options)
    if page is not None:
        verdict.page(page)
    text = verdict.json() if as_json else verdict.markdown() if markdown else verdict.text(verbose=verbose)
    print_text(text, out)
    context.exit(0 if verdict.passed else 1)


@command()
def page(
    context: click.Context,
    statement: str | None = None,
    *,
    out: Annotated[Path | None, "HTML file. Default: the statement's name with .html."] = None,
    everything: Annotated[Path | None, "--all", "Folder for the pages of all statements."] = None,
    full: Full = False,
    seed: Seed = 0,
    certificates: Annotated[tuple[Path, ...], "--certificate", "File to verify there."] = (),
    verifier: Annotated[Path | None, "Folder of the packages of verifier.js: write it, too."] = None,
    as_json: Json = False,
) -> None:
    """Write the page of one STATEMENT, or of all with an index: HTML that works offline.

    It shows the statement, what it rests on, its errors by level, its errata and its proof. Exit status 1 if what
    should hold does not; the page says so too. With --all the audit runs once, which takes some minutes.

    A --certificate that audit --enclose kept is verified by a button on the page, in the browser. It needs verifier.js
    beside the page, a large file: --verifier writes it, from two packages that pip and npm bring into its folder.

    Example: yzflow page "Scan and Snap: Theorem 4" --out theorem4.html
    """
    from yzflow.audits.find_statement import find
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


@command()
def which(
    file: Annotated[Path, FILE],
    *,
    eta_y: Annotated[float | None, "Learning rate of the decoder, per step. Default: unknown."] = None,
    eta_z: Annotated[float | None, "Learning rate of attention, per step. Default: unknown."] = None,
    t_end: Annotated[float | None, "SGD steps. Default: unknown."] = None,
    length: Annotated[int | None, "T, tokens in a sequence; a text needs it. Default: unknown."] = None,
    vocab_size: Annotated[int | None, "M of classes; of a text, the size of its vocabulary."] = None,
    optimizer: Annotated[str | None, "sgd, adam, adamw or sign. Default: unknown."] = None,
    as_json: Json = False,
    out: Copy = None,
) -> None:
    """Say which statements speak of FILE: classes, bags, a text or a recording of a training; the nearest come first.

    What is not given is unknown, and not absent: a statement that needs it is open. `yzflow check` runs one of them.

    Example: yzflow which classes.csv --vocab-size 2000 --eta-y 1 --eta-z 0.001 --optimizer sgd

    Example: yzflow which recording.nc
    """
    from dynamics.data.reading import TEXTS
    from dynamics.support import distributions
    from yzflow.audits.which import which as run

    given: dict[str, Any] = {"eta_y": eta_y, "eta_z": eta_z, "t_end": t_end, "length": length, "optimizer": optimizer}
    ending = file.suffix.lower()
    if ending == ".nc":
        if vocab_size is not None:
            raise ValueError(f"`--vocab-size` must be left out for a recording, but got {vocab_size}")
        found = run(distributions.bring("yzflow_watch.recording", "a recording").Recording.load(file), **given)
    else:
        data = read(file, length=length if ending in TEXTS else None, vocab_size=vocab_size)
        found = run(data, **given)
    print_text(found.json() if as_json else found.text(), out)


@command()
def survival(
    context: click.Context,
    *,
    statements: Annotated[tuple[str, ...], "One, by id or number; may be repeated. Default: all on training."] = (),
    paper: Annotated[str | None, "All of this paper. Default: of the first with options of training."] = None,
    options: Annotated[tuple[str, ...], "A change of an assumption; may be repeated. Default: all."] = (),
    quick: Annotated[bool, "Two settings and fewer seeds."] = False,
    seed: Annotated[int, "The first of the seeds."] = 0,
    seeds: Annotated[int | None, "Mini-batch runs for each cell. Default: the paper's number."] = None,
    store: Annotated[Path | None, "Folder of the runs. Default: OUT with .store."] = None,
    workers: Annotated[int, "Processes."] = 1,
    as_json: Json = False,
    out: Annotated[Path, "netCDF file."] = Path("survival.nc"),
) -> None:
    """Ask which statements survive which change of an assumption; the same command resumes it.

    Example: yzflow survival --statements "Theorem 3" --options plain --options adamw --quick
    """
    from dynamics.support.netcdf import save_dataset
    from yzflow.audits import survival_report
    from yzflow.audits.rendered import as_json as printed
    from yzflow.audits.survival import survival as run

    files_to_write(out)
    store = out.with_suffix(".store") if store is None else store
    context.meta["interrupted"] = f"what is done is in {store}; the same command goes on from there"
    chosen = of_paper("--statements", statements, paper)
    how: dict[str, Any] = {
        "quick": quick,
        "seed": seed,
        "seeds": seeds,
        "store": store,
        "progress": True,
        "workers": workers,
    }
    table = run(chosen, options or None, **how)
    save_dataset(table, out)
    facts = survival_report.facts(table) | {"store": str(store), "out": str(out)} if as_json else None
    click.echo(survival_report.text(table) if facts is None else printed(facts))
    click.echo(f"runs are in {store}\nwrote {out}", err=as_json)


# <!-- numbers
# typed: 2000 4 0.001 (example of a command)
# typed: 0.5 (default, of `check --data`)
# -->
