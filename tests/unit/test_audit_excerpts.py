"""The value that was read, beside its digest: short, of the fields that a check names, and never a secret."""

from __future__ import annotations

from typing import ClassVar

import pytest

from hermetic.audit.estate.observation import Lookup
from hermetic.audit.estate.questions import Body, Problem, UnreadReason
from hermetic.audit.estate.resource import Part, Reference, Resource
from hermetic.audit.evaluation.excerpts import LONGEST, evidence_of, merged
from hermetic.audit.model.findings import Evidence

SEEN = Evidence("GET /subnets/a", 200, "ab" * 32)


class Profile(Part):
    """A part of it."""

    policy: str | None = None


class Thing(Resource):
    """A resource of a test."""

    TYPE: ClassVar[str] = "Test/things"
    default_outbound_access: bool | None = None
    nat_gateway: Reference | None = None
    mode: str | None = None
    profile: Profile | None = None
    account_key: str | None = None
    disable_local_token: bool | None = None
    servers: list[str] | None = None


def thing(**properties: object) -> Thing:
    return Thing.read(Body({"id": "/things/a", "properties": properties}, (SEEN,)))


def value(look: object, *reads: str) -> str:
    (evidence,) = evidence_of([look], reads)  # type: ignore[list-item]
    return evidence.value


@pytest.mark.parametrize(
    ("properties", "reads", "expected"),
    [
        ({"defaultOutboundAccess": True}, "subnet defaultOutboundAccess", "defaultOutboundAccess: true"),
        ({}, "subnet defaultOutboundAccess", "defaultOutboundAccess: absent"),
        ({"natGateway": {"id": "/nat/a"}}, "subnet natGateway", "natGateway: /nat/a"),
        ({"servers": ["10.0.0.4"]}, "servers of the network", "servers: 10.0.0.4"),
        ({"servers": ["1", "2", "3", "4"]}, "servers", "servers: 4 entries"),
        ({"servers": []}, "servers", "servers: none"),
        ({"profile": {"policy": "none"}}, "profile.policy", "policy: none"),
        ({"profile": {"policy": "none"}}, "profile", "profile: present"),
        ({"mode": "a\nb\x1b"}, "mode", "mode: a b\ufffd"),
        ({"mode": "User"}, "another field", ""),
    ],
)
def test_fields_that_a_check_names_are_told(properties, reads, expected):
    assert value(thing(**properties), reads) == expected
    assert value(Lookup("/things/a", thing(**properties), (SEEN,)), reads) == expected


def test_a_key_is_never_told_and_a_switch_about_keys_is():
    read = thing(accountKey="c2VjcmV0", disableLocalToken=True)
    assert value(read, "accountKey", "disableLocalToken") == "disableLocalToken: true"


def test_what_could_not_be_read_has_no_value():
    assert value(Lookup("/things/a", None, (SEEN,), Problem(UnreadReason.FORBIDDEN, "no")), "mode") == ""
    assert value(thing(mode=7), "mode") == ""


def test_a_value_is_bounded():
    assert len(value(thing(mode="x" * 5000, servers=["y" * 5000]), "mode", "servers")) <= LONGEST


def test_what_a_cluster_answered_is_not_told():
    class Pod(Thing):
        SOURCE = "kube"

    assert value(Pod.read(Body({"properties": {"mode": "User"}}, (SEEN,))), "mode") == ""


def test_each_exchange_is_there_once_and_keeps_its_value():
    plain, read = SEEN, Evidence(SEEN.request, SEEN.status, SEEN.sha256, value="mode: User")
    assert plain == read
    for order in ((plain, read), (read, plain)):
        assert [evidence.value for evidence in merged(order)] == ["mode: User"]
