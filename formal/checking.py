"""Compiles the proofs, asks the kernel for their axioms, and writes the table that others read.

Every theorem has a comment above it with fields: ``@statement`` (its id in the register of `theory`), ``@clause`` (the
name of the clause there, if it has one), ``@kind`` (see `KINDS`), ``@hypotheses``, ``@formula`` and, where the theorem
says less or more than the clause, ``@note``. Lemmas are steps of proofs and stand in no table.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path

from formal.typeset import typeset

FOLDER = Path(__file__).resolve().parent
TABLE = FOLDER.parent / "theory" / "theorems.json"  # a part of what is installed
DEFINITIONS = TABLE.with_name("definitions.json")
ROOMS = ("common", "scan_and_snap", "bounded_dyck", "sparse_averaging")

# The part of a theorem in its clause: all of it; a part; the negation of what is printed; or true besides.
KINDS = ("clause", "part", "erratum", "besides")

# The axioms of the standard library's real numbers, which Coquelicot uses, too.
ALLOWED = {
    "ClassicalDedekindReals.sig_forall_dec": "a property of the numbers holds for all of them or fails for one",
    "ClassicalDedekindReals.sig_not_dec": "a negated proposition can be decided",
    "FunctionalExtensionality.functional_extensionality_dep": "functions with equal values are equal",
    "Classical_Prop.classic": "the excluded middle",
}

# Words that leave a goal open or bring an axiom in.
_FORBIDDEN = re.compile(
    r"\b(Admitted|admit|give_up|Axioms?|Parameters?|Conjectures?|Unset\s+Guard|bypass_check|Unset\s+Positivity|"
    r"Unset\s+Universe|Primitive|Declare\s+ML)\b"
)
_REQUIRED = re.compile(r"From Formal\.(\w+) Require Import ([\w\s]+)\.")
_THEOREM = re.compile(
    r"(?:\(\*\*\s*(?P<fields>@statement(?:(?!\*\)).)*)\*\)\s*)?^Theorem\s+(?P<name>\w+)\s*:(?P<says>.*?)^Proof\.",
    re.DOTALL | re.MULTILINE,
)
_DEFINITION = re.compile(
    r"^(?P<word>Definition|Fixpoint|Inductive)\s+(?P<name>[\w']+).*?\.(?=\s)", re.DOTALL | re.MULTILINE
)
_BOUND = re.compile(r"\b(?:forall|exists|fun)\s+([\w'\s]+?)\s*(?:,|=>|:)|\(([\w'\s]+?)\s*:(?!=)|\blet\s+([\w']+)")
_CONSTRUCTOR = re.compile(r"(?::=|\|)\s*([A-Z]\w*)")
_FIELD = re.compile(r"@(\w+)(.*?)(?=\n\s*@|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Theorem:
    """A theorem, as its source has it.

    Attributes
    ----------
    theorem, file : str
        Its name, and the file's path within the folder.
    statement, clause : str
        The statement's id in the register, and the clause's name.
    kind : str
        One of `KINDS`.
    hypotheses, formula, note : str
        What it assumes and says, in words, and how it differs from the clause.
    coq : str
        What it says to the kernel, behind what the sections around it assume.
    latex : str
        The same as LaTeX, by `typeset`.
    uses : tuple of str
        The definitions that it rests on, those first that others rest on, each by room, file and name.
    """

    theorem: str
    file: str
    statement: str
    clause: str
    kind: str
    hypotheses: str
    formula: str
    note: str
    coq: str
    latex: str
    uses: tuple[str, ...]


def sources() -> list[str]:
    """Paths of all sources within the folder."""
    return [path.relative_to(FOLDER).as_posix() for room in ROOMS for path in sorted((FOLDER / room).glob("*.v"))]


def without_comments(text: str) -> str:
    """A source without its comments, which may be nested."""
    kept, depth = [], 0
    for piece in re.split(r"(\(\*|\*\))", text):
        if piece in ("(*", "*)"):
            depth += 1 if piece == "(*" else -1
        elif depth == 0:
            kept.append(piece)
    return "".join(kept)


def theorems(file: str, text: str | None = None) -> list[Theorem]:
    """The theorems of a source, in its order.

    Raises
    ------
    ValueError
        If a theorem lacks a field, or the source has a word that leaves a goal open or brings an axiom in.
    """
    text = (FOLDER / file).read_text() if text is None else text
    forbidden = _FORBIDDEN.search(without_comments(text))
    if forbidden:
        raise ValueError(f"{file} must have no goal left open and no axiom, but has {forbidden.group()!r}")
    return [_theorem(file, found, text[: found.start()]) for found in _THEOREM.finditer(text)]


def sections(before: str) -> str:
    """Declarations of the sections that are open behind a text, as quantifiers and premises of what follows.

    Their end gives a theorem those that its statement or proof uses; the others cost it nothing.
    """
    opened: list[tuple[str, list[str]]] = []
    for sentence in re.split(r"\.(?=\s|$)", without_comments(before)):
        words = " ".join(sentence.split())
        word, _, rest = words.partition(" ")
        if word == "Section":
            opened.append((rest, []))
        elif word == "End" and opened and opened[-1][0] == rest:
            opened.pop()
        elif opened and word in ("Variable", "Variables", "Context"):
            opened[-1][1].append(f"forall {rest}, ")
        elif opened and word in ("Hypothesis", "Hypotheses"):
            groups = _grouped(rest) if rest.startswith("(") else [rest]
            opened[-1][1].extend(f"({one.partition(':')[2].strip()}) -> " for one in groups)
        elif opened and word == "Let" and ":=" in rest:
            opened[-1][1].append(f"let {rest} in ")
    return "".join(one for _, declared in opened for one in declared)


def _grouped(text: str) -> list[str]:
    """The parts of a text between its outer brackets, in its order."""
    found, depth, start = [], 0, 0
    for at, sign in enumerate(text):
        if sign == "(":
            depth += 1
            start = at + 1 if depth == 1 else start
        elif sign == ")":
            depth -= 1
            if depth == 0:
                found.append(text[start:at])
    return found


@functools.cache
def definitions() -> dict[str, str]:
    """The definitions of all sources, by room, file and name: each as its file has it."""
    return {
        f"{file.removesuffix('.v')}.{found['name']}": found[0].strip()
        for file in sources()
        for found in _DEFINITION.finditer(without_comments((FOLDER / file).read_text()))
    }


def used(file: str, text: str) -> tuple[str, ...]:
    """The definitions that a text of this file rests on, each behind those that it rests on.

    A name stands for the definition in its own file, or else in the last file that it requires. Constructors of a type
    stand for the type.
    """
    found: list[str] = []
    waiting: list[str] = []

    def visit(room: str, words: str) -> None:
        known = _visible(room)
        bound = {name for names in _BOUND.findall(words) for name in "".join(names).split()}
        for name in dict.fromkeys(re.findall(r"[A-Za-z_][\w']*", words)):
            one = None if name in bound else known.get(name)
            if one is not None and one not in found and one not in waiting:
                waiting.append(one)
                visit(f"{one.rpartition('.')[0]}.v", definitions()[one])
                found.append(waiting.pop())

    visit(file, text)
    return tuple(found)


@functools.cache
def _visible(file: str) -> dict[str, str]:
    """Names of definitions and what they stand for in a file, which has what its requirements have."""
    known: dict[str, str] = {}
    for other in [*required(file), file]:
        for one, says in definitions().items():
            if one.rpartition(".")[0] == other.removesuffix(".v"):
                names = [one.rpartition(".")[2], *(_CONSTRUCTOR.findall(says) if says.startswith("Inductive") else ())]
                known.update(dict.fromkeys(names, one))
    return known


def _theorem(file: str, found: re.Match[str], before: str) -> Theorem:
    # A star and a bracket end a comment of Coq, so that sources write ustar for u*.
    words = re.sub(r"\b([uth])star\b", r"\1*", found["fields"] or "")
    fields = {key: " ".join(value.split()) for key, value in _FIELD.findall(words)}
    known = {"statement", "clause", "kind", "hypotheses", "formula", "note"}
    for key in ("statement", "kind", "hypotheses", "formula"):
        if not fields.get(key):
            raise ValueError(f"{file}: {found['name']} must have @{key}")
    if fields.keys() - known or fields["kind"] not in KINDS:
        raise ValueError(f"{file}: {found['name']} must have known fields and a kind of {KINDS}, but has {fields}")
    says = sections(before) + " ".join(found["says"].split()).removesuffix(".")
    return Theorem(
        found["name"],
        file,
        fields["statement"],
        fields.get("clause", ""),
        fields["kind"],
        fields["hypotheses"],
        fields["formula"],
        fields.get("note", ""),
        says,
        typeset(says),
        used(file, says),
    )


def required(file: str) -> list[str]:
    """The sources that a source is built on."""
    text = without_comments((FOLDER / file).read_text())
    return [f"{room}/{name}.v" for room, names in _REQUIRED.findall(text) for name in names.split()]


def seal(file: str) -> str:
    """SHA-256 of a source and of all that it is built on, so that a changed definition breaks what rests on it."""
    parts, waiting = set(), [file]
    while waiting:
        one = waiting.pop()
        if one not in parts:
            parts.add(one)
            waiting += required(one)
    found = hashlib.sha256()
    for part in sorted(parts):
        found.update(hashlib.sha256((FOLDER / part).read_bytes()).digest())
    return found.hexdigest()


def compiler() -> str | None:
    """The path of Coq's compiler, None where there is none."""
    return shutil.which("coqc")


