"""Training that others run: what is recorded of it, and which theorems say something about it."""
