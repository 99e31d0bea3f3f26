"""What a client meets behind the fault proxy: the real API server, and exactly the faults that were asked for."""

from __future__ import annotations

import json
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.api import Api
from testbed.controlplane import ControlPlane
from testbed.errors import ApiError
from testbed.fault_proxy import SEED_VARIABLE, FaultProxy
from testbed.faults import Answer, CutWatch, Delay, DropAfter, DropBefore, Fault
from testbed.kubectl import Kubectl
from testbed.processes import wait_until
from tests.sampled_groups import TEST_BED_CONTROL_PLANE

pytestmark = TEST_BED_CONTROL_PLANE

Json = dict[str, Any]

BROKEN = r"closed|reset|EOF|no answer"


@pytest.fixture
def proxy(controlplane: ControlPlane) -> Iterator[FaultProxy]:
    with FaultProxy(controlplane) as proxy:
        yield proxy


@pytest.fixture
def through(proxy: FaultProxy, tmp_path: Path) -> Api:
    """The administrator, through the proxy."""
    return Api(proxy.write_kubeconfig(tmp_path / "proxy.kubeconfig"))


@pytest.fixture
def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def config_map(name: str) -> Json:
    return {"metadata": {"name": name}}


def names(api: Api, maps: str) -> set[str]:
    return {item["metadata"]["name"] for item in api.get(maps)["items"]} - {"kube-root-ca.crt"}


def test_without_faults_it_is_the_api_server(
    proxy: FaultProxy, kubectl: Kubectl, tmp_path: Path, namespace: str
) -> None:
    behind = Kubectl(kubectl.program, proxy.write_kubeconfig(tmp_path / "kubeconfig"), namespace)

    behind.apply({"apiVersion": "v1", "kind": "ConfigMap", **config_map("big"), "data": {"text": "x" * 900_000}})

    assert len(behind.json("get", "configmap", "big")["data"]["text"]) == 900_000
    assert proxy.counts()["PATCH", "configmaps"] == 1
    assert [request.resource for request in proxy.writes()] == ["configmaps"]


