"""Certificates on a statement's page: each with the decided claims of the statement, and a button to verify it.

The page carries the certificate and the code of `yzflow_enclose.verifier`. Python itself is large, and comes from a
file beside the page, ``verifier.js`` (`yzflow_enclose.pages.verifier`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from dynamics.support import checks
from theory import papers
from theory.statements import Check, Claiming, Enclosing, SettingLike, Statement
from yzflow.audits import formulas
from yzflow.audits.audit import settings
from yzflow.audits.enclosing import Enclose
from yzflow.pages import explorer
from yzflow.pages.files import file
from yzflow.pages.statement import Attached, slug
from yzflow.parts import part_of
from yzflow_enclose import Enclosure
from yzflow_enclose.claims import differences
from yzflow_enclose.evidence import FlowsInBalls
from yzflow_enclose.formulas import Predicate, written
from yzflow_enclose.pages import verifier

# A page with certificates may also compile the verifier and run it in a worker, still without a network.
POLICY = "'wasm-unsafe-eval' blob: 'self'; worker-src blob:"


@dataclass(frozen=True)
class Certified:
    """A certificate on a page.

    Attributes
    ----------
    name : str
        Name of its file.
    content : bytes
    flow : str
        Its level and setting.
    decided : tuple of str
        The claims of the statement that it decides, in words.
    target : str
        Of a reader's own flow: module and name of its class, which a checker needs; else empty.
    """

    name: str
    content: bytes
    flow: str
    decided: tuple[str, ...]
    target: str = ""

    @property
    def commands(self) -> tuple[str, ...]:
        """Commands that verify the file, once it is saved from the page: of a reader's flow with the reader's class."""
        if not self.target:
            return (f"yzflow verify {shlex.quote(self.name)}",)
        module, _, name = self.target.partition(":")
        code = f"from {module} import {name}; from yzflow_enclose import Enclosure; "
        code += f"print(Enclosure.load({json.dumps(self.name)}).verify({name}))"
        return (f"python -c {shlex.quote(code)}  # beside the author's {module}.py",)


def certified(statement: Statement, path: str | os.PathLike | Enclosure) -> Certified:
    """A certificate, if it decides a claim of the statement at one of its settings; verified once here.

    Of a statement that no installed paper has, all that it claims is taken.

    Raises
    ------
    ValueError
        If it does not, or proves nothing, or is no certificate.
    FileNotFoundError
        If there is no such file.
    """
    if not papers.installed(statement):
        return _of_its_author(statement, path)
    if isinstance(path, Enclosure):
        raise checks.reject("certificates", f"be files for a statement of {statement.paper}", "an Enclosure")
    found = Enclosure.load(path)
    enclosing = part_of(statement.paper, "enclosing")
    for setting in settings(statement.paper, quick=False) if enclosing else ():
        for level in _levels(found, enclosing, setting):
            decided = tuple(_decided(statement, found, enclosing, setting, level))
            if decided:
                if not found.verify():
                    raise checks.reject("certificates", "prove what they claim", f"{os.fspath(path)} ({found.fault})")
                return Certified(Path(path).name, Path(path).read_bytes(), f"{level}, {setting.name}", decided)
    raise checks.reject("certificates", f"decide a claim of {statement.id} at one of its settings", os.fspath(path))


def _of_its_author(statement: Statement, given: str | os.PathLike | Enclosure) -> Certified:
    """A certificate for a statement from outside, with all its claims; a flow's own class is known to an Enclosure."""
    found = given if isinstance(given, Enclosure) else Enclosure.load(given)
    if not found.predicates:
        raise checks.reject("certificates", "hold recorded claims (`Enclosure.record`)", "none")
    if not found.verify():
        raise checks.reject("certificates", "prove what they claim", found.fault)
    name = f"{slug(statement)}.npz" if isinstance(given, Enclosure) else Path(given).name
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "certificate.npz" if isinstance(given, Enclosure) else Path(given)
        if isinstance(given, Enclosure):
            given.save(kept)
        content = kept.read_bytes()
    what, *said = found.words.splitlines()
    return Certified(name, content, what, tuple(said), found.claim.get("flow", {}).get("target", ""))


def _levels(found: Enclosure, enclosing: Enclosing, setting: SettingLike) -> Iterator[str]:
    """Levels at which a certificate is of a setting."""
    for level in enclosing.levels:
        asked = None if enclosing.question is None else enclosing.question(setting, level)
        if asked is not None and not differences(found.claimed, asked):
            yield level


