"""Where the statements of Scan and Snap hold: maps over vocabulary and overlap, and over classes and learning rates.

    python examples/regime_maps.py [--out DIR] [--quick]

Each cell is the error of a statement against the full gradient flow and against SGD; the dashed line is where the full
flow is predicted to be half as fast as the theory.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from dynamics.support.files import folder
from dynamics.trajectory import save_dataset
from yzflow import figures
from yzflow.papers.scan_and_snap import regime


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("regime_maps"), help="folder for the results")
    parser.add_argument("--quick", action="store_true", help="coarse maps")
    options = parser.parse_args(arguments)
    try:
        out = folder("--out", options.out)
    except ValueError as error:
        parser.error(str(error))
    n = 3 if options.quick else 9
    grids = {
        "vocabulary_overlap": {
            "vocab_size": np.unique(np.geomspace(10, 10_000, n).round().astype(int)).tolist(),
            "overlap": np.geomspace(1e-3, 0.5, n).tolist(),
        },
        "classes_ratio": {
            "n_classes": np.unique(np.geomspace(2, 30, n).round().astype(int)).tolist(),
            "ratio": np.geomspace(1e-4, 1, n).tolist(),
        },
    }
    for name, grid in grids.items():
        errors = regime.regime_map(grid, progress=True)
        save_dataset(errors, out / f"{name}.nc")
        for path in figures.save(figures.regime_map(errors), out / name):
            print(f"wrote {path}", flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted: every file that is there is complete, and the same command starts over")
