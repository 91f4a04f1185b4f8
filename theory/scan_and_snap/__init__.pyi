from . import attention, decoder, early, measures, proofs, statements, token_estimates, tokens
