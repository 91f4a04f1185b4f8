"""Optimizers: `table` has the step, the flow and the optax rule of each; `optimizer` has the options of all."""
