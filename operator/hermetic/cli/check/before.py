"""What a cluster must have before Hermetic is installed. Pure: facts in, rows out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermetic.api.text import cut_middle
from hermetic.audit.checks.kube_cluster.storage import AZURE_BLOBS, AZURE_FILES, ENDPOINT, PRIVATE, is_nfs
from hermetic.cli.check.facts import PreflightFacts, Right
from hermetic.cli.check.gpu_nodes import gpu_nodes
from hermetic.cli.check.interconnect import interconnect
from hermetic.cli.check.rows import CheckRow, RowVerdict, passes, unread
from hermetic.cli.installation import NAMESPACE, written
from hermetic.objects.weights_volume import AZURE_FILES_DRIVER

OLDEST, NEWEST = (1, 32), (1, 36)
POLICIES = "validatingadmissionpolicies.admissionregistration.k8s.io/v1"
LONGEST_REFUSAL = 600
ENFORCE = "pod-security.kubernetes.io/enforce"
PULL = (
    "az aks check-acr --resource-group GROUP --name CLUSTER --acr REGISTRY.azurecr.io",
    "az acr check-health --name REGISTRY --vnet VNET_ARM_ID --yes",
    "kubectl apply --filename pull.yaml",
)
"""The last command creates a pod, whose manifest docs/install.md shows."""

# What the manifests create in addition to those of `manifests/rbac` and `manifests/policies`.
_CREATED: tuple[tuple[str, str, str], ...] = (
    ("apiextensions.k8s.io", "customresourcedefinitions", ""),
    ("apps", "deployments", NAMESPACE),
    ("policy", "poddisruptionbudgets", NAMESPACE),
    ("", "configmaps", NAMESPACE),
)
_PLURALS = {
    "Namespace": "namespaces",
    "ServiceAccount": "serviceaccounts",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
_ROLES = "rbac.authorization.k8s.io"


def rows_before(facts: PreflightFacts, namespaces: tuple[str, ...] = ()) -> tuple[CheckRow, ...]:
    """Every row; `namespaces` are those in which models are to run, if known."""
    return (
        _version(facts),
        _policy_engine(facts),
        *_definitions(facts),
        *_permissions(facts),
        *gpu_nodes(facts),
        *interconnect(facts),
        *_storage(facts),
        *_pod_security(facts, namespaces),
        _image_pull(),
    )


def needed() -> tuple[Right, ...]:
    """The rights of an account that applies the manifests: server-side apply creates with `patch`."""
    targets = [*_CREATED, *(_place(manifest) for folder in ("rbac", "policies") for manifest in written(folder))]
    rights = {
        Right(group, resource, verb, namespace)
        for group, resource, namespace in targets
        for verb in ("create", "patch")
    }
    return (
        *sorted(rights),
        *(Right(_ROLES, name, verb) for name in ("clusterroles", "roles") for verb in ("escalate", "bind")),
    )


def _place(manifest: Mapping[str, Any]) -> tuple[str, str, str]:
    group, _, _ = manifest["apiVersion"].rpartition("/")
    return group, _PLURALS[manifest["kind"]], manifest["metadata"].get("namespace", "")


def _version(facts: PreflightFacts) -> CheckRow:
    check = "kubernetes-version"
    if facts.version is None:
        return unread(check, "the version of the API server", facts.version_problem)
    actual, oldest, newest = (".".join(map(str, version)) for version in (facts.version, OLDEST, NEWEST))
    if facts.version < OLDEST:
        return CheckRow(
            check,
            RowVerdict.FAIL,
            f"the API server is Kubernetes {actual}; {oldest} or later is needed",
            "an earlier API server refuses the CRD of ModelDeployments: its rules need functions that it lacks",
            "upgrade the cluster",
            ("az aks get-upgrades --resource-group GROUP --name CLUSTER",),
        )
    if facts.version > NEWEST:
        return CheckRow(
            check,
            RowVerdict.WARNING,
            f"the API server is Kubernetes {actual}; this release was tested with {newest} and earlier",
            "a later one may add fields to pods that this release takes for changes by others",
            "look for a later release of Hermetic",
        )
    return passes(check, f"the API server is Kubernetes {actual}")


def _policy_engine(facts: PreflightFacts) -> CheckRow:
    check = "policy-engine"
    if facts.served_problem:
        return unread(check, "what the API server serves", facts.served_problem)
    if POLICIES in facts.served:
        return passes(check, "ValidatingAdmissionPolicy is served")
    return CheckRow(
        check,
        RowVerdict.FAIL,
        "the API server does not serve ValidatingAdmissionPolicy in version v1",
        "without the policies a stolen token of the operator is bound by RBAC alone, and pods start without a proof",
        f"upgrade to Kubernetes {OLDEST[0]}.{OLDEST[1]} or later, where it is served unless it was switched off",
    )


def _definitions(facts: PreflightFacts) -> Iterator[CheckRow]:
    check = "crds"
    undecided = [dry_run for dry_run in facts.dry_runs if dry_run.problem]
    refused = [dry_run for dry_run in facts.dry_runs if dry_run.refusal]
    for dry_run in refused:
        yield CheckRow(
            check,
            RowVerdict.FAIL,
            f"the API server refuses the CRD {dry_run.name}: {cut_middle(dry_run.refusal, LONGEST_REFUSAL)}",
            "without its CRDs the operator never becomes ready, and no model can be applied",
            f"upgrade to Kubernetes {OLDEST[0]}.{OLDEST[1]} or later; if the cluster has it, report this message",
        )
    if undecided:
        names = ", ".join(dry_run.name for dry_run in undecided)
        yield CheckRow(
            check,
            RowVerdict.UNKNOWN,
            f"it is not known whether the API server accepts the CRDs {names}: "
            f"{cut_middle(undecided[0].problem, LONGEST_REFUSAL)}",
            "a dry run shows it, which needs the right to create and patch CRDs",
            "check with an account that may install",
            ("kubectl apply --server-side --dry-run=server --kustomize crds",),
        )
    if not refused and not undecided:
        yield passes(check, f"the API server accepts the {len(facts.dry_runs)} CRDs in a dry run")


def _permissions(facts: PreflightFacts) -> Iterator[CheckRow]:
    check = "permissions"
    if unknown := [right for right, has in facts.rights.items() if has is None]:
        yield unread(check, f"{len(unknown)} of {len(facts.rights)} rights of this account", str(unknown[0]))
        return
    missing = [right for right, has in facts.rights.items() if not has]
    creating = [right for right in missing if right.verb in {"create", "patch"}]
    if creating:
        yield CheckRow(
            check,
            RowVerdict.FAIL,
            f"this account lacks {len(creating)} rights that installing needs: {', '.join(map(str, creating))}",
            "an installation that stops half-way leaves rights without the policies that bound them",
            "install with an account that is bound to cluster-admin, or have these granted",
            tuple(map(_as_question, creating[:3])),
        )
    elif missing:
        yield CheckRow(
            check,
            RowVerdict.WARNING,
            f"this account may create roles, and may not {', '.join(map(str, missing))}",
            "the API server lets it create only roles and bindings whose every right it has itself",
            "install with an account that is bound to cluster-admin, or have these granted",
        )
    else:
        yield passes(check, f"this account has the {len(facts.rights)} rights that installing needs")


def _as_question(right: Right) -> str:
    name = f"{right.resource}.{right.group}" if right.group else right.resource
    where = f" --namespace {right.namespace}" if right.namespace else ""
    return f"kubectl auth can-i {right.verb} {name}{where}"


def _storage(facts: PreflightFacts) -> Iterator[CheckRow]:
    check = "storage"
    if facts.drivers.problem:
        yield unread(check, "CSI drivers", facts.drivers.problem)
    elif facts.drivers.named(AZURE_FILES_DRIVER) is None:
        yield CheckRow(
            check,
            RowVerdict.WARNING,
            f"the CSI driver {AZURE_FILES_DRIVER} is not installed",
            "models whose weights are on Azure Files are mounted by it; images and claims of your own are not",
            "switch it on where weights are to be on Azure Files",
            ("az aks update --resource-group GROUP --name CLUSTER --enable-file-driver",),
        )
    else:
        yield passes(check, f"the CSI driver {AZURE_FILES_DRIVER} is installed")
    if facts.storage_classes.problem:
        yield unread(check, "StorageClasses", facts.storage_classes.problem)
        return
    classes = [
        storage_class
        for storage_class in facts.storage_classes.items
        if storage_class.get("provisioner") in {*AZURE_FILES, AZURE_BLOBS}
    ]
    rows = [row for class_ in classes if (row := _storage_class(class_)) is not None]
    yield from rows or [
        passes(check, f"no StorageClass of {len(facts.storage_classes.items)} opens a way to Azure storage")
    ]


def _storage_class(storage_class: Mapping[str, Any]) -> CheckRow | None:
    """Classes of the two drivers that make storage accounts."""
    parameters = {key.lower(): str(value) for key, value in (storage_class.get("parameters") or {}).items()}
    if parameters.get(ENDPOINT.lower()) == PRIVATE:
        return None
    name, nfs = storage_class["metadata"]["name"], is_nfs(parameters)
    if nfs:
        opens = "adds a storage service endpoint to every subnet of the nodes"
        why = "that is a way to every storage account, for every pod, and the audit fails"
    else:
        opens, why = (
            "makes an account with a public endpoint",
            "data that pods write there can be fetched from anywhere",
        )
    protocol = "NFS" if nfs else "SMB, and not NFS"
    return CheckRow(
        "storage",
        RowVerdict.WARNING,
        f"StorageClass {name} has no {ENDPOINT}: {PRIVATE}: the first claim of it {opens} ({protocol})",
        f"{why}; Hermetic itself makes its volumes without a class",
        f"let no claim use it; for shares of your own make a class with protocol: nfs and {ENDPOINT}: {PRIVATE}",
        (f"kubectl get storageclass {name} --output yaml",),
    )


def _pod_security(facts: PreflightFacts, namespaces: tuple[str, ...]) -> Iterator[CheckRow]:
    check = "pod-security"
    if facts.namespaces.problem:
        yield unread(check, "namespaces", facts.namespaces.problem)
        return
    manifest = facts.namespaces.named(NAMESPACE)
    if manifest is None:
        yield passes(check, f"namespace {NAMESPACE} is not there yet; its manifest makes it restricted")
    else:
        yield _level(NAMESPACE, manifest, "the operator runs there")
    for name in namespaces:
        manifest = facts.namespaces.named(name)
        if manifest is None:
            explanation = f"namespace {name}, which the configuration names, is not there"
            why = "models cannot be applied in it, and RoleBindings for it are refused"
            yield CheckRow(check, RowVerdict.FAIL, explanation, why, "create it", (f"kubectl create namespace {name}",))
        else:
            yield _level(name, manifest, "models run there")


def _level(name: str, manifest: Mapping[str, Any], why: str) -> CheckRow:
    level = (manifest["metadata"].get("labels") or {}).get(ENFORCE, "privileged")
    if level == "restricted":
        return passes("pod-security", f"namespace {name} enforces restricted")
    return CheckRow(
        "pod-security",
        RowVerdict.WARNING,
        f"namespace {name} enforces {level}, not restricted",
        f"{why}, and other pods beside them could use the node's network, which no NetworkPolicy covers",
        "enforce restricted; every pod of Hermetic's fits it",
        (f"kubectl label namespace {name} {ENFORCE}=restricted --overwrite",),
    )


def _image_pull() -> CheckRow:
    return CheckRow(
        "image-pull",
        RowVerdict.NOT_CHECKED,
        "no object shows whether the nodes can pull from your registry; a pod has to try",
        "an operator that cannot be pulled never starts, and its image is the first thing that is pulled",
        "run these; docs/install.md shows pull.yaml, a pod that pulls the operator's image and ends",
        PULL,
    )
