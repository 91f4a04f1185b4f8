"""Errors of (13), (118) and (119), and of Theorem 4's B where the norm moves."""

from theory.values import Study
from yzflow_studies.approximations.study import errors, exponents

STUDIES = (
    Study(
        "errors",
        errors,
        {"sizes": [[10, 1000, 0.0101], [10, 100_000, 0.001], [10, 100_000, 0.01], [2, 1000, 0.3], [3, 2000, 0.15]]},
    ),
    Study(
        "exponents",
        exponents,
        {"ks": [2, 10], "m": 100_000, "rho": 1e-3, "eta_y": 1.0, "etas_z": [1.0, 1e4, 1e6], "t": 1e6},
        ("Assumption 1(c) does not hold: the theory flow needs it nowhere",),
        quick=False,
        tolerance=1e-4,
    ),
)
