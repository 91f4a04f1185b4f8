"""Stochastic gradient descent: drawing, stepping, recording."""
