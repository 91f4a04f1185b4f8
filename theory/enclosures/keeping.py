"""Enclosures that are kept as certificates in a folder, so that the same question is enclosed once."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from dynamics.bags import Bags
from dynamics.support import checks
from theory.enclosures.certificate import FORMAT
from theory.enclosures.enclosure import Enclosure, enclose_flow
from theory.enclosures.reading import Population, bags_arrays, read


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
    """`enclose_flow` with these arguments, or what it made of them before, every bound of which is computed again.

    Parameters
    ----------
    folder : path-like, optional
        Where certificates are: ``HASH.npz``, the SHA-256 of population and arguments. It is made if there is none.
        Without one, nothing is kept.
    data, eta_y, eta_z, t_end, decoder, bits, max_seconds
        Those of `enclose_flow`. An enclosure that ended for want of time is kept for the same ``max_seconds`` only.

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
    path = certificate_path(folder, data, **arguments, max_seconds=max_seconds)
    if path.exists():
        try:
            found = Enclosure.load(path)
        except ValueError:  # damaged: it is made again
            pass
        else:
            if found.verify():
                return found
    made = enclose_flow(data, **arguments, max_seconds=max_seconds)
    path.parent.mkdir(parents=True, exist_ok=True)
    made.save(path)
    return made


def certificate_path(
    folder: str | os.PathLike, data: Bags | Population, *, eta_y: float, eta_z: float, decoder: str, **rest: object
) -> Path:
    """The certificate's path in ``folder``."""
    name = os.fspath(checks.path("folder", folder))
    reading = read(data, eta_y=eta_y, eta_z=eta_z, decoder=decoder)
    facts = {"format": FORMAT, "settings": dict(reading.settings), **rest}
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for key, array in sorted({**bags_arrays(reading.bags), "query_tokens": reading.query_tokens}.items()):
        digest.update(key.encode() + np.ascontiguousarray(array).tobytes())
    return Path(name) / f"{digest.hexdigest()}.npz"
