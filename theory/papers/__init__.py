"""The statements of each paper, a module a paper with a tuple ``STATEMENTS``."""
