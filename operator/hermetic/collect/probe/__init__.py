"""The active probe: a small program for a pod, the pods that carry it, and what their words mean."""
