"""Pushes OCI images and artifacts into a registry by the OCI distribution specification 1.1.

https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md. Loaded by commands only.
"""
