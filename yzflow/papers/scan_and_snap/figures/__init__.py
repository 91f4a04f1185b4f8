"""Figures, declared in modules."""
