"""The admission policies agree with the code and the other manifests; an API server tests what they admit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml

from hermetic.api.public_services import PUBLIC_SIDE
from hermetic.api.weights import MountOption
from hermetic.engines.launch import InitContainerName, as_group_member, keeping_first_errors
from hermetic.objects.accelerator_checks import CHECKER, check_command
from hermetic.objects.pod import verbatim
from tests.renderings import RENDERINGS
from tests.snapshots import rendered

MANIFESTS = Path(__file__).parents[2] / "manifests"
POLICIES = MANIFESTS / "policies"
WARNINGS = {"hermetic-model-warnings", "hermetic-model-sources"}
ACCOUNT = re.compile(r"system:serviceaccount:[a-z-]+:hermetic[a-z-]*")


def documents() -> list[dict]:
    files = yaml.safe_load((POLICIES / "kustomization.yaml").read_text())["resources"]
    assert sorted(files) == sorted(path.name for path in POLICIES.glob("*.yaml") if path.name != "kustomization.yaml")
    return [document for file in files for document in yaml.safe_load_all((POLICIES / file).read_text())]


def test_every_policy_is_bound_and_denies():
    all_documents = documents()
    policies = {
        document["metadata"]["name"] for document in all_documents if document["kind"] == "ValidatingAdmissionPolicy"
    }
    bindings = [document for document in all_documents if document["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert {binding["spec"]["policyName"] for binding in bindings} == policies
    denying = [binding for binding in bindings if binding["metadata"]["name"] not in WARNINGS]
    assert all(binding["spec"]["validationActions"] == ["Deny"] for binding in denying)
    assert all(
        document["spec"].get("failurePolicy", "Fail") == "Fail"
        for document in all_documents
        if document["metadata"]["name"] not in WARNINGS
    )


def test_policies_that_warn_can_refuse_nothing():
    """With failurePolicy Fail an error of the configuration would deny, whatever the binding's actions are."""
    advice = [document for document in documents() if document["metadata"]["name"] in WARNINGS]
    assert {document["metadata"]["name"] for document in advice} == WARNINGS
    assert [document["spec"]["failurePolicy"] for document in advice if "Binding" not in document["kind"]] == [
        "Ignore"
    ] * 2
    assert [document["spec"]["validationActions"] for document in advice if "Binding" in document["kind"]] == [
        ["Warn", "Audit"]
    ] * 2


def test_every_policy_names_the_account_that_is_installed():
    account = yaml.safe_load((MANIFESTS / "rbac" / "serviceaccount.yaml").read_text())["metadata"]
    named = {name for path in POLICIES.glob("*.yaml") for name in ACCOUNT.findall(path.read_text())}
    assert named == {f"system:serviceaccount:{account['namespace']}:{account['name']}"}


def test_the_options_of_a_volume_are_those_of_the_api():
    (pattern,) = (rule.cel for rule in MountOption.__metadata__ if hasattr(rule, "cel"))
    options = pattern.removeprefix("self.matches(r'^(").removesuffix(")$')")
    assert f"'^(ro|{options})$'" in (POLICIES / "volumes.yaml").read_text()


def test_every_annotation_of_a_public_side_is_in_the_policy():
    text = (POLICIES / "services.yaml").read_text()
    unnamed = [name for name in PUBLIC_SIDE if f"'{name}'" not in text and "/azure-pip-" not in name]
    assert not unnamed


def test_the_only_program_before_an_engine_is_the_one_that_is_rendered():
    (spec,) = (
        document["spec"]
        for document in documents()
        if (document["kind"], document["metadata"]["name"])
        == ("ValidatingAdmissionPolicy", "hermetic-operator-deployments")
    )
    (expression,) = (variable["expression"] for variable in spec["variables"] if variable["name"] == "keepErrors")
    *interpreter, program, engine, serve = keeping_first_errors("vllm", "serve")
    assert expression == f"r'''{program}'''"
    assert "'''" not in program
    allowed = str([*interpreter, "@", engine, serve]).replace("'@'", "variables.keepErrors")
    assert allowed in " ".join(" ".join(validation["expression"] for validation in spec["validations"]).split())


