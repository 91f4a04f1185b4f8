"""The one kernel for loss and gradient, and what it computes with."""
