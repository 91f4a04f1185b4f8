"""Statements of Sanford, Hsu, Telgarsky (2023): averages, and pairs and triples."""
