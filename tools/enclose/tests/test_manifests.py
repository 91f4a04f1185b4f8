"""Manifests: every change of a folder is found, whatever it is, and certificates in it are verified besides."""

import json
import shutil
import subprocess
from unittest.mock import MagicMock

import driving
import numpy as np
import pytest
from click.testing import CliRunner
from driving import ROOT
from yzflow_enclose import certificate, manifests

from yzflow.cli import main

PUBLISHED = ROOT / "docs" / "certificates"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "published").mkdir()
    for name in ("lead_shrinks.npz", "signs.npz"):
        shutil.copy(PUBLISHED / name, tmp_path / "published")
    (tmp_path / "published" / "part").mkdir()
    (tmp_path / "published" / "part" / "notes.txt").write_text("what I think of it")
    manifests.write(tmp_path / "published")
    return tmp_path / "published"


def words(folder):
    return {one.path: one.words for one in manifests.check(folder / manifests.NAME)}


@pytest.mark.slow
def test_what_is_published_is_as_listed_and_verified():
    ended = CliRunner().invoke(main, ["verify", "--manifest", str(PUBLISHED / manifests.NAME)])
    assert ended.exit_code == 0, ended.output
    assert ended.stdout.count("as listed, and verified") == 3
    assert "audit.json: as listed" in ended.stdout and "at every setting with 0.45 <= eta_Z <= 0.55" in ended.stdout
    assert "  true for every t with 0 < t <= 100.0" in ended.stdout and "  false at t = 52." in ended.stdout


def test_a_hash_is_that_of_another_program(folder):
    """sha256sum reads the same: the manifest is no format of our own making alone."""
    listed = {one.path: one.sha256 for one in manifests.read(folder / manifests.NAME)}
    printed = subprocess.run(["sha256sum", *listed], cwd=folder, capture_output=True, text=True, check=True).stdout
    assert {line.split()[1]: line.split()[0] for line in printed.splitlines()} == listed


@pytest.mark.slow
def test_each_change_of_a_folder_is_named(folder, tmp_path):
    """And a link out of the folder is not followed."""
    as_listed = {"lead_shrinks.npz": "as listed, and verified", "signs.npz": "as listed, and verified"}
    assert words(folder) == {**as_listed, "part/notes.txt": "as listed"}
    (tmp_path / "outside.txt").write_text("what I think of it")
    (folder / "part" / "notes.txt").unlink()
    (folder / "part" / "notes.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "more.txt").write_text("")
    content = bytearray((folder / "signs.npz").read_bytes())
    content[1000] ^= 1
    (folder / "signs.npz").write_bytes(content)
    (folder / "lead_shrinks.npz").unlink()
    changed = "changed: another SHA-256 than listed"
    expected = {
        "lead_shrinks.npz": "missing",
        "signs.npz": changed,
        "part/notes.txt": "missing",
        "more.txt": "not listed",
    }
    assert words(folder) == expected
    ended = CliRunner().invoke(main, ["verify", "--manifest", "--json", str(folder / manifests.NAME)])
    assert ended.exit_code == 1 and {one["words"] for one in json.loads(ended.stdout)["files"]} == set(
        expected.values()
    )


def test_what_is_listed_anew_and_proves_nothing_is_said(folder):
    """The hash of a forged certificate is right; what it claims is not."""
    claim, notes, arrays = certificate.read(folder / "signs.npz")
    certificate.write(folder / "signs.npz", {**claim, "eta_z": 0.75}, notes, arrays)
    manifests.write(folder)
    assert words(folder)["signs.npz"].startswith("as listed, but not verified: 'the norm is another than")
    ended = CliRunner().invoke(main, ["verify", str(folder / "signs.npz")])
    assert ended.exit_code == 1 and ended.stdout.startswith("not verified: 'the norm is another than")


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.update(format="yzflow-manifest-2"), lambda m: m.update(more=1), lambda m: m.pop("files"),
        lambda m: m["files"][0].update(path="../secret"), lambda m: m["files"][0].update(path="/etc/passwd"),
        lambda m: m["files"][0].update(path="part/../signs.npz"), lambda m: m["files"][0].update(path="\x1b[2J"),
        lambda m: m["files"][0].update(bytes=True), lambda m: m["files"][0].update(sha256="0" * 63),
        lambda m: m["files"].append(m["files"][0]), lambda m: m["files"].append(3), lambda m: m.update(files={}),
    ],
)  # fmt: skip
def test_what_is_no_manifest_is_refused(folder, change):
    content = json.loads((folder / manifests.NAME).read_text())
    change(content)
    (folder / manifests.NAME).write_text(json.dumps(content))
    with pytest.raises(ValueError, match="`path` must be a manifest that `yzflow manifest` wrote, but got"):
        manifests.check(folder / manifests.NAME)


@pytest.mark.slow
def test_the_example_makes_what_is_published(tmp_path, monkeypatch):
    """The same claims, on this machine; bits of polynomials may be others on another. Two of four parts are made."""
    example = driving.example("certificates")
    for name in ("signs_in_a_box", "audit"):
        monkeypatch.setattr(example, name, MagicMock())
    assert example.main(["--out", str(tmp_path)]) == 0
    assert [one.path for one in manifests.read(tmp_path / manifests.NAME)] == ["lead_shrinks.npz", "signs.npz"]
    for name in ("lead_shrinks.npz", "signs.npz"):
        published, made = (certificate.read(root / name)[0] for root in (PUBLISHED, tmp_path))
        for part in ("population", "decoder", "eta_y", "eta_z", "t_end", "t_reached"):
            assert published[part] == made[part]
        pairs = zip(published["predicates"], made["predicates"], strict=True)
        assert all(a["says"] == b["says"] and a["verdict"] is b["verdict"] for a, b in pairs)
        assert np.allclose(published["errors"], made["errors"], rtol=0.5)
