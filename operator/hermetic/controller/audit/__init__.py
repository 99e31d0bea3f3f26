"""The audit in the cluster: cache, probe, attestations, evaluation in a process of its own, published results."""
