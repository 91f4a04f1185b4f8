"""`yzflow.page`: run one statement and write its page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from dynamics.support import checks, distributions
from dynamics.support.files import writable
from theory.statements import Statement
from yzflow.audits.check import StatementVerdict, check
from yzflow.audits.find_statement import find
from yzflow.pages.files import save
from yzflow.pages.statement import html

__all__ = ["Tried", "page"]


@runtime_checkable
class Tried(Protocol):
    """A report with words, such as a `FuzzReport` of `yzflow.fuzz`."""

    @property
    def text(self) -> str: ...


def page(
    statement: str | Statement,
    path: str | os.PathLike,
    *,
    quick: bool = True,
    seed: int = 0,
    progress: bool = False,
    certificates: Sequence[str | os.PathLike | Any] = (),
    verifier: str | os.PathLike | None = None,
    tried: Tried | None = None,
) -> StatementVerdict:
    """Write the page of one statement: one HTML file that needs no network.

    Parameters
    ----------
    statement : str or Statement
        Its id in the register, "<paper>: Theorem 3", its number if only one paper has it, or a `Statement`, as for
        `yzflow.check`.
    path : path-like
        The file, which is written completely or not at all.
    quick : bool
        Run only some of the settings, as for `yzflow.check`.
    seed : int
        Seed of the SGD runs.
    progress : bool
        Show progress on standard error.
    certificates : sequence of path-like or Enclosure
        Files from ``yzflow audit --enclose``, or from `yzflow_enclose.Enclosure.save` with recorded claims; or an
        Enclosure, as of a flow of your own. The page contains them, with buttons that verify them in the browser. Those
        of a statement that no installed paper has are taken with all that they claim.
    verifier : path-like, optional
        Folder of the two packages that ``verifier.js`` is made of; pip and npm fetch missing ones. The buttons need
        this script, which is written beside the page.
    tried : FuzzReport, optional
        A campaign of `yzflow.fuzz` on the statement, or on the function that it puts into words: its report is shown.

    Returns
    -------
    StatementVerdict
        The result on the page.

    Raises
    ------
    ValueError
        If the register has no such statement, with the nearest ones, or several; if ``path`` cannot be written; if a
        certificate decides no claim of the statement at one of its settings; or if a package cannot be had.
    FileNotFoundError
        If a certificate does not exist.
    ImportError
        If certificates are given and yzflow-enclose is not installed.
    """
    entry = find(statement)
    path = writable("path", path)
    attached = None
    if tried is not None:
        checks.instance("tried", checks.instance("tried", tried, Tried, rule="be a FuzzReport").text, str)
    if checks.instance("certificates", certificates, (list, tuple)) or verifier is not None:
        certified = distributions.bring(distributions.CERTIFICATES, "a certificate on a page")
        attached = certified.on_page(entry, certificates, beside=path, packages=verifier)
    verdict = check(statement, quick=quick, seed=seed, progress=progress)
    save(html(verdict, attached=attached, tried="" if tried is None else tried.text), path)
    return verdict
