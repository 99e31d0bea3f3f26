"""The NetworkPolicies that this project gives to its users cause no finding of the audit."""

from __future__ import annotations

import re
from datetime import date

import pytest
import yaml

from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.policy.exceptions import Exceptions
from testbed.installation import REPOSITORY
from tests.kubernetes_estates import Manifest, findings, sealed_cluster

MANIFESTS = REPOSITORY / "manifests"
METADATA = MANIFESTS / "flux" / "controllers-instance-metadata" / "network-policy.yaml"
PAGE = (REPOSITORY / "docs" / "flux.md").read_text(encoding="utf-8")
FILLED_IN = {"API_SERVER_CIDR": "10.1.0.200/32", "REGISTRY_CIDR": "10.13.75.4/32"}


def policies(text: str) -> list[Manifest]:
    """The NetworkPolicies of a file, with addresses in place of its placeholders."""
    filled = re.sub(r"\b[A-Z_]+_CIDR\b", lambda match: FILLED_IN[match[0]], text)
    return [document for document in yaml.safe_load_all(filled) if document and document["kind"] == "NetworkPolicy"]


FILES = {
    str(path.relative_to(MANIFESTS)): found
    for path in sorted(MANIFESTS.rglob("*.yaml"))
    if path != METADATA and "kind: NetworkPolicy" in path.read_text(encoding="utf-8")
    if (found := policies(path.read_text(encoding="utf-8")))
}


def test_manifests_of_the_project_have_network_policies() -> None:
    assert "flux/controllers/network-policies.yaml" in FILES


@pytest.mark.parametrize("manifests", FILES.values(), ids=FILES)
def test_network_policies_of_the_project_cause_no_finding(manifests: list[Manifest]) -> None:
    reached = findings("k8s-policy-allow-all", [*sealed_cluster(), *manifests])
    assert {finding.verdict for finding in reached} == {Verdict.PASS}


def test_policy_for_instance_metadata_is_medium_and_settled_by_the_exception_of_the_page() -> None:
    (finding,) = findings("k8s-policy-allow-all", [*sealed_cluster(), *policies(METADATA.read_text(encoding="utf-8"))])
    assert (finding.verdict, finding.severity, finding.reason) == (
        Verdict.FAIL,
        Severity.MEDIUM,
        "HostAddressAllowed",
    )
    text = PAGE[PAGE.index("# exceptions.yaml") :].partition("```")[0]
    exceptions = Exceptions.model_validate(yaml.safe_load(text))
    ((settled,), notes) = exceptions.applied([finding], date(2026, 12, 1))
    assert (settled.verdict, notes) == (Verdict.EXCEPTED, ())
