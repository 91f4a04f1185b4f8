"""Ordinary transformers, trained by gradient steps: does what is proved of the Y/Z layer happen outside of the theory?

Needs the extra ``deep`` (jax, optax, equinox). Runs on the CPU, or on the accelerator that jax finds. Time is in SGD
steps; learning rates are per step.
"""

try:
    import equinox as _equinox  # noqa: F401
    import jax as _jax  # noqa: F401
    import optax as _optax  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"`yzflow_deep` needs the extra `deep`: pip install 'yzflow[deep]' ({error})", name=error.name
    ) from error

from yzflow_deep.data import Insertions, Sequences, dyck_insertions, dyck_sequences
from yzflow_deep.model import Architecture, Transformer, from_layer, to_layer
from yzflow_deep.training import load_training, model_at, train

__all__ = [
    "Architecture",
    "Insertions",
    "Sequences",
    "Transformer",
    "dyck_insertions",
    "dyck_sequences",
    "from_layer",
    "load_training",
    "model_at",
    "to_layer",
    "train",
]
