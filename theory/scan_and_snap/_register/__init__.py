"""The statements of the paper, in four parts."""
