"""What integrates and samples: flows, ensembles (`lanes`), SGD (`sgd/`), its noise (`noise/`), any flow (`open/`)."""
