"""Certificates on the pages of statements, each with a button that verifies it in the browser."""
