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


def begin() -> None:
    """Two flows, for their kernels alone."""
    flagship.flows(flagship.inside(), n_times=2, decoders=("theory", "full"))


def beside(out: Path, n_times: int, full: bool) -> list[str]:
    """Flows of our two settings and their figure, then Figures 8 and 9; returns what came of the flows, in words."""
    panels = [
        (setting, flagship.flows(setting, n_times=n_times)) for setting in (flagship.inside(), flagship.contrast())
    ]
    for setting, flows in panels:
        write_flows(out / "data", setting.name, flows, full=full)
    figures.draw("attention_over_training", out / "attention_over_training", panels)
    for name, stem, dataset in (
        ("figure8", "figure8_decoder", pt.decoder_curves()),
        ("figure9", "figure9_growth_exponent", pt.exponent_curves()),
    ):
        save_dataset(dataset, out / "data" / f"{name}.nc")
        figures.draw(name, out / stem, dataset)
    return [flagship.told(setting, flows) for setting, flows in panels]


def run(out: Path, *, n_times: int, full: bool, pool: Executor, rows: list, told: list) -> Iterator[str]:
    """Do the work step by step; yields what it is about to do, and appends the table's rows and words on our settings.

    ``pool`` has a process for all but the paper's setting. On a new machine it compiles the kernels of two flows while
    those of the third are compiled here, and either loads the others from disk.
    """
    started = pool.submit(begin)
    weak, data = pt.weak_classes(), out / "data"
    rates: list[tuple[str, float, float]] = [(f"weak_eta-y-{rate:g}", rate, pt.ETA_Z) for rate in pt.ETA_Y]
    rates.append((f"weak_eta-y-1_eta-z-{pt.SLOW_RATIO:g}", 1.0, pt.SLOW_RATIO))
    flows: dict[str, dict] = {name: {} for name, _, _ in rates}
    for decoder in ("modified", "theory", "full"):
        for name, eta_y, eta_z in rates:
            yield f"{decoder} flow at eta_Y = {eta_y:g}, eta_Z = {eta_z:g}"
            flows[name] |= pt.fidelity_flows(weak, eta_y=eta_y, eta_z=eta_z, n_times=n_times, decoders=(decoder,))
        if decoder == "modified":
            started.result()
            others = pool.submit(beside, out, n_times, full)
    for name, of_levels in flows.items():
        flows[name] = {level: of_levels[level] for level in pt.LEVELS}
        write_flows(data, name, flows[name], full=full)
    *by_rate, slow = flows.values()
    yield "figure 3"
    theory = {rate: of_levels["theory"] for rate, of_levels in zip(pt.ETA_Y, by_rate, strict=True)}
    figures.draw("figure3", out / "figure3_growth_factor", theory)
    yield "figure of the flows' errors"
    figures.draw("fidelity", out / "fidelity", [(weak, by_rate[pt.ETA_Y.index(1.0)]), (weak, slow)])
    rows += [pt.transition_times(flows, eta_y=rate) for rate, flows in zip(pt.ETA_Y, by_rate, strict=True)]
    with replacing(out / "transition_times.csv") as path:
        path.write_text(pt.transition_csv(rows))
    yield "our two settings, figures 8 and 9"
    told += others.result()


EXPLANATION = """\
Times of the transition from scanning to snapping, in SGD steps. Predicted: t0' and t0, the paper's bounds, and t*, the
exact peak of gamma. Simulated: the peak of gamma in the theory flow, and of the speed of a distinct token's attention
logit in the theory, modified and full flows."""
STEPS = len(pt.LEVELS) * (len(pt.ETA_Y) + 1) + 3


def main(arguments: list[str] | None = None) -> int:
    script = scripts.Script(__doc__, out="phase_transition", quick="fewer output times: under 30 s with compilation")
    script.add_argument("--full", action="store_true", help="each flow whole, 0.3 GB, in place of its curves")
    options = script.options(arguments)
    print(f"K = {pt.N_CLASSES}, M = {pt.VOCAB_SIZE}, eta_Z = {pt.ETA_Z}", flush=True)
    n_times = 300 if options.quick else 2000
    (options.out / "data").mkdir(exist_ok=True)
    rows: list = []
    told: list = []
    # Spawned and not forked: a fork would inherit the threads of the libraries in an unknown state.
    pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    with Progress("phase transition") as report, pool:
        steps = run(options.out, n_times=n_times, full=options.full, pool=pool, rows=rows, told=told)
        for step, message in enumerate(steps):
            report.update(step / STEPS, message)
    regime = pt.regime(pt.weak_classes())
    parts = (EXPLANATION, pt.transition_table(rows), regime, *told, f"Figures, data and table are in {options.out}")
    print("\n" + "\n\n".join(parts))
    return 0


if __name__ == "__main__":
    scripts.run(main)
