"""Tasks of sweeps."""
