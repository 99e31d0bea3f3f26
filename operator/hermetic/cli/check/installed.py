"""Whether an installation is complete and of one release. Pure: facts in, rows out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import yaml
from pydantic import ValidationError

from hermetic.api.configuration import Configuration
from hermetic.api.crd import DEFINITIONS, crd
from hermetic.api.kubernetes_yaml import LOADER
from hermetic.api.text import cut_middle, first_of
from hermetic.api.validation_errors import problems_of
from hermetic.cli.allowed import NAME as ALLOWED
from hermetic.cli.allowed import allowed
from hermetic.cli.check.absent import NOTHING_THERE, nothing_there
from hermetic.cli.check.facts import Installed, Manifest, Read
from hermetic.cli.check.rows import CheckRow, RowVerdict, passes, unread
from hermetic.cli.check.weights import verification
from hermetic.cli.installation import ACCOUNT, Installation, rights
from hermetic.kinds import VERSION
from hermetic.kube.lease import LEASE_NAME, RELEASE

DEPLOYMENT = "hermetic-operator"
POLICY = "ValidatingAdmissionPolicy"
CONFIG_FILE = "config.yaml"
_WHY_DENY = "nothing enforces it: a stolen token of the operator reaches further, or pods start without a proof"
_WHY_WARN = "'kubectl apply' no longer warns of what the operator would refuse"
_APPLY_CRDS = ("kubectl apply --server-side --kustomize crds",)
_APPLY_RIGHTS = ("hermetic rbac --config config.yaml | kubectl apply --server-side --filename -",)
Grant = tuple[str, str, str, str]
"""API group, resource, name ("" for every one) and verb."""


def rows_installed(facts: Installed) -> tuple[CheckRow, ...]:
    configuration, rows = _configuration(facts)
    expected = rights(Installation(configuration or Configuration(), _account(facts), limited=False))
    if nothing_there(facts, expected, DEPLOYMENT):
        return (NOTHING_THERE,)
    return (
        *_definitions(facts),
        *_policies(facts, expected),
        *_rbac(facts, expected),
        *_other_bindings(facts),
        *rows,
        *_operator(facts),
        *_release(facts),
    )


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


# ------------------------------------------------------------------ admission policies


def _policies(facts: Installed, expected: Sequence[Manifest]) -> Iterator[CheckRow]:
    check = "policies"
    for read, label in ((facts.policies, "ValidatingAdmissionPolicies"), (facts.bindings, "their bindings")):
        if read.problem:
            yield unread(check, label, read.problem)
            return
    policies = [_of_policy(manifest, facts.policies) for manifest in expected if manifest["kind"] == POLICY]
    bindings = [
        _of_binding(manifest, facts.bindings) for manifest in expected if manifest["kind"] == f"{POLICY}Binding"
    ]
    rows = [row for row in (*policies, *bindings) if row is not None]
    yield from rows
    if not rows:
        number = len(policies) + len(bindings)
        yield passes(check, f"{number} admission policies and bindings are those of this release")


def _of_policy(expected: Manifest, read: Read) -> CheckRow | None:
    name, policy = expected["metadata"]["name"], read.named(expected["metadata"]["name"])
    denies = expected["spec"]["failurePolicy"] == "Fail"
    verdict, why = (RowVerdict.FAIL, _WHY_DENY) if denies else (RowVerdict.WARNING, _WHY_WARN)
    if policy is None:
        return CheckRow(
            "policies", verdict, f"the admission policy {name} is not installed", why, "apply it", _APPLY_RIGHTS
        )
    typed = (policy.get("status") or {}).get("typeChecking") or {}
    if warnings := typed.get("expressionWarnings"):
        explanation = f"the admission policy {name} has an expression that this API server does not understand"
        shown = cut_middle(str(warnings[0].get("warning", "")), 200)
        return CheckRow("policies", verdict, f"{explanation}: {shown}", why, "report it")
    if policy["spec"].get("failurePolicy") != expected["spec"]["failurePolicy"] or _expressions(policy) != _expressions(
        expected
    ):
        explanation = f"the admission policy {name} is not that of this release"
        return CheckRow(
            "policies", RowVerdict.WARNING, explanation, why, "apply it again where it was changed", _APPLY_RIGHTS
        )
    return None


def _expressions(policy: Manifest) -> list[str]:
    spec = policy["spec"]
    parts = (*(spec.get("matchConditions") or ()), *(spec.get("variables") or ()), *(spec.get("validations") or ()))
    return [str(part["expression"]) for part in parts]


def _of_binding(expected: Manifest, read: Read) -> CheckRow | None:
    name, binding = expected["metadata"]["name"], read.named(expected["metadata"]["name"])
    actions = expected["spec"]["validationActions"]
    if binding is None:
        explanation = f"the binding {name} of an admission policy is not installed"
        verdict = RowVerdict.FAIL if "Deny" in actions else RowVerdict.WARNING
        return CheckRow(
            "policies", verdict, explanation, "a policy without a binding has no effect", "apply it", _APPLY_RIGHTS
        )
    if "Deny" in actions and "Deny" not in (binding["spec"].get("validationActions") or ()):
        explanation = f"the binding {name} does not deny"
        return CheckRow(
            "policies", RowVerdict.FAIL, explanation, "the policy only warns or logs", "apply it again", _APPLY_RIGHTS
        )
    return None


# ------------------------------------------------------------------ RBAC


def _rbac(facts: Installed, expected: Sequence[Manifest]) -> Iterator[CheckRow]:
    check = "rbac"
    reads = {
        "ClusterRole": facts.cluster_roles,
        "Role": facts.roles,
        "ClusterRoleBinding": facts.cluster_role_bindings,
        "RoleBinding": facts.role_bindings,
    }
    for kind, read in reads.items():
        if read.problem:
            yield unread(check, f"{kind}s", read.problem)
            return
    compared = [manifest for manifest in expected if manifest["kind"] in reads]
    rows = [row for manifest in compared for row in _compared(manifest, reads[manifest["kind"]])]
    yield from rows
    if not rows:
        yield passes(check, f"{len(compared)} roles and bindings grant exactly what this release uses")


def _compared(expected: Manifest, read: Read) -> Iterator[CheckRow]:
    metadata = expected["metadata"]
    manifest = read.named(metadata["name"], metadata.get("namespace"))
    location = f" in {metadata['namespace']}" if metadata.get("namespace") else ""
    explanation = f"{expected['kind']} {metadata['name']}{location}"
    why = "the operator reports a missing permission with the reason PermissionLost"
    if manifest is None:
        yield CheckRow(
            "rbac", RowVerdict.FAIL, f"{explanation} is not installed", why, "apply the rights", _APPLY_RIGHTS
        )
    elif "rules" in expected:
        yield from _grants_compared(explanation, _grants(expected), _grants(manifest))
    elif missing := [subject for subject in expected["subjects"] if not _has_subject(manifest, subject)]:
        names = ", ".join(f"{subject['kind']} {subject.get('namespace', '')}/{subject['name']}" for subject in missing)
        yield CheckRow(
            "rbac", RowVerdict.FAIL, f"{explanation} does not bind {names}", why, "apply the rights", _APPLY_RIGHTS
        )


def _grants_compared(subject: str, expected: set[Grant], granted: set[Grant]) -> Iterator[CheckRow]:
    if missing := sorted(expected - granted):
        why = "the operator reports a missing permission with the reason PermissionLost"
        yield CheckRow(
            "rbac", RowVerdict.FAIL, f"{subject} lacks {_in_words(missing)}", why, "apply the rights", _APPLY_RIGHTS
        )
    if more := sorted(granted - expected):
        why = "a stolen token of the operator could use it"
        fix = "take it out, or apply the rights of this release with --force-conflicts"
        yield CheckRow("rbac", RowVerdict.WARNING, f"{subject} also grants {_in_words(more)}", why, fix, _APPLY_RIGHTS)


def _grants(role: Manifest) -> set[Grant]:
    return {
        (group, resource, name, verb)
        for rule in role.get("rules") or ()
        for group, resource, name, verb in product(
            rule.get("apiGroups") or ("",),
            rule.get("resources") or ("",),
            rule.get("resourceNames") or ("",),
            rule["verbs"],
        )
    }


def _in_words(grants: Sequence[Grant]) -> str:
    return first_of([f"{verb} {resource}{f'.{group}' if group else ''}" for group, resource, _, verb in grants], 5)


def _has_subject(binding: Manifest, expected: Mapping[str, Any]) -> bool:
    keys = ("kind", "name", "namespace")
    return any(all(subject.get(key) == expected.get(key) for key in keys) for subject in binding.get("subjects") or ())


def _other_bindings(facts: Installed) -> Iterator[CheckRow]:
    """Roles that others bound to the operator's account: rights that no document of this release explains."""
    account = {"kind": "ServiceAccount", "name": _account(facts), "namespace": facts.namespace}
    for read in (facts.cluster_role_bindings, facts.role_bindings):
        for binding in read.items:
            if _has_subject(binding, account) and not binding["roleRef"]["name"].startswith("hermetic-operator"):
                name = binding["metadata"]["name"]
                yield CheckRow(
                    "rbac",
                    RowVerdict.FAIL,
                    f"{binding.get('kind', 'binding')} {name} binds the operator's account to "
                    f"{binding['roleRef']['name']} too",
                    "rights that the operator does not need serve only who steals its token",
                    "delete the binding",
                    (f"kubectl describe {binding.get('kind', 'binding').lower()} {name}",),
                )


