"""The facts that `hermetic check` reads from a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Read:
    """Objects of one kind; `problem` says why they could not be read, "" if they were."""

    items: tuple[Manifest, ...] = ()
    problem: str = ""

    def named(self, name: str, namespace: str | None = None) -> Manifest | None:
        identity = (namespace, name)
        return next(
            (
                manifest
                for manifest in self.items
                if (manifest["metadata"].get("namespace"), manifest["metadata"]["name"]) == identity
            ),
            None,
        )


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One permission; `namespace` is "" for the whole cluster."""

    group: str
    resource: str
    verb: str
    namespace: str = ""

    def __str__(self) -> str:
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {name}" + (f" in {self.namespace}" if self.namespace else "")


@dataclass(frozen=True, slots=True)
class DryRun:
    """Whether the API server would apply an object: `refusal` is why not, `problem` why it was not decided."""

    name: str
    refusal: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class PreflightFacts:
    """A cluster before an installation. `rights`: whether the caller has each right, None where unknown.

    `dry_runs`: of the CRDs.

    `beside`: the pods of one node without GPUs of each pool of GPU machines, by the name of the node.
    """

    version: tuple[int, int] | None
    version_problem: str = ""
    served: frozenset[str] = frozenset()
    served_problem: str = ""
    rights: Mapping[Right, bool | None] = field(default_factory=dict)
    nodes: Read = Read()
    daemon_sets: Read = Read()
    beside: Mapping[str, Read] = field(default_factory=dict)
    storage_classes: Read = Read()
    drivers: Read = Read()
    namespaces: Read = Read()
    dry_runs: tuple[DryRun, ...] = ()


DEPLOYMENT = "hermetic-operator"


@dataclass(frozen=True, slots=True)
class Installed:
    """A cluster with an installation in `namespace`. `release` is that of the program that checks."""

    namespace: str
    release: str
    definitions: Read = Read()
    policies: Read = Read()
    bindings: Read = Read()
    cluster_roles: Read = Read()
    cluster_role_bindings: Read = Read()
    roles: Read = Read()
    role_bindings: Read = Read()
    deployments: Read = Read()
    config_maps: Read = Read()
    leases: Read = Read()
