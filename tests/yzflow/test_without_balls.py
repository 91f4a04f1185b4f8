"""The core without yzflow-enclose and python-flint: it works, and says in one line what it lacks."""

import os
import subprocess
import sys

import pytest
from driving import ROOT

CURE = "comes with yzflow-enclose: pip install -e tools/enclose"
# Neither the packages nor what their distribution says of itself is found.
HIDDEN = """
import sys
from importlib import machinery, metadata

find, points = machinery.PathFinder.find_spec, metadata.entry_points
machinery.PathFinder.find_spec = classmethod(
    lambda cls, name, *more: None if name.partition(".")[0] in ("flint", "yzflow_enclose") else find(name, *more)
)
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in str(finder) or "enclose" not in str(finder)]
metadata.entry_points = lambda **which: [
    point for point in points(**which) if not point.value.startswith("yzflow_enclose")
] if which else points()
"""
WORK = """
import warnings
import yzflow as yz
from yzflow.audits.audit import Enclose

classes = yz.SequenceClasses.syn_small()
yz.gradient_flow(classes, eta_y=1.0, eta_z=0.5, t_end=1.0)
yz.sgd(classes, eta_y=1.0, eta_z=0.5, steps=2)
assert yz.audit(["Scan and Snap: Lemma 6"], quick=True).passed
assert yz.figures.figure3 is not None and "enclose" not in yz.__all__
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    assert yz.audit(["Scan and Snap: Theorem 2, finite sequences"], quick=True).passed
assert yz.check("Scan and Snap: Theorem 2, finite sequences", data=classes).own.predicted == ""
print(*(str(one.message) for one in said if "measured" in str(one.message)), sep="\\n")
for ask in (
    lambda: yz.enclose,
    lambda: yz.enclosures,
    lambda: yz.audit(["Scan and Snap: Lemma 6"], quick=True, enclose=Enclose()),
    lambda: yz.rerun(CERTIFICATE),
    lambda: yz.page("Scan and Snap: Lemma 6", "page.html", certificates=[CERTIFICATE]),
):
    try:
        ask()
    except (ImportError, ValueError) as error:
        print(error)
assert "flint" not in sys.modules and "yzflow_enclose" not in sys.modules
"""


@pytest.mark.slow
def test_the_core_works_without_balls_and_says_what_is_missing(tmp_path):
    certificate = ROOT / "docs" / "certificates" / "signs.npz"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-c", f"{HIDDEN}CERTIFICATE = {str(certificate)!r}\n{WORK}"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first = "Scan and Snap: Theorem 2, finite sequences"
    assert done.stdout.splitlines() == [
        f"{first}, 'lengths of four small tasks at which signs differ' is not measured: `long_enough` {CURE}",
        f"{first}, 'lengths at which signs of the first moves differ' is not measured: `long_enough` {CURE}",
        f"`yz.enclose` {CURE}",
        f"`yz.enclosures` {CURE}",
        f"the option `enclose` {CURE}",
        "`path` must be a certificate written by yzflow, but got another file "
        f"{str(certificate)!r}, of the unknown kind "
        f"'yzflow-certificate-2', which {CURE}",
        f"a certificate on a page {CURE}",
    ]
    assert list(tmp_path.iterdir()) == []
