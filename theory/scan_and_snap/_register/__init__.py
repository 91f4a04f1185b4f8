"""The statements of the paper, in two parts."""
