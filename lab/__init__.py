"""Compare simulation with theory: experiments, figures, audit, command line."""

import importlib


def __getattr__(name: str):
    # The audit needs numba and sympy, which take long to import: only for those who ask.
    if name == "audit":
        return importlib.import_module("lab.audit")
    raise AttributeError(f"module 'lab' has no attribute {name!r}")
