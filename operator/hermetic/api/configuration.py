"""The operator's own configuration: one YAML file, read once at start, every key declared and explained here."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated

from pydantic import Field, StringConstraints

from hermetic.api.rules import ApiModel, Rule
from hermetic.api.values import AbsolutePath, DnsLabel, HostName, SourceRange, matches

Namespaces = Annotated[
    list[Annotated[str, matches(r"^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$", "must be a namespace, or '*' for every one")]],
    Field(min_length=1, max_length=256),
]


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return "%" not in text


ServerAddress = Annotated[
    str,
    StringConstraints(max_length=45),
    Rule(cel="isIP(self)", message="must be an IP address such as '10.1.0.4', without a port", holds=_is_address),
]


class AllowedRegistry(ApiModel):
    """A registry that serving images and image volumes may come from."""

    host: Annotated[
        str,
        StringConstraints(max_length=259),
        matches(
            r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?$", "must be a registry host such as 'contoso.azurecr.io'"
        ),
    ]
    """Host of the registry, with its port if it has one."""
    repositories: Annotated[list[str], Field(max_length=64)] = []
    """Repository prefixes that may be used, for example 'nim/'. Default: every repository of the host."""
    namespaces: Namespaces
    """Namespaces whose deployments may use it; '*' allows every namespace."""


class AllowedShare(ApiModel):
    """A share that weights may be read from: `account` and `share` of Azure Files, or `server` and `path` of NFS."""

    RULES = (
        Rule(
            cel="",
            message="must set either `account` and `share` (Azure Files) or `server` and `path` (NFS)",
            holds=lambda allowed: (
                (allowed.account is not None and allowed.share is not None and allowed.path is None)
                or (allowed.server is not None and allowed.path is not None and allowed.account is None)
            ),
        ),
    )

    account: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][-a-z0-9]{2,62}$")] | None = None
    """Storage account, or for a Microsoft.FileShares share the first label of its host name."""
    share: Annotated[str, StringConstraints(max_length=63)] | None = None
    """Name of the Azure Files share."""
    server: HostName | None = None
    """NFS server; beside `account`, the one host name that the share may be mounted from when it is not the default."""
    path: AbsolutePath | None = None
    """Exported path of the NFS server."""
    namespaces: Namespaces
    """Namespaces whose deployments may read it; '*' allows every namespace."""


class Volumes(ApiModel):
    """PersistentVolumes for shares."""

    create: bool = True
    """Create PersistentVolumes and claims for `azureFiles` and `nfs`. false: only claims made by the platform team,
    baked images and image volumes are accepted. Default: true."""


class Lease(ApiModel):
    """The lease that makes this process the only writer."""

    namespace: DnsLabel = "hermetic-system"
    """Namespace of the Lease 'hermetic', the operator's own. Default: hermetic-system."""


class Configuration(ApiModel):
    """Everything that the operator can be told."""

    registries: Annotated[list[AllowedRegistry], Field(max_length=64)] = []
    """Registries that images may come from. Nothing is allowed that is not listed. Default: none."""
    shares: Annotated[list[AllowedShare], Field(max_length=256)] = []
    """Shares that weights may be read from. Nothing is allowed that is not listed. Default: none."""
    watch_namespaces: Annotated[list[DnsLabel], Field(max_length=64)] = []
    """Namespaces to look after. Default: every namespace."""
    volumes: Volumes = Volumes()
    """PersistentVolumes for shares."""
    lease: Lease = Lease()
    """The lease that makes this process the only writer."""
    probe_namespace: DnsLabel = "hermetic-probe"
    """Namespace of the egress probe's pods. Some of them share their machine's network, so its Pod Security Standard is
    privileged and nothing else belongs there. Default: hermetic-probe."""
    additional_private_ranges: Annotated[list[SourceRange], Field(max_length=32)] = []
    """Address ranges of your virtual networks outside RFC 1918 and 100.64.0.0/10 that are private all the same. A load
    balancer address in none of them is taken for public. Default: none."""
    allowed_dns_servers: Annotated[list[ServerAddress], Field(max_length=32)] = []
    """IP addresses of DNS servers that CoreDNS and the machines may ask beside Azure's own: those of which you know
    that they ask nobody outside in turn. The same list stands in the file given to `hermetic audit --policy`. Default:
    none."""
    workers: Annotated[int, Field(ge=1, le=64)] = 8
    """Deployments reconciled at the same time, 1 to 64. Default: 8."""
    max_requests_in_flight: Annotated[int, Field(ge=1, le=100)] = 20
    """Requests to the API server at the same time, 1 to 100. Default: 20."""
    resync_seconds: Annotated[int, Field(ge=30, le=86400)] = 600
    """Seconds between full looks at everything, which repair whatever a watch has missed. Default: 600."""
    max_evidence_age_seconds: Annotated[int, Field(ge=300, le=604800)] = 86400
    """Oldest evidence of isolation that any deployment may accept, in seconds; a deployment can ask for fresher
    evidence, never for older. Default: 86400 (a day)."""
    http_port: Annotated[int, Field(ge=1024, le=65535)] = 8080
    """Port of /healthz, /readyz and /metrics. Default: 8080."""
