"""The scan-and-snap transition over classes, vocabulary, overlap and learning rates, by ensembles of flows.

    python examples/phase_diagram.py [--out DIR] [--quick]

Two maps of 100 x 100 settings at each level of fidelity: when attention moves fastest, in units of the closed-form t*,
and how much of its change is done at t*. And the collapse of gamma and of the common token's fall onto one curve: where
it holds, and where it breaks. Writes figures (PNG and PDF) with captions made from the data, and the data (netCDF).
Needs the studies: pip install -r studies/requirements.txt.
"""

from yzflow_studies.phase_diagram.study import FIGURES

from dynamics.support.netcdf import save_dataset
from yzflow import figures, scripts
from yzflow.figures import Effort

NAMES = {"phase_diagram": ("sizes", "rates"), "phase_collapse": ("gamma", "falls")}


def main(arguments: list[str] | None = None) -> int:
    script = scripts.Script(__doc__, out="phase_diagram", quick="maps of 8 x 8 settings")
    options = script.options(arguments)
    shown, entries = {}, {entry.name: entry for entry in FIGURES}
    for name, parts in NAMES.items():
        shown[name] = entries[name].data(Effort(quick=options.quick, progress=True))
        for part, dataset in zip(parts, shown[name], strict=True):
            save_dataset(dataset, options.out / f"{name}_{part}.nc")
    print(figures.save_all(shown, options.out, among=FIGURES))
    print(f"Figures, captions and data are in {options.out}")
    return 0


if __name__ == "__main__":
    scripts.run(main)
