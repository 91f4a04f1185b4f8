"""The documentation: builds without a warning, every link leads somewhere, every name is there, no network is asked."""

import functools
import html
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from driving import ROOT

DOCS = ROOT / "docs"

for name in ("sphinx", "furo", "myst_nb", "ipykernel", "sphinx_gallery", "sphinx-mathjax-offline"):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"needs {name}: pip install 'yzflow[docs]'", allow_module_level=True)


class Page(HTMLParser):
    """A page's links, loads and ids."""

    def __init__(self, path: Path):
        super().__init__()
        self.links, self.resources, self.anchors = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors.update(value for key in ("id", "name") if (value := given.get(key)))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        relation = (given.get("rel") or "").split()
        if tag == "link" and given.get("href") and not {"search", "canonical", "next", "prev"} & set(relation):
            self.resources.append(given["href"])
        if given.get("src"):
            self.resources.append(given["src"])


# Of statements every twelfth has its page, and the others a file in its place: formulas take a second a page. No test
# looks at the numbers of SGD on a page, which has two steps here, nor at the words that a search takes for one.
BUILD = """
import itertools, sys
from sphinx.cmd.build import main
from sphinx.search import SearchLanguage
from sphinx.search.en import SearchEnglish
from yzflow.pages import contents
from yzflow.papers.scan_and_snap.panel import data

data.MAX_STEPS = 2
SearchEnglish.stem = SearchLanguage.stem

def some(verdict, whole=contents.single.html, count=itertools.count(), **given):
    return whole(verdict, **given) if next(count) % 12 == 0 else f"<title>{verdict.statement.id}</title>"

contents.single.html = some
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-c", BUILD, "-q", "-W", "--keep-going", "-b", "html", "-D", "plot_gallery=0"]
    command += ["-D", "run_statements=0"]
    done = subprocess.run(
        [*command, str(DOCS), str(out)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in site.rglob("*.html")}


@pytest.mark.slow
def test_every_link_inside_the_site_leads_somewhere(site, pages):
    @functools.cache  # pages of one folder have most of their links in common
    def leads(folder, link):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc or link.startswith("data:"):
            return True
        target = (folder / unquote(parts.path)).resolve()
        found = not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].anchors
        return target.is_file() and found

    wrong = []
    for path, page in pages.items():
        for link in {*page.links, *page.resources}:
            there = f"{path.name}{link}" if link.startswith(("#", "?")) else link
            if link and not leads(path.parent, there):
                wrong.append(f"{path.relative_to(site)}: {link}")
    assert len(pages) > 50
    assert not wrong, wrong[:20]


@pytest.mark.slow
def test_no_mark_of_a_number_is_left_in_the_pages(site):
    howto = site / "howto" / "values.html"  # which shows them as code
    text = {path: path.read_text(encoding="utf-8") for path in (*site.rglob("*.html"), site / "searchindex.js")}
    assert [path for path, page in text.items() if re.search("<!--(=|table )|<!-- numbers", page)] == []
    assert "&lt;!--=k--&gt;" in text[howto]


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(site, pages):
    loaded = {resource for page in pages.values() for resource in page.resources}
    assert not [one for one in loaded if urlsplit(one).netloc]
    # Style sheets may load fonts and pictures.
    for sheet in site.rglob("*.css"):
        addresses = re.findall(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^'\")]+)", sheet.read_text(encoding="utf-8"))
        assert not addresses, (sheet, addresses)


@pytest.mark.slow
def test_the_reference_has_every_public_name(pages):
    import dynamics

    anchors = set().union(*(page.anchors for page in pages.values()))
    objects = {name: found for name in dynamics.__all__ if callable(found := getattr(dynamics, name))}
    # Names defined in a private module are imported from the package, and documented there.
    homes = {name: "dynamics" if "._" in found.__module__ else found.__module__ for name, found in objects.items()}
    expected = {f"{home}.{name}" for name, home in homes.items()}
    for pattern in ("dynamics/*.py", "theory/*.py", "theory/*/*.py", "yzflow/*.py", "yzflow/figures/*.py"):
        for path in ROOT.glob(pattern):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if path.stem.startswith("_"):
                continue
            if name == "yzflow.cli":
                continue
            module = importlib.import_module(name)
            for key, found in inspect.getmembers(module, callable):
                public = not key.startswith("_") and key in getattr(module, "__all__", [key])
                if public and getattr(found, "__module__", None) == name:
                    expected.add(f"{name}.{key}")
    assert len(expected) > 100
    assert not expected - anchors


def test_the_glossary_names_what_exists():
    names = re.findall(r"`((?:dynamics|theory|yzflow|yz)\.[\w.]+)`", (DOCS / "symbols.md").read_text(encoding="utf-8"))
    assert len(names) > 30
    for name in names:
        module, *rest = name.split(".")
        found = importlib.import_module("yzflow" if module == "yz" else module)
        for part in rest:
            owner, found = found, getattr(found, part, None)
            declared = getattr(owner, "__annotations__", {})
            # Attributes that a constructor sets are in its class's documentation.
            documented = re.search(rf"\b{part}\b", inspect.getdoc(owner) or "") is not None if found is None else True
            assert found is not None or part in declared or documented, name


@pytest.mark.slow
def test_every_figure_and_every_proof_has_its_page(site):
    import yzflow_studies

    from theory.papers import built_in
    from yzflow import figures, studies

    gallery = {path.stem.split("_", 2)[2] for path in (site / "_generated/gallery/figures").glob("plot_*.html")}
    assert gallery == set(figures.names())
    of_studies = [entry for room in studies.rooms_of(yzflow_studies).values() for entry in room.figures]
    drawn = {entry.name for entry in of_studies if entry.compute}
    assert {path.stem.split("_", 2)[2] for path in (site / "_generated/gallery/studies").glob("plot_*.html")} == drawn
    examples = "".join(
        path.read_text(encoding="utf-8") for path in (site / "_generated/gallery/examples").glob("*.html")
    )
    # Those of other commands stand on their findings' pages.
    by_script = [one.name for one in of_studies if one.trained_by.startswith("yzflow example") and not one.compute]
    given = [*figures.names(given=True), *by_script]
    assert given
    assert not [name for name in given if f'<p class="rubric">{name}</p>' not in examples]
    text = "".join(path.read_text(encoding="utf-8") for path in (site / "theory").glob("*.html"))
    assert not [
        name
        for paper in built_in()
        for name, prove in paper.proofs.items()
        if f'<span class="pre">{getattr(prove, "func", prove).__module__}<' not in text
    ]


@pytest.mark.slow
def test_formulas_in_plain_text_are_letters_and_code_is_as_it_was(site):
    code = re.compile(r"<(script|style|code|pre)\b.*?</\1>|<dt .*?</dt>|\\\(.*?\\\)|\\\[.*?\\\]", flags=re.DOTALL)
    for name in ("errata", "findings", "tried", "findings/01_slowdown", "findings/32_phase_diagram"):
        text = code.sub("", (site / f"{name}.html").read_text(encoding="utf-8"))
        assert text.count("<sub>") > 3, name
        assert re.findall(r"\beta_[YZ]\b|(?<!-)\brho\b|&gt;= ", text) == [], name
    assert "eta_y=1.0" in re.sub("<[^>]*>", "", (site / "tutorial.html").read_text("utf-8"))


@pytest.mark.slow
def test_every_statement_stands_once_and_before_its_proof(site):
    from theory.statements import REGISTER
    from yzflow.audits.formulas import readable

    for statement in REGISTER.values():
        page = site / "theory" / f"{statement.paper.lower().replace(' ', '_')}.html"
        text = html.unescape(page.read_text(encoding="utf-8")).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
        here = html.unescape(f"<strong>{statement.number}. {readable(statement.title)}.</strong>")
        assert text.count(here) == 1, statement.id
        for prove in statement.proofs[:1]:
            proof = getattr(prove, "func", prove).__module__
            assert text.index(here) < text.index(f'<span class="pre">{proof}<'), statement.id


@pytest.mark.slow
def test_pages_that_are_run_show_what_their_cells_show(site):
    """Each block of Python of the tutorial and the exercises is a cell that has run, in a real kernel, in its order."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS / "_ext")
        notebooks = importlib.import_module("notebooks")
    pictures = {"tutorial": 4, "teaching": 0, "lesson": 2, "figure_style": 2}
    for name in notebooks.PAGES:
        source = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        plain = [cell["source"] for cell in notebooks.as_notebook(source)["cells"] if cell["cell_type"] == "code"]
        assert len(plain) == source.count("```python\n") > 1
        (path,) = site.glob(f"_downloads/*/{name}.ipynb")
        cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
        assert ["".join(cell["source"]) for cell in cells] == plain
        assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
        outputs = [output for cell in cells for output in cell["outputs"]]
        assert not [output for output in outputs if output["output_type"] == "error"]
        assert sum("image/png" in output.get("data", {}) for output in outputs) == pictures[name]
        page = (site / f"{name}.html").read_text(encoding="utf-8")
        assert page.count("cell_output") >= len(plain) - 2 and page.count("_images/") >= pictures[name]


