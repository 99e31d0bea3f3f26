"""Whether a packet can leave the cluster: facts, checks, findings, reports and signed attestations. Pure."""
