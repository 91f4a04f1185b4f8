from . import figures
from ._dynamics import (
    Bags,
    DivergenceError,
    DyckLanguage,
    Embedding,
    IntegrationError,
    Layer,
    Outcome,
    SequenceClasses,
    TextCorpus,
    Trajectory,
    __version__,
    gradient_flow,
    sgd,
    sgd_many,
)
from ._theory import attention, averaging, balance, decoder, statements, symbolic
from .audits.audit import AuditReport, audit
from .sweeps.sweep import sweep
