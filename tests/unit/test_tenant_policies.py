"""The policies for tenants have the lists of the checks: CEL cannot import them, so each is compared here."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermetic.api.public_services import ALLOWED_RANGES, INTERNAL, PUBLIC_CLASSES, PUBLIC_SIDE, SHARED_BY_MESH
from hermetic.audit.checks.kube_cluster.storage import OUTSIDE_DRIVERS, SERVERS
from hermetic.audit.checks.kube_policies.callers import CALLERS
from hermetic.audit.checks.kube_policies.devices import GPU_DRIVERS
from hermetic.audit.checks.kube_services.balancers import ADDRESSES
from hermetic.audit.checks.kube_workloads.rights import CAPABILITIES
from hermetic.audit.checks.registry import CHECKS
from hermetic.audit.estate.kubernetes.all_kinds import KINDS
from hermetic.audit.estate.kubernetes.callers import OF_AN_ADDRESS
from hermetic.audit.estate.kubernetes.environment import PROXIES, is_proxy
from hermetic.audit.estate.kubernetes.objects import KubernetesObject
from hermetic.audit.estate.kubernetes.scalers import SERVICES_OUTSIDE

TENANTS = Path(__file__).parents[2] / "manifests" / "tenants"
LIST = re.compile(r"\[((?:\s*'[^']*',?)+)\s*\]")


def documents() -> list[dict[str, Any]]:
    files = yaml.safe_load((TENANTS / "kustomization.yaml").read_text())["resources"]
    assert sorted(files) == sorted(path.name for path in TENANTS.glob("*.yaml") if path.name != "kustomization.yaml")
    return [document for file in files for document in yaml.safe_load_all((TENANTS / file).read_text())]


def lists_of(file: str) -> list[set[str]]:
    """Every list of strings in the expressions of a file."""
    text = (TENANTS / f"{file}.yaml").read_text()
    return [set(re.findall(r"'([^']*)'", values_found)) for values_found in LIST.findall(text)]


def test_every_policy_is_bound_to_the_namespaces_of_tenants_and_denies() -> None:
    policies = {
        document["metadata"]["name"] for document in documents() if document["kind"] == "ValidatingAdmissionPolicy"
    }
    bindings = [document["spec"] for document in documents() if document["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert {document["policyName"] for document in bindings} == policies
    assert all(document["validationActions"] == ["Deny"] for document in bindings)
    label = {"matchLabels": {"hermetic.dev/tenant": "true"}}
    assert all(document["matchResources"] == {"namespaceSelector": label} for document in bindings)


def test_the_pages_of_the_checks_name_every_policy() -> None:
    policies = {
        document["metadata"]["name"] for document in documents() if document["kind"] == "ValidatingAdmissionPolicy"
    }
    assert {name for check in CHECKS for name in check.page.tenant_policies} == policies


@pytest.mark.parametrize(
    ("file", "values"),
    [
        ("pods", OUTSIDE_DRIVERS),
        ("pods", SERVERS),
        ("pods", CAPABILITIES),
        ("pods", PROXIES),
        ("devices", GPU_DRIVERS),
        ("services", ADDRESSES),
        ("services", SHARED_BY_MESH),
    ],
)
def test_a_list_of_a_policy_is_that_of_the_check(file: str, values: Collection[str]) -> None:
    assert set(values) in lists_of(file), f"no list of {file}.yaml is {sorted(values)}"


def test_every_annotation_of_a_public_side_is_refused() -> None:
    text = (TENANTS / "services.yaml").read_text()
    names = {*PUBLIC_SIDE, ALLOWED_RANGES, INTERNAL}
    assert not [name for name in names if f"'{name}'" not in text and "/azure-pip-" not in name]
    assert "startsWith('service.beta.kubernetes.io/azure-pip-')" in text


def test_every_class_of_a_public_gateway_is_refused() -> None:
    text = (TENANTS / "ingresses.yaml").read_text()
    assert not [name for name in PUBLIC_CLASSES if f"'{name}'" not in text]


def test_every_trigger_of_a_service_outside_is_refused() -> None:
    (pattern,) = re.findall(r"matches\('\^\((aws-[^)]*)\)'\)", (TENANTS / "callers.yaml").read_text())
    assert set(pattern.split("|")) == set(SERVICES_OUTSIDE)


def test_names_that_are_no_proxy_are_those_of_the_check() -> None:
    assert {"NO_PROXY", "KUBE_PROXY"} in lists_of("pods")
    assert not is_proxy("NO_PROXY")
    assert not is_proxy("KUBE_PROXY")


def test_attributes_of_volumes_that_name_an_address_are_those_of_the_check() -> None:
    assert f"matches('(?i){OF_AN_ADDRESS.pattern}')" in (TENANTS / "pods.yaml").read_text()


def test_every_policy_has_the_same_private_ranges() -> None:
    ranges = [
        values_found
        for path in TENANTS.glob("*.yaml")
        for values_found in lists_of(path.stem)
        if "10.0.0.0/8" in values_found
    ]
    assert len(ranges) >= 4
    assert all(values_found == ranges[0] for values_found in ranges)


def is_of_another_project(kind: type[KubernetesObject]) -> bool:
    group = kind.TYPE.split("/")[0]
    of_kubernetes = {"networking.k8s.io", "discovery.k8s.io", "resource.k8s.io"}
    return kind.NAMESPACED and "." in group and group not in of_kubernetes


@pytest.mark.parametrize("kind", [kind for kind in KINDS if is_of_another_project(kind)], ids=lambda kind: kind.TYPE)
def test_every_kind_of_a_namespace_that_is_read_has_a_policy(kind: type[KubernetesObject]) -> None:
    group, _, plural = kind.TYPE.split("/")
    rules = [
        rule
        for document in documents()
        if document["kind"] == "ValidatingAdmissionPolicy"
        for rule in document["spec"]["matchConstraints"]["resourceRules"]
    ]
    assert any(group in rule["apiGroups"] and plural in rule["resources"] for rule in rules)


def test_every_caller_of_a_namespace_has_the_policy_of_callers_or_is_refused() -> None:
    texts = (TENANTS / "callers.yaml").read_text() + (TENANTS / "kinds.yaml").read_text()
    assert not [kind.TYPE for kind in CALLERS if kind.NAMESPACED and kind.TYPE.split("/")[2] not in texts]
