"""Compare simulation with theory: experiments, figures, command line."""
