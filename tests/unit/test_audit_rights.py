"""What the operator watches for the checks of the cluster is what its roles let it list and watch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermetic.collect.kube.cache import LOOKS
from hermetic.collect.kube.list_requests import ListRequest

RBAC = Path(__file__).parents[2] / "manifests" / "rbac"


def roles(kind: str) -> Iterator[dict[str, Any]]:
    """Every role of this kind in the manifests."""
    for file in sorted(RBAC.glob("*.yaml")):
        yield from (one for one in yaml.safe_load_all(file.read_text()) if one and one["kind"] == kind)


def grants(rule: dict[str, Any], look: ListRequest) -> bool:
    """Whether a rule lets this be listed and watched."""
    named = rule.get("resourceNames")
    return (
        look.kind.group in rule["apiGroups"]
        and look.kind.plural in rule["resources"]
        and {"list", "watch"} <= set(rule["verbs"])
        and (named is None or look.scope.partition("/")[2] in named)
    )


@pytest.mark.parametrize("look", [look for look in LOOKS if not look.scope], ids=lambda look: look.resource)
def test_every_kind_is_granted_in_the_whole_cluster(look: ListRequest) -> None:
    assert any(grants(rule, look) for role in roles("ClusterRole") for rule in role["rules"])


@pytest.mark.parametrize("look", [look for look in LOOKS if look.scope], ids=lambda look: look.scope)
def test_one_object_is_granted_by_its_name_in_its_namespace(look: ListRequest) -> None:
    inside = [role for role in roles("Role") if role["metadata"]["namespace"] == look.namespace]
    rules = [rule for role in inside for rule in role["rules"] if grants(rule, look)]
    assert rules
    assert all(rule.get("resourceNames") for rule in rules)
