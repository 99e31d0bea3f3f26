"""Commands about weights: `hermetic manifest`, `sign`, `verify` and `stage`."""
