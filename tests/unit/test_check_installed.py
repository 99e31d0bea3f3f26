"""Every row of `hermetic check --installed`, both ways."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hermetic.api.configuration import Configuration
from hermetic.api.crd import DEFINITIONS, crd
from hermetic.api.kubernetes_yaml import dump
from hermetic.cli.allowed import allowed
from hermetic.cli.check.command import lines
from hermetic.cli.check.configuration import verification
from hermetic.cli.check.facts import Installed, Read
from hermetic.cli.check.installed import rows_installed
from hermetic.cli.check.rows import CheckRow, RowVerdict, overall
from hermetic.cli.installation import Installation, rights
from hermetic.kube.lease import RELEASE

CONFIG = {"registries": [{"host": "contoso.azurecr.io", "namespaces": ["inference"]}]}
IMAGE = "contoso.azurecr.io/hermetic@sha256:" + "1" * 64


def of_kind(kind: str, manifests: list[dict[str, Any]]) -> Read:
    return Read(tuple(copy.deepcopy([manifest for manifest in manifests if manifest["kind"] == kind])))


def an_installation(namespaces: tuple[str, ...] = ()) -> Installed:
    """What a whole one looks like."""
    fields = {**CONFIG, "watchNamespaces": list(namespaces)}
    configuration = Configuration.model_validate(fields)
    rights_manifests = rights(Installation(configuration, limited=False))
    definitions = []
    for definition in DEFINITIONS:
        status = {"conditions": [{"type": "Established", "status": "True"}], "storedVersions": ["v1alpha1"]}
        definitions.append({**crd(definition), "status": status})
    pod = {
        "serviceAccountName": "hermetic-operator",
        "containers": [{"image": IMAGE}],
        "volumes": [{"name": "config", "configMap": {"name": "hermetic-config-x"}}],
    }
    here = {"namespace": "hermetic-system"}
    deployment = {
        "metadata": {"name": "hermetic-operator", **here},
        "spec": {"template": {"spec": pod}},
        "status": {"readyReplicas": 1},
    }
    config = {"metadata": {"name": "hermetic-config-x", **here}, "data": {"config.yaml": dump(fields)}}
    lease = {"metadata": {"name": "hermetic", **here, "annotations": {RELEASE: "0.1.0"}}}
    return Installed(
        "hermetic-system",
        "0.1.0",
        definitions=Read(tuple(definitions)),
        policies=of_kind("ValidatingAdmissionPolicy", rights_manifests),
        bindings=of_kind("ValidatingAdmissionPolicyBinding", rights_manifests),
        cluster_roles=of_kind("ClusterRole", rights_manifests),
        cluster_role_bindings=of_kind("ClusterRoleBinding", rights_manifests),
        roles=of_kind("Role", rights_manifests),
        role_bindings=of_kind("RoleBinding", rights_manifests),
        deployments=Read((deployment,)),
        config_maps=Read((config, allowed(configuration))),
        leases=Read((lease,)),
    )


def complaints(facts: Installed) -> list[CheckRow]:
    failed_rows = [row for row in rows_installed(facts) if row.verdict is not RowVerdict.PASS]
    assert all(row.why and row.fix for row in failed_rows)
    return failed_rows


@pytest.mark.parametrize(
    ("integrity", "verdict", "words"),
    [
        ({}, RowVerdict.WARNING, "are refused in namespace a, b (VerifierNotConfigured)"),
        ({"overrides": [{"minimumPolicy": "Warn", "namespaces": ["a"]}]}, RowVerdict.WARNING, "refused in namespace b"),
        ({"minimumPolicy": "Off"}, RowVerdict.WARNING, "those of shares and claims are not verified"),
        ({"verifiers": [IMAGE]}, RowVerdict.PASS, IMAGE),
    ],
)
def test_whether_weights_can_be_verified_is_said_of_the_configuration(
    integrity: dict[str, Any], verdict: RowVerdict, words: str
) -> None:
    fields = {**CONFIG, "integrity": integrity}
    fields["shares"] = [{"account": "models", "share": "all", "namespaces": ["b", "a"]}]
    configuration, installation = Configuration.model_validate(fields), an_installation()
    config = {**installation.config_maps.items[0], "data": {"config.yaml": dump(fields)}}
    facts = replace(installation, config_maps=Read((config, allowed(configuration))))
    (row,) = [row for row in rows_installed(facts) if row.check == "weights"]
    assert (row.verdict, words in row.message) == (verdict, True)
    assert verdict is RowVerdict.PASS or "integrity.verifiers" in row.fix
    assert list(verification(configuration)) == [row]


@pytest.mark.parametrize("namespaces", [(), ("inference", "team-a")])
def test_a_whole_installation_passes(namespaces: tuple[str, ...]) -> None:
    assert complaints(an_installation(namespaces)) == []


@pytest.mark.parametrize(
    "field",
    [
        "definitions", "policies", "bindings", "cluster_roles", "cluster_role_bindings", "roles", "role_bindings",
        "deployments", "config_maps", "leases",
    ],
)  # fmt: skip
def test_what_may_not_be_listed_is_unknown_and_what_is_not_there_fails(field: str) -> None:
    installation = an_installation()
    assert overall(rows_installed(replace(installation, **{field: Read(problem="forbidden")}))) is RowVerdict.UNKNOWN
    gone = overall(rows_installed(replace(installation, **{field: Read()})))
    assert gone is (RowVerdict.UNKNOWN if field == "leases" else RowVerdict.FAIL)


def change(field: str, position: int, how: Callable[[dict[str, Any]], Any]) -> list[CheckRow]:
    facts = an_installation()
    items = copy.deepcopy(list(getattr(facts, field).items))
    how(items[position])
    return complaints(replace(facts, **{field: Read(tuple(items))}))


def newer(item: dict[str, Any]) -> None:
    item["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["new"] = {"type": "string"}


def with_more_rights(item: dict[str, Any]) -> None:
    item["rules"].append({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]})


def not_compiling(item: dict[str, Any]) -> None:
    item["status"] = {"typeChecking": {"expressionWarnings": [{"warning": "undefined field"}]}}


WRONG: dict[str, tuple[str, int, Callable[[dict[str, Any]], Any], RowVerdict, str]] = {
    "a CRD that is not established": (
        "definitions",
        0,
        lambda manifest: manifest["status"]["conditions"].clear(),
        RowVerdict.FAIL,
        "is not established",
    ),
    "objects of an older version": (
        "definitions",
        0,
        lambda manifest: manifest["status"]["storedVersions"].insert(0, "v1"),
        RowVerdict.WARNING,
        "stored as v1, v1alpha1",
    ),
    "CRDs of another release": ("definitions", 0, newer, RowVerdict.WARNING, "another schema"),
    "a policy that lets errors pass": (
        "policies",
        0,
        lambda manifest: manifest["spec"].update(failurePolicy="Ignore"),
        RowVerdict.WARNING,
        "is not that of this release",
    ),
    "a policy that does not compile": (
        "policies",
        0,
        not_compiling,
        RowVerdict.FAIL,
        "does not understand: undefined field",
    ),
    "a binding that only warns": (
        "bindings",
        0,
        lambda manifest: manifest["spec"].update(validationActions=["Warn"]),
        RowVerdict.FAIL,
        "does not deny",
    ),
    "a role with less": ("cluster_roles", 0, lambda manifest: manifest["rules"].clear(), RowVerdict.FAIL, "lacks "),
    "a role with more": ("cluster_roles", 0, with_more_rights, RowVerdict.WARNING, "also grants get secrets"),
    "a binding of another account": (
        "cluster_role_bindings",
        0,
        lambda manifest: manifest["subjects"].clear(),
        RowVerdict.FAIL,
        "does not bind ServiceAccount",
    ),
    "a configuration that is wrong": (
        "config_maps",
        0,
        lambda manifest: manifest["data"].update({"config.yaml": "registry: []\n"}),
        RowVerdict.FAIL,
        "did you mean `registries`?",
    ),
    "limits of another configuration": (
        "config_maps",
        1,
        lambda manifest: manifest["data"].update(registries="* other.io/"),
        RowVerdict.FAIL,
        "does not match the configuration",
    ),
    "an operator that is not ready": (
        "deployments",
        0,
        lambda manifest: manifest.update(status={}),
        RowVerdict.FAIL,
        "no pod of the operator is ready",
    ),
    "an image by tag": (
        "deployments",
        0,
        lambda manifest: manifest["spec"]["template"]["spec"]["containers"][0].update(image="hermetic:1"),
        RowVerdict.WARNING,
        "is named by a tag",
    ),
    "an operator of another release": (
        "leases",
        0,
        lambda manifest: manifest["metadata"]["annotations"].update({RELEASE: "0.2.0"}),
        RowVerdict.WARNING,
        "is of release 0.2.0",
    ),
    "an operator that does not say": (
        "leases",
        0,
        lambda manifest: manifest["metadata"]["annotations"].clear(),
        RowVerdict.UNKNOWN,
        "written its release on its Lease",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told(name: str) -> None:
    field, position, how, verdict, says = WRONG[name]
    (row,) = change(field, position, how)
    assert (row.verdict, says in row.message) == (verdict, True), row


def test_another_role_bound_to_the_operator_is_told() -> None:
    facts = an_installation()
    extra = copy.deepcopy(facts.cluster_role_bindings.items[0])
    extra["metadata"]["name"], extra["roleRef"]["name"] = "quick-fix", "cluster-admin"
    bindings = Read((*facts.cluster_role_bindings.items, extra))
    (row,) = complaints(replace(facts, cluster_role_bindings=bindings))
    assert "quick-fix binds the operator's account to cluster-admin too" in row.message


def test_an_installation_without_limits_is_warned() -> None:
    facts = an_installation()
    (row,) = complaints(replace(facts, config_maps=Read(facts.config_maps.items[:1])))
    assert (row.verdict, "hermetic-allowed is not there" in row.message) == (RowVerdict.WARNING, True)


def test_a_cluster_without_anything_of_hermetic_is_told_in_one_row() -> None:
    (row,) = rows_installed(Installed("hermetic-system", "0.1.0"))
    assert (row.verdict, row.check) == (RowVerdict.FAIL, "operator")
    assert "nothing of Hermetic is in this cluster" in row.message
    assert "--context" in row.fix


def test_what_could_not_be_read_is_not_taken_for_nothing() -> None:
    rows = rows_installed(Installed("hermetic-system", "0.1.0", definitions=Read(problem="Forbidden")))
    assert len(rows) > 1
    assert RowVerdict.UNKNOWN in {row.verdict for row in rows}


def test_policies_that_are_missing_are_not_beside_a_pass_and_their_fix_is_told_once() -> None:
    installation = an_installation()
    missing = replace(
        installation, policies=Read(installation.policies.items[2:]), bindings=Read(installation.bindings.items[2:])
    )
    failed_rows = [row for row in rows_installed(missing) if row.check == "policies"]
    assert {row.verdict for row in failed_rows} == {RowVerdict.FAIL}
    printed = list(lines(failed_rows, 0))
    assert len(failed_rows) == 4
    assert len([line for line in printed if line.startswith("  fix: ")]) == 2, "of the policies, and of the bindings"
    assert [line.split(": ")[0].split()[-1] for line in printed[:2]] == ["policies", "policies"]
