"""``python -m benchmarks [--only NAME] [--out DIR]``: prints a table and writes JSON."""

# ruff: noqa: E402 - the imports below must come after the thread settings

import os

# Both sides on one thread: set before numpy loads its BLAS.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import json
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import benchmarks
from dynamics.files import replacing


def main() -> None:
    names = [m.name for m in iter_modules(benchmarks.__path__) if not (m.ispkg or m.name.startswith("_"))]
    parser = argparse.ArgumentParser(description="Time yzflow beside its peers, one thread each.")
    parser.add_argument("--only", choices=names, help="run one benchmark")
    parser.add_argument("--out", type=Path, help="folder for benchmarks.json")
    options = parser.parse_args()
    rows = []
    print(f"{'task':50}{'ours (s)':>10}  {'peer':38}{'peer (s)':>10}{'ratio':>8}{'disagreement':>14}")
    for name in [options.only] if options.only else names:
        for row in import_module(f"benchmarks.{name}").run():
            rows.append({"benchmark": name, **asdict(row), "ratio": row.ratio})
            print(
                f"{row.task:50}{row.ours:10.4f}  {row.peer_name:38}{row.peer:10.4f}{row.ratio:8.2f}"
                f"{row.disagreement:14.1e}",
                flush=True,
            )
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        with replacing(options.out / "benchmarks.json") as path:
            path.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
