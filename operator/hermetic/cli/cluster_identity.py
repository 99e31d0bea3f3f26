"""Identity of the kubeconfig's cluster, to which an audit and an attestation are bound."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermetic.audit.attestation.cluster_identity import ca_fingerprint
from hermetic.audit.estate.arm_ids import same_id
from hermetic.audit.estate.kubernetes.platform import KUBE_SYSTEM
from hermetic.cli.terminal import note
from hermetic.errors import Forbidden, HermeticError, InputError, NotFound, ServerError, Throttled
from hermetic.kinds import EGRESS_AUDIT, NAMESPACE, THE_EGRESS_AUDIT
from hermetic.kube.paging import named
from hermetic.ports import KubeApi

NOT_ALLOWED = 403
PAUSES = (0.5, 1.5, 3.0)
"""Seconds before each retry of a transient failure: an API server that has just learned a CRD answers 429."""


@dataclass(frozen=True, slots=True)
class DeclaredIdentity:
    """The content of the EgressAudit named 'cluster'; empty where it does not exist or may not be read.

    `cluster` is the ARM id of this cluster, `probe` its spec.probe unchanged.
    """

    cluster: str = ""
    probe: Mapping[str, Any] = field(default_factory=dict)

    def must_be_about(self, cluster: str) -> None:
        """Raises InputError where the EgressAudit of the kubeconfig's cluster names another one than --azure."""
        if self.cluster and not same_id(self.cluster, cluster):
            raise InputError(
                f"the kubeconfig leads to another cluster: its EgressAudit is about {self.cluster}, not {cluster}",
                fix="name the right one with --kubeconfig or --context, or correct --azure",
            )


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """Identity of an API server; None where none was available."""

    ca_fingerprint: str | None = None
    kube_system_uid: str | None = None
    declared: DeclaredIdentity = field(default_factory=DeclaredIdentity)


async def declared_in(api: KubeApi) -> DeclaredIdentity:
    """The identity in the cluster's EgressAudit. Raises the errors of an API server that cannot be asked at all."""
    for pause in PAUSES:
        try:
            return await _declared(api)
        except (Throttled, ServerError):
            await asyncio.sleep(pause)
    return await _declared(api)


async def _declared(api: KubeApi) -> DeclaredIdentity:
    try:
        audit = await named(api, EGRESS_AUDIT, THE_EGRESS_AUDIT)
    except NotFound:  # no CRD: Hermetic is not installed there
        return DeclaredIdentity()
    except Forbidden as refused:
        if refused.status != NOT_ALLOWED:
            raise
        return DeclaredIdentity()
    spec = _mapping((audit or {}).get("spec"))
    return DeclaredIdentity(str(spec.get("cluster") or ""), _mapping(spec.get("probe")))


async def tie_to(kubeconfig: str | None, context: str | None) -> ServerIdentity:
    """What binds an attestation to the API server of the kubeconfig.

    Without an API server it is unknown, and a note explains the consequence.
    """
    try:
        return await _asked(kubeconfig, context)
    except (HermeticError, OSError, ValueError) as error:
        return not_tied(str(error))


def not_tied(why: str) -> ServerIdentity:
    """An empty identity, with a note."""
    note(
        f"the attestation is not tied to an API server ({why}): an operator that knows its own will refuse it; "
        "sign where the kubeconfig of the cluster works"
    )
    return ServerIdentity()


async def _asked(kubeconfig: str | None, context: str | None) -> ServerIdentity:
    from hermetic.kube.client import KubernetesApi
    from hermetic.kube.connection import find_connection

    connection = await find_connection(kubeconfig=kubeconfig, context=context)
    if connection.ca_file is None:
        raise ValueError("the kubeconfig names no certificate authority")
    fingerprint = ca_fingerprint(await asyncio.to_thread(Path(connection.ca_file).read_bytes))
    async with KubernetesApi(connection) as api:
        namespace = await named(api, NAMESPACE, KUBE_SYSTEM)
        if namespace is None:
            raise ValueError(f"the namespace {KUBE_SYSTEM} does not exist")
        return ServerIdentity(fingerprint, str(namespace["metadata"]["uid"]), await declared_in(api))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