@pytest.mark.slow
def test_every_task_of_sweeps_is_listed_with_its_defaults(site):
    from yzflow.sweeps.tasks import named

    text = html.unescape(re.sub("<[^>]*>", "", (site / "sweeps.html").read_text(encoding="utf-8")))
    for name, task in named().items():
        (line,) = [line for line in text.splitlines() if line.startswith(f"{name}: ")]
        assert all(key in line for key in task.keys or ()), name
    assert "steps (100)" in text and "t_end (700.0)" in text


def test_the_gallery_has_a_small_picture_of_each_figure_and_no_other(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_ext")
    import gallery

    names = {path.stem for path in (DOCS / "images" / "thumbnails").glob("*.png")}
    assert len(names) > 20 and names <= set(gallery.wanted())
    assert [name for name in gallery.wanted() if not gallery.thumbnail(name)] == []


def test_a_printed_lesson_has_questions_and_no_solutions(site, browser):
    page = browser(site / "lesson.html")
    assert page.locator("details").count() == 6 and page.get_by_text("Ten next tokens share one token").is_visible()
    assert page.get_by_text("90 minutes, a projector").is_visible()  # the plan is open
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.locator("details .cell").first.is_visible()
    page.emulate_media(media="print")
    assert page.get_by_text("Ten next tokens share one token").is_visible()
    assert not page.locator("details").filter(visible=True).count()
    for link in (".skip-to-content", "a.download"):
        assert page.locator(link).count() and not page.locator(link).filter(visible=True).count()


@pytest.mark.slow
def test_every_statement_has_its_page_in_the_site_and_links_to_it(site, pages):
    from theory.layout import reading_order
    from theory.statements import REGISTER
    from yzflow.pages.statement import slug

    papers = list(dict.fromkeys(one.paper for one in REGISTER.values()))
    as_read = sorted(REGISTER.values(), key=lambda one: (papers.index(one.paper), reading_order(one)))
    index = pages[site / "statements.html"].links
    own = pages[site / "statements" / "index.html"].links
    order = [link for link in index if link.startswith("statements/") and link != "statements/explorer.html"]
    assert order == [f"statements/{slug(one)}.html" for one in as_read] * 2
    for statement in REGISTER.values():
        address = f"{slug(statement)}.html"
        assert (site / "statements" / address).is_file() and address in own
        theory = site / "theory" / f"{statement.paper.lower().replace(' ', '_')}.html"
        assert f"../statements/{address}" in pages[theory].links, statement.id
    assert "index.html" in pages[site / "statements" / "explorer.html"].links
    first = site / "statements" / f"{slug(next(iter(REGISTER.values())))}.html"
    assert "Nothing was run for this page" in first.read_text(encoding="utf-8")


def test_pages_open_without_a_network(site, browser):
    page = browser(site / "theory" / "scan_and_snap.html", color_scheme="dark", width=390)
    page.wait_for_selector("mjx-container")
    page.wait_for_function("document.querySelectorAll('mjx-container').length > 100")
    assert page.locator("mjx-merror").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert "\\dot z" not in page.inner_text("body")
