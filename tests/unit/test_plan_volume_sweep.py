"""Which PersistentVolumes are removed: only ours, only when nothing can use them any more, never data."""

from __future__ import annotations

from typing import Any

from hermetic.plan.volume_sweep import volumes_to_remove
from tests.renderings import OWNER_UID
from tests.scenarios import a_share_model
from tests.snapshots import living, rendered

CHILDREN = rendered(a_share_model())
NAME = CHILDREN["PersistentVolume"]["metadata"]["name"]
CLAIM = ("inference", CHILDREN["PersistentVolumeClaim"]["metadata"]["name"])
WANTED = {OWNER_UID: NAME}


def a_volume(*, phase: str = "Bound", claim_uid: str = "claim-1", **metadata: Any) -> dict[str, Any]:
    volume = living(CHILDREN["PersistentVolume"])
    volume["status"] = {"phase": phase}
    volume["spec"]["claimRef"]["uid"] = claim_uid
    volume["metadata"] |= metadata
    return volume


def removed(volume: dict[str, Any], *, claims: dict | None = None, wanted: dict | None = None) -> bool:
    live_claims = {CLAIM: "claim-1"} if claims is None else claims
    removals = volumes_to_remove([volume], live_claims, lambda uid: (wanted or {}).get(uid, ""))
    return list(removals) == [volume]


def test_bound_volume_stays_while_its_claim_lives_wanted_or_not():
    assert not removed(a_volume(), wanted=WANTED)
    assert not removed(a_volume())


def test_volume_goes_when_its_claim_and_its_owner_are_gone():
    assert removed(a_volume(phase="Released"), claims={})
    assert removed(a_volume(phase="Available", claim_uid=""), claims={})


def test_volume_that_is_still_bound_as_far_as_we_know_waits_for_the_news_of_its_release():
    assert not removed(a_volume(), claims={})


def test_volume_that_waits_for_its_claim_stays_while_its_owner_wants_it():
    assert not removed(a_volume(phase="Available", claim_uid=""), claims={}, wanted=WANTED)


def test_released_volume_goes_even_when_it_is_wanted_because_it_can_never_be_bound_again():
    assert removed(a_volume(phase="Released", claim_uid="claim-0"), wanted=WANTED)
    assert removed(a_volume(phase="Released"), claims={}, wanted=WANTED)


def test_volume_of_an_earlier_spec_goes_once_its_claim_is_gone():
    earlier = {OWNER_UID: "hermetic-inference-llama-another"}
    assert not removed(a_volume(), wanted=earlier)
    assert removed(a_volume(phase="Released"), claims={}, wanted=earlier)


def test_foreign_volume_is_never_touched():
    foreign = a_volume(phase="Released", labels={"app.kubernetes.io/managed-by": "hermetic"})
    assert not removed(foreign, claims={})


def test_volume_that_is_going_is_not_told_to_go_again():
    assert not removed(a_volume(phase="Released", deletionTimestamp="2026-11-24T12:00:00Z"), claims={})


def test_every_volume_keeps_its_data():
    assert CHILDREN["PersistentVolume"]["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
