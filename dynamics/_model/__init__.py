"""The one kernel for loss and gradient, the batches that it takes, and how these are drawn."""
