"""What the store keeps, from any source and in any order of news."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from hermetic.api.configuration import Configuration
from hermetic.kinds import DEPLOYMENT, POD, SERVICE, UNLABELLED_POD, Kind
from hermetic.kube.pod_warnings import REMEMBERED_WARNINGS, PodWarnings
from hermetic.kube.projections import as_utc
from hermetic.kube.store import Store
from hermetic.kube.store_lists import relist
from hermetic.kube.watch_specs import STORE_WATCHES, WatchSpec
from tests.fakes.cluster_in_memory import ClusterInMemory
from tests.fakes.virtual_loop import virtually
from tests.scenarios import a_baked_model

Manifest = dict[str, Any]

LLAMA = ("team-a", "llama")
WHERE = {"namespace": "team-a", "name": "llama"}
LABELS = {"app.kubernetes.io/managed-by": "hermetic", "hermetic.dev/modeldeployment": "llama"}

OURS = {"kind": "ModelDeployment", "name": "llama", "uid": "uid-of-llama", "controller": True}


def the_model(name: str = "llama", *, address: str | None = None, version: int = 1, uid: str = "") -> Manifest:
    balancer = {"address": address} if address else {}
    manifest = a_baked_model(name, endpoint={"internalLoadBalancer": balancer})
    manifest["metadata"] |= {
        "namespace": "team-a",
        "uid": uid or f"uid-of-{name}",
        "resourceVersion": str(version),
        "generation": 1,
        "creationTimestamp": f"2026-11-21T12:00:{len(name):02}Z",
    }
    return manifest


def a_child(kind: str = "Deployment", *, version: int, uid: str = "uid-1", **metadata: Any) -> Manifest:
    head = {"name": "llama", "namespace": "team-a", "uid": uid, "resourceVersion": str(version), "labels": LABELS}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": head | metadata, "spec": {"version": version}}


@pytest.fixture
def store() -> Store:
    store = Store(Configuration())
    store.put(the_model())
    return store


def version_of(store: Store, kind: str = "Deployment") -> str | None:
    snapshot = store.snapshot(LLAMA)
    assert snapshot is not None
    live = snapshot.children.get((kind, "llama"))
    return None if live is None else str(live["metadata"]["resourceVersion"])


def test_an_older_version_never_replaces_a_newer_one(store: Store) -> None:
    store.put(a_child(version=5))

    assert store.put(a_child(version=4)) == frozenset()
    assert store.put(a_child(version=5)) == frozenset()

    assert version_of(store) == "5"


def test_a_late_answer_does_not_bring_back_what_was_seen_to_go(store: Store) -> None:
    store.put(a_child(version=5))
    store.drop(a_child(version=8))

    assert store.put(a_child(version=7)) == frozenset()

    assert version_of(store) is None


def test_an_object_that_left_the_selection_is_taken_in_again_when_it_returns(store: Store) -> None:
    store.put(a_child(version=5))
    store.drop(a_child(version=6))  # what a watch says when our label was taken away

    assert store.put(a_child(version=7)) == {LLAMA}

    assert version_of(store) == "7"


def test_an_object_outside_the_selection_is_taken_in_when_it_was_looked_up(store: Store) -> None:
    store.put(a_child(version=5))
    stripped = a_child(version=6, labels={}, ownerReferences=[OURS])
    store.drop(stripped)

    assert store.put(stripped) == {LLAMA}

    assert version_of(store) == "6"


def test_late_news_of_leaving_the_selection_does_not_undo_the_correction(store: Store) -> None:
    store.put(a_child(version=5))
    store.put(a_child(version=7))  # the answer to our own write

    assert store.drop(a_child(version=6)) == frozenset()

    assert version_of(store) == "7"


def test_late_news_of_a_predecessor_does_not_hide_its_successor(store: Store) -> None:
    store.put(a_child(version=5, uid="old"))
    store.put(a_child(version=9, uid="new"))

    # events of different objects come in any order, even when they bear one name
    assert store.put(a_child(version=6, uid="old", deletionTimestamp="2026-11-21T12:00:00Z")) == frozenset()
    assert store.drop(a_child(version=8, uid="old")) == frozenset()

    assert version_of(store) == "9"


def test_the_owner_is_told_when_its_label_is_taken_from_a_child(store: Store) -> None:
    store.put(a_child(version=5))

    assert store.put(a_child(version=6, labels={"app.kubernetes.io/managed-by": "hermetic"})) == {LLAMA}

    assert version_of(store) is None


def test_a_service_that_belongs_to_no_model_any_more_is_forgotten_and_returns_with_its_label(store: Store) -> None:
    """All Services are watched: nothing says DELETED when a label is taken off."""
    service = {"kind": "Service", "apiVersion": "v1"}
    store.put(a_child(version=5) | service)
    assert store.put(a_child(version=6, labels={}) | service) == {LLAMA}
    assert (store.count(SERVICE), version_of(store, "Service")) == (0, None)
    store.put(a_child(version=5) | service)
    assert store.count(SERVICE) == 0
    store.put(a_child(version=7) | service)
    assert version_of(store, "Service") == "7"


def test_a_child_belongs_to_the_controller_that_it_names_whatever_its_labels_say(store: Store) -> None:
    mislabelled = {**LABELS, "hermetic.dev/modeldeployment": "other"}

    assert store.put(a_child(version=5, labels=mislabelled, ownerReferences=[OURS])) == {LLAMA}

    assert version_of(store) == "5"


def test_a_deployment_that_waits_for_an_address_is_queued_when_it_becomes_free(store: Store) -> None:
    store.put(the_model("first", address="10.0.0.9", version=2))
    store.put(the_model("second", address="10.0.0.9", version=3))
    second = store.snapshot(("team-a", "second"))
    assert second is not None
    assert second.address_holder == "team-a/first"

    concerned = store.put(the_model("first", address="10.0.0.10", version=4))

    assert ("team-a", "second") in concerned
    after = store.snapshot(("team-a", "second"))
    assert after is not None
    assert after.address_holder == ""


def test_a_relist_forgets_what_vanished_unseen_and_tells_its_owner(store: Store) -> None:
    cluster = ClusterInMemory()
    remaining_child, lost = a_child(version=1, name="kept", uid="a"), a_child(version=2, name="lost", uid="b")
    for child in (remaining_child, lost):
        store.put(cluster.put(child))
    cluster.remove("Deployment", "team-a", "lost", seen=False)

    concerned: set[tuple[str, str]] = set()
    virtually(lambda: relist(cluster, store, WatchSpec(DEPLOYMENT), listed=concerned.update))

    snapshot = store.snapshot(LLAMA)
    assert snapshot is not None
    assert [name for _, name in snapshot.children] == ["kept"]
    assert concerned == {LLAMA}


def test_a_list_that_begins_anew_half_way_forgets_what_vanished_meanwhile(store: Store) -> None:
    """Of the pages before it the API server says nothing any more: what they held may be gone."""

    class Restarted(ClusterInMemory):
        async def pages(self, kind: Kind, **chosen: Any) -> AsyncIterator[tuple[list[Manifest], str]]:
            async for page, version in super().pages(kind, **chosen):
                yield page, version
            self.remove("Deployment", "team-a", "lost", seen=False)
            async for page, version in super().pages(kind, **chosen):
                yield page, version

    cluster = Restarted()
    for name in ("kept", "lost"):
        cluster.put(a_child(version=1, name=name, uid=name))

    concerned: set[tuple[str, str]] = set()
    virtually(lambda: relist(cluster, store, WatchSpec(DEPLOYMENT), listed=concerned.update))

    snapshot = store.snapshot(LLAMA)
    assert snapshot is not None
    assert [name for _, name in snapshot.children] == ["kept"]
    assert concerned == {LLAMA}


def test_a_list_of_one_namespace_forgets_nothing_of_another(store: Store) -> None:
    store.put(a_child(version=3))
    assert store.sweep(DEPLOYMENT, set(), 50, namespace="team-b") == frozenset()
    assert version_of(store) == "3"
    assert store.sweep(DEPLOYMENT, set(), 50, namespace="team-a") == {LLAMA}


def warned_pod(number: object) -> dict[str, Any]:
    """The pod that `warning(name="p-NUMBER", uid="u-NUMBER")` is about."""
    return {"metadata": {"namespace": "team-a", "name": f"p-{number}", "uid": f"u-{number}"}}


def test_of_warnings_of_unknown_pods_the_one_that_was_not_repeated_longest_makes_room() -> None:
    warnings = PodWarnings()
    for number in range(2, REMEMBERED_WARNINGS + 2):
        warnings.put(warning(number, name=f"p-{number}", uid=f"u-{number}"))
    warnings.put(warning(REMEMBERED_WARNINGS + 2, "again", name="p-2", uid="u-2"))
    warnings.put(warning(REMEMBERED_WARNINGS + 3, name="p-new", uid="u-new"))
    pods = [warned_pod(number) for number in (2, 3, "new")]
    assert warnings.of(pods).keys() == {"u-2", "u-new"}


def test_of_objects_that_are_gone_the_one_that_went_longest_ago_is_forgotten(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermetic.kube.departures.REMEMBERED_DEPARTURES", 2)
    for version, name in enumerate(("first", "second", "first", "third"), start=1):
        store.put(a_child(version=2 * version, name=name, uid=name))
        store.drop(a_child(version=2 * version + 1, name=name, uid=name))
    assert store.put(a_child(version=1, name="first", uid="first")) == frozenset()
    assert store.put(a_child(version=1, name="third", uid="third")) == frozenset()
    assert store.put(a_child(version=1, name="second", uid="second")) == {LLAMA}


def test_a_relist_keeps_what_is_younger_than_itself(store: Store) -> None:
    store.put(a_child(version=50))

    assert store.sweep(DEPLOYMENT, set(), 49) == frozenset()
    assert version_of(store) == "50"


def test_a_warning_that_overtakes_its_pod_is_kept_for_it(store: Store) -> None:
    about = {
        "involvedObject": {"kind": "Pod", **WHERE, "uid": "uid-1"},
        "reason": "FailedMount",
        "message": "no such share",
    }
    metadata = {"namespace": WHERE["namespace"], "name": "e", "uid": "e", "resourceVersion": "3"}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": metadata}

    assert store.put(event | about) == frozenset()
    store.put(a_child(POD.kind, version=4))

    snapshot = store.snapshot(LLAMA)
    assert snapshot is not None
    assert snapshot.warnings["uid-1"].message == "no such share"


def warning(number: int, message: str = "no such share", written_in: str = "", **about: str) -> dict[str, Any]:
    """A warning Event about the pod, or about something else, in the namespace of that or in another."""
    subject = {"kind": "Pod", **WHERE, "uid": "uid-1", **about}
    name, namespace = f"e-{number}", written_in or subject["namespace"]
    metadata = {"namespace": namespace, "name": name, "uid": name, "resourceVersion": str(number)}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": metadata,
        "involvedObject": subject,
        "reason": "FailedMount",
        "message": message,
    }


def warned(store: Store) -> str:
    """What the newest warning about the pod says; "" without one."""
    snapshot = store.snapshot(LLAMA)
    assert snapshot is not None
    return snapshot.warnings["uid-1"].message if "uid-1" in snapshot.warnings else ""


@pytest.mark.parametrize("other", [{"namespace": "team-b"}, {"name": "another"}, {"written_in": "team-b"}])
def test_a_warning_that_names_the_uid_of_a_pod_of_others_counts_for_nothing(
    store: Store, other: dict[str, str]
) -> None:
    store.put(a_child(POD.kind, version=1))
    store.put(warning(2))
    assert store.put(warning(3, "kubectl apply -f https://evil.example/", **other)) == frozenset()
    assert warned(store) == "no such share"


def test_a_flood_of_large_warnings_is_cut_and_displaces_none_about_a_pod_of_ours(store: Store) -> None:
    store.put(a_child(POD.kind, version=1))
    store.put(warning(2))
    for number in range(3, REMEMBERED_WARNINGS + 1000):
        store.put(warning(number, "x" * 100_000, namespace="team-b", name=f"p-{number}", uid=f"u-{number}"))
    assert warned(store) == "no such share"


def test_what_is_kept_of_a_flood_of_large_warnings_is_bounded() -> None:
    warnings, numbers = PodWarnings(), range(REMEMBERED_WARNINGS + 1000)
    for number in numbers:
        warnings.put(warning(number, "x" * 100_000, name=f"p-{number}", uid=f"u-{number}"))
    warnings_held = warnings.of(warned_pod(number) for number in numbers)
    assert len(warnings_held) == REMEMBERED_WARNINGS
    assert sum(len(pod_warning.message) + len(pod_warning.reason) for pod_warning in warnings_held.values()) < 6_000_000


def test_a_warning_is_one_line_without_what_a_terminal_obeys(store: Store) -> None:
    store.put(a_child(POD.kind, version=1))
    store.put(warning(2, "no share\nready  yes  Serving\x1b[2J \u202e"))
    assert warned(store) == "no share ready yes Serving\ufffd[2J \ufffd"


def test_a_strangers_object_with_our_labels_is_seen_so_that_it_is_not_overwritten(store: Store) -> None:
    assert store.put(a_child(SERVICE.kind, version=4)) == {LLAMA}
    assert version_of(store, SERVICE.kind) == "4"


def test_a_change_of_a_node_reads_no_deployment_that_waits(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        store.put(the_model(f"m{number}", address="10.0.0.7", version=number + 10))
    ready = the_model("ready", version=100)
    ready["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}
    store.put(ready)

    def read(_: object) -> None:
        raise AssertionError("a ModelDeployment was read")

    monkeypatch.setattr("hermetic.kube.store_entry.parse", read)
    node = {"kind": "Node", "metadata": {"name": "n", "uid": "n", "resourceVersion": "200"}, "status": {}}
    waiting = store.put(node)
    assert waiting == {LLAMA, *(("team-a", f"m{number}") for number in range(50))}
    assert store.drop({**node, "metadata": {**node["metadata"], "resourceVersion": "201"}}) == waiting


def test_who_asks_for_an_address_follows_the_spec(store: Store) -> None:
    first, second = the_model("a", address="10.0.0.7", version=10), the_model("b", address="10.0.0.7", version=11)
    store.put(first)
    assert store.put(second) == {("team-a", "a"), ("team-a", "b")}
    assert store.put(the_model("b", address="10.0.0.8", version=12)) == {("team-a", "a"), ("team-a", "b")}
    assert store.put(the_model("a", address="10.0.0.7", version=13)) == {("team-a", "a")}
    store.drop(the_model("a", address="10.0.0.7", version=14))
    assert store.put(the_model("b", address="10.0.0.7", version=15)) == {("team-a", "b")}


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_a_moment_without_a_zone_is_one_of_utc(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert as_utc(datetime(2026, 1, 1, 12)) == datetime(2026, 1, 1, 12, tzinfo=UTC)  # noqa: DTZ001 - without one
    finally:
        monkeypatch.undo()
        time.tzset()


# ---------------------------------------------------------------------- pods without our labels

SPEC = {"serviceAccountName": "llama", "containers": [{"name": "engine", "image": "x"}]}
UNLABELLED = next(watched for watched in STORE_WATCHES if watched.kind is UNLABELLED_POD)


def a_pod(version: int, *, labels: dict[str, str] = LABELS, uid: str = "pod-1", **spec: Any) -> Manifest:
    metadata = {"name": f"llama-5d9c-{uid}", "namespace": "team-a", "uid": uid, "resourceVersion": str(version)}
    status = {"phase": "Running", "podIP": "10.244.0.9"}
    return {"kind": "Pod", "metadata": {**metadata, "labels": labels}, "spec": {**SPEC, **spec}, "status": status}


def pods(store: Store, key: tuple[str, str] = LLAMA) -> list[str]:
    snapshot = store.snapshot(key)
    assert snapshot is not None
    return [pod["metadata"]["uid"] for pod in snapshot.pods]


LOST: dict[str, dict[str, str]] = {
    "all": {},
    "that of the watch": {"hermetic.dev/modeldeployment": "llama"},
    "both changed": {"hermetic.dev/modeldeployment": "x", "app.kubernetes.io/managed-by": "helm"},
}


@pytest.mark.parametrize("labels", LOST.values(), ids=list(LOST))
@pytest.mark.parametrize("is_last", [True, False], ids=["seen to go before", "seen to go after"])
def test_a_pod_whose_labels_are_taken_off_is_seen_on(store: Store, labels: dict[str, str], *, is_last: bool) -> None:
    """The watch of labelled pods reports it as a deletion at the same version, before or after the other watch."""
    store.put(a_pod(5))
    if is_last:
        assert LLAMA in store.drop(a_pod(8))
    assert LLAMA in store.put(a_pod(8, labels=labels))
    store.drop(a_pod(8))

    assert pods(store) == ["pod-1"]


def test_a_pod_that_keeps_only_the_label_by_which_it_is_watched_is_still_of_its_model(store: Store) -> None:
    store.put(a_pod(5))
    assert LLAMA in store.put(a_pod(8, labels={"app.kubernetes.io/managed-by": "hermetic"}))
    assert pods(store) == ["pod-1"]


def test_a_pod_whose_labels_are_put_back_is_one_pod(store: Store) -> None:
    store.put(a_pod(5))
    store.drop(a_pod(8))
    store.put(a_pod(9))
    store.put(a_pod(8, labels={}))
    store.drop(a_pod(9, labels={}))

    assert pods(store) == ["pod-1"]
    store.drop(a_pod(10))
    assert pods(store) == []
    assert (store.count(POD), store.count(UNLABELLED_POD)) == (0, 0)


def test_a_pod_whose_label_is_put_back_is_seen_after_a_list_of_pods_without_it(store: Store) -> None:
    """The list at version 9 shows that it is gone from there, before the watch of labelled pods reports version 8."""
    store.put(a_pod(5, labels={}))
    store.sweep(UNLABELLED_POD, set(), 9)
    store.put(a_pod(8))

    assert pods(store) == ["pod-1"]


def test_a_pod_that_left_every_selection_is_forgotten_as_of_either_part(store: Store) -> None:
    """A watch of all pods gets the change, with labels as they are now, and not of a deletion."""
    store.put(a_pod(5))
    assert store.holds(a_pod(8, labels={}))
    assert LLAMA in store.drop(a_pod(8, labels={}))
    assert pods(store) == []
    assert not store.holds(a_pod(8, labels={}))


def test_a_pod_that_is_given_the_label_of_another_model_is_seen_with_both(store: Store) -> None:
    store.put(the_model("b"))
    stolen = a_pod(5, labels={**LABELS, "hermetic.dev/modeldeployment": "b"})

    assert store.put(stolen) == {LLAMA, ("team-a", "b")}

    assert pods(store) == pods(store, ("team-a", "b")) == ["pod-1"]
    assert store.drop({**stolen, "metadata": {**stolen["metadata"], "resourceVersion": "6"}}) == {
        LLAMA,
        ("team-a", "b"),
    }
    assert pods(store) == pods(store, ("team-a", "b")) == []


OTHERS: dict[str, dict[str, Any]] = {
    "default account": {"serviceAccountName": "default"},
    "no account": {"serviceAccountName": None},
    "other containers": {"containers": [{"name": "main", "image": "x"}]},
}


@pytest.mark.parametrize("spec", OTHERS.values(), ids=list(OTHERS))
def test_of_pods_of_others_nothing_is_kept(store: Store, spec: dict[str, Any]) -> None:
    assert store.put(a_pod(5, labels={}, **spec)) == frozenset()
    assert store.count(UNLABELLED_POD) == 0


async def test_a_list_of_one_part_of_the_pods_forgets_none_of_the_other(store: Store) -> None:
    cluster = ClusterInMemory()
    cluster.put({**a_pod(1), "metadata": {"name": "one", "namespace": "team-a", "labels": LABELS}})
    cluster.put({**a_pod(1), "metadata": {"name": "two", "namespace": "team-a", "labels": {}}})
    for watched in (UNLABELLED, WatchSpec(POD, label_selector="app.kubernetes.io/managed-by=hermetic"), UNLABELLED):
        await relist(cluster, store, watched, listed=lambda _: None)

    assert len(pods(store)) == 2
    cluster.remove("Pod", "team-a", "two")
    await relist(cluster, store, UNLABELLED, listed=lambda _: None)
    assert len(pods(store)) == 1


# ---------------------------------------------------------------------- changes that no decision reads


@pytest.mark.parametrize(
    "extra",
    [{"finalizers": ["x"]}, {"annotations": {"note": "seen"}}, {"managedFields": []}, {"labels": {**LABELS, "t": "a"}}],
)
def test_a_child_of_which_nothing_that_is_kept_changed_concerns_no_model(store: Store, extra: dict[str, Any]) -> None:
    child = {**a_child("NetworkPolicy", version=5, ownerReferences=[OURS]), "spec": {}}
    assert store.put(child) == {LLAMA}
    later = {**child, "metadata": {**child["metadata"], "resourceVersion": "6", **extra}}
    assert store.put(later) == frozenset()
    changed = {**later, "metadata": {**later["metadata"], "resourceVersion": "7"}, "spec": {"egress": [{}]}}
    assert store.put(changed) == {LLAMA}


def test_a_successor_of_a_child_with_the_same_content_concerns_its_model(store: Store) -> None:
    child = {**a_child("NetworkPolicy", version=5, ownerReferences=[OURS]), "spec": {}}
    store.put(child)
    successor = {**child, "metadata": {**child["metadata"], "uid": "uid-2", "resourceVersion": "9"}}
    assert store.put(successor) == {LLAMA}


def test_a_label_on_a_model_is_reason_enough_to_reconcile_it(store: Store) -> None:
    assert store.put(the_model(version=2)) == {LLAMA}


# ---------------------------------------------------------------------- the status that is being written


def reporting(status: dict[str, Any], *, version: int, replicas: int = 1) -> Manifest:
    model = the_model(version=version)
    return {**model, "spec": {**model["spec"], "replicas": replicas}, "status": status}


STATUS: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "False", "reason": "Progressing"}]}


def test_the_status_that_is_being_written_is_no_news_although_its_event_comes_first(store: Store) -> None:
    store.put(reporting({}, version=2))
    with store.expected_statuses.expecting(LLAMA, STATUS):
        assert store.put(reporting(STATUS, version=3)) == frozenset()
    assert store.manifest(LLAMA) == reporting(STATUS, version=3)


def test_another_status_than_the_one_that_is_being_written_is_news(store: Store) -> None:
    store.put(reporting({}, version=2))
    with store.expected_statuses.expecting(LLAMA, STATUS):
        assert store.put(reporting({"conditions": []}, version=3)) == {LLAMA}


def test_a_spec_that_changes_while_its_status_is_written_is_news(store: Store) -> None:
    store.put(reporting({}, version=2))
    with store.expected_statuses.expecting(LLAMA, STATUS):
        assert store.put(reporting(STATUS, version=3, replicas=2)) == {LLAMA}


def test_after_the_write_the_same_status_is_news_again(store: Store) -> None:
    store.put(reporting({}, version=2))
    with store.expected_statuses.expecting(LLAMA, STATUS):
        pass
    assert store.put(reporting(STATUS, version=3)) == {LLAMA}


def test_the_status_that_is_being_written_still_concerns_those_that_ask_for_the_same_address(store: Store) -> None:
    mine = the_model(address="10.0.0.7", version=2)
    store.put(mine)
    store.put(the_model("b", address="10.0.0.7", version=3))
    with store.expected_statuses.expecting(LLAMA, STATUS):
        answer = {**mine, "metadata": {**mine["metadata"], "resourceVersion": "4"}, "status": STATUS}
        assert store.put(answer) == {("team-a", "b")}
