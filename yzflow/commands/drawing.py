"""Commands that draw or show: figure, film, explore and example."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import click

from yzflow.commands.common import FILE, Command, files_to_write, print_facts, read
from yzflow.commands.options import Json, command
from yzflow.figure_settings import KEYWORDS, complete, refuse


class _Figure(Command):
    """A command whose help lists the figures; they are looked up only for the help."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        from yzflow import listing

        for paper, entries in groupby(listing.figures(), key=lambda entry: entry["paper"]):
            with formatter.section(paper):
                formatter.write_dl([(entry["name"], _origin(entry)) for entry in entries])


def _origin(entry: dict[str, Any]) -> str:
    """Description of a figure in a list: the paper's figures, study, content, and the command that trains its runs."""
    printed = entry["printed"] if entry["study"] else ""  # a paper's own figure has its number in the name
    where = ", ".join(filter(None, [printed, f"study {entry['study']}" if entry["study"] else ""]))
    said = f"{where}: {entry['line']}" if where else entry["line"]
    if entry["needs_data"]:
        how = f"Trained and drawn by: {entry['trained_by']}" if entry["trained_by"] else "Draws runs that are given."
        said += f" {how}"
    if entry["takes"]:
        said += f" Takes {', '.join(KEYWORDS[name].option for name in entry['takes'])}."
    return said


_SETTING = [
    click.Option([keyword.option, keyword.name], metavar="VALUE[,..]", help=keyword.text)
    for keyword in KEYWORDS.values()
]


# Endings by which a person means one file, and not a folder.
_PICTURES = ("png", "pdf", "svg", "jpg", "jpeg", "gif", "eps", "tif", "tiff", "webp")


def _setting(entry: Any, options: dict[str, str | None]) -> dict[str, Any]:
    """The setting of a figure in its keywords, from options of the command line."""
    given = {key: KEYWORDS[key].read(text) for key, text in options.items() if text is not None}
    takes = entry.takes
    refuse(entry.name, takes, {key: value for key, value in given.items() if key not in takes}, options=True)
    return complete(entry.name, takes, given)


