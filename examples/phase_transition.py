"""The scan-and-snap phase transition of a 1-layer transformer: simulated, predicted in closed form, and compared.

    python examples/phase_transition.py [--out DIR] [--quick] [--full]

Settings of Tian, Wang, Chen, Du (2023), arXiv 2305.16380: K = 10 next tokens of M = 1000, eta_Z = 0.5, eta_Y in
{0.5, 1, 2, 5}; and two of ours, one inside all assumptions of its theorems and one outside some. Writes figures (PNG
and PDF), the curves that they show (netCDF) and a table of transition times; with --full each flow whole, 0.3 GB.
"""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path

from dynamics.support.files import replacing
from dynamics.support.netcdf import save_dataset
from dynamics.support.progress import Progress
from yzflow import figures, scripts
from yzflow.papers.scan_and_snap import flagship
from yzflow.papers.scan_and_snap import phase_transition as pt


def write_flows(folder: Path, name: str, flows: dict, *, full: bool) -> None:
    for decoder, flow in flows.items():
        if full:
            flow.save(folder / f"{name}_{decoder}.nc")
        else:
            save_dataset(pt.curves(flow), folder / f"{name}_{decoder}_curves.nc")


def run(out: Path, *, quick: bool, full: bool, rows: list, panels: list, pool: Executor) -> Iterator[str]:
    """Do the work step by step; yields what it is about to do, and appends the table's rows and settings with flows.

    The figures are drawn in ``pool`` while the next flows are integrated here.
    """
    data = out / "data"
    data.mkdir(exist_ok=True)
    n_times = 300 if quick else 2000
    weak = pt.weak_classes()
    yield "closed forms of Figs. 8 and 9"
    curves, exponents = pt.decoder_curves(), pt.exponent_curves()
    for name, dataset in (("figure8", curves), ("figure9", exponents)):
        save_dataset(dataset, data / f"{name}.nc")
    drawings = [
        pool.submit(figures.draw, "figure8", out / "figure8_decoder", curves),
        pool.submit(figures.draw, "figure9", out / "figure9_growth_exponent", exponents),
    ]
    for setting in (flagship.inside(), flagship.contrast()):
        yield f"flows {flagship.standing(setting)}"
        panels.append((setting, flagship.flows(setting, n_times=n_times)))
        write_flows(data, setting.name, panels[-1][1], full=full)
    drawings.append(pool.submit(figures.draw, "attention_over_training", out / "attention_over_training", panels))
    by_rate = {}
    for rate in pt.ETA_Y:
        yield f"flows at eta_Y = {rate:g}"
        by_rate[rate] = pt.fidelity_flows(weak, eta_y=rate, n_times=n_times)
        write_flows(data, f"weak_eta-y-{rate:g}", by_rate[rate], full=full)
    theory = {rate: flows["theory"] for rate, flows in by_rate.items()}
    drawings.append(pool.submit(figures.draw, "figure3", out / "figure3_growth_factor", theory))
    yield "flows with slow attention"
    slow = pt.fidelity_flows(weak, eta_y=1.0, eta_z=pt.SLOW_RATIO, n_times=n_times)
    write_flows(data, f"weak_eta-y-1_eta-z-{pt.SLOW_RATIO:g}", slow, full=full)
    drawings.append(pool.submit(figures.draw, "fidelity", out / "fidelity", [(weak, by_rate[1.0]), (weak, slow)]))
    rows += [pt.transition_times(flows, eta_y=rate) for rate, flows in by_rate.items()]
    with replacing(out / "transition_times.csv") as path:
        path.write_text(pt.transition_csv(rows))
    for i, drawing in enumerate(drawings):
        yield f"figure {i + 1} of {len(drawings)}"
        drawing.result()


EXPLANATION = """\
Times of the transition from scanning to snapping, in SGD steps. Predicted: t0' and t0, the paper's bounds, and t*, the
exact peak of gamma. Simulated: the peak of gamma in the theory flow, and of the speed of a distinct token's attention
logit in the theory, modified and full flows."""
STEPS = 4 + len(pt.ETA_Y) + 5


def main(arguments: list[str] | None = None) -> int:
    script = scripts.Script(__doc__, out="phase_transition", quick="fewer output times: under 30 s with compilation")
    script.add_argument("--full", action="store_true", help="each flow whole, 0.3 GB, in place of its curves")
    options = script.options(arguments)
    print(f"K = {pt.N_CLASSES}, M = {pt.VOCAB_SIZE}, eta_Z = {pt.ETA_Z}", flush=True)
    rows: list = []
    panels: list = []
    # Spawned and not forked: a fork would inherit the threads of the libraries in an unknown state.
    pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    with Progress("phase transition") as report, pool:
        steps = run(options.out, quick=options.quick, full=options.full, rows=rows, panels=panels, pool=pool)
        for step, message in enumerate(steps):
            report.update(step / STEPS, message)
    parts = (
        EXPLANATION,
        pt.transition_table(rows),
        pt.regime(pt.weak_classes()),
        *(flagship.told(setting, runs) for setting, runs in panels),
        f"Figures, data and table are in {options.out}",
    )
    print("\n" + "\n\n".join(parts))
    return 0


if __name__ == "__main__":
    scripts.run(main)
