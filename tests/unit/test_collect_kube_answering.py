"""The cluster as a source, read once: whole lists, shown absences, named refusals, never a traceback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.all_kinds import ASKED, question
from hermetic.audit.estate.kubernetes.calls import ConfigMap
from hermetic.audit.estate.kubernetes.cilium_policies import CiliumNetworkPolicy
from hermetic.audit.estate.kubernetes.nodes import Node
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.policies import NetworkPolicy
from hermetic.audit.estate.kubernetes.served import SERVED
from hermetic.audit.estate.questions import Answer, Question, UnreadReason
from hermetic.audit.model.findings import Verdict
from hermetic.audit.result.run import Evaluation
from hermetic.collect.collecting import collected
from hermetic.collect.kube.answering import KubeAnswerer
from hermetic.collect.kube.cache import LIST_REQUESTS
from hermetic.errors import ServerError, Throttled, Unreachable
from hermetic.kinds import Kind
from tests.fakes.progress import NoProgress
from tests.fakes.served_cluster import Manifest, Served, forbidden
from tests.kubernetes_estates import CLUSTER, POLICY, manifest, pod, sealed_cluster


async def asked(api: Served, *questions: Question) -> list[Answer]:
    answers = await KubeAnswerer(api, pauses=(0.0, 0.0)).answers(questions)
    return [answers[question_asked] for question_asked in questions]


async def test_every_check_is_answered_in_one_round_from_lists_of_many_pages() -> None:
    api = Served(sealed_cluster())
    answerer = KubeAnswerer(api)
    _, findings = await collected(CLUSTER, {"kube": answerer}, Evaluation(POLICY).findings, NoProgress())
    assert {finding.verdict for finding in findings} == {Verdict.PASS}
    # A kind of a group that may not be there is listed only where it is served.
    assert sorted(api.lists.elements()) == sorted(
        request.kind.plural for request in LIST_REQUESTS if not request.is_optional
    )
    assert api.documents.count("/apis") == 1


async def test_a_list_begun_anew_forgets_what_came_before() -> None:
    class Restarting(Served):
        async def pages(self, kind: Kind, **how: Any) -> AsyncIterator[tuple[list[Manifest], str]]:
            yield [pod("stale")], "0"
            async for page in super().pages(kind, **how):
                yield page

    (answer,) = await asked(Restarting([pod("fresh")]), question(Pod, ""))
    assert [body.value["metadata"]["name"] for body in answer.bodies] == ["fresh"]


async def test_a_kind_that_is_not_served_is_shown_absent() -> None:
    api = Served([])
    api.groups = {"apps": {"v1": ["deployments"]}}
    (answer,) = await asked(api, question(CiliumNetworkPolicy, ""))
    assert (answer.bodies, answer.problem) == ((), None)
    assert [(evidence.request, evidence.status) for evidence in answer.evidence] == [("GET /apis", 200)]
    assert not api.lists


async def test_a_group_that_lacks_the_kind_shows_its_absence_as_well() -> None:
    api = Served([])
    api.groups = {"cilium.io": {"v2": ["ciliumnodes"], "v2alpha1": ["ciliumnodeconfigs"]}}
    (answer,) = await asked(api, question(CiliumNetworkPolicy, ""))
    assert answer.problem is None
    assert [evidence.request for evidence in answer.evidence] == [
        "GET /apis", "GET /apis/cilium.io/v2", "GET /apis/cilium.io/v2alpha1",
    ]  # fmt: skip


async def test_a_kind_served_in_another_version_is_not_absent() -> None:
    api = Served([])
    api.groups = {"cilium.io": {"v3": ["ciliumnetworkpolicies"]}}
    (answer,) = await asked(api, question(CiliumNetworkPolicy, ""))
    assert answer.problem is not None
    assert answer.problem.reason is UnreadReason.NOT_FOUND


async def test_discovery_that_cannot_be_had_shows_nothing() -> None:
    class Mute(Served):
        async def discovered(self, path: str) -> Manifest:  # noqa: ARG002
            raise forbidden()

    (answer,) = await asked(Mute([]), question(CiliumNetworkPolicy, ""))
    assert answer.problem is not None


async def test_a_refused_list_of_a_kind_that_is_served_is_no_absence() -> None:
    api = Served([])
    api.groups = {"cilium.io": {"v2": ["ciliumnetworkpolicies"]}}
    api.refuse("ciliumnetworkpolicies", forbidden())
    (answer,) = await asked(api, question(CiliumNetworkPolicy, ""))
    assert answer.problem is not None
    assert answer.problem.permission == "list ciliumnetworkpolicies.cilium.io"


class Aggregated(Served):
    """Lists all that it serves in one document; `stale` groups did not answer."""

    stale: frozenset[str] = frozenset()

    async def discovered(self, path: str) -> Manifest:
        assert path == "/apis"
        items = [
            {
                "metadata": {"name": name},
                "versions": [
                    {
                        "version": version,
                        "freshness": "Stale" if name in self.stale else "Current",
                        "resources": [{"resource": plural, "responseKind": {"kind": plural}} for plural in plurals],
                    }
                    for version, plurals in versions.items()
                ],
            }
            for name, versions in self.groups.items()
        ]
        return {"kind": "APIGroupDiscoveryList", "items": items}


async def test_one_document_is_enough_where_the_server_tells_all_at_once() -> None:
    api = Aggregated([])
    api.groups = {"cilium.io": {"v2": ["ciliumnodes"]}, "x.example.com": {"v1": ["ways"], "v2": ["ways"]}}
    absent, served = await asked(api, question(CiliumNetworkPolicy, ""), SERVED)
    assert (absent.problem, [evidence.request for evidence in absent.evidence]) == (None, ["GET /apis"])
    assert [dict(body.value) for body in served.bodies] == [
        {"id": "cilium.io", "kinds": [{"plural": "ciliumnodes", "kind": "ciliumnodes", "versions": ["v2"]}],
         "stale": []},
        {"id": "x.example.com", "kinds": [{"plural": "ways", "kind": "ways", "versions": ["v1", "v2"]}], "stale": []},
    ]  # fmt: skip


async def test_a_group_whose_server_did_not_answer_shows_no_absence() -> None:
    api = Aggregated([])
    api.groups, api.stale = {"cilium.io": {"v2": []}}, frozenset({"cilium.io"})
    absent, served = await asked(api, question(CiliumNetworkPolicy, ""), SERVED)
    assert absent.problem is not None
    assert [body.value["stale"] for body in served.bodies] == [["v2"]]


@pytest.mark.parametrize("junk", [{}, {"groups": [{}]}, {"kind": "APIGroupDiscoveryList", "items": ["x"]}])
async def test_a_discovery_document_of_another_shape_shows_nothing(junk: Manifest) -> None:
    class Junk(Served):
        async def discovered(self, path: str) -> Manifest:  # noqa: ARG002
            return junk

    absent, served = await asked(Junk([]), question(CiliumNetworkPolicy, ""), SERVED)
    assert absent.problem is not None
    assert served.problem is not None


async def test_discovery_that_fails_in_passing_is_read_again() -> None:
    class Hiccup(Served):
        async def discovered(self, path: str) -> Manifest:
            if self.documents.count("/apis") < 2:
                self.documents.append("/apis")
                raise ServerError("x", status=503)
            return await super().discovered(path)

    (served,) = await asked(Hiccup([]), SERVED)
    assert served.problem is None


async def test_a_refused_list_names_the_permission() -> None:
    api = Served([pod("p")])
    api.groups = {"networking.k8s.io": {"v1": ["networkpolicies"]}}
    api.refuse("networkpolicies", forbidden())
    _, answer = await asked(api, question(Pod, ""), question(NetworkPolicy, ""))
    assert answer.problem is not None
    assert (answer.problem.reason, answer.problem.permission) == (
        UnreadReason.FORBIDDEN, "list networkpolicies.networking.k8s.io",
    )  # fmt: skip


async def test_what_came_before_a_page_was_lost_is_kept_and_doubted() -> None:
    class Cut(Served):
        async def pages(self, kind: Kind, **how: Any) -> AsyncIterator[tuple[list[Manifest], str]]:
            async for page in super().pages(kind, **how):
                yield page
                raise ServerError("etcdserver: request timed out", status=500)

    (answer,) = await asked(Cut([pod(f"p-{n}") for n in range(5)]), question(Pod, ""))
    assert len(answer.bodies) == 3
    assert answer.problem is not None
    assert answer.problem.reason is UnreadReason.UNAVAILABLE


@pytest.mark.parametrize("passing", [ServerError("x", status=503), Throttled("x", retry_after=0.0), Unreachable("x")])
async def test_what_passes_by_itself_is_asked_again(passing: Exception) -> None:
    api = Served([pod("p")])
    api.refuse("pods", passing, passing, None)
    _, answer = await asked(api, question(Node, ""), question(Pod, ""))
    assert (answer.problem, len(answer.bodies)) == (None, 1)


async def test_what_does_not_pass_is_unknown() -> None:
    api = Served([pod("p")])
    api.refuse("pods", ServerError("x", status=503))
    _, answer = await asked(api, question(Node, ""), question(Pod, ""))
    assert answer.problem is not None
    assert api.lists["pods"] == 3


@pytest.mark.parametrize("error", [Unreachable("connection refused"), forbidden(401)])
async def test_an_api_server_that_is_away_or_refuses_the_credentials_is_an_error_and_no_finding(
    error: Exception,
) -> None:
    api = Served([])
    for kind, _ in ASKED:
        api.refuse(kind.TYPE.rpartition("/")[2], error)
    with pytest.raises(type(error)):
        await asked(api, *(question(kind, scope) for kind, scope in ASKED))


@pytest.mark.parametrize("junk", [[{}], ["x"], [{"metadata": {}}], [{"metadata": None}]])
async def test_a_list_of_something_else_is_unknown_and_never_a_traceback(junk: list[Any]) -> None:
    class Junk(Served):
        async def pages(self, *_: Any, **__: Any) -> AsyncIterator[tuple[list[Manifest], str]]:
            yield junk, "1"

    (answer,) = await asked(Junk([]), question(Pod, ""))
    assert answer.problem is not None


async def test_one_configmap_is_listed_by_its_name_so_that_a_role_can_name_it() -> None:
    config_maps = [manifest(ConfigMap, name, "kube-system", data={"Corefile": name}) for name in ("coredns", "extra")]
    (answer,) = await asked(Served(config_maps), question(ConfigMap, "kube-system/coredns"))
    assert [body.value["metadata"]["name"] for body in answer.bodies] == ["coredns"]
    path = "/api/v1/namespaces/kube-system/configmaps"
    assert answer.evidence[0].request == f"GET {path}?fieldSelector=metadata.name%3Dcoredns"


async def test_a_question_that_the_cluster_cannot_answer_is_a_problem() -> None:
    (answer,) = await asked(Served([]), Question("kube", "list", "v1/secrets", ""))
    assert answer.problem is not None
