"""docs/rights.md: every right of the operator's account, why it has it, which policy narrows it, and what remains."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from hermetic.api.configuration import Configuration
from hermetic.cli.installation import (
    EVENTS_OF_THE_CLUSTER,
    MODELS,
    NAMESPACE,
    ROUTES,
    Installation,
    Manifest,
    rights,
    written,
)

# The operations of admission that a verb leads to. Server-side apply creates by PATCH, for which "create" is asked too.
OPERATIONS = {"create": {"CREATE"}, "patch": {"UPDATE"}, "update": {"UPDATE"}, "delete": {"DELETE"}}
EXAMPLE = "WATCHED"
# With everything that adds a right.
CONFIGURATION = {
    "watchNamespaces": [EXAMPLE.lower()],
    "gateways": [
        {
            "name": "models",
            "namespace": "gateways",
            "namespaces": ["*"],
            "dataPlane": {"namespace": "gateways", "podLabels": {"app": "gateway"}},
        }
    ],
}

_INTRODUCTION = """\
# The rights of the operator

Every right of the operator's ServiceAccount, from `manifests/rbac`, `manifests/gateways` and what `hermetic rbac`
prints: why it has it, which admission policies narrow it, and what a holder of its token can still do with it.
[security.md](security.md) says the same of the account as a whole, and of tenants.

"Watched namespaces" are those of `watchNamespaces`, where `hermetic rbac --config config.yaml` grants the right by
RoleBinding. Where it is empty, and with `manifests/default`, they are all namespaces: a stolen token then writes
everywhere but in `kube-*` and in the namespaces of Hermetic itself. Some policies compare with the ConfigMap
`hermetic-allowed`, which `hermetic rbac --config` prints. A policy sees one object at a time and cannot look another
one up: none can tell whether the ModelDeployment exists that an owner reference names.

"""


@dataclass(frozen=True, slots=True)
class Right:
    """The verbs of one role on one kind."""

    role: str
    group: str
    resource: str
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """The only objects that it is about; none where it is about all."""

    @property
    def key(self) -> tuple[str, str, str]:
        """By what it is explained."""
        return (self.role, self.group, self.resource)

    @property
    def writes(self) -> frozenset[str]:
        """The operations of admission that it leads to."""
        return frozenset().union(*(OPERATIONS.get(verb, set()) for verb in self.verbs))


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why the account has a right, and what it can still do with it."""

    why: str
    remains: str


UNEXPLAINED = Explanation("**Not explained: add it to tools/rights.toml.**", "**Not explained.**")


def granted() -> list[Right]:
    """Every right that the account has in either mode, in the order of the manifests."""
    manifests = rights(Installation(Configuration.model_validate(CONFIGURATION), limited=False))
    bound = {
        manifest["roleRef"]["name"]
        for manifest in manifests
        if manifest["kind"].endswith("RoleBinding") or "roleRef" in manifest
    }
    roles = [
        manifest
        for manifest in manifests
        if manifest["kind"] in {"Role", "ClusterRole"} and manifest["metadata"]["name"] in bound
    ]
    return [right for role in roles for rule in role["rules"] for right in _rights(role, rule)]


def _rights(role: Manifest, rule: Manifest) -> Iterator[Right]:
    names = tuple(rule.get("resourceNames", ()))
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            yield Right(role["metadata"]["name"], group, resource, tuple(rule["verbs"]), names)


@cache
def explained() -> dict[tuple[str, str, str], Explanation]:
    """What rights.toml says of each right."""
    text = resources.files("tools").joinpath("rights.toml").read_text(encoding="utf-8")
    explanations: dict[tuple[str, str, str], Explanation] = {}
    for right in tomllib.loads(text)["right"]:
        for resource in right["resources"]:
            explanations[right["role"], right["group"], resource] = Explanation(right["why"], right["remains"])
    return explanations


def narrowing(right: Right) -> list[str]:
    """The admission policies that the writes of this right meet."""
    policies = [policy for policy in written("policies") if policy["kind"] == "ValidatingAdmissionPolicy"]
    return [
        policy["metadata"]["name"] for policy in policies if _meets(policy, right) and _is_about_the_operator(policy)
    ]


def _meets(policy: Manifest, right: Right) -> bool:
    return any(
        right.group in rule["apiGroups"]
        and right.resource in rule["resources"]
        and right.writes & {*rule["operations"]}
        for rule in policy["spec"]["matchConstraints"]["resourceRules"]
    )


def _is_about_the_operator(policy: Manifest) -> bool:
    """It asks for this account, or not at all who writes."""
    asks = [
        match_condition["expression"]
        for match_condition in policy["spec"].get("matchConditions", ())
        if "userInfo" in match_condition["expression"]
    ]
    if not asks:
        return "userInfo" not in json.dumps(policy["spec"])
    return any(ask.startswith("request.userInfo.username == 'system:serviceaccount:") for ask in asks)


def rights_markdown() -> str:
    """The page."""
    rows = [_row(right) for right in granted()]
    head = ("kind", "verbs", "where", "why", "narrowed by", "what remains")
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, ("---",) * len(head), *rows)]
    return _INTRODUCTION + "\n".join(lines) + "\n"


def _row(right: Right) -> tuple[str, ...]:
    explanation = explained().get(right.key, UNEXPLAINED)
    kind = f"`{right.resource}`" + (f" of {right.group}" if right.group else "")
    only = f", only {', '.join(f'`{name}`' for name in right.names)}" if right.names else ""
    policies = ", ".join(f"`{name}`" for name in narrowing(right))
    return (kind + only, ", ".join(right.verbs), _where(right), explanation.why, policies or "-", explanation.remains)


def _where(right: Right) -> str:
    scopes = {
        MODELS: "watched namespaces",
        ROUTES: "watched namespaces, where `gateways` of the configuration has a line",
        "hermetic-operator-events": f"`{EVENTS_OF_THE_CLUSTER}`",
        "hermetic-operator-lease": f"`{NAMESPACE}`",
        "hermetic-operator-coredns": "`kube-system`",
        "hermetic-operator-probe": "`hermetic-probe`",
    }
    return scopes.get(right.role, "the cluster")
