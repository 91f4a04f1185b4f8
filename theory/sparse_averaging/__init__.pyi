from . import (
    averaging,
    groups,
    keys,
    matching,
    measures,
    moments,
    other_architectures,
    precision,
    proofs,
    protocols,
    statements,
    units,
)
