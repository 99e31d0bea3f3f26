"""Collectors, which answer the questions of an audit: Azure, the cluster, and the probe."""
