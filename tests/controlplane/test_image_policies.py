"""The policies for images, against the schemas and the CEL rules of the CRDs that Kyverno and Ratify publish.

A dry run on a real API server. tests/image_policies lets Ratify judge images; Kyverno does not run.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from testbed.api import Api
from testbed.errors import ApiError, CannotRunError
from testbed.image_policies import definitions
from testbed.installation import REPOSITORY
from testbed.kubectl import Kubectl
from testbed.served import wait_until_served

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
COLLECTIONS = {
    "ImageValidatingPolicy": "/apis/policies.kyverno.io/v1/imagevalidatingpolicies",
    "KeyManagementProvider": "/apis/config.ratify.deislabs.io/v1beta1/keymanagementproviders",
    "Verifier": "/apis/config.ratify.deislabs.io/v1beta1/verifiers",
}
AS_WRITTEN = frozenset({"attestors", "parameters", "validations"})
"""The fields to which the API server adds no defaults."""
FOLDER = REPOSITORY / "manifests/image-policies"


def policies() -> list[dict[str, Any]]:
    return [
        policy for file in sorted(FOLDER.iterdir()) for policy in yaml.safe_load_all(file.read_text(encoding="utf-8"))
    ]


def created(api: Api, policy: dict[str, Any]) -> dict[str, Any]:
    """What the API server would store. It refuses fields that the CRD does not have."""
    return api.create(f"{COLLECTIONS[policy['kind']]}?dryRun=All&fieldValidation=Strict", policy)


@pytest.fixture(scope="module")
def _served(api: Api, kubectl: Kubectl) -> Iterator[None]:
    try:
        wanted = list(definitions())
    except CannotRunError as reason:
        pytest.skip(str(reason))
    names = [f"crd/{definition['metadata']['name']}" for definition in wanted]
    for definition in wanted:
        api.create(CRDS, definition)
    try:
        for collection in COLLECTIONS.values():
            wait_until_served(api, collection)
        yield
    finally:
        kubectl("delete", "--wait", "--timeout=30s", *names)


@pytest.mark.usefixtures("_served")
@pytest.mark.parametrize("policy", policies(), ids=lambda policy: policy["metadata"]["name"])
def test_a_policy_of_the_manifests_is_one_of_its_project(api: Api, policy: dict[str, Any]) -> None:
    spec = created(api, policy)["spec"]
    assert {name: spec[name] for name in AS_WRITTEN & policy["spec"].keys()} == {
        name: policy["spec"][name] for name in AS_WRITTEN & policy["spec"].keys()
    }


@pytest.mark.usefixtures("_served")
def test_a_field_that_kyverno_does_not_have_is_refused(api: Api) -> None:
    policy = copy.deepcopy(policies()[0])
    policy["spec"]["attestors"][0]["cosign"]["publicKey"] = policy["spec"]["attestors"][0]["cosign"].pop("key")
    with pytest.raises(ApiError, match="publicKey"):
        created(api, policy)


@pytest.mark.usefixtures("_served")
def test_a_field_that_ratify_does_not_have_is_refused(api: Api) -> None:
    provider = next(policy for policy in policies() if policy["kind"] == "KeyManagementProvider")
    provider["spec"]["certificate"] = provider["spec"].pop("parameters")
    with pytest.raises(ApiError, match="certificate"):
        created(api, provider)
