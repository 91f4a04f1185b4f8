"""One statement run, and its page written (`yzflow.page`)."""

from __future__ import annotations

import os
from collections.abc import Sequence

from dynamics.support import checks, distributions
from dynamics.support.files import writable
from theory.statements import Statement
from yzflow.audits.check import StatementVerdict, check
from yzflow.audits.chosen import find
from yzflow.pages.files import save
from yzflow.pages.statement import html

__all__ = ["page"]


def page(
    statement: str | Statement,
    path: str | os.PathLike,
    *,
    quick: bool = True,
    seed: int = 0,
    progress: bool = False,
    certificates: Sequence[str | os.PathLike] = (),
    verifier: str | os.PathLike | None = None,
) -> StatementVerdict:
    """Write the page of one statement: one HTML file that needs no network.

    Parameters
    ----------
    statement : str or Statement
        Its id in the register, "<paper>: Theorem 3", its number where only one paper has it, or itself, as for
        `yzflow.check`.
    path : path-like
        The file, which is written completely or not at all.
    quick : bool
        Only some of the settings, as for `yzflow.check`.
    seed : int
        Of the SGD runs.
    progress : bool
        Show progress on standard error.
    certificates : sequence of path-like
        Files that ``yzflow audit --enclose`` kept, or `yzflow_enclose.Enclosure.save` wrote with recorded claims.
        The page holds them, and has a button to verify each where the page is opened.
    verifier : path-like, optional
        Write ``verifier.js``, which these buttons need, beside the page, from the two packages in this folder: pip and
        npm bring them where they are not there yet.

    Returns
    -------
    StatementVerdict
        What the page shows.

    Raises
    ------
    ValueError
        If the register has no such statement, with the nearest ones, or several; if ``path`` cannot be written; if a
        certificate decides no claim of the statement at one of its settings; or if a package cannot be had.
    FileNotFoundError
        If there is no such certificate.
    ImportError
        If certificates are given and yzflow-enclose is not installed.
    """
    entry = find(statement)
    path = writable("path", path)
    attached = None
    if checks.instance("certificates", certificates, (list, tuple)) or verifier is not None:
        certified = distributions.bring(distributions.CERTIFICATES, "a certificate on a page")
        attached = certified.on_page(entry, certificates, beside=path, packages=verifier)
    verdict = check(statement, quick=quick, seed=seed, progress=progress)
    save(html(verdict, attached=attached), path)
    return verdict
