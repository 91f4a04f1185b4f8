"""Files and the forms of their parts, for `yzflow_enclose.verifier`. It imports no other file."""

import ast
import hashlib
import io
import json
import math
import struct
import zipfile
from typing import Any


def need(good: bool, what: str) -> None:
    if not good:
        raise ValueError(what)


def real(x: Any) -> bool:
    return type(x) is float and math.isfinite(x)


def positive(x: Any) -> bool:
    return real(x) and x > 0


def whole(x: Any) -> bool:
    return type(x) is int and 0 <= x < 2**53


def number(x: Any) -> bool:
    return real(x) or (type(x) is int and abs(x) < 2**53)


def letters(x: Any) -> bool:
    return type(x) is str and len(x) <= 20_000


def reason(x: Any) -> bool:
    return letters(x) and x.isprintable() and len(x) <= 2000


def fits(x: Any, rule: Any) -> bool:
    """True if a part of a claim has an allowed form."""
    if isinstance(rule, dict):
        return type(x) is dict and x.keys() == rule.keys() and all(fits(x[name], rule[name]) for name in rule)
    if isinstance(rule, list):
        return type(x) is list and all(fits(entry, rule[0]) for entry in x)
    if isinstance(rule, tuple):
        return type(x) is list and len(x) == len(rule) and all(map(fits, x, rule))
    if isinstance(rule, set):
        return any(x is word or (type(x) is str and x == word) for word in rule)
    return isinstance(x, rule) if isinstance(rule, type) else rule(x)


def npy(raw: bytes) -> tuple[tuple, list]:
    """Shape and numbers of an array of doubles or 64-bit integers."""
    need(raw[:8] + raw[10:22] == b"\x93NUMPY\x01\x00{'descr': '<", "an array is of another format")
    end = 10 + struct.unpack("<H", raw[8:10])[0]
    head = ast.literal_eval(raw[10:end].decode("latin1"))
    need(head.keys() == {"descr", "fortran_order", "shape"}, "an array has another head")
    shape, kind = head["shape"], {"<f8": "d", "<i8": "q"}.get(head["descr"])
    # An array of one row is the same in both orders.
    plain = not head["fortran_order"] or sum(size > 1 for size in shape) < 2
    need(kind is not None and plain, "an array holds something else than numbers, or in another order")
    found = list(struct.unpack(f"<{math.prod(shape)}{kind}", raw[end:]))
    need(all(map(math.isfinite, found)), "an array holds a number that is not finite")
    return shape, found


def opened(path: str) -> tuple[dict, dict]:
    """The claim and the arrays of a file with unchanged bytes."""
    with open(path, "rb") as file:
        content = file.read()
    need(hashlib.sha256(content[:-64]).hexdigest().encode() == content[-64:], "the SHA-256 is another")
    need(zipfile.is_zipfile(io.BytesIO(content)), "no certificate: it holds no claim")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        need("claim.json" in names, "no certificate: it holds no claim")
        # Otherwise other readers would read other parts.
        need(len(set(names)) == len(names), "a name stands twice in the file")
        need(all(entry.compress_type == 0 for entry in entries), "a part of the file is compressed")
        need(all(name.endswith(".npy") for name in names if name != "claim.json"), "a part of the file is no array")
        members = {entry.filename: archive.read(entry) for entry in entries}

    def unique(pairs: list) -> dict:
        need(len(dict(pairs)) == len(pairs), "a name stands twice in the claim")
        return dict(pairs)

    header = json.loads(members.pop("claim.json"), object_pairs_hook=unique)
    need(type(header) is dict and header.keys() == {"claim", "notes"}, "there are other parts than a claim and notes")
    notes = header["notes"]
    good = type(notes) is dict and notes.keys() == {"reason", "environment"} and reason(notes["reason"])
    good = good and type(notes["environment"]) is dict and all(map(letters, notes["environment"].values()))
    need(good and all(map(letters, notes["environment"])), "the notes are none that are known here")
    return header["claim"], {name.removesuffix(".npy"): npy(raw) for name, raw in members.items()}
