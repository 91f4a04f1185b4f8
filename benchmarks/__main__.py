"""``python -m benchmarks [--only NAME] [--out DIR] [--against DIR]``: prints a table, and writes it, with figures.

With ``--against`` it ends with the rows whose ratio left the range of that folder's table.
"""

import os
import sys
import tempfile

if __name__ == "__main__":
    # Both sides on one thread: set before jax makes its thread pool, and before NumPy loads its BLAS, which is when the
    # package of this file is imported.
    _one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    if not _one.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]], {**os.environ, **_one})
    _given = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1 {_given}".rstrip()
    os.environ["JAX_PLATFORMS"] = "cpu"
    # A cache of its own: what a first call takes longer is then compilation, as it is for peers without a cache.
    _cache = tempfile.TemporaryDirectory()
    os.environ["NUMBA_CACHE_DIR"] = _cache.name

import argparse
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import benchmarks
from benchmarks import machine, report


def names() -> list[str]:
    """The modules with ``run()`` or ``study()``."""
    found = [m.name for m in iter_modules(benchmarks.__path__) if not (m.ispkg or m.name.startswith("_"))]
    return [name for name in found if name not in ("machine", "report", "walk")]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Time yzflow beside its peers, with equal threads.")
    parser.add_argument("--only", choices=names(), action="append", help="run one benchmark (may be given again)")
    parser.add_argument("--out", type=Path, help="folder for benchmarks.json, benchmarks.md, benchmarks.png, studies")
    parser.add_argument("--against", type=Path, help="folder of a table: name the rows that left its ranges")
    options = parser.parse_args(arguments)
    known = report.known(options.against) if options.against else None
    rows, studies = [], {}
    print(report.header(), flush=True)
    for name in options.only or names():
        module = import_module(f"benchmarks.{name}")
        with machine.one_core():
            if hasattr(module, "study"):
                found = module.study()
                if found is not None:  # none where a peer is missing
                    studies[name] = found
                    print(f"\n{found.markdown}\n", flush=True)
            else:
                for row in module.run():
                    rows.append((name, row))
                    print(report.line(row), flush=True)
        if options.out:  # after each, so that a run that is interrupted keeps what it has
            report.write(options.out, rows, studies)
    if known is not None:
        print("\n" + report.compared([row for _, row in rows], known))
    if options.out:
        print(f"Results are in {options.out}")


if __name__ == "__main__":
    main()
