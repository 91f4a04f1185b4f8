from . import data, deep, extensions, observables, support, units
from .bags import Bags
from .data import DyckLanguage, SequenceClasses, TextCorpus
from .descent import DivergenceError, Outcome, sgd, sgd_many
from .flow import IntegrationError, gradient_flow
from .layer import Embedding, Layer
from .trajectory import Trajectory
from .version import __version__
