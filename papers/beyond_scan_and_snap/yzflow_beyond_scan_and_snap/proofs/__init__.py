"""Symbolic proofs, a module each or for a few statements together."""
