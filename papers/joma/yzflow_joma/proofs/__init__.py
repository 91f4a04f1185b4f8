"""Proofs from the definitions of the flows. Each takes its claims as arguments, so tests can pass wrong ones."""