@command(cls=_Figure, more=_SETTING)
def figure(
    name: str,
    *,
    paper: Annotated[
        str | None, "Whose figures NAME is looked for in. Default: all, the papers' own entries first."
    ] = None,
    out: Annotated[Path, "Folder, or one file whose name ends in .png, .pdf or .svg."] = Path("figures"),
    formats: Annotated[str | None, "--format", "Some of png, pdf, svg. Default: png,pdf, or that of the file."] = None,
    store: Annotated[Path | None, "Where simulations are kept. Default: store in the folder of the figure."] = None,
    quick: Annotated[bool, "Fewer seeds or output times."] = False,
    as_json: Json = False,
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
    setting = _setting(entry, options)
    known = ("png", "pdf", "svg")
    kind = out.suffix.lower().removeprefix(".")
    if kind in _PICTURES and not out.is_dir():
        if formats is not None:
            raise ValueError(f"`--format` must be left out where `--out` is a file, but got {formats}")
        # As it is written: x.PNG would become x.png, which may be another file.
        kinds, stem = [checks.one_of("--out", out.suffix.removeprefix("."), known)], out.with_suffix("")
        files_to_write(out)
    else:
        kinds = [checks.one_of("--format", one, known) for one in (formats or "png,pdf").split(",")]
        stem = folder("--out", out) / entry.name
    kept = stem.parent / "store" if store is None else store
    data = entry.data(figures.Effort(quick=quick, store=kept, progress=True), **setting)
    paths = [str(path) for path in figures.save(entry.draw(data), stem, formats=kinds)]
    caption = entry.caption(data)
    facts = {"figure": entry.name, "caption": caption, "files": paths}
    print_facts(as_json, facts, [caption, *(f"wrote {path}" for path in paths)])


@command(more=_SETTING)
def film(
    name: str = "moving_attention",
    *,
    run: Annotated[Path | None, FILE, "A run that `yzflow flow` or `yzflow sgd` wrote, in place of a setting."] = None,
    out: Annotated[Path, "GIF or MP4 file."] = Path("film.gif"),
    seconds: Annotated[float, "Length of the film."] = 6.0,
    fps: Annotated[int, "Pictures a second."] = 10,
    quick: Annotated[bool, "Fewer output times."] = False,
    as_json: Json = False,
    **options: str | None,
) -> None:
    """Write a film of scan and snap, or of a run of yours: a figure at one time after the other.

    A minute for 60 pictures. Times are evenly spaced in log(1 + t). An MP4 file needs ffmpeg.

    Example: yzflow film --out film.gif

    Example: yzflow film --classes 5 --vocab-size 5000 --eta-z 0.1 --out film.gif

    Example: yzflow sgd --seed 3 --momentum 0 --out sgd.nc && yzflow film --run sgd.nc --out sgd.gif
    """
    from dynamics import Trajectory
    from dynamics.support import checks
    from yzflow import figures
    from yzflow.figures import film as films

    if quick and run is not None:
        raise checks.reject("--quick", "be left out beside --run, whose times are recorded", run)
    files_to_write(out)
    path, pictures = plan = films.plan("--out", out, seconds, fps)
    entry = figures.find(name)
    setting = _setting(entry, options)
    data = None if run is None else Trajectory.load(run)
    entry.film(plan, data, seconds=seconds, fps=fps, quick=quick, progress=True, **setting)
    facts = {"figure": entry.name, "out": str(path), "pictures": pictures, "seconds": pictures / fps}
    print_facts(as_json, facts, [f"wrote {path}: {pictures} pictures, {pictures / fps:g} s"])


@command()
def explore(
    *,
    out: Annotated[Path, "File."] = Path("explorer.html"),
    show: Annotated[bool, "--open", "Open it in the browser."] = False,
    data: Annotated[Path | None, "Your own classes (.csv, .tsv, .json), to open and edit."] = None,
    as_json: Json = False,
) -> None:
    """Write the explorer: one HTML file with sliders, for a lecture, which works offline.

    Example: yzflow explore --open

    Example: yzflow explore --data classes.csv --open
    """
    from yzflow.pages import explorer

    files_to_write(out)
    classes = None if data is None else read(data)
    explorer.write(out, data=classes, name="" if data is None else data.name, progress=True)
    print_facts(as_json, {"out": str(out)}, [f"wrote {out}"])
    if show:
        click.launch(str(out.absolute()))


class _Example(Command):
    """A command whose help lists the examples; they are looked up only for the help."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        from yzflow import examples

        names = examples.names()
        with formatter.section("Examples"):
            formatter.write_dl([(f"{name} *" if examples.of_studies(name) else name, names[name]) for name in names])
            formatter.write_paragraph()
            formatter.write_text("* needs the studies: `pip install -r studies/requirements.txt` in a clone")


@command(cls=_Example, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def example(
    context: click.Context,
    name: str | None = None,
    arguments: Annotated[tuple[str, ...], click.UNPROCESSED] = (),
    *,
    to: Annotated[Path | None, "--copy", "Put a copy of it into this folder, and run nothing."] = None,
) -> None:
    """Run the example NAME with ARGUMENTS, or copy it; without a NAME, list them.

    Example: yzflow example phase_transition --quick

    Example: yzflow example phase_transition --copy scripts
    """
    from yzflow import examples

    asked, equals, folder = arguments[0].partition("=") if len(arguments) == 1 else ("", "", "")
    if asked == "--copy" and equals:  # after the name, too
        to, arguments = Path(folder), ()
    elif arguments[:1] == ("--copy",) and len(arguments) == 2:
        to, arguments = Path(arguments[1]), ()
    if name is None:
        if to is not None:
            raise click.MissingParameter(param_type="argument", param_hint="'NAME'", ctx=context)
        click.echo(context.get_help())
        return
    if to is not None:
        click.echo(f"wrote {examples.copy(name, to)}")
        return
    context.exit(examples.run(name, arguments))


# <!-- numbers
# typed: 5 5000 1 2 0.1 3 (example of a command)
# typed: 60 (pictures of a film: its seconds times its pictures a second)
# -->
