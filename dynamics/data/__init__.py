"""Data: classes of sequences, bounded Dyck languages, text, sparse averaging and matching."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
