"""The sidebar's tree, which is made once for the site, is furo's own on each page."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="needs the extra docs")
pytest.importorskip("furo", reason="needs the extra docs")

EXTENSIONS = Path(__file__).parents[2] / "docs" / "_ext"
PAGES = {
    "index": ".. toctree::\n   :caption: C\n\n   a/one\n   two\n   a/b/three\n   elsewhere <https://example.org/x>\n",
    "a/one": ".. toctree::\n\n   b/three\n   four\n",
    "two": "Part\n----\n\nText.\n",
    "a/b/three": "In two places of the tree.\n",
    "a/four": "Text.\n",
    "alone": "In no tree.\n",
}


def _built(folder, extensions):
    (folder / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(EXTENSIONS)!r})\nextensions = {extensions!r}\nhtml_theme = 'furo'\n"
    )
    out = folder / f"html{len(extensions)}"
    subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", str(folder), str(out)], check=True)
    return {path.relative_to(out).as_posix(): _alike(path.read_text()) for path in out.rglob("*.html")}


def _alike(html):
    """In the order of the alphabet, the classes of each element, which have none."""
    return re.sub(r'class="([^"]*)"', lambda found: f'class="{" ".join(sorted(found[1].split()))}"', html)


@pytest.mark.slow
def test_the_tree_of_each_page_is_that_of_furo(tmp_path):
    for name, text in PAGES.items():
        path = tmp_path / f"{name}.rst"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{':orphan:' * (name == 'alone')}\n\n{name}\n{'=' * 20}\n\n{text}")
    own, plain = _built(tmp_path, ["navigation"]), _built(tmp_path, [])
    assert set(own) == set(plain) and {"index.html", "genindex.html", "a/b/three.html"} <= set(own)
    for page, html in plain.items():
        assert own[page] == html, page
    assert plain["a/b/three.html"].count("current-page") == 1 and plain["a/b/three.html"].count('checked=""') == 1
