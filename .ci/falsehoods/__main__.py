"""False sentences, put one at a time into a copy of the repository: which checks notice them?

``python .ci/falsehoods`` goes through ``list.toml`` beside this file and prints a line for each. An entry has a file,
the words in it, the false ones, a ``kind`` where several are alike, and where nothing notices them the reason. What is
asked: the test that compares pages with the stored numbers, and the tests of that kind of file. These, and ``python -m
yzflow.values check --stored``, must pass in the copy as it is, or nothing that they say counts. ``--only`` runs the
entries whose file, words or kind contain a text. An entry whose words have changed is named, and has to be mended.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VALUES = ["-m", "yzflow.values", "check", "--stored"]
MARKS = "tests/yzflow/test_values.py::test_every_page_has_the_stored_numbers_and_no_number_without_a_key"


def tests_of(file: str, known: dict[str, list[str]]) -> list[str]:
    """The tests that are asked about a file: those of the longest pattern that begins its path."""
    return max(
        ((start, tests) for start, tests in known.items() if file.startswith(start)), key=lambda one: len(one[0])
    )[1]


def fails(folder: Path, command: list[str]) -> str:
    """Complaint of a command in the copy, or nothing."""
    given = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *command], cwd=folder, env=given, capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    if done.returncode > 2:  # pytest's own: its tests did not run, and so have noticed nothing
        sys.exit(f"`{' '.join(command)}` did not run: {(done.stderr or done.stdout)[-500:]}")
    lines = [line for line in done.stdout.splitlines() if line.startswith("FAILED") or ": " in line]
    failed = [line.removeprefix("FAILED ").partition(" - ")[0] for line in lines if line.startswith("FAILED")]
    return (failed or lines or done.stderr.splitlines() or ["an error"])[0][:110]


def asked(tests: list[str]) -> list[str]:
    """The command that runs tests, up to the first that fails."""
    return ["-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", MARKS, *tests]


def main() -> None:
    """Print a line for each false sentence; exit status 1 if fewer are noticed than the list says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="entries whose file, words or kind contain this")
    only = parser.parse_args().only
    content = tomllib.loads((HERE / "list.toml").read_text(encoding="utf-8"))
    chosen = [one for one in content["false"] if any(only in one.get(key, "") for key in ("file", "was", "kind"))]
    noticed = stale = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "copy"
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
        for file in listed.stdout.splitlines():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, folder / file)
        whole = {tuple(tests_of(one["file"], content["tests"])) for one in chosen}
        for command in (VALUES, *(asked(list(tests)) for tests in whole)):
            if wrong := fails(folder, command):
                sys.exit(f"the copy fails as it is: {wrong}")
        for number, one in enumerate(chosen, 1):
            path = folder / one["file"]
            text = path.read_text(encoding="utf-8")
            if text.count(one["was"]) != 1:
                stale += 1
                print(f"{number:3} STALE   {one['file']}: {one['was'][:60]!r} stands {text.count(one['was'])} times")
                continue
            path.write_text(text.replace(one["was"], one["now"]), encoding="utf-8")
            found = fails(folder, asked(tests_of(one["file"], content["tests"])))
            path.write_text(text, encoding="utf-8")
            noticed += bool(found)
            print(
                f"{number:3} {'noticed' if found else 'MISSED '} {one['file']}: {one['now'][:60]!r} {found}", flush=True
            )
    print(f"{noticed} of {len(chosen)} noticed; at least {content['least']} of {len(content['false'])} have to be")
    sys.exit(bool(stale) or (not only and noticed < content["least"]))


if __name__ == "__main__":
    main()
