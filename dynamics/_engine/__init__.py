"""Integration and sampling: flows, ensembles (`lanes`), SGD (`sgd/`), its noise (`noise/`), any flow (`open/`)."""
