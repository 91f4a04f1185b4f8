"""Scan and Snap beside a training: its place in the paper's assumptions, and the theory's predictions."""
