"""Reads the facts from an API server. Nothing is changed: a SelfSubjectAccessReview and a dry run are questions."""

from __future__ import annotations

import asyncio

from hermetic import __version__
from hermetic.api.crd import DEFINITIONS, crd
from hermetic.cli.check.before import needed
from hermetic.cli.check.facts import DryRun, Installed, Manifest, PreflightFacts, Read, Right
from hermetic.cli.check.gpu_nodes import pools, without_gpus
from hermetic.collect.kube.discovery import catalogue
from hermetic.errors import HermeticError, NotFound, Rejected, Unauthenticated, Unreachable
from hermetic.kinds import DEPLOYMENT, LEASE, NAMESPACE, NODE, POD, Kind
from hermetic.kube.client import KubernetesApi

_RBAC, _ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
DAEMON_SET = Kind("apps", "v1", "DaemonSet", "daemonsets")
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False)
CSI_DRIVER = Kind("storage.k8s.io", "v1", "CSIDriver", "csidrivers", namespaced=False)
DEFINITION = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
POLICY = Kind(_ADMISSION, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False)
BINDING = Kind(
    _ADMISSION, "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False
)
CLUSTER_ROLE = Kind(_RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING = Kind(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
ROLE = Kind(_RBAC, "v1", "Role", "roles")
ROLE_BINDING = Kind(_RBAC, "v1", "RoleBinding", "rolebindings")
CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")


async def before(api: KubernetesApi) -> PreflightFacts:
    """A cluster before an installation. Raises Unreachable and Unauthenticated where the API server cannot be asked."""
    version, version_problem = await _version(api)
    served, served_problem = await _served(api)
    rights = needed()
    had = await asyncio.gather(*(_may(api, right) for right in rights))
    nodes, daemon_sets, classes, drivers, namespaces = await asyncio.gather(
        *(read(api, kind) for kind in (NODE, DAEMON_SET, STORAGE_CLASS, CSI_DRIVER, NAMESPACE))
    )
    dry_runs = await asyncio.gather(*(_dry_run(api, crd(definition)) for definition in DEFINITIONS))
    bare = [without_gpus(pool) for pool in pools(nodes.items)]
    names = [some[0]["metadata"]["name"] for some in bare if some]
    beside = await asyncio.gather(*(read(api, POD, field_selector=f"spec.nodeName={name}") for name in names))
    return PreflightFacts(
        version=version,
        version_problem=version_problem,
        served=served,
        served_problem=served_problem,
        rights=dict(zip(rights, had, strict=True)),
        nodes=nodes,
        daemon_sets=daemon_sets,
        beside=dict(zip(names, beside, strict=True)),
        storage_classes=classes,
        drivers=drivers,
        namespaces=namespaces,
        dry_runs=tuple(dry_runs),
    )


async def installed(api: KubernetesApi, namespace: str) -> Installed:
    """An installation in this namespace. Raises Unreachable, Unauthenticated where the API server cannot be asked."""
    cluster_kinds = (DEFINITION, POLICY, BINDING, CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING)
    inside = (DEPLOYMENT, CONFIG_MAP, LEASE)
    reads = await asyncio.gather(
        *(read(api, kind) for kind in cluster_kinds), *(read(api, kind, namespace=namespace) for kind in inside)
    )
    return Installed(namespace, __version__, *reads)


async def read(api: KubernetesApi, kind: Kind, *, namespace: str | None = None, field_selector: str = "") -> Read:
    """Every object of a kind; none if the kind is not served."""
    items: list[Manifest] = []
    try:
        async for page, _ in api.pages(kind, namespace=namespace, field_selector=field_selector):
            items += page
    except (Unreachable, Unauthenticated):
        raise
    except NotFound:
        return Read()
    except HermeticError as error:
        return Read(problem=error.message)
    return Read(tuple(items))


async def _version(api: KubernetesApi) -> tuple[tuple[int, int] | None, str]:
    try:
        return await api.server_version(), ""
    except (Unreachable, Unauthenticated):
        raise
    except HermeticError as error:
        return None, error.message


async def _served(api: KubernetesApi) -> tuple[frozenset[str], str]:
    """Every kind outside the core group, as plural.group/version."""
    try:
        groups = (await catalogue(api)).groups
    except (Unreachable, Unauthenticated):
        raise
    except HermeticError as error:
        return frozenset(), error.message
    return (
        frozenset(
            f"{plural}.{name}/{version}"
            for name, group in groups.items()
            for plural, (_, versions) in group.kinds.items()
            for version in versions
        ),
        "",
    )


async def _may(api: KubernetesApi, right: Right) -> bool | None:
    try:
        return await api.may(right.group, right.resource, right.verb, right.namespace)
    except (Unreachable, Unauthenticated):
        raise
    except HermeticError:
        return None


async def _dry_run(api: KubernetesApi, manifest: Manifest) -> DryRun:
    """Only the API server's own refusal of the object counts: a webhook that takes no dry run decides nothing."""
    name = manifest["metadata"]["name"]
    try:
        await api.dry_run(DEFINITION, dict(manifest))
    except (Unreachable, Unauthenticated):
        raise
    except Rejected as refused:
        if refused.reason == "Invalid":
            return DryRun(name, refusal=refused.message)
        return DryRun(name, problem=refused.message)
    except HermeticError as error:
        return DryRun(name, problem=error.message)
    return DryRun(name)
