"""``python -m yzflow.audits.errata`` writes the documentation's page of errata, from the register and a quick audit."""

from __future__ import annotations

from pathlib import Path

from dynamics.support import files
from yzflow.audits.audit import audit
from yzflow.audits.errata_page import errata_page

PAGE = Path("docs") / "errata.md"


def main() -> None:
    """Write the page, in a clone of the repository."""
    files.writable("PAGE", PAGE)
    files.write(PAGE, errata_page(audit(quick=True, progress=True)).encode())


if __name__ == "__main__":
    main()
