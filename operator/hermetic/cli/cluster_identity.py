"""By what the cluster of the kubeconfig is known: what ties an attestation to it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hermetic.audit.attestation.cluster_identity import ca_fingerprint
from hermetic.audit.attestation.statement import Scope
from hermetic.cli.output import note
from hermetic.errors import HermeticError
from hermetic.kinds import NAMESPACE

KUBE_SYSTEM = "kube-system"


async def scope_of(cluster: str, kubeconfig: str | None, context: str | None) -> Scope:
    """The scope of an attestation about a cluster (ARM id), with what the API server of the kubeconfig says of itself.

    Where there is no API server to ask, both stay unknown, and the reader is told what that means.
    """
    fingerprint: str | None = None
    uid: str | None = None
    try:
        fingerprint, uid = await _asked(kubeconfig, context)
    except (HermeticError, OSError, ValueError) as error:
        note(
            f"the attestation is not tied to an API server ({error}): an operator that knows its own will refuse it; "
            "sign where the kubeconfig of the cluster works"
        )
    return Scope(cluster_arm_id=cluster, api_server_ca_fingerprint=fingerprint, kube_system_uid=uid)


async def _asked(kubeconfig: str | None, context: str | None) -> tuple[str, str | None]:
    from hermetic.kube.client import KubernetesApi
    from hermetic.kube.connection import find_connection

    connection = await find_connection(kubeconfig=kubeconfig, context=context)
    if connection.ca_file is None:
        raise ValueError("the kubeconfig names no certificate authority")
    fingerprint = ca_fingerprint(await asyncio.to_thread(Path(connection.ca_file).read_bytes))
    async with KubernetesApi(connection) as api:
        async for items, _ in api.pages(NAMESPACE, field_selector=f"metadata.name={KUBE_SYSTEM}"):
            for item in items:
                return fingerprint, str(item["metadata"]["uid"])
    raise ValueError(f"there is no namespace {KUBE_SYSTEM}")
