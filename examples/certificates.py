"""Certificates of theorems for all times, an audit, and a manifest of them: docs/certificates was made by this.

Usage: python examples/certificates.py [--out FOLDER]

`yzflow verify FOLDER/lead_shrinks.npz` checks one by a program of its own, `yzflow verify --manifest
FOLDER/manifest.json` all of them.
"""

from pathlib import Path

from yzflow_enclose import enclose_flow, manifests
from yzflow_enclose.cells import Cell, decide_cell

from dynamics import SequenceClasses
from yzflow import scripts
from yzflow.audits.audit import audit


def lead_shrinks(out: Path) -> None:
    """Theorem 3 in the full flow, K = M = 2: a distinct token gains, and yet its lead shrinks."""
    classes = SequenceClasses.single_common_token(2, 2, common=1.0, distinct=(2.0, 1.0))
    flow = enclose_flow(classes, eta_y=1.0, eta_z=2.0, t_end=60.0, bits=40)
    flow.record(lambda at: (at.velocity(0, 0) < 0) & (at.velocity(0, 1) > 0) & (at.loss.rate < 0))
    flow.record(lambda at: at.velocity(0, 1) - at.velocity(0, 2) >= 0)
    flow.save(out / "lead_shrinks.npz")


def signs(out: Path) -> None:
    """Theorem 2 in the full flow, K = 10 and M = 1000: distinct tokens gain, the common token loses."""
    classes = SequenceClasses.single_common_token(10, 1000, common=0.5, distinct=(1.0, 0.5))
    flow = enclose_flow(classes, eta_y=1.0, eta_z=0.5, t_end=100.0, bits=40)
    flow.record(lambda at: (at.velocity(0, 0) < 0) & (at.velocity(0, 1) > 0) & (at.velocity(0, 2) > 0))
    flow.save(out / "signs.npz")


def signs_in_a_box(out: Path) -> None:
    """Theorem 2 in the full flow, K = M = 2, at every setting of a box: the common token loses, the dominant gains."""
    cell = Cell(n_classes=2, vocab_size=2, distinct=(1.0, 0.5), eta_y=1.0, eta_z=(0.45, 0.55), common=(0.48, 0.52))
    _, box = decide_cell(cell, [[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], t_end=3.0, degree=2)
    box.save(out / "signs_in_a_box.npz")


def main(arguments: list[str] | None = None) -> int:
    out = Path(scripts.Script(__doc__, out="certificates").options(arguments).out)
    out.mkdir(parents=True, exist_ok=True)
    lead_shrinks(out)
    signs(out)
    signs_in_a_box(out)
    audit(["Bounded Dyck: Theorem 2"], quick=True).to_json(out / "audit.json")
    for listed in manifests.write(out):
        print(f"{listed.path}: {listed.bytes} bytes, SHA-256 {listed.sha256}")
    return 0


if __name__ == "__main__":
    scripts.run(main)
