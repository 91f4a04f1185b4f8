"""Compilation by numba: `_inside*` uses numba's internals, `_plain*` does the same by plain `numba.njit`."""
