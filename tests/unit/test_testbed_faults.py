"""Which requests a fault applies to: by kind and path, so many times, and by a chance that can be repeated."""

from __future__ import annotations

import json

import pytest

from testbed.faults import Answer, CutWatch, DropBefore, Fault, Request, WriteMark
from tests.sampled_groups import TEST_BED

pytestmark = TEST_BED


@pytest.mark.parametrize(
    ("target", "resource"),
    [
        ("/api/v1/nodes", "nodes"),
        ("/api/v1/namespaces", "namespaces"),
        ("/api/v1/namespaces/team", "namespaces"),
        ("/api/v1/namespaces/team/finalize", "namespaces/finalize"),
        ("/api/v1/namespaces/team/pods?watch=true", "pods"),
        ("/api/v1/namespaces/team/pods/model/log?follow=true", "pods/log"),
        ("/apis/apps/v1/namespaces/team/deployments/model", "deployments"),
        ("/apis/hermetic.dev/v1alpha1/namespaces/team/modeldeployments/model/status", "modeldeployments/status"),
        ("/apis/hermetic.dev/v1alpha1", "/apis/hermetic.dev/v1alpha1"),
        ("/readyz?verbose", "/readyz"),
    ],
)
def test_resource_is_read_from_the_path(target: str, resource: str) -> None:
    assert Request("GET", target).resource == resource


def test_watch_is_a_kind_of_its_own() -> None:
    assert Request("GET", "/api/v1/pods?watch=true").kind == "WATCH"
    assert Request("GET", "/api/v1/pods?watch=1&resourceVersion=7").kind == "WATCH"
    assert Request("GET", "/api/v1/pods?watch=false").kind == "GET"


def test_review_is_no_write() -> None:
    assert Request("POST", "/api/v1/namespaces/team/pods").is_write
    assert not Request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").is_write


def test_fault_stops_after_so_many_times() -> None:
    fault = Fault(Answer(409), methods=("PATCH",), path="/deployments/", times=2)
    patch = Request("PATCH", "/apis/apps/v1/namespaces/team/deployments/model")

    assert [fault.applies_to(patch, "seed") for _ in range(4)] == [True, True, False, False]
    assert fault.hits == 2


@pytest.mark.parametrize(
    "other", [Request("GET", "/apis/apps/v1/deployments/x"), Request("PATCH", "/api/v1/services/x")]
)
def test_fault_leaves_other_requests_alone(other: Request) -> None:
    assert not Fault(DropBefore(), methods=("PATCH",), path="/deployments/").applies_to(other, "seed")


def test_cut_applies_to_watches_only() -> None:
    cut = Fault(CutWatch())

    assert cut.applies_to(Request("GET", "/api/v1/pods?watch=true"), "seed")
    assert not cut.applies_to(Request("GET", "/api/v1/pods"), "seed")


def test_chance_depends_on_seed_and_request_but_not_on_the_order_of_arrival() -> None:
    requests = [Request("PATCH", f"/api/v1/namespaces/team/services/{number % 10}") for number in range(200)]

    def affected(order: list[Request], seed: str) -> list[tuple[str, bool]]:
        fault = Fault(DropBefore(), probability=0.3)
        return sorted((request.target, fault.applies_to(request, seed)) for request in order)

    assert affected(requests, "a") == affected(sorted(requests, key=lambda request: request.target), "a")
    assert affected(requests, "a") != affected(requests, "b")
    assert 30 <= sum(hit for _, hit in affected(requests, "a")) <= 90


def test_mark_is_reached_once_and_counts_writes_only() -> None:
    mark = WriteMark(2, "/services/", after=False)
    write, read = Request("PATCH", "/api/v1/services/x"), Request("GET", "/api/v1/services/x")

    assert [mark.reached(request) for request in (write, read, write, write)] == [False, False, True, False]


def test_answer_has_the_form_of_the_api_server() -> None:
    status = json.loads(Answer(429, "slow down", retry_after=2).body())

    assert (status["kind"], status["reason"], status["code"]) == ("Status", "TooManyRequests", 429)
    assert status["details"]["retryAfterSeconds"] == 2
