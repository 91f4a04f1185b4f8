"""The gallery: a page for each figure of a paper and of a study, and one for each script in ``examples``.

The figures' pages are made from their docstrings, which say what agrees with the paper and what does not: a figure of a
new paper has a page without an entry here. A figure of given runs is described on the page of the example that makes
them, the one whose name its own begins with.

Small pictures of the figures stand in ``docs/images/thumbnails``, so that the gallery has them where its scripts are
not run. ``python docs/_ext/gallery.py [NAME ..]`` draws those that are named, or all that are missing.
"""

import importlib
import re
import shutil
import sys
import tempfile
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image
from sphinx_gallery.scrapers import figure_rst
from sphinx_gallery.sorting import FileNameSortKey

from yzflow import figures, studies
from yzflow.figures import Entry

DOCS = Path(__file__).parents[1]
THUMBNAILS = DOCS / "images" / "thumbnails"
# Of the scripts in ``examples``, which make several figures: the one that is shown.
_SHOWN = {
    "deep_dyck": "deep_dyck_variation",
    "deep_text": "deep_text_flattening",
    "dyck_balance": "dyck_length",
    "phase_diagram": "phase_diagram",
    "phase_transition": "attention_over_training",
    "real_text": "real_text_fate",
    "regime_maps": "regime_map",
    "sgd_figures": "figure4",
    "sparse_averaging": "qsa_smallest_dimension",
}
# Bars of two seeds, which quick settings have, would hide everything: these are drawn in full.
_FULL = ("figure6", "figure11", "figure12")
_WIDTH = 360  # pixels
_HEADER = "{title}\n{line}\n\n{text}\n"


def settings(here: Path) -> dict:
    """Writes the scripts, and returns the settings of sphinx-gallery."""
    generated = here / "_generated"
    sources = generated / "sources"
    sys.path.append(str(here.parent / "examples"))  # scripts there import each other
    _write_figures(sources / "figures")
    _write_studies(sources / "studies")
    _write_examples(here.parent / "examples", sources / "examples")
    return {
        "examples_dirs": [str(sources / name) for name in ("figures", "studies", "examples")],
        "gallery_dirs": [str(generated / "gallery" / name) for name in ("figures", "studies", "examples")],
        "filename_pattern": r"[\\/]plot_",
        "within_subsection_order": FileNameSortKey,
        "image_scrapers": (scrape,),
        "reset_argv": quick_arguments,
        "reset_modules": (),
        "download_all_examples": False,
        "remove_config_comments": True,
        "show_memory": False,
        "nested_sections": False,
        "write_computation_times": False,
    }


def of_studies() -> dict[str, tuple[str, Entry]]:
    """Name of a figure of a study of this clone -> the study, and the figure."""
    if (folder := str(DOCS.parent / "studies")) not in sys.path:
        sys.path.append(folder)
    package = importlib.import_module("yzflow_studies")
    studies.register(package)  # for the pages' code
    rooms = studies.rooms_of(package)
    return {entry.name: (name, entry) for name, room in rooms.items() for entry in room.figures}


def entry_of(name: str) -> Entry | None:
    """The figure of this name, of a paper or of a study."""
    found = figures.entries().get(name)
    return of_studies()[name][1] if found is None and name in of_studies() else found


def title(name: str) -> str:
    """Title of a picture: the heading of its figure's page, or its own name."""
    entry = entry_of(name)
    return name.replace("_", " ").capitalize() if entry is None else entry.title


def _write(path: Path, text: str):
    # An unchanged script is not run again.
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _fresh(folder: Path, heading: str, text: str, wanted: set[str]):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.py"):
        if old.name not in wanted:
            old.unlink()
    # Pages of scripts that are gone would stay in the site, in no table of contents.
    stems = {Path(name).stem for name in wanted}
    for old in (folder.parents[1] / "gallery" / folder.name).glob("*plot_*"):
        if old.name.split(".")[0] not in stems:
            old.unlink()
    _write(folder / "GALLERY_HEADER.rst", _HEADER.format(title=heading, line="=" * len(heading), text=text))


def _write_figures(folder: Path):
    names = figures.names()
    files = {name: f"plot_{number:02d}_{name}.py" for number, name in enumerate(names)}
    text = (
        "Each page says what the figure shows, what agrees with the paper, what does not, and why. The pictures here\n"
    )
    text += (
        "have few points and seeds; ``yzflow figure NAME`` draws them in full. Figures of runs that are too long to\n"
    )
    text += "be done here, on real text and with transformers on Dyck languages, are on the pages of the examples."
    _fresh(folder, "Figures", text, set(files.values()))
    for name, file in files.items():
        heading = title(name)
        doc = f"{heading}\n{'=' * len(heading)}\n\n{_described(name)}\n"
        code = f"import yzflow as yz\n\nfigure = yz.figures.{name}(quick=True)\n"
        if figures.entries()[name].claims:  # which are in its caption, made from the data
            code = (
                f"import yzflow as yz\n\nentry = yz.figures.{name}\n"
                "data = entry.data(yz.figures.Effort(quick=True))\n"
                "figure = entry.draw(data)\nprint(entry.claims(data))\n"
            )
        _write(folder / file, f'r"""\n{doc}"""\n\n{thumbnail(name)}{code}')


