"""Bounded Dyck languages (Wen, Li, Liu and Risteski 2023): settings, experiments, tasks of sweeps, figures."""
