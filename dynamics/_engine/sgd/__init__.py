"""Stochastic gradient descent: stepping and recording."""
