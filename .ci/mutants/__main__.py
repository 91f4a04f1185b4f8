"""How strong the tests are: small wrong changes of the code, and how many of them some test notices.

    python .ci/mutants reach [PACKAGE [TESTS..]]  which test runs which line (once; a quarter of an hour on a core);
                                   --seconds: how long each test is watched; goes on where it stopped, as all do
    python .ci/mutants run [ID..]  the sample, from where it stopped, or these alone; --again: survivors, slow tests too
    python .ci/mutants show ID  one change, and the tests that reach it
    python .ci/mutants check ID TESTS..  pytest itself, on a copy with the change on disk; kept where they notice it
    python .ci/mutants audit ID..  the rows of the quick audit, for measures that no quicker test runs
    python .ci/mutants report   counts, and survivors with what is said of them in judged.toml
    --fresh SEED --first N      (run, report) N others, drawn anew; their results are kept in the work folder
    --short                     (run, report) with the tests of the README's command alone, kept apart, too

mutmut 3 leaves out all decorated functions, and so every numba kernel; Cosmic Ray starts a process for each mutant, and
to import and collect takes longer than most tests. Here a process collects once (`server`) and forks for each mutant,
which takes a tenth of a second and the tests. The simulators' tests run with NUMBA_DISABLE_JIT=1, where a kernel needs
no compiling and its lines are seen; those of the theory, which has no kernels, run compiled. Everything happens in a
copy of the tree.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import tomllib
from scipy.stats import binomtest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

from operators import Mutant, mutants, mutated  # noqa: E402

SEED, SAMPLE = 24, 500
RESULTS = HERE / "results.jsonl"  # kept with the script; a mutant's last line counts
# Names: 500 of the 27227 mutants that there were, without those that are gone, and of the 1977 new ones the same share.
DRAWN = HERE / "sample.txt"
# Where mutants are drawn from: a file is of the first that has it. Not: files, archives and other support, deep models,
# registers of statements, and what stands between papers or tools and the engines.
SOURCES = {
    "dynamics": [
        "dynamics/_engine/*.py", "dynamics/_engine/sgd/*.py", "dynamics/_model/*.py", "dynamics/fields/*.py",
        "dynamics/optimizers/*.py", "dynamics/data/*.py",
        "papers/bounded_dyck/yzflow_bounded_dyck/dyck.py", "papers/bounded_dyck/yzflow_bounded_dyck/_dyck_kernels.py",
        "papers/sparse_averaging/yzflow_sparse_averaging/instances.py",
        "papers/sparse_averaging/yzflow_sparse_averaging/attention_unit.py",
        "papers/sparse_averaging/yzflow_sparse_averaging/trained/*.py",
        "dynamics/bags.py", "dynamics/descent.py", "dynamics/ensemble.py", "dynamics/extensions.py", "dynamics/flow.py",
        "dynamics/layer.py", "dynamics/observables.py", "dynamics/options.py", "dynamics/trajectory.py",
    ],
    "theory": [
        "theory/**/*.py", "papers/*/yzflow_*/*.py", "papers/*/yzflow_*/proofs/*.py",
        "tools/enclose/yzflow_enclose/*.py", "tools/enclose/yzflow_enclose/scan_and_snap/*.py",
    ],
}  # fmt: skip
# The tests that may kill them, without those that start processes, count threads or draw endlessly.
TESTS = {
    "dynamics": [
        "tests/dynamics",
        "dynamics",
        "papers/beyond_scan_and_snap",
        "papers/bounded_dyck",
        "papers/sparse_averaging",
    ],
    "theory": [
        "tests/theory",
        "theory",
        "papers/beyond_scan_and_snap",
        "papers/bounded_dyck",
        "papers/sparse_averaging",
        "tools/enclose",
    ],
}
IGNORED = ["tests/dynamics/support", "dynamics/support"]
# What stands between a paper or tool and the engines.
FACES = ["kinds", "kinds_of_files", "commands", "manifests", "statements", "settings", "questions", "tasks", "values"]
FACES += ["training", "constructions"]
INTERPRETED = {"dynamics": "1", "theory": "0"}
PER_TEST = {"dynamics": 0.8, "theory": 1.5}  # seconds; what takes longer is not traced to its end
FIRST_TESTS, ALL_TESTS = 10.0, 300.0  # seconds of tests that a mutant meets at first, and what is left of it later
SLOW = 60.0  # seconds that are granted to a test that was not traced to its end


def files(package: str) -> list[str]:
    """Source files that mutants are drawn from."""
    earlier = {name for before in SOURCES if before < package for name in files(before)}
    found = {path for pattern in SOURCES[package] for path in ROOT.glob(pattern)}
    names = sorted({str(path.relative_to(ROOT)) for path in found} - earlier)
    return [
        name
        for name in names
        if "_register/" not in name
        and not name.endswith(("statements.py", "theory/parts.py"))
        and not (name.startswith(("papers/", "tools/")) and ("joma" in name or Path(name).stem in FACES))
    ]


def sample(work: Path, fresh: int | None = None) -> list[Mutant]:
    """The mutants in the order in which they are run; kept, as half a minute goes into listing them.

    Those that were drawn and are still there, so that results outlast other changes of the code; where they have become
    fewer than `SAMPLE`, others in the order of a hash of their names. With a fresh seed: all in the order of another.
    """
    listed = [(package, file) for package in SOURCES for file in files(package)]
    drawn = DRAWN.read_text().split()
    state = hashlib.sha256(b"".join((ROOT / file).read_bytes() for _, file in listed) + DRAWN.read_bytes()).hexdigest()
    kept = work / f"sample_{state[:12]}{'' if fresh is None else f'_{fresh}'}.json"
    if not kept.exists():
        every = {one.name: one for _, file in listed for one in mutants(ROOT, file)}
        found = [every.pop(name) for name in drawn if name in every]
        if fresh is not None:
            found = []
        seed = SEED if fresh is None else fresh
        order = sorted(every, key=lambda name: hashlib.sha256(f"{seed} {name}".encode()).hexdigest())
        found += [every[name] for name in order[: max(0, SAMPLE - len(found))]]
        kept.write_text(json.dumps([asdict(one) for one in found]))
    return [Mutant(**one) for one in json.loads(kept.read_text())]


def records(path: Path) -> list[dict]:
    """Lines of a JSON-lines file; the last may be torn."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def copied(work: Path) -> Path:
    """The tree with what numba has compiled for it, without what git ignores."""
    copy = work / "copy"
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\n")
    for name in filter(None, listed):
        old, new = ROOT / name, copy / name
        if not old.exists():
            continue
        if new.exists() and new.stat().st_mtime == old.stat().st_mtime and new.stat().st_size == old.stat().st_size:
            continue
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(old, new)
    for folder in ("dynamics", "theory", "papers", "tools"):
        for cache in (ROOT / folder).rglob("__pycache__/*.nb[ic]"):
            new = copy / cache.relative_to(ROOT)
            new.parent.mkdir(parents=True, exist_ok=True)
            if not new.exists():
                shutil.copy2(cache, new)
    return copy


