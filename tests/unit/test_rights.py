"""docs/rights.md explains every right of the operator's account, and every right to write is narrowed or excused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermetic.cli.installation import written
from tools.cli_reference import GENERATED
from tools.rights_reference import Right, explained, granted, narrowing, rights_markdown

PAGE = Path(__file__).resolve().parents[2] / "docs" / "rights.md"
RIGHTS = granted()
# What no policy narrows: a status has one writer, a Lease and a report have one name.
ONE_OBJECT = {"egressaudits/status", "clusterreports", "leases"}
WITHOUT_A_POLICY = {*ONE_OBJECT, "modeldeployments/status"}


def test_every_right_is_explained_and_every_explanation_is_of_a_right() -> None:
    assert {right.key for right in RIGHTS} == set(explained()), "of manifests/rbac, in tools/rights.toml"


def test_every_explanation_says_why_and_what_remains() -> None:
    for explanation in explained().values():
        assert explanation.why.endswith(".")
        assert explanation.remains.endswith(".")


@pytest.mark.parametrize("right", [right for right in RIGHTS if right.writes], ids=lambda right: "-".join(right.key))
def test_every_right_to_write_is_narrowed_by_a_policy_for_each_operation(right: Right) -> None:
    if right.resource in WITHOUT_A_POLICY:
        assert narrowing(right) == []
        return
    for verb in right.verbs:
        single_right = Right(right.role, right.group, right.resource, (verb,))
        assert not single_right.writes or narrowing(single_right), (
            f"{verb}: no hermetic-operator-* in manifests/policies matches it"
        )


def test_what_no_policy_narrows_is_one_object_or_a_status() -> None:
    unnamed = {right.resource for right in RIGHTS if right.resource in ONE_OBJECT and right.writes and not right.names}
    assert unnamed == {"leases"}, "a Lease is made by POST, whose name RBAC does not see"


def test_every_policy_about_the_account_narrows_a_right() -> None:
    policies = {policy["metadata"]["name"] for policy in written("policies")}
    about_it = {name for name in policies if name.startswith("hermetic-operator-")} | {"hermetic-volumes"}
    assert about_it <= {name for right in RIGHTS for name in narrowing(right)}


def test_policies_about_others_narrow_nothing() -> None:
    met = {name for right in RIGHTS for name in narrowing(right)}
    assert not met & {"hermetic-status", "hermetic-workloads", "hermetic-model-pods", "hermetic-model-templates"}


def test_the_page_is_what_the_manifests_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == GENERATED + rights_markdown(), "run `make generate`"


def test_the_roles_of_people_are_none_of_the_account() -> None:
    assert not {right.role for right in RIGHTS} & {"hermetic-view", "hermetic-edit"}
