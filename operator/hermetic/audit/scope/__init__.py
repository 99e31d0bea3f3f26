"""The resources beyond the cluster that an audit evaluates, and why they are in scope."""
