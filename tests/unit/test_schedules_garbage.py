"""Which objects schedules of faults wait longer for: those that the garbage collector of Kubernetes will try again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios import Manifest
from tests.schedules.garbage import history, is_backing_off

OWNER, CHILD = "f7ff46d5-d413-47b2-a0bd-cae8c4309272", "ecbf3091-d27c-43dc-95b3-9b98f4b04450"
AT = "1123 14:04:06.1 7 garbagecollector.go"
OF_CHILD = f'item="[v1/ServiceAccount, namespace: a, name: m, uid: {CHILD}]"'
OF_OWNER = f'item="[hermetic.dev/v1alpha1/ModelDeployment, namespace: a, name: m, uid: {OWNER}]"'
NODE = f'&node{{identity:{{UID:"{CHILD}"}}, Namespace:"a"}}, dependentsLock:{{w:1}}, owners:{{}}}}'
SEEN = f'I1123 14:04:06.1 7 graph_builder.go:716] "GraphBuilder process object" uid="{CHILD}" eventType="add"'
TRIED = f'I{AT}:506] "Processing item" {OF_CHILD} virtual=false'
BROKEN = f'E{AT}:365] "Unhandled Error" err="error syncing item {NODE}: connection refused"'
UNMAPPED = f'I{AT}:363] "error syncing item" {OF_OWNER} err="unable to get REST mapping"'
UNSEEN = f'I{AT}:373] "item hasn\'t been observed via informer yet" {OF_OWNER}'
KEPT = f'I{AT}:577] "item has at least one existing owner, will not garbage collect" {OF_CHILD}'
OTHER = f'I{AT}:506] "Processing item" item="[v1/Service, namespace: b, uid: 1]"'


def an_object(uid: str = CHILD) -> Manifest:
    metadata = {"name": "m", "uid": uid, "creationTimestamp": "2026-11-23T14:04:06Z"}
    return {"metadata": {**metadata, "ownerReferences": [{"uid": OWNER}]}}


@pytest.mark.parametrize(
    ("lines", "waits"),
    [
        pytest.param([SEEN, TRIED, BROKEN, OTHER], True, id="an attempt failed"),
        pytest.param([SEEN, UNMAPPED, OTHER], True, id="its owner's kind was not known"),
        pytest.param([SEEN, UNSEEN], True, id="its owner was there"),
        pytest.param([BROKEN, TRIED, KEPT], False, id="it was decided to keep it"),
        pytest.param([TRIED, BROKEN, TRIED], True, id="the next attempt is under way"),
        pytest.param([SEEN, TRIED], False, id="the first attempt never ended"),
        pytest.param([SEEN, OTHER], False, id="it was seen and never tried"),
        pytest.param([], False, id="it was never seen"),
    ],
)
def test_only_what_will_be_tried_again_is_waited_for(lines: list[str], waits: bool, tmp_path: Path) -> None:
    log = tmp_path / "kube-controller-manager.log"
    log.write_text("\n".join(lines))
    assert is_backing_off(log, [an_object()]) is waits
    assert not is_backing_off(log, [])
    assert not is_backing_off(log, [an_object(), {"metadata": {"uid": "another"}}])


def test_the_history_of_an_object_is_what_was_logged_about_it_and_its_owner(tmp_path: Path) -> None:
    log = tmp_path / "kube-controller-manager.log"
    log.write_text("\n".join([SEEN, UNSEEN, OTHER, TRIED, BROKEN]))
    head, *lines = history(log, [("serviceaccounts/m", an_object())])
    assert head.startswith("serviceaccounts/m of 2026-11-23T14:04:06Z")
    assert OWNER in head
    assert [line.strip() for line in lines[:3]] == [SEEN, UNSEEN, TRIED]
    assert lines[3].endswith('}: connection refused"')
    assert "dependentsLock" not in lines[3]
    assert len(lines) == 4
