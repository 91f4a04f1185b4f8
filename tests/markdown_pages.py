"""A page of ``docs/`` alone in a browser: rendered without a site, with the site's style and the page's own scripts."""

from pathlib import Path

from driving import ROOT

DOCS = ROOT / "docs"
FRAME = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 sans-serif; margin: 0;
  background: Canvas; color: CanvasText; overflow-wrap: break-word }}
{style}</style>
<div class="page"><div class="main"><div class="content"><div class="article-container">
<article role="main">{body}</article></div></div></div></div></html>"""


def rendered(name: str, folder: Path) -> Path:
    """A file with the page ``docs/NAME.md``; its scripts are found where they are."""
    from docutils.core import publish_parts
    from myst_parser.parsers.docutils_ import Parser  # which the docs' packages bring

    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    settings = {"myst_enable_extensions": ["dollarmath", "colon_fence"], "report_level": 5, "doctitle_xform": False}
    settings |= {
        "initial_header_level": 1,
        "math_output": "MathML",
        "raw_enabled": True,
        "file_insertion_enabled": True,
    }
    body = publish_parts(text, parser=Parser(), writer="html5", settings_overrides=settings)["body"]
    body = body.replace('src="_static/', f'src="{DOCS.as_uri()}/_static/')
    style = (DOCS / "_static" / "site.css").read_text(encoding="utf-8")
    path = folder / f"{name}.html"
    path.write_text(FRAME.format(title=name, style=style, body=body), encoding="utf-8")
    return path
