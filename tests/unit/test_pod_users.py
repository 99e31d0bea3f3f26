"""User and group ids of models' pods, by namespace and engine."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from hermetic.api.configuration import Configuration
from hermetic.plan.desired_children import desired_children
from tests.renderings import RENDERINGS
from tests.snapshots import POLICY, a_snapshot, owner_of, rendered, spec_of

EVERYWHERE = {"runAsUser": 10001, "runAsGroup": 10002, "namespaces": ["*"]}
VERIFIER = {"integrity": {"verifiers": [f"contoso.azurecr.io/hermetic@sha256:{'1' * 64}"]}}


def security_of(shape: str, users: list[dict[str, Any]], namespace: str = "inference") -> dict[str, Any]:
    """The securityContext of the pods of a shape, on a platform with these users."""
    policy_fields = POLICY.model_dump(by_alias=True, exclude_unset=True)
    policy = Configuration.model_validate({**policy_fields, **VERIFIER, "podUsers": users})
    manifest = RENDERINGS[shape]
    snapshot = a_snapshot(owner_of(manifest, namespace), policy=policy)
    (pod,) = (
        child["spec"]["template"]["spec"]
        for child in desired_children(spec_of(manifest), snapshot)
        if child["kind"] == "Deployment"
    )
    for container in (*pod["containers"], *pod.get("initContainers", ())):
        assert not {"runAsUser", "runAsGroup"} & container["securityContext"].keys()
    security: dict[str, Any] = pod["securityContext"]
    return security


@pytest.mark.parametrize("shape", ["share", "sglang-guarded", "baked-image", "claim"])
def test_every_container_runs_as_the_user_of_the_configuration(shape: str) -> None:
    security = security_of(shape, [EVERYWHERE])
    assert (security["runAsUser"], security["runAsGroup"], security["runAsNonRoot"]) == (10001, 10002, True)


def test_a_nim_keeps_the_user_of_its_image_unless_it_is_named() -> None:
    assert security_of("nim-profile", [EVERYWHERE])["runAsUser"] == 1000
    assert security_of("nim-profile", [{**EVERYWHERE, "engines": ["nim"]}])["runAsUser"] == 10001
    assert security_of("share", [{**EVERYWHERE, "engines": ["nim"]}])["runAsUser"] == 2000


def test_the_first_entry_for_the_namespace_counts() -> None:
    users = [{**EVERYWHERE, "runAsUser": 20001, "namespaces": ["risk"]}, EVERYWHERE]
    assert security_of("share", users, "risk")["runAsUser"] == 20001
    assert security_of("share", users, "inference")["runAsUser"] == 10001
    assert security_of("share", users[:1], "inference")["runAsUser"] == 2000


def test_groups_of_the_share_stay_beside_the_group_of_the_configuration() -> None:
    security = security_of("nim-of-a-group", [{**EVERYWHERE, "engines": ["nim"]}])
    assert (security["runAsGroup"], security["supplementalGroups"]) == (10002, [2000, 2147483647])


def test_without_an_entry_the_pods_are_those_of_before() -> None:
    pod = rendered(RENDERINGS["share"])["Deployment"]["spec"]["template"]["spec"]
    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]) == (2000, 0)


@pytest.mark.parametrize(
    "entry",
    [
        {**EVERYWHERE, "runAsUser": 0},
        {**EVERYWHERE, "runAsGroup": 0},
        {**EVERYWHERE, "runAsUser": 2147483648},
        {**EVERYWHERE, "engines": []},
        {**EVERYWHERE, "engines": ["triton"]},
        {"runAsUser": 10001, "namespaces": ["*"]},
        {"runAsUser": 10001, "runAsGroup": 10001},
    ],
)
def test_root_and_incomplete_entries_are_refused(entry: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Configuration.model_validate({"podUsers": [entry]})
