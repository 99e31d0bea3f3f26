"""ClusterReport as a real API server takes it: by the CRD that its project publishes, and by that of the manifests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from hermetic.audit.report.openreports import WORDS, cluster_report
from testbed.api import Api
from testbed.errors import CannotRunError
from testbed.kubectl import Kubectl
from tests.audit_reports import a_failing_report, a_hostile_report, a_sealed_report, an_empty_report, pages
from tests.controlplane.open_reports import CLUSTER_REPORTS, open_reports_served, our_definitions


@pytest.fixture(scope="module", params=["of the project", "of the manifests"])
def open_reports(request: pytest.FixtureRequest, api: Api, kubectl: Kubectl) -> Iterator[None]:
    """The kinds of OpenReports, gone after this file."""
    with ExitStack() as served:
        try:
            crds = our_definitions() if request.param == "of the manifests" else None
            served.enter_context(open_reports_served(api, kubectl, crds))
        except CannotRunError as reason:
            pytest.skip(str(reason))
        yield


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
    stored_report = api.create(f"{CLUSTER_REPORTS}?fieldValidation=Strict", shown)
    api.delete(f"{CLUSTER_REPORTS}/audited")
    assert {key: stored_report[key] for key in ("source", "summary", "results")} == {
        key: shown[key] for key in ("source", "summary", "results")
    }
    assert list(shown["summary"]) == list(WORDS)
    assert stored_report["metadata"]["annotations"] == shown["metadata"]["annotations"]


@pytest.mark.usefixtures("open_reports")
def test_fields_of_other_writers_are_kept(api):
    """A policy engine that finds the kind already there must lose nothing of its reports."""
    foreign = {
        "apiVersion": "openreports.io/v1alpha1",
        "kind": "ClusterReport",
        "metadata": {"name": "of-another"},
        "scope": {"apiVersion": "v1", "kind": "Namespace", "name": "inference"},
        "source": "another",
        "results": [
            {"source": "another", "policy": "p", "result": "pass", "resourceSelector": {"matchLabels": {"a": "b"}}}
        ],
    }
    stored_report = api.create(f"{CLUSTER_REPORTS}?fieldValidation=Strict", foreign)
    api.delete(f"{CLUSTER_REPORTS}/of-another")
    assert {name: stored_report[name] for name in ("scope", "source", "results")} == {
        name: foreign[name] for name in ("scope", "source", "results")
    }