# ------------------------------------------------------------------ configuration


def _configuration(facts: Installed) -> tuple[Configuration | None, list[CheckRow]]:
    check = "configuration"
    for read, description in ((facts.deployments, "Deployments"), (facts.config_maps, "ConfigMaps")):
        if read.problem:
            return None, [unread(check, f"{description} of {facts.namespace}", read.problem)]
    deployment = facts.deployments.named(DEPLOYMENT, facts.namespace)
    if deployment is None:
        return None, []
    name = next(iter(_config_maps_of(deployment)), "")
    config_map = facts.config_maps.named(name, facts.namespace)
    if config_map is None:
        description = f"the ConfigMap '{name}' of the operator is not there"
        return None, [
            CheckRow(
                check,
                RowVerdict.FAIL,
                description,
                "the operator's pod cannot start",
                "apply the operator's manifests again",
            )
        ]
    try:
        configuration = Configuration.model_validate(yaml.load(config_map["data"][CONFIG_FILE], Loader=LOADER) or {})  # noqa: S506 - a safe loader
    except (KeyError, yaml.YAMLError) as error:
        return None, [_unusable(name, str(error))]
    except ValidationError as refusal:
        return None, [_unusable(name, "; ".join(map(str, problems_of(refusal, Configuration))))]
    return configuration, [
        passes(check, f"the configuration in ConfigMap {name} is valid"),
        *_limits(facts, configuration),
        *verification(configuration),
    ]


