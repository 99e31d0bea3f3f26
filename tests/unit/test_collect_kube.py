"""The cluster as a source: whole lists, shown absences, named refusals; and what the operator keeps seeing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from hermetic.audit.auditing import judge
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.all_kinds import ASKED, question
from hermetic.audit.estate.kubernetes.calls import ConfigMap
from hermetic.audit.estate.kubernetes.nodes import Node
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.policies import CiliumNetworkPolicy, NetworkPolicy
from hermetic.audit.estate.kubernetes.services import Service
from hermetic.audit.estate.questions import Answer, Question, Trouble
from hermetic.audit.findings import Verdict
from hermetic.collect.collecting import collected
from hermetic.collect.kube.answering import KubeAnswerer
from hermetic.collect.kube.observations import LOOKS, ClusterObservations
from hermetic.collect.kube.observing import Observing
from hermetic.errors import Forbidden, NotFound, ServerTrouble, Throttled, Unreachable
from hermetic.kinds import Kind
from tests.kubernetes_estates import CLUSTER, POLICY, manifest, pod, sealed_cluster

Manifest = dict[str, Any]
EXTENSIONS = ("cilium.io", "crd.projectcalico.org", "gateway.networking.k8s.io", "karpenter.azure.com")
OPTIONAL = frozenset((*EXTENSIONS, "egressgateway.kubernetes.azure.com"))


class NoProgress:
    """Tells nobody."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


