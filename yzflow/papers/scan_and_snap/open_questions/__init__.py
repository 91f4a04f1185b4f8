"""Open questions about Scan and Snap, settled as far as they are: proofs, counter-examples, measured laws."""
