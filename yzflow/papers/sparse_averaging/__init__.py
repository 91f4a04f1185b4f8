"""Sparse averaging, pairs and triples (Sanford, Hsu and Telgarsky 2023): settings, experiments, figures."""
