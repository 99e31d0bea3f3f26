"""The commands that renew the attestation of a cluster, as status, conditions and messages print them."""

from __future__ import annotations


def renewal_commands(cluster: str) -> tuple[str, str]:
    """What the jump box runs in this order; `cluster` is the ARM id, or what stands for it."""
    return (
        f"hermetic audit --azure {cluster} --sign KEY --attestation attestation.yaml",
        "kubectl apply --server-side --filename attestation.yaml",
    )