def results(work: Path, fresh: int | None, short: bool) -> Path:
    """Where is kept what became of each mutant."""
    return RESULTS if fresh is None and not short else work / f"results_{fresh}{'_short' if short else ''}.jsonl"


def served(
    work: Path,
    package: str,
    task: dict,
    *,
    jit: bool,
    tests: list[str] | None = None,
    program: str | None = None,
    short: bool = False,
) -> None:
    """Start pytest with the server in the copy, or another program, and let it do the task."""
    copy = copied(work)
    written = work / f"task_{os.getpid()}.json"
    written.write_text(json.dumps(task))
    beside = ":".join(str(path.parent) for place in ("papers", "tools") for path in copy.glob(f"{place}/*/yzflow_*"))
    environment = os.environ | {
        "PYTHONPATH": f"{copy}:{beside}:{HERE}", "MUTANTS_TASK": str(written), "NUMBA_DISABLE_JIT": "0" if jit else "1",
        "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    # The caller's own folder, as an editable installation may point to it, must not be found first.
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "--tb=no", "-p", "server", "-p", "no:cacheprovider"]
    command += [] if short else ["-m", ""]
    command += [f"--ignore={name}" for name in IGNORED]
    command += tests or TESTS[package]
    command = [sys.executable, str(HERE / program)] if program else command
    log = work / f"server_{os.getpid()}.log"
    with open(log, "w") as stream:
        ended = subprocess.run(command, cwd=copy, env=environment, check=False, stdout=stream).returncode
    written.unlink()
    if ended:
        raise SystemExit(f"the server ended early, with status {ended}: {log}")
    log.unlink()