def coq(folder: Path, file: str, timeout: float = 1800) -> subprocess.CompletedProcess[str]:
    """One run of the compiler, in a folder of sources."""
    command = [compiler() or "coqc", "-q", "-w", "none", "-Q", ".", "Formal", file]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=timeout, check=False)


def build(folder: Path, jobs: int = 2) -> Iterator[tuple[str, float]]:
    """Compiles all sources into a folder, each behind what it is built on; yields names and seconds.

    Raises
    ------
    RuntimeError
        If one does not compile.
    """
    left = {file: set(required(file)) for file in sources()}
    for file in left:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FOLDER / file, folder / file)
    running: dict[Future[float], str] = {}

    def compiled(file: str) -> float:
        start = time.perf_counter()
        run = coq(folder, file)
        if run.returncode:
            raise RuntimeError(f"{file} does not compile:\n{run.stdout}{run.stderr}")
        return time.perf_counter() - start

    with ThreadPoolExecutor(jobs) as pool:
        while left or running:
            for file in [file for file, needs in left.items() if not needs & (left.keys() | set(running.values()))]:
                del left[file]
                running[pool.submit(compiled, file)] = file
            if not running:
                raise RuntimeError(f"sources must not need each other, but {sorted(left)} do")
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for one in done:
                yield running.pop(one), one.result()


