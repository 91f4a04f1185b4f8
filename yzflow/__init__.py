"""Compare simulation with theory: audit, sweeps, figures, pages; the public face of `dynamics` and `theory`.

>>> import yzflow as yz
>>> classes = yz.SequenceClasses([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]], query=[0, 0], vocab_size=20)
>>> flow = yz.gradient_flow(classes, eta_y=1.0, eta_z=0.5, t_end=100.0)

The public names are those of ``__init__.pyi``, imported when they are first asked for.
"""

import lazy_loader

from yzflow._elsewhere import missing

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(set(__all__) - missing())
