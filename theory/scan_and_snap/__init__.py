"""Scan and Snap: Tian, Wang, Chen, Du (NeurIPS 2023), arXiv 2305.16380."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
