"""Whether an installation is complete and of one release. Pure: facts in, rows out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hermetic.api.configuration import Configuration
from hermetic.api.crd import DEFINITIONS, crd
from hermetic.cli.check.configuration import configuration_rows
from hermetic.cli.check.facts import DEPLOYMENT, Installed, Manifest
from hermetic.cli.check.installed_rights import other_bindings, policy_rows, role_rows
from hermetic.cli.check.rows import CheckRow, RowVerdict, passes, unread
from hermetic.cli.installation import ACCOUNT, Installation, rights
from hermetic.kinds import VERSION
from hermetic.kube.lease import LEASE_NAME, RELEASE

_APPLY_CRDS = ("kubectl apply --server-side --kustomize crds",)

_NOTHING_THERE = CheckRow(
    "operator",
    RowVerdict.FAIL,
    "nothing of Hermetic is in this cluster: no CRD, no admission policy, no role and no Deployment",
    "no model can be applied, and no object can be compared with this release",
    "see whether this is the cluster that was meant (--context), then install: docs/install.md",
    ("kubectl config current-context", "hermetic check"),
)


def rows_installed(facts: Installed) -> tuple[CheckRow, ...]:
    configuration, rows = configuration_rows(facts)
    account = _account(facts)
    expected = rights(Installation(configuration or Configuration(), account, limited=False))
    if _nothing_there(facts, expected):
        return (_NOTHING_THERE,)
    return (
        *_definitions(facts),
        *policy_rows(facts, expected),
        *role_rows(facts, expected),
        *other_bindings(facts, account),
        *rows,
        *_operator(facts),
        *_release(facts),
    )


def _nothing_there(facts: Installed, expected: Sequence[Manifest]) -> bool:
    """Whether everything could be read, and none of the expected objects, CRDs and the Deployment is there."""
    reads = {
        "ValidatingAdmissionPolicy": facts.policies,
        "ValidatingAdmissionPolicyBinding": facts.bindings,
        "ClusterRole": facts.cluster_roles,
        "ClusterRoleBinding": facts.cluster_role_bindings,
        "Role": facts.roles,
        "RoleBinding": facts.role_bindings,
    }
    if any(read.problem for read in (facts.definitions, facts.deployments, *reads.values())):
        return False
    if facts.deployments.named(DEPLOYMENT, facts.namespace) is not None:
        return False
    if any(facts.definitions.named(definition.name) is not None for definition in DEFINITIONS):
        return False
    named = ((reads[manifest["kind"]], manifest["metadata"]) for manifest in expected if manifest["kind"] in reads)
    return all(read.named(metadata["name"], metadata.get("namespace")) is None for read, metadata in named)


# ------------------------------------------------------------------ CRDs


def _definitions(facts: Installed) -> Iterator[CheckRow]:
    check = "crds"
    if facts.definitions.problem:
        yield unread(check, "CustomResourceDefinitions", facts.definitions.problem)
        return
    for definition in DEFINITIONS:
        manifest = facts.definitions.named(definition.name)
        if manifest is None:
            why = "the operator waits for the kind, and nothing of it can be applied"
            yield CheckRow(
                check, RowVerdict.FAIL, f"{definition.name} is not installed", why, "apply the CRDs", _APPLY_CRDS
            )
        else:
            yield _definition(definition.name, manifest, crd(definition))


def _definition(name: str, manifest: Manifest, ours: Manifest) -> CheckRow:
    status = manifest.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    established = conditions.get("Established", {})
    stored = status.get("storedVersions") or []
    if established.get("status") != "True":
        explanation = f"{name} is not established: {established.get('message') or 'no reason is given'}"
        return CheckRow(
            "crds", RowVerdict.FAIL, explanation, "the API server does not serve it", "apply the CRDs", _APPLY_CRDS
        )
    if set(stored) != {VERSION}:
        return CheckRow(
            "crds",
            RowVerdict.WARNING,
            f"{name} has objects stored as {', '.join(stored) or 'no version'}; this release stores {VERSION}",
            "a version that has stored objects cannot be taken out of the CRD",
            "write every object once, then take the old version out of status.storedVersions",
        )
    if _schemas(manifest) != _schemas(ours):
        return CheckRow(
            "crds",
            RowVerdict.WARNING,
            f"{name} has another schema than this release of the command line",
            "fields that only one of the two knows are refused or not shown",
            "use the command line of the installed release, or upgrade: the CRDs first, then the operator",
            _APPLY_CRDS,
        )
    return passes("crds", f"{name} is served, and stored as {VERSION}")


def _schemas(definition: Manifest) -> dict[str, Any]:
    return {version["name"]: version["schema"] for version in definition["spec"]["versions"]}


# ------------------------------------------------------------------ the operator


def _account(facts: Installed) -> str:
    deployment = facts.deployments.named(DEPLOYMENT, facts.namespace)
    named = deployment["spec"]["template"]["spec"].get("serviceAccountName") if deployment is not None else None
    return str(named or ACCOUNT)


def _operator(facts: Installed) -> Iterator[CheckRow]:
    check = "operator"
    if facts.deployments.problem:
        yield unread(check, f"Deployments of {facts.namespace}", facts.deployments.problem)
        return
    deployment = facts.deployments.named(DEPLOYMENT, facts.namespace)
    commands = (f"kubectl describe deployment {DEPLOYMENT} --namespace {facts.namespace}",)
    if deployment is None:
        explanation = f"Deployment {DEPLOYMENT} does not exist in {facts.namespace}"
        yield CheckRow(
            check,
            RowVerdict.FAIL,
            explanation,
            "no operator works",
            "install it, or name its namespace with --namespace",
        )
        return
    ready = (deployment.get("status") or {}).get("readyReplicas") or 0
    if ready:
        yield passes(check, f"{ready} pod of the operator is ready")
    else:
        why = "no deployment is reconciled; pods that run keep running"
        yield CheckRow(check, RowVerdict.FAIL, "no pod of the operator is ready", why, "read why", commands)
    (image, *_) = [container.get("image", "") for container in deployment["spec"]["template"]["spec"]["containers"]]
    if "@sha256:" not in image:
        explanation = f"the operator's image {image} is named by a tag"
        why = "everyone who may push to the registry may change what runs with the operator's rights"
        yield CheckRow(check, RowVerdict.WARNING, explanation, why, "name it by digest", commands)


def _release(facts: Installed) -> Iterator[CheckRow]:
    """Which release runs: the operator writes it to its Lease with every renewal."""
    check = "release"
    if facts.leases.problem:
        yield unread(check, f"Leases of {facts.namespace}", facts.leases.problem)
        return
    lease = facts.leases.named(LEASE_NAME, facts.namespace)
    release = ((lease or {}).get("metadata", {}).get("annotations") or {}).get(RELEASE, "")
    if not release:
        explanation = "no operator has written its release on its Lease"
        why = "an operator and a command line of two releases may validate one manifest differently"
        yield CheckRow(
            check,
            RowVerdict.UNKNOWN,
            explanation,
            why,
            "see whether an operator runs, and upgrade one that writes none",
        )
    elif release != facts.release:
        explanation = f"the operator is of release {release}, this command line of {facts.release}"
        why = "the two may validate one manifest differently"
        yield CheckRow(check, RowVerdict.WARNING, explanation, why, "use the command line of the operator's release")
    else:
        yield passes(check, f"operator and command line are both of release {release}")
