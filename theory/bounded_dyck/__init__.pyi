from . import balance, measures, networks, proofs, pruning, statements
