"""Bounded Dyck languages and balance: Wen, Li, Liu, Risteski (NeurIPS 2023), arXiv 2312.01429."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
