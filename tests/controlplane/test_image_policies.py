"""The policies for images, against the schema and the CEL rules of the CRD that Kyverno publishes.

A dry run on a real API server: Kyverno itself does not run, so no image is judged here.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from testbed.api import Api
from testbed.errors import ApiError, CannotRunError
from testbed.installation import REPOSITORY
from testbed.kubectl import Kubectl
from testbed.kyverno import NAME, definition
from testbed.served import wait_until_served

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES = "/apis/policies.kyverno.io/v1/imagevalidatingpolicies"
DRY_RUN = f"{POLICIES}?dryRun=All&fieldValidation=Strict"
PAGE = REPOSITORY / "manifests/image-policies/kyverno.yaml"


def policies() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(PAGE.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def _served(api: Api, kubectl: Kubectl) -> Iterator[None]:
    try:
        crd = definition()
    except CannotRunError as reason:
        pytest.skip(str(reason))
    api.create(CRDS, crd)
    try:
        kubectl("wait", "--for=condition=Established", "--timeout=30s", f"crd/{NAME}")
        wait_until_served(api, POLICIES)
        yield
    finally:
        api.delete(f"{CRDS}/{NAME}")
        kubectl("wait", "--for=delete", "--timeout=30s", f"crd/{NAME}")


@pytest.mark.usefixtures("_served")
@pytest.mark.parametrize("policy", policies(), ids=lambda policy: policy["metadata"]["name"])
def test_a_policy_of_the_manifests_is_one_of_kyverno(api: Api, policy: dict[str, Any]) -> None:
    accepted = api.create(DRY_RUN, policy)
    assert accepted["spec"]["validations"] == policy["spec"]["validations"]
    assert accepted["spec"]["attestors"] == policy["spec"]["attestors"]


@pytest.mark.usefixtures("_served")
def test_a_field_that_kyverno_does_not_have_is_refused(api: Api) -> None:
    policy = copy.deepcopy(policies()[0])
    policy["spec"]["attestors"][0]["cosign"]["publicKey"] = policy["spec"]["attestors"][0]["cosign"].pop("key")
    with pytest.raises(ApiError, match="publicKey"):
        api.create(DRY_RUN, policy)
