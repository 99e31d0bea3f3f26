"""Model weights as files: listed in a manifest, signed, staged, and verified where they are served."""
