"""Whether a cluster has anything of an installation. Pure: facts in, answer out."""

from __future__ import annotations

from collections.abc import Sequence

from hermetic.api.crd import DEFINITIONS
from hermetic.cli.check.facts import Installed, Manifest
from hermetic.cli.check.rows import CheckRow, RowVerdict

NOTHING_THERE = CheckRow(
    "operator",
    RowVerdict.FAIL,
    "nothing of Hermetic is in this cluster: no CRD, no admission policy, no role and no Deployment",
    "no model can be applied, and no object can be compared with this release",
    "see whether this is the cluster that was meant (--context), then install: docs/install.md",
    ("kubectl config current-context", "hermetic check"),
)


def nothing_there(facts: Installed, expected: Sequence[Manifest], deployment: str) -> bool:
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
    if facts.deployments.named(deployment, facts.namespace) is not None:
        return False
    if any(facts.definitions.named(definition.name) is not None for definition in DEFINITIONS):
        return False
    named = ((reads[manifest["kind"]], manifest["metadata"]) for manifest in expected if manifest["kind"] in reads)
    return all(read.named(metadata["name"], metadata.get("namespace")) is None for read, metadata in named)
