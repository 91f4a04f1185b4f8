"""Simulate the training dynamics of attention: data, layers, gradient flow, SGD, trajectories.

Time is in SGD steps everywhere; learning rates are per step.
"""

from dynamics.bags import Bags
from dynamics.dyck import DyckLanguage
from dynamics.flow import IntegrationError, gradient_flow
from dynamics.layer import Embedding, Layer
from dynamics.sequence_classes import SequenceClasses
from dynamics.sgd import DivergenceError, Outcome, sgd, sgd_many
from dynamics.text import TextCorpus
from dynamics.trajectory import Trajectory
from dynamics.version import __version__

__all__ = [
    "Bags",
    "DivergenceError",
    "DyckLanguage",
    "Embedding",
    "IntegrationError",
    "Layer",
    "Outcome",
    "SequenceClasses",
    "TextCorpus",
    "Trajectory",
    "__version__",
    "gradient_flow",
    "sgd",
    "sgd_many",
]
