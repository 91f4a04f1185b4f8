"""Scan and Snap in balls: its statements as claims about enclosed flows, and constants of its closed forms."""
