"""A sealed file of arrays: one zip archive that `numpy.load` opens, every change of which is noticed.

It holds a JSON header and an array a name, and ends, as the comment of the archive, in the SHA-256 of all bytes before.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping

import numpy as np

_DIGEST = 64  # characters of a SHA-256 in hexadecimal
_LARGE = 2**31 - 2**16  # bytes, with room for the head of an array
# What else than ValueError reading raises if the bytes are sealed but not of `encode`.
_OTHER = (KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)


def encode(header: dict, arrays: Mapping[str, np.ndarray], *, name: str = "run.json") -> bytes:
    """The bytes of an archive with the member ``name`` for the header; the same content gives the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        # ZipInfo's default date: the same content gives the same bytes.
        archive.writestr(zipfile.ZipInfo(name), json.dumps(header))
        for key, array in arrays.items():
            array = np.asarray(array)
            with archive.open(zipfile.ZipInfo(f"{key}.npy"), "w", force_zip64=array.nbytes >= _LARGE) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    # The archive ends in the length of its comment, two bytes: the digest is made that comment.
    body = buffer.getvalue()[:-2] + _DIGEST.to_bytes(2, "little")
    return body + hashlib.sha256(body).hexdigest().encode()


def decode(content: bytes, *, name: str = "run.json") -> tuple[dict, dict[str, np.ndarray]]:
    """The header and the arrays of what `encode` made.

    Raises
    ------
    ValueError
        If a byte is not as it was written, or they are of something else.
    """
    body, digest = content[:-_DIGEST], content[-_DIGEST:]
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise ValueError("its checksum is wrong")
    arrays = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            header = json.loads(archive.read(name))
            for member in archive.namelist():
                if member != name:
                    with archive.open(member) as file:
                        arrays[member.removesuffix(".npy")] = np.lib.format.read_array(file, allow_pickle=False)
    except _OTHER as error:
        raise ValueError(f"it holds something else ({error})") from error
    return header, arrays
