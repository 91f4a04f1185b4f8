"""Proofs, from the flows' definitions; each takes its claims as arguments, so that a wrong one is refuted."""