def _write_studies(folder: Path):
    drawn = {name: found for name, found in of_studies().items() if found[1].compute is not None}
    files = {name: f"plot_{number:02d}_{name}.py" for number, name in enumerate(drawn)}
    text = (
        "What was done once to find something out: a page for each figure of the studies, which are a distribution of\n"
        "their own. ``yzflow study NAME`` computes one in full, with the numbers that the findings quote."
    )
    _fresh(folder, "Studies", text, set(files.values()))
    for name, (room, entry) in drawn.items():
        heading = title(name)
        doc = f"{heading}\n{'=' * len(heading)}\n\n{_described(name)}\n"
        place = [one.name for one in studies.find(room).figures].index(name)
        code = (
            f"from yzflow import figures, studies\n\nentry = studies.find({room!r}).figures[{place}]\n"
            "data = entry.data(figures.Effort(quick=True))\nfigure = entry.draw(data)\n"
        )
        claims = "print(entry.claims(data))\n" if entry.claims else ""
        _write(folder / files[name], f'r"""\n{doc}"""\n\n{thumbnail(name)}{code}{claims}')


def thumbnail(name: str) -> str:
    """A line of a script that names its small picture; nothing if there is none."""
    for path in (THUMBNAILS / f"{name}.png", DOCS / "images" / f"{name}.png"):
        if path.exists():
            return f"# sphinx_gallery_thumbnail_path = {path.relative_to(DOCS).as_posix()!r}\n\n"
    return ""


def wanted() -> dict[str, str]:
    """Names of the small pictures that the gallery shows, and the script in ``examples`` that draws one, or ""."""
    own = {name: entry for name, (_, entry) in of_studies().items()}
    drawn = dict.fromkeys([*figures.names(), *(name for name, entry in own.items() if entry.compute)], "")
    given = [*figures.names(given=True), *(name for name, entry in own.items() if not entry.compute)]
    return drawn | {shown: stem for stem, shown in _SHOWN.items() if shown in given}


def draw_thumbnails(names: list[str]) -> None:
    """Draw small pictures with quick settings but for a few, and print the name of each that is there then."""
    THUMBNAILS.mkdir(parents=True, exist_ok=True)
    every = wanted()
    for name in names or [name for name in every if not thumbnail(name)]:
        path = THUMBNAILS / f"{name}.png"
        if every[name]:
            _from_example(every[name], name, path)
        else:
            figure = entry_of(name)(quick=name not in _FULL)
            figure.savefig(path, dpi=_WIDTH / figure.get_figwidth())
        print(name, flush=True)


def _from_example(stem: str, name: str, path: Path) -> None:
    """A picture that a script writes: it has the figure's name, without that of the script where that comes first."""
    sys.path.append(str(DOCS.parent / "examples"))
    with tempfile.TemporaryDirectory() as folder:
        importlib.import_module(stem).main(["--quick", "--out", folder])
        found = {picture.stem: picture for picture in Path(folder).rglob("*.png")}
        with Image.open(found.get(name) or found[name.removeprefix(f"{stem}_")]) as picture:
            picture.thumbnail((_WIDTH, _WIDTH))
            picture.convert("RGB").save(path)


def _described(name: str) -> str:
    return _escaped(entry_of(name).text.replace("\\", "\\\\"))


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


def _write_examples(source: Path, folder: Path):
    scripts = sorted(source.glob("*.py"))
    files = {path: ("plot_" if "__main__" in path.read_text(encoding="utf-8") else "") + path.name for path in scripts}
    text = "The scripts in ``examples``, run with ``--quick`` where they have it. Each page shows the whole script."
    _fresh(folder, "Examples", text, set(files.values()))
    for path, file in files.items():
        _, doc, code = path.read_text(encoding="utf-8").split('"""', 2)
        first, rest = doc.split("\n", 1)
        heading = path.stem.replace("_", " ").capitalize()
        body = "\n\n".join(_usage(part) for part in [first, *rest.strip("\n").split("\n\n")] if part)
        given = [*figures.names(given=True), *(name for name, (_, one) in of_studies().items() if not one.compute)]
        for name in given:
            if name.startswith(path.stem):
                body += f"\n\n.. rubric:: {name}\n\n{_described(name)}"
        # A script ends in an exit, which would end the build; sphinx-gallery runs it without its docstring.
        code = re.sub(r"scripts\.run\(main.*\)", "main()", code).replace("__doc__", repr(first))
        small = thumbnail(_SHOWN.get(path.stem, path.stem))
        _write(folder / file, f'r"""\n{heading}\n{"=" * len(heading)}\n\n{body}\n"""\n{small}{code}')


def _usage(part: str) -> str:
    return f"::\n\n{part}" if part.startswith("    ") else _escaped(part)


def quick_arguments(gallery_conf: dict, script_vars: dict) -> list[str]:
    """Arguments of a script on its command line: quick settings, and a folder beside its page for its files."""
    script = Path(script_vars["src_file"])
    if "--quick" not in script.read_text(encoding="utf-8"):
        return []
    out = _out(script)
    shutil.rmtree(out, ignore_errors=True)
    return ["--quick", "--out", str(out)]


def _out(script: Path) -> Path:
    return script.parent / "out" / script.stem


def scrape(block: tuple, block_vars: dict, gallery_conf: dict) -> str:
    """Save the figures that a script has made: `Figure` objects of its own, and pictures that it has written."""
    script = Path(block_vars["src_file"])
    paths = block_vars["image_path_iterator"]
    known = block_vars["example_globals"]
    seen, images = known.setdefault("_scraped", set()), []
    for found in [value for value in known.values() if isinstance(value, Figure)]:
        if id(found) not in seen:
            seen.add(id(found))
            images.append((next(paths), title(script.stem.split("_", 2)[2])))
            found.savefig(images[-1][0], dpi=120)
    for picture in sorted(_out(script).rglob("*.png")):
        if picture not in seen:
            seen.add(picture)
            images.append((next(paths), title(picture.stem)))
            shutil.copy(picture, images[-1][0])
    # One below the other, each with a text for readers who do not see it: side by side they would be too small to read.
    return "\n".join(figure_rst([path], gallery_conf["src_dir"], text) for path, text in images)


if __name__ == "__main__":
    draw_thumbnails(sys.argv[1:])
