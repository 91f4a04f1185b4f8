"""The SGD experiments of Scan and Snap: Figures 4, 5, 6, 11 and 12.

    python examples/sgd_figures.py [--out DIR] [--only N ...] [--quick]

Settings of Tian, Wang, Chen, Du (2023), arXiv 2305.16380: Syn-Small and Syn-Medium, momentum 0.9, batches of 128
sequences of length 128, 100 steps, and 100,000 for the convergence of Figure 4. Writes figures (PNG and PDF), their
captions and the data (netCDF).
"""

from dynamics.support.netcdf import save_dataset
from yzflow import figures, scripts
from yzflow.papers.scan_and_snap import synthetic

NUMBERS = (4, 5, 6, 11, 12)


def main(arguments: list[str] | None = None) -> int:
    script = scripts.Script(
        __doc__, out="sgd_figures", quick="two seeds and two numbers of queries in 6, 11 and 12, 1000 steps in 4"
    )
    script.add_argument("--only", type=int, nargs="+", choices=NUMBERS, default=NUMBERS, help="figures to draw")
    options = script.options(arguments)
    out = options.out
    medium = None
    if {6, 11, 12} & set(options.only):
        size = {"n_queries": (1, 3), "seeds": 2} if options.quick else {}
        medium = synthetic.syn_medium(progress=True, **size)
        save_dataset(medium, out / "syn_medium.nc")
    effort = figures.Effort(quick=options.quick, progress=True)
    shown = {
        f"figure{number}": medium if number in (6, 11, 12) else figures.find(str(number)).data(effort)
        for number in options.only
    }
    print(figures.save_all(shown, out))
    print(f"Figures, captions and data are in {out}")
    return 0


if __name__ == "__main__":
    scripts.run(main)
