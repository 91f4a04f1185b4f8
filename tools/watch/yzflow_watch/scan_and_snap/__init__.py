"""Scan and Snap beside a training: where it stands in the paper's assumptions, and what the theory foresees of it."""
