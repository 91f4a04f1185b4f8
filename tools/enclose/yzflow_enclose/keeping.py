"""Enclosures kept as certificates in a folder, so that the same question is enclosed once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from dynamics.bags import Bags
from dynamics.support import checks, files, sealed
from dynamics.support.canonical import digest
from yzflow_enclose import cells
from yzflow_enclose.claims import CELL_FORMAT, FORMAT, differences
from yzflow_enclose.enclosing import enclose_flow
from yzflow_enclose.enclosure import Enclosure
from yzflow_enclose.fields import DECODERS
from yzflow_enclose.limits import Limits
from yzflow_enclose.populations import OfPopulation
from yzflow_enclose.reading import Population, read
from yzflow_enclose.signs import Sign

Kept = TypeVar("Kept", Enclosure, cells.CellEnclosure)


def kept(
    folder: str | os.PathLike | None,
    data: Bags | Population,
    *,
    eta_y: float,
    eta_z: float,
    t_end: float,
    decoder: str = "full",
    bits: int = 100,
    max_seconds: float | None = None,
) -> Enclosure:
    """`enclose_flow` with these arguments, or its kept result, with every bound computed again.

    Parameters
    ----------
    folder : path-like, optional
        The folder of certificates: ``HASH.npz``, the SHA-256 of population and arguments. It is created if missing.
        Without a folder, nothing is kept.
    data, eta_y, eta_z, t_end, decoder, bits, max_seconds
        The arguments of `enclose_flow`. An enclosure that ended for want of time is kept for the same ``max_seconds``
        only.

    Raises
    ------
    ValueError
        If an argument is invalid, or the population has too many variables.
    OSError
        If the folder cannot be written.
    """
    arguments: dict[str, Any] = {"eta_y": eta_y, "eta_z": eta_z, "t_end": t_end, "decoder": decoder, "bits": bits}
    if folder is None:
        return enclose_flow(data, **arguments, max_seconds=max_seconds)
    asked = _question(data, max_seconds=max_seconds, **arguments)
    path = _path(folder, asked, max_seconds)
    what, then = sealed.kinds()[FORMAT], "the flow is enclosed again"
    there = sealed.sound(path, what, then, name="folder", stacklevel=3)
    found = _answer(path, asked, Enclosure) if there else None
    if found is None:
        found = enclose_flow(data, **arguments, max_seconds=max_seconds)
        path.parent.mkdir(parents=True, exist_ok=True)
        if found.steps:
            found.save(path)
    found.path = path
    return found


def kept_cell(
    folder: str | os.PathLike | None,
    cell: cells.Cell,
    claims: Sequence[Sequence[float]],
    *,
    t_end: float,
    degree: int = 6,
) -> list[Sign]:
    """The signs of `decide_cell` with these arguments, or of a certificate, which is verified when it is read.

    A certificate that is damaged, or does not prove the question, is set aside as ``*.damaged``, with a warning, and
    made again.

    Parameters
    ----------
    folder : path-like, optional
        The folder of certificates: ``HASH.npz``, the SHA-256 of the arguments. It is created if missing. Without a
        folder, nothing is kept.
    cell, claims, t_end, degree
        The arguments of `decide_cell`.

    Raises
    ------
    ValueError
        If an argument is invalid.
    OSError
        If the folder cannot be written.
    """
    if folder is None:
        return cells.decide_cell(cell, claims, t_end=t_end, degree=degree)[0]
    rows = [tuple(checks.finite_array("claims", claim, ndim=1).tolist()) for claim in claims]
    asked = {"format": CELL_FORMAT, **cell.claim(), "t_end": checks.positive("t_end", t_end), "degree": degree}
    path = _path(folder, {**asked, "claims": rows}, None)
    what, then = sealed.kinds()[CELL_FORMAT], "it is made again"
    if sealed.sound(path, what, then, name="folder"):
        found = _answer(path, asked, cells.CellEnclosure)
        if found is not None and list(found.signs) == rows:
            return list(found.signs.values())
        sealed.set_aside(path, "it does not prove what is asked", then)
    signs, made = cells.decide_cell(cell, claims, t_end=t_end, degree=degree)
    if made.steps:
        path.parent.mkdir(parents=True, exist_ok=True)
        made.save(path)
    return signs


def _answer(path: Path, asked: Mapping[str, Any], kind: type[Kept]) -> Kept | None:
    """A file's enclosure, verified, if it answers the question; None if it has to be made again."""
    try:
        found = kind.load(path)
    except ValueError:  # sealed, but no certificate
        return None
    return found if not differences(found.claimed, asked) and found.verify() else None


def _question(
    data: Bags | Population,
    *,
    eta_y: float,
    eta_z: float,
    decoder: str,
    t_end: float,
    bits: int,
    max_seconds: float | None,
) -> dict[str, Any]:
    """The parts of a claim that a question fixes."""
    rates = {"eta_y": checks.positive("eta_y", eta_y), "eta_z": checks.positive("eta_z", eta_z)}
    limits = Limits.of(t_end, bits, 1, max_seconds, False)
    asked = OfPopulation(read(data, **rates, decoder=checks.one_of("decoder", decoder, DECODERS))).claim()
    return {**asked, "t_end": limits.t_end, "bits": limits.bits}


def _path(folder: str | os.PathLike, asked: Mapping[str, Any], max_seconds: float | None) -> Path:
    seconds = None if max_seconds is None else float(max_seconds)
    name = digest({"format": FORMAT, "asked": asked, "max_seconds": seconds})
    return files.absolute("folder", folder, folder=True) / f"{name}.npz"


def certificate_path(
    folder: str | os.PathLike, data: Bags | Population, *, max_seconds: float | None = None, **arguments: Any
) -> Path:
    """The certificate's path in ``folder``."""
    return _path(folder, _question(data, max_seconds=max_seconds, **arguments), max_seconds)
