"""Optimizers: `table` has the step, the flow and the rule of optax of each; `optimizer` what all have beside these."""
