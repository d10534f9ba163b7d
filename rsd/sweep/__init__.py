"""Sweeps: many runs from one command, of which only what is missing is run."""
