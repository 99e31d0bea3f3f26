"""A storage account that serves a website: the setting of its blob service decides, never the address that all have."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.model.findings import Verdict
from tests.audit_services import ACCOUNT, FakeServices, only, served_cluster

SERVICE = f"{ACCOUNT}/blobServices/default"


def serving(website: Any, **account: Any) -> FakeServices:
    azure = served_cluster()
    azure.change(SERVICE, staticWebsite=website).change(ACCOUNT, **account)
    return azure


@pytest.mark.parametrize(
    ("access", "severity"),
    [("Disabled", "medium"), ("SecuredByPerimeter", "medium"), ("Enabled", "high"), (None, "high"), ("Odd", "high")],
)
def test_a_website_is_found_and_decides_where_the_internet_reaches_it(access: str | None, severity: str) -> None:
    finding = only(serving({"enabled": True}, publicNetworkAccess=access), "storage-static-website")
    assert (finding.verdict, finding.severity, finding.resource) == (Verdict.FAIL, severity, ACCOUNT)
    assert finding.paths


def test_a_service_that_serves_none_passes_with_its_evidence() -> None:
    finding = only(served_cluster(), "storage-static-website")
    assert finding.verdict is Verdict.PASS
    assert any("blobServices/default?api-version=2025-08-01" in evidence.request for evidence in finding.evidence)


@pytest.mark.parametrize("website", [None, {}, {"enabled": None}, {"enabled": "false"}, "off", {"indexDocument": "a"}])
def test_an_answer_that_leaves_it_out_or_is_broken_is_unknown_and_does_not_decide(website: Any) -> None:
    finding = only(serving(website), "storage-static-website")
    assert (finding.verdict, finding.severity) == (Verdict.UNKNOWN, "medium")


def test_the_address_for_a_website_that_every_account_has_shows_nothing() -> None:
    azure = serving(None, primaryEndpoints={"web": "https://aistore.z6.web.core.windows.net/"})
    assert only(azure, "storage-static-website").verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("reason", [UnreadReason.FORBIDDEN, UnreadReason.REFUSED, UnreadReason.NOT_FOUND])
def test_a_service_that_cannot_be_read_is_unknown(reason: UnreadReason) -> None:
    assert only(served_cluster().refuse(SERVICE, reason), "storage-static-website").verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("kind", ["FileStorage", "BlobStorage", "Storage"])
def test_accounts_of_kinds_that_serve_none_are_not_asked(kind: str) -> None:
    azure = served_cluster().drop(SERVICE)
    azure.bodies[ACCOUNT.lower()]["kind"] = kind
    assert only(azure, "storage-static-website").verdict is Verdict.NOT_APPLICABLE


@pytest.mark.parametrize("kind", ["StorageV2", "BlockBlobStorage", "Odd", None])
def test_every_other_kind_is(kind: str | None) -> None:
    azure = served_cluster().drop(SERVICE)
    azure.bodies[ACCOUNT.lower()]["kind"] = kind
    assert only(azure, "storage-static-website").verdict is Verdict.UNKNOWN