def _decided(
    statement: Statement, found: Enclosure, enclosing: Enclosing, setting: SettingLike, level: str
) -> Iterator[str]:
    """Claims of a statement in a certificate of its setting, with their verdicts."""
    enclosing = replace(enclosing, levels=(level,), enclose=lambda *_, **__: found)
    flows = FlowsInBalls(setting, enclosing, Enclose())
    for check in statement.checks:
        claim = enclosing.claim_of(check)
        if claim is not None and level in check.levels:
            says = _says(claim, check, flows, level, found)
            for predicate in found.predicates:
                if predicate.says == says:
                    yield f"{check.says or check.name}: {_verdict(predicate)}"


def _says(claim: Claiming, check: Check, flows: FlowsInBalls, level: str, found: Enclosure) -> Any:
    """Claim of a check, in the form of certificates; None if it cannot be written down."""
    try:
        return written(claim(flows, level, check.tolerance), found.opened().recorder())
    except ValueError:
        return None


def _verdict(predicate: Predicate) -> str:
    if predicate.times is None:
        return f"true for every t with 0 < t <= {predicate.until:g}"
    return f"false at t = {predicate.times[1]:g}"


def on_page(
    statement: Statement,
    certificates: Sequence[str | os.PathLike | Enclosure],
    *,
    beside: Path,
    packages: str | os.PathLike | None = None,
) -> Attached | None:
    """The certificates' part of a statement's page; None without certificates.

    Parameters
    ----------
    statement : Statement
    certificates : sequence of path-like or Enclosure
    beside : path
        Path of the page.
    packages : path-like, optional
        Write ``verifier.js`` beside the page, from the two packages in this folder.

    Raises
    ------
    ValueError
        If one decides no claim of the statement at one of its settings, or a package cannot be had.
    FileNotFoundError
        If one is not there.
    """
    held = [certified(statement, path) for path in certificates]
    if packages is not None:
        verifier.write(beside.parent / verifier.NAME, packages)
    return attached(held)


def attached(held: Sequence[Certified]) -> Attached | None:
    """The section of a page on certificates, with the needs of its scripts; None without certificates."""
    commands = tuple(command for one in held for command in one.commands)
    return Attached(section(held), scripts(held), POLICY, commands) if held else None


def section(found: Sequence[Certified]) -> str:
    """The part of a page that shows certificates; nothing without any."""
    if not found:
        return ""
    words = (
        "Each file below is the proof of what stands above it, for every time up to a last one. The button runs the "
        "checker in this browser, offline: it reads the file as it stands in this page, computes every bound again, "
        "decides every claim again, and prints what it found, in its own words. It uses nothing of what made the file, "
        f"only Python with python-flint, from <code>{verifier.NAME}</code> beside this page."
    )
    return f"<section id='certificates'><h2>Certificates</h2><p>{words}</p>{''.join(map(_place, found))}</section>"


def _place(one: Certified) -> str:
    claims = "".join(f"<li>{formulas.readable(said)}</li>" for said in one.decided)
    data = f"data:application/octet-stream;base64,{base64.b64encode(one.content).decode()}"
    name, sha256 = escape(one.name, quote=True), hashlib.sha256(one.content).hexdigest()
    size = f"{len(one.content) / 1e3:.0f} kB, SHA-256 {sha256}"
    button = "<p><button type='button' hidden>Verify here</button> <span role='status'></span></p><pre hidden></pre>"
    return (
        f"<div class='certificate'><h3>{formulas.readable(one.flow)}</h3><ul>{claims}</ul>"
        f"<p class='soft'><a download='{name}' href='{data}'>{name}</a>, {size}</p>"
        f"{'' if one.target else button}</div>"
    )


def scripts(found: Sequence[Certified]) -> str:
    """The data and the script of that part; nothing without certificates."""
    if not found:
        return ""
    data = {
        "verifier": verifier.NAME,
        "sha256": verifier.SHA256,
        "wheel": verifier.WHEEL,
        "worker": file("yzflow_enclose.pages", "checking.js"),
        "checker": checker(),
    }
    code = explorer.in_script(file("yzflow_enclose.pages", "certified.js"))
    return (
        f'<script type="application/json" id="certified">{explorer.in_data(data)}</script>\n'
        f"<script>\n{{\n{code}}}\n</script>\n"
    )


def checker() -> dict[str, str]:
    """The files of `yzflow_enclose.verifier`, which need no other file of yzflow."""
    room = "yzflow_enclose.verifier"
    own = [one.name for one in resources.files(room).iterdir() if re.fullmatch(r"verify\w*\.py", one.name)]
    return {name: file(room, name) for name in sorted(own)}
