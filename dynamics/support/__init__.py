"""What every part needs: checks of input, files, archives, progress."""
