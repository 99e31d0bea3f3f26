"""What the operator watches for the checks of the cluster is what its roles let it list and watch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermetic.collect.kube.cache import LIST_REQUESTS
from hermetic.collect.kube.list_requests import ListRequest

RBAC = Path(__file__).parents[2] / "manifests" / "rbac"


def roles(kind: str) -> Iterator[dict[str, Any]]:
    """Every role of this kind in the manifests."""
    for file in sorted(RBAC.glob("*.yaml")):
        yield from (
            document for document in yaml.safe_load_all(file.read_text()) if document and document["kind"] == kind
        )


def grants(rule: dict[str, Any], listed: ListRequest) -> bool:
    """Whether a rule lets this be listed and watched."""
    named = rule.get("resourceNames")
    return (
        listed.kind.group in rule["apiGroups"]
        and listed.kind.plural in rule["resources"]
        and {"list", "watch"} <= set(rule["verbs"])
        and (named is None or listed.scope.partition("/")[2] in named)
    )


@pytest.mark.parametrize(
    "listed", [listed for listed in LIST_REQUESTS if not listed.scope], ids=lambda listed: listed.resource
)
def test_every_kind_is_granted_in_the_whole_cluster(listed: ListRequest) -> None:
    assert any(grants(rule, listed) for role in roles("ClusterRole") for rule in role["rules"])


@pytest.mark.parametrize(
    "listed", [listed for listed in LIST_REQUESTS if listed.scope], ids=lambda listed: listed.scope
)
def test_one_object_is_granted_by_its_name_in_its_namespace(listed: ListRequest) -> None:
    inside = [role for role in roles("Role") if role["metadata"]["namespace"] == listed.namespace]
    rules = [rule for role in inside for rule in role["rules"] if grants(rule, listed)]
    assert rules
    assert all(rule.get("resourceNames") for rule in rules)