def _config_maps_of(deployment: Manifest) -> Iterator[str]:
    for volume in deployment["spec"]["template"]["spec"].get("volumes") or ():
        if "configMap" in volume:
            yield volume["configMap"]["name"]


def _unusable(name: str, problem: str) -> CheckRow:
    return CheckRow(
        "configuration",
        RowVerdict.FAIL,
        f"the configuration in ConfigMap {name} cannot be used: {' '.join(problem.split())}",
        "the operator ends with exit code 2 when it starts next",
        "correct it; docs/configuration.md describes every key",
    )


def _limits(facts: Installed, configuration: Configuration) -> Iterator[CheckRow]:
    config_map = facts.config_maps.named(ALLOWED, facts.namespace)
    why = "the policies hold the operator's account to the registries and shares that are listed there"
    if config_map is None:
        explanation = (
            f"the ConfigMap {ALLOWED} is not there: no policy bounds what a stolen token of the operator may use"
        )
        yield CheckRow("configuration", RowVerdict.WARNING, explanation, why, "apply it", _APPLY_RIGHTS)
    elif any((config_map.get("data") or {}).get(key) != value for key, value in _lists(configuration).items()):
        explanation = f"the ConfigMap {ALLOWED} does not match the configuration"
        yield CheckRow(
            "configuration",
            RowVerdict.FAIL,
            explanation,
            f"{why}; entries that differ are refused",
            "apply it again",
            _APPLY_RIGHTS,
        )
    else:
        yield passes("configuration", f"the ConfigMap {ALLOWED} matches the configuration")


def _lists(configuration: Configuration) -> Mapping[str, str]:
    data: Mapping[str, str] = allowed(configuration)["data"]
    return {key: value for key, value in data.items() if key in {"namespaces", "registries", "shares"}}


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
