"""Predictions: closed forms, bounds and certificates for the training dynamics of attention.

Time is in SGD steps and a learning rate is per step, everywhere. The simulators in `dynamics` use nothing from here.
"""

from theory import attention, averaging, balance, decoder, pruning, tokens

__all__ = ["attention", "averaging", "balance", "decoder", "pruning", "tokens"]
