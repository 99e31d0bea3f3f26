"""Model weights as files: listed in a manifest, signed, staged, and verified where they are served.

The formats are those of OpenSSF Model Signing v1.0: an in-toto statement with one entry per file or per range of a
file, in a Sigstore bundle. They are written and read as streams: memory does not grow with the model.
"""
