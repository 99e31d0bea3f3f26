"""Typed facts of the cluster's own API server."""