def test_client_is_who_its_token_says(proxy: FaultProxy, api: Api, namespace: str, maps: str, tmp_path: Path) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    token = api.create(path, {"spec": {"expirationSeconds": 600}})["status"]["token"]
    account = Api(proxy.write_kubeconfig(tmp_path / "account.kubeconfig", token))

    me = account.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    with pytest.raises(ApiError) as refusal:
        account.get(maps)

    assert me["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:default"
    assert refusal.value.status == 403


def test_answer_is_given_so_many_times_and_then_no_more(proxy: FaultProxy, through: Api, maps: str) -> None:
    fault = proxy.inject(Fault(Answer(409), methods=("POST",), path="/configmaps", times=2))

    for _ in range(2):
        with pytest.raises(ApiError, match="409 Conflict"):
            through.create(maps, config_map("one"))
    through.create(maps, config_map("one"))

    assert fault.hits == 2
    assert names(through, maps) == {"one"}


def test_retry_after_is_said_in_the_header(proxy: FaultProxy, controlplane: ControlPlane) -> None:
    proxy.inject(Fault(Answer(429, retry_after=7)))
    trust = ssl.create_default_context(cadata=controlplane.authority.decode())

    with pytest.raises(urllib.error.HTTPError) as answer:
        urllib.request.urlopen(f"{proxy.server}/version", context=trust, timeout=10)

    with answer.value:
        assert answer.value.status == 429
        assert answer.value.headers["Retry-After"] == "7"
        assert json.load(answer.value)["reason"] == "TooManyRequests"


def test_dropped_before_means_it_never_happened(proxy: FaultProxy, through: Api, api: Api, maps: str) -> None:
    proxy.inject(Fault(DropBefore(), methods=("POST",), times=1))

    with pytest.raises(OSError, match=BROKEN):
        through.create(maps, config_map("lost"))

    assert names(api, maps) == set()


def test_dropped_after_means_it_happened_unseen(proxy: FaultProxy, through: Api, api: Api, maps: str) -> None:
    proxy.inject(Fault(DropAfter(), methods=("POST",), times=1))

    with pytest.raises(OSError, match=BROKEN):
        through.create(maps, config_map("done"))

    assert names(api, maps) == {"done"}


def test_delay_holds_the_request_back(proxy: FaultProxy, through: Api, maps: str) -> None:
    proxy.inject(Fault(Delay(0.5), methods=("POST",)))
    began = time.monotonic()

    through.create(maps, config_map("late"))

    assert time.monotonic() - began >= 0.5


def test_lifted_fault_changes_no_answer(proxy: FaultProxy, through: Api, maps: str) -> None:
    proxy.lift(proxy.inject(Fault(Answer(500))))

    through.create(maps, config_map("fine"))


def create_four(api: Api, maps: str) -> None:
    for number in range(1, 5):
        api.create(maps, config_map(f"map-{number}"))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_kill_at_every_write_leaves_exactly_the_writes_up_to_it(
    after: bool, proxy: FaultProxy, through: Api, api: Api, maps: str
) -> None:
    for index in range(1, 4):
        killed = threading.Event()
        proxy.at_write(index, killed.set, path=f"{maps}(/|$)", after=after)
        with pytest.raises(OSError, match=BROKEN):
            create_four(through, maps)
        assert killed.is_set()
        done = index if after else index - 1
        assert names(api, maps) == {f"map-{number}" for number in range(1, done + 1)}
        for name in names(api, maps):
            api.delete(f"{maps}/{name}")


class Watcher(threading.Thread):
    """Follows a path until its watch ends, and keeps how it ended."""

    def __init__(self, api: Api, path: str) -> None:
        super().__init__(daemon=True)
        self._api, self._path = api, path
        self.seen: list[str] = []
        self.end: Exception | None = None

    def run(self) -> None:
        version = self._api.get(self._path)["metadata"]["resourceVersion"]
        try:
            for event in self._api.watch(self._path, version):
                self.seen.append(event["object"]["metadata"]["name"])
        except (OSError, ApiError, ValueError) as error:
            self.end = error


def test_watch_events_pass_and_a_cut_ends_them(proxy: FaultProxy, through: Api, api: Api, maps: str) -> None:
    watcher = Watcher(through, maps)
    watcher.start()
    wait_until("open watch", lambda: any("/configmaps" in watch.target for watch in proxy.open_watches), ())
    api.create(maps, config_map("seen"))
    wait_until("event", lambda: watcher.seen == ["seen"], ())

    assert proxy.cut_watches("/configmaps") == 1

    watcher.join(10)
    assert isinstance(watcher.end, OSError)
    assert proxy.open_watches == ()


def test_expired_watch_says_410(proxy: FaultProxy, through: Api, maps: str) -> None:
    watcher = Watcher(through, maps)
    watcher.start()
    wait_until("open watch", lambda: proxy.open_watches, ())

    proxy.cut_watches(expired=True)

    watcher.join(10)
    assert isinstance(watcher.end, ApiError)
    assert (watcher.end.status, watcher.end.reason) == (410, "Expired")


def test_watches_can_be_born_to_be_cut(proxy: FaultProxy, through: Api, maps: str) -> None:
    proxy.inject(Fault(CutWatch(seconds=0.2), path="/configmaps"))
    watcher = Watcher(through, maps)

    watcher.start()

    watcher.join(10)
    assert isinstance(watcher.end, OSError)


def test_watch_of_a_client_that_left_is_not_kept_open(proxy: FaultProxy, through: Api, api: Api, maps: str) -> None:
    events = through.watch(maps, api.get(maps)["metadata"]["resourceVersion"])
    api.create(maps, config_map("first"))
    next(events)
    assert len(proxy.open_watches) == 1

    events.close()

    wait_until("no open watch", lambda: not proxy.open_watches, ())


def test_outage_of_the_api_server_looks_like_one(through: Api, controlplane: ControlPlane, maps: str) -> None:
    controlplane.stop_apiserver()
    try:
        with pytest.raises(OSError, match=BROKEN):
            through.get(maps)
    finally:
        controlplane.start_apiserver()

    assert names(through, maps) == set()


def test_seed_is_printed_and_can_be_given(
    controlplane: ControlPlane, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SEED_VARIABLE, "cafe")

    with FaultProxy(controlplane) as proxy:
        assert proxy.seed == "cafe"

    assert f"{SEED_VARIABLE}=cafe" in capsys.readouterr().err


async def test_works_from_an_event_loop_too(controlplane: ControlPlane, maps: str, tmp_path: Path) -> None:
    async with FaultProxy(controlplane) as proxy:
        # blocking the loop on purpose: the proxy must not live in it
        assert names(Api(proxy.write_kubeconfig(tmp_path / "kubeconfig")), maps) == set()
