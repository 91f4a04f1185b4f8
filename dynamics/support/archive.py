"""A sealed file of arrays: a zip archive that `numpy.load` opens; every change of its bytes is noticed.

It holds a JSON header and an array a name, and its seal, that of `dynamics.support.sealed`, is the archive's comment.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from dynamics.support import sealed
from dynamics.support.formats import CLAIM as CLAIM
from dynamics.support.formats import HEADER, OTHER_ZIP

_HEADS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_BLOCK = 2**20  # bytes
_LARGE = 2**31 - 2**16  # bytes, with room for the head of an array


def encode(
    header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], *, name: str = HEADER, compressed: bool = False
) -> bytes:
    """The bytes of an archive with the member ``name`` for the header; the same content gives the same bytes.

    Compressed ones are those of the same zlib only.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:

        def member(called: str) -> zipfile.ZipInfo:
            info = zipfile.ZipInfo(called)  # of the default date: the same content gives the same bytes
            info.compress_type = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
            return info

        archive.writestr(member(name), json.dumps(header))
        for key, array in arrays.items():
            array = np.asarray(array)
            with archive.open(member(f"{key}.npy"), "w", force_zip64=array.nbytes >= _LARGE) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    # The archive ends in the length of its comment, two bytes: the seal is made that comment.
    body = buffer.getvalue()[:-2] + sealed.DIGITS.to_bytes(2, "little")
    return body + sealed.digest(body)


def decode(content: bytes | memoryview, *, name: str = HEADER) -> tuple[dict, dict[str, np.ndarray]]:
    """The header and the arrays of the bytes that `encode` made.

    Raises
    ------
    ValueError
        If a byte is not as it was written (`sealed.Damaged`), or they are of something else.
    """
    sealed.body(content)
    arrays = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            header = json.loads(archive.read(name), object_pairs_hook=_unique)
            for info in archive.infolist():
                if info.filename != name:
                    arrays[info.filename.removesuffix(".npy")] = _array(archive, info)
    except (*OTHER_ZIP, ValueError) as error:
        raise ValueError(f"it holds something else ({error})") from error
    if not isinstance(header, dict):
        raise ValueError("it holds something else (no header)")
    return header, arrays


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A mapping of JSON, in which no name stands twice: other readers could take the other value."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in the header")
    return found


def load(
    path: str | os.PathLike, file_format: str, what: str, *, name: str = "path"
) -> tuple[dict, dict[str, np.ndarray]]:
    """Header and arrays of a file, if its header's ``format`` is ``file_format``; ``what`` it is goes into errors.

    Raises
    ------
    ValueError
        If a byte of the file is not as it was written (`sealed.Damaged`), or it holds something else.
    OSError
        If it is not there or cannot be read.
    """
    return sealed.load(path, file_format, what, decode, name=name)


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """An array of the size of its member. No memory is taken for a header that claims a larger array."""
    with archive.open(info) as file:
        shape, fortran, dtype = _HEADS[np.lib.format.read_magic(file)](file)
        size = dtype.itemsize * int(np.prod(shape, dtype=object))
        if dtype.hasobject or min(shape, default=0) < 0 or size != info.file_size - file.tell():
            raise ValueError(f"the array {info.filename!r} has another size")
        content, done = bytearray(size), 0
        while block := file.read(_BLOCK):  # up to the end, where the member's own checksum is compared
            content[done : done + len(block)] = block
            done += len(block)
    if done != size:
        raise ValueError(f"the array {info.filename!r} has another size")
    array = np.frombuffer(content, dtype) if size else np.empty(int(np.prod(shape)), dtype)
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)
