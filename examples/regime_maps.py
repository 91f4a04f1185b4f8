"""Where the statements of Scan and Snap hold: maps over vocabulary and overlap, and over classes and learning rates.

    python examples/regime_maps.py [--out DIR] [--quick]

Each cell is the error of a statement against the full gradient flow and against SGD; the dashed line is where the full
flow is predicted to be half as fast as the theory.
"""

import numpy as np

from dynamics.trajectory import save_dataset
from yzflow import figures, scripts
from yzflow.papers.scan_and_snap import regime


def main(arguments: list[str] | None = None) -> int:
    script = scripts.Script(__doc__, out="regime_maps", quick="coarse maps")
    options = script.options(arguments)
    out = options.out
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
    scripts.run(main)
