"""Randomness in a step of SGD: moments of one draw, schemes for the diffusion, and small fluctuations."""
