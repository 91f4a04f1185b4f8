"""Dyck layers whose attention is held uniform while the rest trains: the paper's footnote 4."""
