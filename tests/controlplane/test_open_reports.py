"""ClusterReport as a real API server takes it, by the CRD that its project publishes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from hermetic.audit.report.openreports import WORDS, cluster_report
from testbed.api import Api
from testbed.errors import CannotRunError
from testbed.openreports import definitions
from testbed.processes import wait_until
from tests.audit_reports import a_failing_report, a_hostile_report, a_sealed_report, an_empty_report, pages

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REPORTS = "/apis/openreports.io/v1alpha1/clusterreports"


@pytest.fixture(scope="module")
def open_reports(api: Api) -> Iterator[None]:
    """The kinds of OpenReports, gone after this file: other tests tell what happens without them."""
    try:
        crds = definitions()
    except CannotRunError as reason:
        pytest.skip(str(reason))
    for crd in crds:
        api.create(CRDS, crd)
    for crd in crds:
        wait_until("kind is served", lambda name=crd["metadata"]["name"]: _established(api, name), ())
    yield
    for crd in crds:
        api.delete(f"{CRDS}/{crd['metadata']['name']}")


ABOUT_A_SERVICE = replace(a_failing_report().findings[0], resource="v1/Service inference/llama")


@pytest.mark.parametrize(
    "report",
    [
        a_failing_report(),
        a_sealed_report(),
        an_empty_report(),
        a_hostile_report(),
        replace(a_failing_report(), findings=(ABOUT_A_SERVICE,)),
    ],
)
@pytest.mark.usefixtures("open_reports")
def test_the_api_server_keeps_every_field(api, report):
    shown = cluster_report(report, pages(), name="audited")
    kept = api.create(f"{REPORTS}?fieldValidation=Strict", shown)
    api.delete(f"{REPORTS}/audited")
    assert {key: kept[key] for key in ("source", "summary", "results")} == {
        key: shown[key] for key in ("source", "summary", "results")
    }
    assert list(shown["summary"]) == list(WORDS)
    assert kept["metadata"]["annotations"] == shown["metadata"]["annotations"]


def _established(api: Api, name: str) -> bool:
    conditions = api.get(f"{CRDS}/{name}").get("status", {}).get("conditions", [])
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
