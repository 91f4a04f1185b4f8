"""Proofs hold whichever integers sympy computes with: its own in Python, or those of python-flint.

sympy takes python-flint's where it is installed, as the rest of the tests do, so that a child process runs a sixth of
them with the other ones.
"""

import os
import subprocess
import sys

import pytest
from sympy.external.gmpy import GROUND_TYPES

from theory.papers import built_in

OTHERS = [types for types in ("python", "flint") if types != GROUND_TYPES]
PROGRAM = """
from sympy.external.gmpy import GROUND_TYPES
from yzflow_beyond_scan_and_snap.proofs import transition
from theory.papers import built_in

proofs = [(name, derive) for paper in built_in() for name, derive in list(paper.proofs.items())[::6]]
wrong = [(name, failures) for name, derive in proofs if (failures := derive().failures())]
refuted = bool(transition.derive(peak=lambda m, w: w).failures())
print(GROUND_TYPES, len(proofs), refuted, wrong)
"""


@pytest.mark.slow
@pytest.mark.parametrize("types", OTHERS)
def test_proofs_hold_with_other_ground_types(types):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "SYMPY_GROUND_TYPES": types}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    used, number, refuted, wrong = done.stdout.strip().split(" ", 3)
    assert used == types and refuted == "True" and wrong == "[]"
    assert int(number) >= sum(len(paper.proofs) for paper in built_in()) / 6 >= 4