def reach(work: Path, only: str | None, tests: list[str], seconds: float | None) -> None:
    """Which test runs which line, with its CPU time: the store that `run` chooses tests from."""
    for package in SOURCES if only is None else [only]:
        store = work / f"reach_{package}.jsonl"
        task = {
            "mode": "reach", "files": files("dynamics") + files("theory"), "results": str(store),
            "cpu": seconds or PER_TEST[package], "whole": not tests,
            "done": [record["unit"] for record in records(store) if "unit" in record],
            "stopped": [record["unit"] for record in records(store) if record.get("failed") == "out of time"],
        }  # fmt: skip
        served(work, package, task, jit=INTERPRETED[package] == "0", tests=tests)


def chosen(mutant: Mutant, reached: list[dict]) -> list[dict]:
    """Tests that run a line of the changed statement, quickest first."""
    lines = set(range(mutant.line, mutant.end_line + 1))
    found = [record for record in reached if lines & set(record["lines"].get(mutant.file, []))]
    # A test of the file itself before others: what shares a name with it.
    stem = Path(mutant.file).stem
    return sorted(found, key=lambda record: record["cpu"] * (0.5 if stem in record["unit"] else 1.0))


def run(
    work: Path, first: int | None, again: bool, names: list[str], fresh: int | None = None, short: bool = False
) -> None:
    """The first mutants of the sample that have no result yet; with names, those alone."""
    for package in SOURCES:
        traced = records(work / f"reach_{package}.jsonl")
        complete = any("complete" in record for record in traced)
        reached = [record for record in traced if "lines" in record]
        # At first those that were traced to their end; then also the slow ones, which took longer than was waited for.
        whole = [record for record in reached if not record["failed"]]
        if again:
            single = {record["unit"].split("[")[0] for record in reached if "[" in record["unit"]}
            stopped = [each for each in reached if each["failed"] == "out of time" and each["unit"] not in single]
            whole += [record | {"cpu": SLOW} for record in stopped]
        store = results(work, fresh, short)
        same = {name for name, said in judged().items() if said["verdict"] == "same"}
        known = {record["mutant"]: record["status"] for record in records(store)}
        entries, here = [], set(files(package))
        for mutant in sample(work, fresh)[:first]:
            if mutant.file not in here or (names and mutant.name not in names):
                continue
            open_still = again and known.get(mutant.name) in ("survived", "unreached") and mutant.name not in same
            if mutant.name in known and not (open_still or names):
                continue
            tests, cpu = [], 0.0
            for record in chosen(mutant, whole):
                if cpu > (ALL_TESTS if again else FIRST_TESTS):
                    break
                tests.append(record["unit"])
                cpu += record["cpu"]
            if not tests and not complete:
                continue  # until `reach` has seen all tests
            if not tests and mutant.name in known:
                continue  # no more is known of it than before
            if not tests:
                with open(store, "a") as stream:
                    stream.write(json.dumps({"mutant": mutant.name, "status": "unreached", "by": None}) + "\n")
                continue
            entries.append({"mutant": asdict(mutant), "tests": tests, "cpu": cpu})
        if entries:
            needed = sorted({test.split("::")[0] for entry in entries for test in entry["tests"]})
            task = {
                "mode": "run",
                "files": files("dynamics") + files("theory"),
                "results": str(store),
                "mutants": entries,
            }
            served(work, package, task, jit=INTERPRETED[package] == "0", tests=needed, short=short)


def audited(work: Path, names: list[str]) -> dict:
    """The task of `rows`."""
    return {"mutants": [asdict(named(work, name)) for name in names], "results": str(RESULTS)}


def on_disk(work: Path, mutant: Mutant) -> Path:
    """A copy of the tree with the change in its file."""
    changed = work / "changed"
    shutil.rmtree(changed, ignore_errors=True)
    shutil.copytree(copied(work), changed)
    tree = mutated(ROOT, mutant)
    (changed / mutant.file).write_text(ast.unparse(tree))
    return changed


