"""Commands that draw or show: figure, explore and example."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import click

from yzflow.commands.common import PATH, Command, files_to_write, json_option, print_facts, read
from yzflow.figure_settings import KEYWORDS, complete, refuse


class _Figure(Command):
    """The command whose help names the figures, which are looked up only then."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        from yzflow import listing

        for paper, entries in groupby(listing.figures(), key=lambda entry: entry["paper"]):
            with formatter.section(paper):
                formatter.write_dl([(entry["name"], _origin(entry)) for entry in entries])


def _origin(entry: dict[str, Any]) -> str:
    """Which figures of the paper an entry of the list stands for, its study, what it shows, what trains its runs."""
    from yzflow.audits.screen import clipped

    printed = entry["printed"] if entry["study"] else ""  # which has it in its name, if it is a paper's own
    where = ", ".join(filter(None, [printed, f"study {entry['study']}" if entry["study"] else ""]))
    said = clipped(f"{where}: {entry['line']}" if where else entry["line"])
    if entry["needs_data"]:
        how = f"Trained and drawn by: {entry['trained_by']}" if entry["trained_by"] else "Draws runs that are given."
        said += f" {how}"
    if entry["takes"]:
        said += f" Takes {', '.join(KEYWORDS[name].option for name in entry['takes'])}."
    return said


def _setting(command: Any) -> Any:
    """A command with an option for each keyword that a figure may take."""
    for keyword in reversed(KEYWORDS.values()):
        command = click.option(keyword.option, keyword.name, metavar="VALUE[,..]", help=keyword.text)(command)
    return command


@click.command(cls=_Figure)
@click.argument("name")
@click.option("--paper", help="Whose figures NAME is looked for in. Default: all, the papers' own entries first.")
@click.option("--out", type=PATH, default=Path("figures"), show_default=True, help="Folder.")
@click.option("--format", "formats", default="png,pdf", show_default=True, help="Some of png, pdf, svg.")
@click.option("--store", type=PATH, help="Where simulations are kept. Default: OUT/store.")
@click.option("--quick", is_flag=True, help="Fewer seeds or output times.")
@_setting
@json_option
def figure(
    name: str,
    paper: str | None,
    out: Path,
    formats: str,
    store: Path | None,
    quick: bool,
    as_json: bool,
    **options: str | None,
) -> None:
    """Draw a figure: its number in its paper, or its name.

    Simulations are kept where a figure says so: drawing those again, or in another format, simulates nothing. Figures
    of studies are drawn where yzflow-studies is installed. A figure is drawn at the paper's setting unless options say
    another; which it takes stands behind its name below.

    Example: yzflow figure 3 --classes 5 --vocab-size 5000 --eta-y 1,2 --eta-z 0.1

    Example: yzflow figure 6 --quick --format pdf --out figures

    Example: yzflow figure 2 --paper "Bounded Dyck"
    """
    from dynamics.support import checks
    from dynamics.support.files import folder
    from yzflow import figures

    entry = figures.find(name, paper)
    if entry.compute is None:
        how = f": `{entry.trained_by}` trains and draws it" if entry.trained_by else ", as it draws runs that are given"
        raise checks.reject("NAME", f"be a figure that computes its data{how}", entry.name)
    given = {key: KEYWORDS[key].read(text) for key, text in options.items() if text is not None}
    takes = entry.takes
    refuse(entry.name, takes, {key: value for key, value in given.items() if key not in takes}, options=True)
    setting = complete(entry.name, takes, given)
    kinds = [checks.one_of("--format", kind, ("png", "pdf", "svg")) for kind in formats.split(",")]
    folder("--out", out)
    effort = figures.Effort(quick=quick, store=out / "store" if store is None else store, progress=True)
    data = entry.data(effort, **setting)
    paths = [str(path) for path in figures.save(entry.draw(data), out / entry.name, formats=kinds)]
    caption = entry.caption(data)
    facts = {"figure": entry.name, "caption": caption, "files": paths}
    print_facts(as_json, facts, [caption, *(f"wrote {path}" for path in paths)])


@click.command(cls=Command)
@click.option("--out", type=PATH, default=Path("explorer.html"), show_default=True, help="File.")
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@click.option("--data", type=PATH, help="Your own classes (.csv, .tsv, .json), to open and edit.")
@json_option
def explore(out: Path, show: bool, data: Path | None, as_json: bool) -> None:
    """Write the explorer: one HTML file with sliders, for a lecture, which works offline.

    Example: yzflow explore --open

    Example: yzflow explore --data classes.csv --open
    """
    from yzflow.pages import explorer

    files_to_write(out)
    own = None if data is None else read(data)
    explorer.write(out, data=own, name="" if data is None else data.name, progress=True)
    print_facts(as_json, {"out": str(out)}, [f"wrote {out}"])
    if show:
        click.launch(str(out.absolute()))


class _Example(Command):
    """The command whose help names the examples, which are looked up only then."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        from yzflow import examples

        names = examples.names()
        with formatter.section("Examples"):
            formatter.write_dl([(f"{name} *" if examples.of_studies(name) else name, names[name]) for name in names])
            formatter.write_paragraph()
            formatter.write_text("* needs the studies: `pip install -r studies/requirements.txt` in a clone")


@click.command(cls=_Example, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--copy", "to", type=PATH, help="Put a copy of it into this folder, and run nothing.")
@click.argument("name", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def example(context: click.Context, to: Path | None, name: str | None, arguments: tuple[str, ...]) -> None:
    """Run the example NAME with ARGUMENTS, or copy it; without a NAME, list them.

    Example: yzflow example phase_transition --quick
    """
    from yzflow import examples

    if name is None:
        if to is not None:
            raise click.MissingParameter(param_type="argument", param_hint="'NAME'", ctx=context)
        click.echo(context.get_help())
        return
    if to is not None:
        click.echo(f"wrote {examples.copy(name, to)}")
        return
    context.exit(examples.run(name, arguments))
