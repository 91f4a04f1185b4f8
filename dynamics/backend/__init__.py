"""Compilation by numba: all that touches its inside (`inside*`), and the same by plain `numba.njit` (`plain*`)."""
