"""Scan and Snap (Tian, Wang, Chen and Du 2023): settings, experiments, tasks of sweeps, figures."""
