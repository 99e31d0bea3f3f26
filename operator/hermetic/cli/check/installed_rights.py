"""Whether admission policies, roles and bindings of an installation are those of this release. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from hermetic.api.text import cut_middle, first_of
from hermetic.cli.check.facts import Installed, Manifest, Read
from hermetic.cli.check.rows import APPLY_RIGHTS, CheckRow, RowVerdict, passes, unread

POLICY = "ValidatingAdmissionPolicy"
_WHY_DENY = "nothing enforces it: a stolen token of the operator reaches further, or pods start without a proof"
_WHY_WARN = "'kubectl apply' no longer warns of what the operator would refuse"
Grant = tuple[str, str, str, str]
"""API group, resource, name ("" for every one) and verb."""


def policy_rows(facts: Installed, expected: Sequence[Manifest]) -> Iterator[CheckRow]:
    """The admission policies and bindings that are absent or differ; or one row that passes."""
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
            "policies", verdict, f"the admission policy {name} is not installed", why, "apply it", APPLY_RIGHTS
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
            "policies", RowVerdict.WARNING, explanation, why, "apply it again where it was changed", APPLY_RIGHTS
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
            "policies", verdict, explanation, "a policy without a binding has no effect", "apply it", APPLY_RIGHTS
        )
    if "Deny" in actions and "Deny" not in (binding["spec"].get("validationActions") or ()):
        explanation = f"the binding {name} does not deny"
        return CheckRow(
            "policies", RowVerdict.FAIL, explanation, "the policy only warns or logs", "apply it again", APPLY_RIGHTS
        )
    return None


def role_rows(facts: Installed, expected: Sequence[Manifest]) -> Iterator[CheckRow]:
    """The roles and bindings that are absent, lack a grant or have one more; or one row that passes."""
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
            "rbac", RowVerdict.FAIL, f"{explanation} is not installed", why, "apply the rights", APPLY_RIGHTS
        )
    elif "rules" in expected:
        yield from _grants_compared(explanation, _grants(expected), _grants(manifest))
    elif missing := [subject for subject in expected["subjects"] if not _has_subject(manifest, subject)]:
        names = ", ".join(f"{subject['kind']} {subject.get('namespace', '')}/{subject['name']}" for subject in missing)
        yield CheckRow(
            "rbac", RowVerdict.FAIL, f"{explanation} does not bind {names}", why, "apply the rights", APPLY_RIGHTS
        )


def _grants_compared(subject: str, expected: set[Grant], granted: set[Grant]) -> Iterator[CheckRow]:
    if missing := sorted(expected - granted):
        why = "the operator reports a missing permission with the reason PermissionLost"
        yield CheckRow(
            "rbac", RowVerdict.FAIL, f"{subject} lacks {_in_words(missing)}", why, "apply the rights", APPLY_RIGHTS
        )
    if more := sorted(granted - expected):
        why = "a stolen token of the operator could use it"
        fix = "take it out, or apply the rights of this release with --force-conflicts"
        yield CheckRow("rbac", RowVerdict.WARNING, f"{subject} also grants {_in_words(more)}", why, fix, APPLY_RIGHTS)


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


def other_bindings(facts: Installed, account: str) -> Iterator[CheckRow]:
    """Roles that others bound to the operator's account: rights that no document of this release explains."""
    subject = {"kind": "ServiceAccount", "name": account, "namespace": facts.namespace}
    for read in (facts.cluster_role_bindings, facts.role_bindings):
        for binding in read.items:
            if _has_subject(binding, subject) and not binding["roleRef"]["name"].startswith("hermetic-operator"):
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
