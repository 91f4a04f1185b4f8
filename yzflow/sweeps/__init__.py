"""Sweeps: grids of runs that are kept, resumed and gathered."""
