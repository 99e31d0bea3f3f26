"""The active probe: a small program, the Jobs that run it, and the interpretation of its answers."""
