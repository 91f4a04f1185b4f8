"""Writing: whole or not at all, in place of regular files only, with the modes of what was there, after links."""

import errno
import hashlib
import io
import os
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from dynamics import Bags
from dynamics.support import archive, files, formats, netcdf, sealed

WRITERS = {
    "write": lambda path: files.write(path, b"new"),
    "replacing": lambda path: _replace(path),
    "netcdf": lambda path: netcdf.save_dataset(xr.Dataset({"x": ("a", [1.0, 2.0])}), path),
}


def _replace(path):
    with files.replacing(path) as temporary:
        temporary.write_bytes(b"new")


@pytest.fixture(params=WRITERS)
def writer(request):
    return WRITERS[request.param]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_link_is_followed_and_stays(tmp_path, writer):
    (tmp_path / "real").mkdir()
    target, link, dangling = tmp_path / "real" / "a.nc", tmp_path / "link.nc", tmp_path / "dangling.nc"
    target.write_bytes(b"old")
    link.symlink_to(target)
    dangling.symlink_to(tmp_path / "real" / "b.nc")
    for path in (link, dangling):
        writer(path)
        assert path.is_symlink()
    assert names(tmp_path / "real") == ["a.nc", "b.nc"] and names(tmp_path) == ["dangling.nc", "link.nc", "real"]
    assert (tmp_path / "real" / "b.nc").read_bytes() == target.read_bytes() != b"old"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path, writer, mode):
    path = tmp_path / "a.nc"
    path.write_bytes(b"old")
    path.chmod(mode)
    writer(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode and path.read_bytes() != b"old"


@pytest.mark.parametrize("what", ["folder", "pipe", "device"])
def test_what_is_no_regular_file_is_refused_and_left(tmp_path, writer, what):
    path = tmp_path / "a.nc"
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/null")
    before = path.stat()
    with pytest.raises(ValueError, match=rf"^`path` must be a regular file or a new one, but got .*a\.nc, a {what}$"):
        writer(path)
    with pytest.raises(ValueError, match=rf"^`--out` must be a regular file or a new one, but got .*a\.nc, a {what}$"):
        files.writable("--out", path)
    assert (path.stat().st_mode, path.stat().st_rdev) == (before.st_mode, before.st_rdev) and names(tmp_path) == [
        "a.nc"
    ]


@pytest.mark.parametrize("path", ["", "figs/", "a\0b", b"a", 5, None, "\ud800"])
def test_what_names_no_file_is_refused(writer, tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    for call in (writer, lambda path: files.writable("path", path), lambda path: files.read("path", path)):
        with pytest.raises(ValueError, match=r"^`path` must be the path of a file, but got "):
            call(path)
    assert names(tmp_path) == []


def test_errors_name_the_file_that_was_asked_for(tmp_path, writer):
    for path in (tmp_path / "missing" / "a.nc", tmp_path / ("n" * 300)):
        with pytest.raises(OSError) as caught:
            writer(path)
        assert ".yzflow-" not in str(caught.value) and str(path) in str(caught.value)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError) as caught:
        writer(loop)
    assert caught.value.errno == errno.ELOOP
    with pytest.raises(ValueError, match=r"^`x` must be a path that can be written, but got .*loop \(Too many levels"):
        files.writable("x", loop)
    assert names(tmp_path) == ["loop"]


def test_a_name_as_long_as_a_file_system_takes_it(tmp_path, writer):
    for name in ("n" * 255, "n." + "s" * 253):
        writer(tmp_path / name)
        assert names(tmp_path) == [name]
        (tmp_path / name).unlink()


LEAVES_ONE = """
import os, signal, sys
from dynamics.support.files import replacing
with replacing(sys.argv[1]) as path:
    print(path.name, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_swept_up_at_the_next_write(tmp_path, writer):
    other = subprocess.run(
        [sys.executable, "-c", LEAVES_ONE, tmp_path / "x.nc"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    left = other.stdout.strip()
    assert names(tmp_path) == [left] and files.is_temporary(left)
    host, process, token = left.removesuffix(".nc").split("-")[1:]
    kept = [
        f".yzflow-{host}-{os.getpid()}-{token}.nc",  # of a process that lives
        f".yzflow-{'0' * 8}-{process}-{token}.nc",  # of another machine, of now
        f".yzflow-{host}-{process}-{token[:-1]}.nc",  # not one of ours
        f"yzflow-{host}-{process}-{token}.nc",
    ]
    old = f".yzflow-{'0' * 8}-{process}-{token[::-1]}"
    for name in [*kept, old]:
        (tmp_path / name).write_bytes(b"half")
    os.utime(tmp_path / old, (time.time() - 90_000,) * 2)
    writer(tmp_path / "x.nc")
    assert names(tmp_path) == sorted([*kept, "x.nc"])


@pytest.mark.parametrize("what", ["folder", "pipe", "device"])
def test_reading_what_is_no_regular_file_is_refused_and_does_not_wait(tmp_path, what):
    path = tmp_path / "a"
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    for call in (lambda: netcdf.load_dataset(path, "f", "a file"), lambda: Bags.load(path)):
        with pytest.raises(ValueError, match=rf"^`path` must be a regular file, but got .*a, a {what}$"):
            call()


def test_a_seal_is_the_sha256_of_all_bytes_before_it_and_every_change_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("a::b.nc")  # which begins an address where xarray opens files by name
    dataset = xr.Dataset({"x": ("a", np.arange(300.0))}, attrs={"format": "f"})
    netcdf.save_dataset(dataset, path)
    whole = path.read_bytes()
    assert whole[-64:] == hashlib.sha256(whole[:-64]).hexdigest().encode()
    xr.testing.assert_identical(netcdf.load_dataset(path, "f", "a file"), dataset)
    with open(path, "rb") as file:
        xr.testing.assert_identical(xr.load_dataset(file, engine="h5netcdf"), dataset)
    rng = np.random.default_rng(0)
    for place in [0, len(whole) - 64, len(whole) - 1, *rng.integers(len(whole), size=50)]:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << int(rng.integers(8))]) + whole[place + 1 :])
        with pytest.raises(ValueError, match="its checksum is wrong"):
            netcdf.load_dataset(path, "f", "a file")
    for content in (b"", whole[:-1], whole + b"0", whole[64:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="its checksum is wrong"):
            netcdf.load_dataset(path, "f", "a file")
    path.write_bytes(whole)
    with pytest.raises(ValueError, match="`path` must be a trajectory written by yzflow, but got another file"):
        netcdf.load_dataset(path, "g", "a trajectory")


def test_a_sealed_file_of_a_format_that_holds_something_else_is_refused_by_name(tmp_path):
    """Anybody can seal a file: what stands behind the name of its format may be no content of ours."""
    path = tmp_path / "a"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr(formats.HEADER, '{"format": "f"}')
        file.writestr("a.npy", b"no array")
    # In the place of the length of a comment, which is the seal.
    body = packed.getvalue()[:-2] + sealed.DIGITS.to_bytes(2, "little")
    path.write_bytes(body + sealed.digest(body))
    for load in (archive.load, netcdf.load_dataset):
        with pytest.raises(
            ValueError, match=r"^`path` must be a file written by yzflow, but got another file '.*/a', of"
        ):
            load(path, "f", "a file")
