from . import statements, symbolic
from .bounded_dyck import balance, pruning
from .scan_and_snap import attention, decoder, early, token_estimates, tokens
from .sparse_averaging import averaging
