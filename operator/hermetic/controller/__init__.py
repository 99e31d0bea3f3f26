"""The moving parts: the queue, the reconciler, the kopf shell, and the one place that puts them together."""