def axioms(folder: Path, proved: Sequence[Theorem], jobs: int = 2) -> dict[str, list[str]]:
    """The axioms of each theorem, as the kernel's `Print Assumptions` lists them, file by file.

    Raises
    ------
    RuntimeError
        If it says nothing about one.
    """
    files = sorted({one.file for one in proved})
    with ThreadPoolExecutor(jobs) as pool:
        answers = pool.map(lambda file: _axioms(folder, [one for one in proved if one.file == file]), files)
        found = {name: names for answer in answers for name, names in answer.items()}
    missing = {label(one) for one in proved} - found.keys()
    if missing:
        raise RuntimeError(f"the kernel must name the axioms of every theorem, but not of {sorted(missing)}")
    return found


def axioms_together(folder: Path, proved: Sequence[Theorem]) -> list[str]:
    """The axioms that any of the theorems rests on: one look at the library, where `axioms` takes one for each.

    Raises
    ------
    RuntimeError
        If the kernel says nothing about them.
    """
    rooms = sorted({(Path(one.file).parent.name, Path(one.file).stem) for one in proved})
    lines = [f"From Formal.{room} Require {name}." for room, name in rooms]
    all_of_them = ", ".join(f"@{qualified(one)}" for one in proved)
    lines += [f"Definition all_of_them := ({all_of_them}, I).", "Print Assumptions all_of_them."]
    return _listed(_said(folder, "Axioms_together.v", lines))


