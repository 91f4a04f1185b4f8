"""Where the statements of Scan and Snap hold: maps over vocabulary and overlap, and over classes and learning rates.

    python examples/regime_maps.py [--out DIR] [--quick]

Each cell is the error of a statement against the full gradient flow and against SGD; the dashed line is where the full
flow is predicted to be half as fast as the theory. The maps against the flow alone have 100 values on an axis,
or as many as there are integers. Needs the studies: pip install -r studies/requirements.txt.
"""

from yzflow_studies.regime_maps.study import MAP, grids, regime_map

from dynamics.support.netcdf import save_dataset
from yzflow import figures, scripts


def main(arguments: list[str] | None = None) -> int:
    script = scripts.Script(__doc__, out="regime_maps", quick="coarse maps")
    options = script.options(arguments)
    out = options.out
    coarse, fine = (3, 6) if options.quick else (9, 100)
    for n, levels, suffix in ((coarse, ("full flow", "SGD"), ""), (fine, ("full flow",), "_flow")):
        for name, grid in grids(n).items():
            errors = regime_map(grid, levels=levels, progress=True)
            save_dataset(errors, out / f"{name}{suffix}.nc")
            for path in figures.save(MAP(errors), out / f"{name}{suffix}"):
                print(f"wrote {path}", flush=True)
    return 0


if __name__ == "__main__":
    scripts.run(main)
