"""`hermetic bundle`: its command, the layout of a bundle, and how one is verified."""