def _axioms(folder: Path, proved: Sequence[Theorem]) -> dict[str, list[str]]:
    """The axioms of each theorem of one file."""
    file = Path(proved[0].file)
    lines = [f"From Formal.{file.parent} Require {file.stem}."]
    for one in proved:
        lines += [f'Goal True. idtac "== {label(one)}". exact I. Qed.', f"Print Assumptions {qualified(one)}."]
    found = {}
    for part in _said(folder, f"Axioms_{file.parent}_{file.stem}.v", lines).split("== ")[1:]:
        name, _, answer = part.partition("\n")
        found[name.strip()] = _listed(answer)
    return found


def _said(folder: Path, file: str, lines: Sequence[str]) -> str:
    """Output of Coq on these lines; RuntimeError if it refuses them."""
    (folder / file).write_text("\n".join(lines) + "\n")
    run = coq(folder, file)
    if run.returncode:
        raise RuntimeError(f"the kernel's axioms cannot be read:\n{run.stdout}{run.stderr}")
    return run.stdout


def _listed(answer: str) -> list[str]:
    """Names in an answer to `Print Assumptions`."""
    if "Closed under the global context" in answer:
        return []
    if not answer.startswith("Axioms:"):
        raise RuntimeError(f"the kernel must name the axioms, but said {answer!r}")
    return sorted(re.findall(r"^([\w.']+)\s*(?::|$)", answer, re.MULTILINE)[1:])


def label(one: Theorem) -> str:
    """A theorem's name with its room and file."""
    return f"{one.file.removesuffix('.v')}.{one.theorem}"


def qualified(one: Theorem) -> str:
    """A theorem's name as Coq has it."""
    return f"Formal.{one.file.removesuffix('.v').replace('/', '.')}.{one.theorem}"


def table(
    proved: Sequence[Theorem],
    by_name: Mapping[str, Sequence[str]],
    seals: Mapping[str, str],
    clauses: Sequence[str],
) -> list[dict[str, object]]:
    """The rows of theorems.json, each with a hash of what the register says of its clause."""
    return [
        asdict(one) | {"axioms": list(by_name[label(one)]), "sha256": seals[one.file], "asked": clause}
        for one, clause in zip(proved, clauses, strict=True)
    ]


def asked(one: Theorem) -> str:
    """Hash of the clause that a theorem is about, as the register has it.

    Raises
    ------
    ValueError
        If the register has no such statement or clause.
    """
    from theory.statements import REGISTER, Clause

    statement = REGISTER.get(one.statement)
    clauses = [] if statement is None else [own for own in statement.clauses if own.name == one.clause]
    if statement is None or not (clauses or one.clause == ""):
        raise ValueError(f"{label(one)} must be about a clause of the register, not {one.statement}, {one.clause}")
    return statement.hashed(clauses[0] if clauses else Clause())


def write(rows: Sequence[Mapping[str, object]]) -> None:
    """Writes the rows, and beside them the definitions that they name."""
    TABLE.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    named = {name for row in rows for name in row["uses"]}  # type: ignore[attr-defined]
    kept = {name: says for name, says in definitions().items() if name in named}
    DEFINITIONS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks all; 0 where every theorem is proved from the allowed axioms alone."""
    parser = argparse.ArgumentParser(prog="formal/check", description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, help="compilations at a time")
    chosen = parser.parse_args(arguments)
    if compiler() is None:
        print("There is no coqc here. On Debian: apt-get install coq libcoq-coquelicot", file=sys.stderr)
        return 2
    proved = [one for file in sources() for one in theorems(file)]
    # Before, for a source may be edited while others compile, and `theory` may not be installed.
    seals = {file: seal(file) for file in sources()}
    clauses = [asked(one) for one in proved]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, seconds in build(folder, chosen.jobs):
            print(f"{file}: {seconds:.1f} s", flush=True)
        found = axioms(folder, proved, chosen.jobs)
    foreign = 0
    for one in proved:
        names = found[label(one)]
        foreign += bool(set(names) - ALLOWED.keys())
        print(f"{label(one)} ({one.statement}{', ' if one.clause else ''}{one.clause}; {one.kind})")
        print(f"    axioms: {', '.join(names) or 'none'}")
    write(table(proved, found, seals, clauses))
    if foreign:
        print(f"{foreign} theorems rest on other axioms than {', '.join(ALLOWED)}")
        return 1
    print(f"{len(proved)} theorems, 0 admitted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
