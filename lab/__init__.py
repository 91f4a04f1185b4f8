"""Compare simulation with theory: experiments, sweeps, figures, audit, command line."""

import importlib


def __getattr__(name: str):
    # These need numba, xarray and sympy, which take long to import: only for those who ask.
    if name in ("audit", "sweep"):
        return importlib.import_module(f"lab.{name}")
    raise AttributeError(f"module 'lab' has no attribute {name!r}")
