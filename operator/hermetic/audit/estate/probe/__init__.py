"""The results of the probe: one run per pod, every answer parsed once into a value of a fixed enumeration."""
