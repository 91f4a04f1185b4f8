"""Gradient flow: what is integrated, what symmetry saves, and in which time."""
