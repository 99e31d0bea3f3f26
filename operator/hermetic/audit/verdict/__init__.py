"""The verdict on a cluster inside the cluster: from the attestation, the cluster's objects and the probe. Pure.

`inputs` is what the verdict rests on, `overall` computes it, `status` writes it as the status of an EgressAudit.
"""
