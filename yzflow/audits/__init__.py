"""Statements against simulations: the audit, its verdicts and its reports."""