def named(work: Path, name: str) -> Mutant:
    """One of the sample; names change with the functions that they are of."""
    found = [each for each in sample(work) if each.name.startswith(name)]
    if not name or len(found) != 1:
        raise SystemExit(f"`names` must name one mutant of the sample of this state of the code, but got {name!r}")
    return found[0]


def check(work: Path, name: str, tests: list[str]) -> int:
    """Pytest itself in a fresh process on the changed copy: 0 where the tests pass."""
    mutant = named(work, name)
    copy = on_disk(work, mutant)
    environment = os.environ | {"PYTHONPATH": str(copy), "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "--tb=line", "-p", "no:cacheprovider", *tests]
    code = subprocess.run(command, cwd=copy, env=environment, check=False).returncode
    if code == 1:
        with open(RESULTS, "a") as stream:
            stream.write(json.dumps({"mutant": mutant.name, "status": "killed", "by": " ".join(tests)}) + "\n")
    return code


def show(work: Path, name: str) -> None:
    """The change, and the tests that reach it."""
    mutant = named(work, name)
    print(f"{mutant.name} {mutant.file}:{mutant.line} {mutant.function} [{mutant.operator}]")
    print(f"- {mutant.before}\n+ {mutant.after}")
    for package in SOURCES:
        for record in chosen(mutant, [each for each in records(work / f"reach_{package}.jsonl") if "lines" in each]):
            print(f"  {record['cpu']:6.1f} s {record['unit']} {record['failed'] or ''}")


def judged() -> dict[str, dict[str, str]]:
    """Judgements of survivors, by name."""
    return tomllib.loads((HERE / "judged.toml").read_text())


def report(work: Path, first: int | None = None, fresh: int | None = None, short: bool = False) -> None:
    """Counts, and each survivor with what is said of it."""
    last, verdicts = {record["mutant"]: record for record in records(results(work, fresh, short))}, judged()
    drawn = sample(work, fresh)[:first]
    every = [mutant for mutant in drawn if mutant.name in last]
    status = Counter()
    for mutant in every:
        found = last[mutant.name]["status"]
        if found in ("killed", "timeout", "crash"):
            status[found] += 1
            continue
        said = verdicts.get(mutant.name, {})
        status[said.get("verdict", found)] += 1
        if "verdict" not in said:
            print(f"{mutant.name} {mutant.file}:{mutant.line} {mutant.function} [{mutant.operator}] {found}")
            print(f"    - {mutant.before}\n    + {mutant.after}")
    killed = status["killed"] + status["timeout"] + status["crash"]
    rest = sum(status.values()) - status["same"] - status["invalid"]
    print(f"{len(every)} of {len(drawn)} run: {dict(status)}")
    if rest:
        low, high = binomtest(killed, rest).proportion_ci(method="wilson")
        print(f"killed {killed} of {rest} that change behaviour: {killed / rest:.1%}, 95% [{low:.1%}, {high:.1%}]")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["reach", "run", "show", "check", "audit", "report"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "yzflow-mutants")
    parser.add_argument("--first", type=int, help="only so many mutants of the sample")
    parser.add_argument("--seconds", type=float, help="of CPU time after which a test is no longer traced")
    parser.add_argument("--again", action="store_true", help="survivors once more, with more tests")
    parser.add_argument("--fresh", type=int, metavar="SEED", help="other mutants, drawn anew")
    parser.add_argument("--short", action="store_true", help="tests of the README's command alone")
    given = parser.parse_intermixed_args()  # names before or behind options
    given.work.mkdir(parents=True, exist_ok=True)
    if given.command == "reach":
        reach(given.work, given.names[0] if given.names else None, given.names[1:], given.seconds)
    elif given.command == "run":
        run(given.work, given.first, given.again, given.names, given.fresh, given.short)
    elif given.command == "show":
        show(given.work, given.names[0])
    elif given.command == "audit":
        served(given.work, "theory", audited(given.work, given.names), jit=True, program="rows.py")
    elif given.command == "check":
        return check(given.work, given.names[0], given.names[1:])
    else:
        report(given.work, given.first, given.fresh, given.short)
    return 0


if __name__ == "__main__":
    sys.exit(main())
