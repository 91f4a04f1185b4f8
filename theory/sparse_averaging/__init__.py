"""Sparse averaging, pairs and triples: Sanford, Hsu, Telgarsky (NeurIPS 2023), arXiv 2306.02896."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
