"""Theorems 1 and 2 and Corollary 1 of bounded Dyck on layers along their training."""
