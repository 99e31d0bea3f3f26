"""What is installed compiles with the libraries of the oldest supported Kubernetes, without a cluster.

`celcheck` (testbed/modules/oldest) calls the validation that this release's API server calls before it stores a CRD or
a policy: an unknown CEL function, a type that does not fit, or a rule beyond the cost budget is an error there.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermetic.cli.check.before import OLDEST
from testbed.errors import BedError
from testbed.programs import OLDEST_KUBERNETES_VERSION, programs
from tests.controlplane.test_crds import in_a_new_group, repeat_rules

REPOSITORY = Path(__file__).resolve().parents[2]
CRDS = sorted(REPOSITORY.glob("crds/*.hermetic.dev.yaml"))
INSTALLED = [*CRDS, *sorted(REPOSITORY.glob("manifests/**/*.yaml"))]
COMPILED = {
    "CustomResourceDefinition": "CRDs",
    "ValidatingAdmissionPolicy": "admission policies",
    "ValidatingAdmissionPolicyBinding": "bindings of admission policies",
}
WITH = f"compiled with the libraries of Kubernetes {OLDEST_KUBERNETES_VERSION}"
POLICY: dict[str, Any] = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "example"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
            ]
        },
        "validations": [{"expression": "object.metadata.name.size() < 64"}],
    },
}


@pytest.fixture(scope="session")
def celcheck() -> Path:
    try:
        return programs("celcheck")["celcheck"]
    except BedError as reason:
        pytest.skip(str(reason))


def checked(celcheck: Path, *files: Path) -> tuple[int, str]:
    """The exit status, and what is printed."""
    ran = subprocess.run([celcheck, *files], capture_output=True, text=True, check=False, timeout=60)
    return ran.returncode, ran.stdout + ran.stderr


def written(folder: Path, manifest: dict[str, Any]) -> Path:
    path = folder / "manifest.yaml"
    path.write_text(yaml.safe_dump(manifest), encoding="utf-8")
    return path


def test_the_release_is_the_oldest_that_check_accepts() -> None:
    assert OLDEST_KUBERNETES_VERSION.startswith(f"v{OLDEST[0]}.{OLDEST[1]}.")


def expressions_in(value: Any) -> int:
    """The CEL expressions of an object: rules and message expressions of a CRD; every expression of a policy."""
    if isinstance(value, list):
        return sum(map(expressions_in, value))
    if not isinstance(value, dict):
        return 0
    own = sum(isinstance(value.get(key), str) for key in ("rule", "expression", "messageExpression"))
    return own + sum(map(expressions_in, value.values()))


def test_every_crd_and_policy_that_is_installed_compiles(
    celcheck: Path, record_property: Callable[[str, object], None]
) -> None:
    status, output = checked(celcheck, *INSTALLED)
    documents = [
        document
        for path in INSTALLED
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
        if document and "kind" in document
    ]
    by_kind = {kind: [document for document in documents if document["kind"] == kind] for kind in COMPILED}
    for kind, name in COMPILED.items():
        record_property(f"{name} {WITH}", len(by_kind[kind]))
    record_property(f"CEL expressions {WITH}", expressions_in(list(by_kind.values())))
    assert (status, output) == (0, f"{sum(map(len, by_kind.values()))} objects checked\n")


def test_expressions_are_counted_at_every_depth() -> None:
    rules = {"x-kubernetes-validations": [{"rule": "true", "messageExpression": "'a'"}, {"rule": "false"}]}
    assert expressions_in({"properties": {"rule": {"items": rules}, "expression": {"type": "string"}}}) == 3
    assert expressions_in(POLICY) == 1


@pytest.mark.parametrize("path", CRDS, ids=lambda path: path.stem)
def test_rules_use_less_than_half_of_the_cost_budget(celcheck: Path, path: Path, tmp_path: Path) -> None:
    manifest = in_a_new_group(path)
    repeat_rules(manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"], times=2)
    assert checked(celcheck, written(tmp_path, manifest))[0] == 0


def test_rules_beyond_the_cost_budget_are_refused(celcheck: Path, tmp_path: Path) -> None:
    [path] = [path for path in CRDS if "modeldeployments" in path.name]
    manifest = in_a_new_group(path)
    repeat_rules(manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"], times=16)
    status, output = checked(celcheck, written(tmp_path, manifest))
    assert status == 1
    assert "exceeds budget" in output


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("isNothingKnown(object.metadata.name)", "undeclared reference"),
        ("object.metadata.name", "must evaluate to bool"),
        ("object.metadata.name ==", "Syntax error"),
    ],
)
def test_an_expression_that_the_release_does_not_take_is_refused(
    celcheck: Path, tmp_path: Path, expression: str, problem: str
) -> None:
    spec = {**POLICY["spec"], "validations": [{"expression": expression}]}
    assert checked(celcheck, written(tmp_path, POLICY))[0] == 0
    status, output = checked(celcheck, written(tmp_path, {**POLICY, "spec": spec}))
    assert status == 1
    assert problem in output


def test_a_field_that_the_release_does_not_know_is_refused(celcheck: Path, tmp_path: Path) -> None:
    status, output = checked(celcheck, written(tmp_path, {**POLICY, "spec": {**POLICY["spec"], "sooner": True}}))
    assert status == 1
    assert "unknown field" in output


def test_files_without_a_crd_or_policy_are_no_success(celcheck: Path, tmp_path: Path) -> None:
    assert checked(celcheck, written(tmp_path, {"apiVersion": "v1", "kind": "ConfigMap"}))[0] == 1
