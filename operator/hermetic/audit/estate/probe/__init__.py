"""What the probe brought back: one run per pod, every answer read once into a word of a fixed list."""
