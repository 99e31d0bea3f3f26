"""`hermetic rbac` prints the rights of one installation: its names everywhere, writing only where it is granted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermetic.cli.installation import written
from tests.commandline import hermetic
from tests.scenarios import DIGEST

ELSEWHERE = {"lease": {"namespace": "isolation"}, "probeNamespace": "probes"}
WRITES = {"create", "update", "patch", "delete"}
OF_NO_NAMESPACE = {"persistentvolumes", "egressaudits/status", "clusterreports"}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({**ELSEWHERE, "watchNamespaces": ["team-a", "team-b"]}))
    return file


def printed(*arguments: str | Path) -> list[dict[str, Any]]:
    ran = hermetic("rbac", *arguments)
    assert ran.code == 0, ran.err
    return list(yaml.safe_load_all(ran.out))


def of_kind(manifests: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [manifest for manifest in manifests if manifest["kind"] == kind]


def test_without_a_configuration_the_manifests_are_printed_as_they_are() -> None:
    assert printed() == [*written("rbac"), *written("policies")]
    assert not of_kind(printed(), "ConfigMap")


def test_no_default_name_is_left_in_another_installation(config: Path) -> None:
    for manifest in printed("--config", config, "--account", "keeper"):
        text = json.dumps(manifest)
        assert "hermetic-system" not in text
        assert "serviceaccount:isolation:hermetic-operator" not in text
        assert "'hermetic-probe'" not in text
        for subject in manifest.get("subjects", ()):
            assert (subject["name"], subject["namespace"]) == ("keeper", "isolation")


def test_each_policy_knows_the_account_of_another_installation(config: Path) -> None:
    policies = of_kind(printed("--config", config, "--account", "keeper"), "ValidatingAdmissionPolicy")
    default = {
        policy["metadata"]["name"] for policy in written("policies") if "hermetic-operator'" in json.dumps(policy)
    }
    renamed = {
        policy["metadata"]["name"]
        for policy in policies
        if "system:serviceaccount:isolation:keeper'" in json.dumps(policy)
    }
    assert len(renamed) > 5
    assert renamed == default


def test_writing_is_granted_in_the_watched_namespaces_alone(config: Path) -> None:
    manifests = printed("--config", config)
    bound = {binding["roleRef"]["name"] for binding in of_kind(manifests, "ClusterRoleBinding")}
    roles = [role for role in of_kind(manifests, "ClusterRole") if role["metadata"]["name"] in bound]
    rules = [rule for role in roles for rule in role["rules"] if WRITES & set(rule["verbs"])]
    assert {resource for rule in rules for resource in rule["resources"]} == OF_NO_NAMESPACE
    bound_roles = {
        (binding["metadata"]["namespace"], binding["roleRef"]["name"]) for binding in of_kind(manifests, "RoleBinding")
    }
    assert {namespace for namespace, role in bound_roles if role == "hermetic-operator-models"} == {"team-a", "team-b"}
    assert ("default", "hermetic-operator-events") in bound_roles


def test_events_of_the_cluster_need_no_other_role_where_their_namespace_is_watched() -> None:
    manifests = printed("--namespaces", "default")
    assert ("default", "hermetic-operator-events") not in {
        (binding["metadata"]["namespace"], binding["metadata"]["name"]) for binding in of_kind(manifests, "RoleBinding")
    }


def test_namespaces_of_the_command_line_take_the_place_of_those_of_the_file(config: Path) -> None:
    bindings = of_kind(printed("--config", config, "--namespaces", "team-c"), "RoleBinding")
    models = [binding for binding in bindings if binding["roleRef"]["name"] == "hermetic-operator-models"]
    assert [binding["metadata"]["namespace"] for binding in models] == ["team-c"]


def test_what_is_no_namespace_is_refused() -> None:
    ran = hermetic("rbac", "--namespaces", "Team_A")
    assert ran.code == 2
    assert "watchNamespaces[0]" in ran.errors[0]


def test_json_is_one_list(config: Path) -> None:
    printed_list = json.loads(hermetic("rbac", "--config", config, "-o", "json").out)
    assert printed_list["kind"] == "List"
    assert printed_list["items"] == printed("--config", config)


def test_what_an_earlier_installation_left_is_said(config: Path) -> None:
    output = hermetic("rbac", "--config", config).err
    assert "kubectl delete clusterrolebinding hermetic-operator-models" in output
    assert "every namespace" in hermetic("rbac").err


def test_the_configuration_limits_the_account_and_its_absence_lets_nothing_through(config: Path) -> None:
    bindings = of_kind(printed("--config", config), "ValidatingAdmissionPolicyBinding")
    # Without the Lease no model is there, and the operator's own pod needs a node before it writes the Lease.
    limits = [
        binding["spec"]["paramRef"]
        for binding in bindings
        if "paramRef" in binding["spec"]
        and binding["spec"]["validationActions"] == ["Deny"]
        and binding["metadata"]["name"] != "hermetic-binding-gate"
    ]
    assert {parameter["name"] for parameter in limits} == {"hermetic-allowed", "cluster", "hermetic"}
    assert {parameter["parameterNotFoundAction"] for parameter in limits} == {"Deny"}
    assert {parameter["namespace"] for parameter in limits if parameter["name"] == "hermetic-allowed"} == {"isolation"}


def test_what_is_allowed_has_a_line_for_each_namespace(tmp_path: Path) -> None:
    allowed = {
        "registries": [
            {"host": "a.azurecr.io", "repositories": ["vllm/", "nim/"], "namespaces": ["team-a", "team-b"]},
            {"host": "b.azurecr.io", "namespaces": ["*"]},
        ],
        "integrity": {"verifiers": [f"c.azurecr.io/hermetic@sha256:{DIGEST}"]},
        "shares": [
            {"account": "models", "share": "all", "server": "models.private.example", "namespaces": ["team-a"]},
            {"server": "nas.example", "path": "/export", "namespaces": ["*"]},
            {"server": "nas.example", "path": "/parted", "folders": ["a", "b/c"], "namespaces": ["*"]},
            {"account": "models", "share": "parted", "server": "m.example", "folders": ["a b"], "namespaces": ["t"]},
        ],
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(allowed))
    (config_map,) = of_kind(printed("--config", tmp_path / "config.yaml"), "ConfigMap")
    assert config_map["data"]["namespaces"] == "*"
    assert config_map["data"]["registries"].splitlines() == [
        "team-a a.azurecr.io/vllm/",
        "team-a a.azurecr.io/nim/",
        "team-b a.azurecr.io/vllm/",
        "team-b a.azurecr.io/nim/",
        "* b.azurecr.io/",
        f"* c.azurecr.io/hermetic@sha256:{DIGEST}",
    ]
    assert config_map["data"]["shares"].splitlines() == [
        "team-a azure models/all",
        "team-a azure models/all models.private.example",
        "* nfs nas.example:/export",
        "* nfs nas.example:/parted/a",
        "* nfs nas.example:/parted/b/c",
        "t azure models/parted#a b",
        "t azure models/parted m.example#a b",
    ]
