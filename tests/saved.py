"""Small saved files of every kind that `yzflow.rerun` knows."""

from balls import enclose_flow

import yzflow as yz
from dynamics.support.distributions import installed
from dynamics.support.netcdf import save_dataset

CLASSES = yz.SequenceClasses.single_common_token(3, 20)
STATEMENT = "Scan and Snap: Lemma 2"
RATES = {"eta_y": 1.0, "eta_z": 0.5}


def trajectory(path, **options):
    run = yz.sgd(CLASSES, **RATES, steps=5, batch_size=4, **options)
    run.save(path)
    return run


def sweep(path):
    runs = yz.sweep(
        "syn_small", {"eta_z": [0.5, 1.0], "steps": [3]}, store=path.parent / "runs", seeds=2, progress=False
    )
    save_dataset(runs, path)


def survival(path):
    save_dataset(yz.survival(["Theorem 2(b)"], ["batch of one"], quick=True, seed=2), path)


MADE = {
    "a trajectory of sgd": ("run.nc", lambda path: trajectory(path, seed=3, optimizer="adam")),
    "a trajectory of gradient_flow": ("flow.nc", lambda path: yz.gradient_flow(CLASSES, **RATES, t_end=5).save(path)),
    "a sweep of syn_small": ("sweep.nc", sweep),
    "a survival table of Scan and Snap": ("survival.nc", survival),
    "an audit": ("audit.json", lambda path: yz.audit([STATEMENT], quick=True, seed=1).to_json(path)),
    "a check": ("check.json", lambda path: path.write_text(yz.check(STATEMENT).json())),
}
if installed("yzflow_enclose"):
    MADE["a certificate"] = ("flow.npz", lambda path: enclose_flow(CLASSES, **RATES, t_end=2.0).save(path))
