"""``python -m yzflow.audits.errata`` writes the page of errata, from a quick audit of the built-in papers."""

from __future__ import annotations

from pathlib import Path

from dynamics.support import files
from theory.papers import built_in
from yzflow.audits.audit import audit
from yzflow.audits.errata_page import errata_page

PAGE = Path("docs") / "errata.md"


def main() -> None:
    """Write the page, in a clone of the repository."""
    files.writable("PAGE", PAGE)
    files.write(PAGE, errata_page(audit(built_in(), quick=True, progress=True)).encode())


if __name__ == "__main__":
    main()