def test_the_only_program_that_checks_gpus_is_the_one_that_is_rendered():
    (spec,) = (
        document["spec"]
        for document in documents()
        if (document["kind"], document["metadata"]["name"])
        == ("ValidatingAdmissionPolicy", "hermetic-operator-deployments")
    )
    expressions = {variable["name"]: variable["expression"] for variable in spec["variables"]}
    # The kubelet would replace '$(NAME)', so that each '$' is rendered twice.
    shell, option, starter, name, program = map(verbatim, check_command())
    assert expressions["startChecks"] == f"r'''{starter}'''"
    assert expressions["checkAccelerators"] == f"r'''{program}'''"
    assert "'''" not in program + starter
    command = f"['{shell}', '{option}', variables.startChecks, '{name}', variables.checkAccelerators]"
    assert command in " ".join(" ".join(validation["expression"] for validation in spec["validations"]).split())


def test_the_only_program_around_the_engine_of_a_group_is_the_one_that_is_rendered():
    (spec,) = (
        document["spec"]
        for document in documents()
        if (document["kind"], document["metadata"]["name"])
        == ("ValidatingAdmissionPolicy", "hermetic-operator-deployments")
    )
    expressions = {variable["name"]: variable["expression"] for variable in spec["variables"]}
    *interpreter, program, engine, serve = as_group_member("vllm", "serve")
    assert expressions["joinGroup"] == f"r'''{program}'''"
    assert "'''" not in program
    assert "$" not in program, "the kubelet would replace '$(NAME)'"
    command = str([*interpreter, "@", *interpreter, "#", engine, serve])
    allowed = command.replace("'@'", "variables.keepErrors").replace("'#'", "variables.joinGroup")
    assert allowed in " ".join(" ".join(validation["expression"] for validation in spec["validations"]).split())


@pytest.mark.parametrize("name", get_args(InitContainerName))
def test_every_container_before_an_engine_is_named_in_the_policy(name):
    assert f"'{name}'" in (POLICIES / "operator-deployments.yaml").read_text()


@pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=list(RENDERINGS))
def test_the_commands_before_every_engine_are_among_those_that_the_policy_admits(manifest):
    text = " ".join((POLICIES / "operator-deployments.yaml").read_text().split())
    for container in rendered(manifest)["Deployment"]["spec"]["template"]["spec"].get("initContainers", ()):
        if container["name"] == CHECKER:
            continue
        name_and_command = [container["name"], *container["command"][:2]]
        assert str(name_and_command) in text, "not in policies/operator-deployments.yaml"


@pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=list(RENDERINGS))
def test_the_driver_of_every_volume_is_admitted(manifest):
    volume = rendered(manifest).get("PersistentVolume")
    text = (POLICIES / "volumes.yaml").read_text()
    assert volume is None or f"'{volume['spec']['csi']['driver']}'" in text, "not in policies/volumes.yaml"


@pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=list(RENDERINGS))
def test_command_and_variables_of_every_engine_are_among_those_that_the_policy_admits(manifest):
    text = " ".join((POLICIES / "operator-deployments.yaml").read_text().split())
    (container,) = rendered(manifest)["Deployment"]["spec"]["template"]["spec"]["containers"]
    program = container.get("command", [])
    shown = str([*program[:5], "@", *program[6:]] if program[:1] == ["python3"] else program)
    command = shown.replace("'@'", "variables.keepErrors")
    assert command in text, "not in policies/operator-deployments.yaml"
    for variable in container["env"]:
        source = variable.get("valueFrom", {})
        for named in (source.get("fieldRef", {}).get("fieldPath"), source.get("secretKeyRef") and variable["name"]):
            assert named is None or f"'{named}'" in text, "not in policies/operator-deployments.yaml"