class Served:
    """An API server of dicts: what it holds, which groups it serves, and what it refuses. Watches end by a queue."""

    def __init__(self, manifests: list[Manifest], *, page: int = 3) -> None:
        self.objects: dict[tuple[str, str, str, str], Manifest] = {}
        self.version = 0
        self.page = page
        self.groups: dict[str, dict[str, list[str]]] = {}
        self.refusals: dict[str, list[Exception | None]] = {}
        self.lists: list[str] = []
        self.watches: dict[str, asyncio.Queue[tuple[str, Manifest] | Exception | None]] = {}
        for one in manifests:
            self.put(one)

    def put(self, one: Manifest) -> Manifest:
        """Create or change an object; whoever watches hears of it."""
        self.version += 1
        key = _key(one)
        uid = self.objects[key]["metadata"]["uid"] if key in self.objects else f"uid-{self.version}"
        metadata = {**one["metadata"], "uid": uid, "resourceVersion": str(self.version)}
        kind = "MODIFIED" if key in self.objects else "ADDED"
        self.objects[key] = {**one, "metadata": metadata}
        self._tell(kind, self.objects[key])
        return self.objects[key]

    def drop(self, one: Manifest) -> None:
        """Delete an object; whoever watches hears of it."""
        self.version += 1
        gone = self.objects.pop(_key(one))
        metadata = {**gone["metadata"], "resourceVersion": str(self.version)}
        self._tell("DELETED", {**gone, "metadata": metadata})

    def refuse(self, plural: str, *errors: Exception | None) -> None:
        """Answer the next lists of this resource so; the last one for ever."""
        self.refusals[plural] = list(errors)

    def _tell(self, what: str, one: Manifest) -> None:
        for path, queue in self.watches.items():
            kind = path.partition("?")[0]
            if kind == f"{one['apiVersion']}/{one['kind']}":
                queue.put_nowait((what, one))

    # ------------------------------------------------------------------ ClusterReader

    async def pages(
        self, kind: Kind, *, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[tuple[list[Manifest], str]]:
        """As the port says."""
        assert not label_selector
        self.lists.append(kind.plural)
        planned = self.refusals.get(kind.plural)
        if planned:
            error = planned.pop(0) if len(planned) > 1 else planned[0]
            if error is not None:
                raise error
        if kind.group in OPTIONAL and kind.plural not in self._served(kind):
            raise NotFound("the server could not find the requested resource", status=404, reason="NotFound")
        found = [one for one in self.objects.values() if _is_of(one, kind, namespace, field_selector)]
        for start in range(0, max(len(found), 1), self.page):
            yield found[start : start + self.page], str(self.version)

    async def watch(
        self,
        kind: Kind,
        *,
        since: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[tuple[str, Manifest]]:
        """As the port says, from now on: tests change things only while it is watched."""
        assert since
        assert not label_selector
        name = f"{kind.api_version}/{kind.kind}?{namespace or ''}{field_selector}"
        queue = self.watches.setdefault(name, asyncio.Queue())
        while (event := await queue.get()) is not None:
            if isinstance(event, Exception):
                raise event
            if _is_of(event[1], kind, namespace, field_selector):
                yield event

    async def discovered(self, path: str) -> Manifest:
        """As the port says."""
        if path == "/apis":
            return {
                "groups": [
                    {"name": name, "versions": [{"version": version} for version in versions]}
                    for name, versions in self.groups.items()
                ]
            }
        _, _, group, version = path.split("/")
        return {"resources": [{"name": plural} for plural in self.groups[group][version]]}

    def _served(self, kind: Kind) -> list[str]:
        return self.groups.get(kind.group, {}).get(kind.version, [])


def _key(one: Manifest) -> tuple[str, str, str, str]:
    return (one["apiVersion"], one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"])


def _is_of(one: Manifest, kind: Kind, namespace: str | None, field_selector: str) -> bool:
    version, name, where, bare = _key(one)
    selected = not field_selector or field_selector == f"metadata.name={bare}"
    return (version, name) == (kind.api_version, kind.kind) and namespace in (None, where) and selected


def forbidden(status: int = 403) -> Forbidden:
    return Forbidden('pods is forbidden: User "auditor" cannot list it', status=status, reason="Forbidden")


async def asked(api: Served, *questions: Question) -> list[Answer]:
    found = await KubeAnswerer(api, pauses=(0.0, 0.0)).answers(questions)
    return [found[one] for one in questions]


# ---------------------------------------------------------------------- one look


async def test_every_check_is_answered_in_one_round_from_lists_of_many_pages() -> None:
    api = Served(sealed_cluster())
    answerer = KubeAnswerer(api)
    answers = await collected(CLUSTER, {"kube": answerer}, lambda estate: judge(estate, POLICY), NoProgress())
    found = judge(Estate(CLUSTER, ("kube",), answers), POLICY)
    assert {one.verdict for one in found} == {Verdict.PASS}
    assert len(api.lists) == len(ASKED)


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
    assert [(one.request, one.status) for one in answer.evidence] == [
        ("GET /apis/cilium.io/v2/ciliumnetworkpolicies", 404),
        ("GET /apis", 200),
    ]


async def test_a_group_that_lacks_the_kind_shows_its_absence_as_well() -> None:
    api = Served([])
    api.groups = {"cilium.io": {"v2": ["ciliumnodes"], "v2alpha1": ["ciliumnodeconfigs"]}}
    (answer,) = await asked(api, question(CiliumNetworkPolicy, ""))
    assert answer.problem is None
    assert [one.request for one in answer.evidence[1:]] == [
        "GET /apis", "GET /apis/cilium.io/v2", "GET /apis/cilium.io/v2alpha1",
    ]  # fmt: skip


async def test_a_kind_served_in_another_version_is_not_absent() -> None:
    api = Served([])
    api.groups = {"cilium.io": {"v3": ["ciliumnetworkpolicies"]}}
    (answer,) = await asked(api, question(CiliumNetworkPolicy, ""))
    assert answer.problem is not None
    assert answer.problem.trouble is Trouble.NOT_FOUND


async def test_discovery_that_cannot_be_had_shows_nothing() -> None:
    class Mute(Served):
        async def discovered(self, path: str) -> Manifest:  # noqa: ARG002
            raise forbidden()

    (answer,) = await asked(Mute([]), question(CiliumNetworkPolicy, ""))
    assert answer.problem is not None


async def test_a_refused_list_of_a_kind_that_is_not_served_is_an_absence_too() -> None:
    api = Served([])
    api.refuse("ciliumnetworkpolicies", forbidden())
    (answer,) = await asked(api, question(CiliumNetworkPolicy, ""))
    assert (answer.problem, answer.evidence[0].status) == (None, 403)


async def test_a_refused_list_names_the_permission() -> None:
    api = Served([pod("p")])
    api.groups = {"networking.k8s.io": {"v1": ["networkpolicies"]}}
    api.refuse("networkpolicies", forbidden())
    _, answer = await asked(api, question(Pod, ""), question(NetworkPolicy, ""))
    assert answer.problem is not None
    assert (answer.problem.trouble, answer.problem.permission) == (
        Trouble.FORBIDDEN, "list networkpolicies.networking.k8s.io",
    )  # fmt: skip


async def test_what_came_before_a_page_was_lost_is_kept_and_doubted() -> None:
    class Cut(Served):
        async def pages(self, kind: Kind, **how: Any) -> AsyncIterator[tuple[list[Manifest], str]]:
            async for page in super().pages(kind, **how):
                yield page
                raise ServerTrouble("etcdserver: request timed out", status=500)

    (answer,) = await asked(Cut([pod(f"p-{n}") for n in range(5)]), question(Pod, ""))
    assert len(answer.bodies) == 3
    assert answer.problem is not None
    assert answer.problem.trouble is Trouble.UNAVAILABLE


@pytest.mark.parametrize("passing", [ServerTrouble("x", status=503), Throttled("x", retry_after=0.0), Unreachable("x")])
async def test_what_passes_by_itself_is_asked_again(passing: Exception) -> None:
    api = Served([pod("p")])
    api.refuse("pods", passing, passing, None)
    _, answer = await asked(api, question(Node, ""), question(Pod, ""))
    assert (answer.problem, len(answer.bodies)) == (None, 1)


async def test_what_does_not_pass_is_unknown() -> None:
    api = Served([pod("p")])
    api.refuse("pods", ServerTrouble("x", status=503))
    _, answer = await asked(api, question(Node, ""), question(Pod, ""))
    assert answer.problem is not None
    assert api.lists.count("pods") == 3


@pytest.mark.parametrize("error", [Unreachable("connection refused"), forbidden(401)])
async def test_an_api_server_that_is_not_there_or_knows_nobody_is_an_error_and_no_finding(error: Exception) -> None:
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
    others = [manifest(ConfigMap, name, "kube-system", data={"Corefile": name}) for name in ("coredns", "extra")]
    (answer,) = await asked(Served(others), question(ConfigMap, "kube-system/coredns"))
    assert [body.value["metadata"]["name"] for body in answer.bodies] == ["coredns"]
    path = "/api/v1/namespaces/kube-system/configmaps"
    assert answer.evidence[0].request == f"GET {path}?fieldSelector=metadata.name%3Dcoredns"


async def test_what_nobody_can_ask_the_cluster_is_a_problem() -> None:
    (answer,) = await asked(Served([]), Question("kube", "list", "v1/secrets", ""))
    assert answer.problem is not None


# ---------------------------------------------------------------------- all the time


@pytest.fixture
async def watching() -> AsyncIterator[Callable[[Served], Awaitable[tuple[ClusterObservations, list[int]]]]]:
    """`watching(api)`: observations that are complete and followed, and the revisions at which a change was told."""
    tasks: list[asyncio.Task[None]] = []

    async def start(api: Served) -> tuple[ClusterObservations, list[int]]:
        observations = ClusterObservations()
        told: list[int] = []
        observing = Observing(api, observations, on_change=lambda: told.append(observations.revision))
        tasks.append(asyncio.create_task(observing.run()))
        await until(lambda: observations.is_complete)
        return observations, told

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def until(holds: Callable[[], bool]) -> None:
    """Wait until it holds, ten seconds at most."""
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.01)


def failing(observations: ClusterObservations) -> set[str]:
    found = judge(Estate(CLUSTER, ("kube",), observations.answers()), POLICY)
    return {one.check for one in found if one.verdict is Verdict.FAIL}


def unknown(observations: ClusterObservations) -> set[str]:
    found = judge(Estate(CLUSTER, ("kube",), observations.answers()), POLICY)
    return {one.check for one in found if one.verdict is Verdict.UNKNOWN}


def test_before_anything_was_listed_everything_is_unknown() -> None:
    observations = ClusterObservations()
    assert not observations.is_complete
    found = judge(Estate(CLUSTER, ("kube",), observations.answers()), POLICY)
    assert {one.verdict for one in found} == {Verdict.UNKNOWN}


async def test_the_same_cluster_gives_the_same_findings_and_digests_by_watching(watching: Any) -> None:
    api = Served(sealed_cluster())
    observations, _ = await watching(api)
    looked = await KubeAnswerer(api).answers([look.question for look in LOOKS])
    watched = observations.answers()
    assert watched.keys() == looked.keys()
    for asked_for, answer in watched.items():
        assert [body.value for body in answer.bodies] == [body.value for body in looked[asked_for].bodies]
        assert [one.sha256 for one in answer.evidence] == [one.sha256 for one in looked[asked_for].evidence]
    assert {one.verdict for one in judge(Estate(CLUSTER, ("kube",), watched), POLICY)} == {Verdict.PASS}


async def test_a_way_out_shows_and_goes_with_its_object(watching: Any) -> None:
    api = Served(sealed_cluster())
    observations, told = await watching(api)
    before = observations.revision
    public = api.put(manifest(Service, "web", "inference", spec={"type": "LoadBalancer"}))
    await until(lambda: observations.changed_since(before))
    assert failing(observations) == {"k8s-public-lb"}
    assert told[-1] == observations.revision
    api.drop(public)
    await until(lambda: not failing(observations))


async def test_what_no_check_reads_changes_nothing(watching: Any) -> None:
    api = Served(sealed_cluster())
    observations, told = await watching(api)
    before, tellings = observations.revision, len(told)
    node = next(one for one in sealed_cluster() if one["kind"] == "Node")
    api.put({**node, "status": {**node["status"], "conditions": [{"type": "Ready", "status": "True"}]}})
    api.put(pod("app-1", labels={"app": "app"}, status={"phase": "Running", "conditions": [{"type": "Ready"}]}))
    marker = api.put(manifest(Service, "marker", "inference", spec={"type": "ClusterIP"}))
    await until(lambda: observations.changed_since(before))
    assert observations.revision == before + 1, marker
    assert len(told) == tellings + 1


async def test_a_kind_that_may_not_be_listed_is_unknown_and_names_the_permission(watching: Any) -> None:
    api = Served(sealed_cluster())
    api.refuse("nodes", forbidden())
    observations, _ = await watching(api)
    assert unknown(observations) == {"k8s-node-externalip", "k8s-nodeport", "k8s-policy-engine-live"}
    problem = observations.answers()[question(Node, "")].problem
    assert problem is not None
    assert problem.permission == "list nodes"


async def test_a_watch_that_lost_its_place_lists_anew_and_misses_nothing(watching: Any) -> None:
    api = Served(sealed_cluster())
    observations, _ = await watching(api)
    queue = await _watch_of(api, "v1/Service?")
    silent = dict(api.watches)
    api.watches.clear()  # what follows is not heard of
    api.put(manifest(Service, "web", "inference", spec={"type": "LoadBalancer"}))
    api.watches.update(silent)
    queue.put_nowait(ServerTrouble("too old resource version", status=410))
    await until(lambda: failing(observations) == {"k8s-public-lb"})


async def test_an_event_that_nobody_understands_is_looked_at_again(watching: Any) -> None:
    api = Served(sealed_cluster())
    observations, _ = await watching(api)
    lists = api.lists.count("services")
    queue = await _watch_of(api, "v1/Service?")
    queue.put_nowait(("MODIFIED", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}}))
    await until(lambda: api.lists.count("services") > lists)
    assert not failing(observations)


async def test_a_short_break_is_no_trouble_and_a_long_one_is(watching: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    api = Served(sealed_cluster())
    observations, _ = await watching(api)
    queue = await _watch_of(api, "v1/Node?")
    queue.put_nowait(Unreachable("connection reset"))
    await until(queue.empty)
    assert not unknown(observations)
    monkeypatch.setattr("hermetic.collect.kube.observing.GRACE_SECONDS", 0.0)
    queue.put_nowait(Unreachable("connection reset"))
    await until(lambda: "k8s-node-externalip" in unknown(observations))
    api.put(next(one for one in sealed_cluster() if one["kind"] == "Node"))
    await until(lambda: not unknown(observations))


async def _watch_of(api: Served, name: str) -> asyncio.Queue[Any]:
    await until(lambda: name in api.watches)
    return api.watches[name]
