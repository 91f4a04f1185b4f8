"""Statements of Wen, Li, Liu, Risteski (2023): balance, approximate balance, pruning."""
