"""Since when a subnet is known to be private: the attestation before, the activity log, and what a person states."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hermetic.audit.egress.private_since import Basis, Since, VoidProof, private_since, proven_since, statement
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup
from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.model.findings import Finding, Severity, Verdict
from hermetic.audit.policy.declarations import AttestedPrivate, DeclaredPrivateSubnet, Policy
from hermetic.audit.result.private_subnets import private_subnets, statement_notes
from tests.audit_estates import GROUP, NODES, VNET, FakeAzure, small_cluster

Q = datetime(2026, 11, 20, 12, tzinfo=UTC)
"""When the log was asked; it is trusted up to an hour before."""
DIGEST = "sha256:" + "ab" * 32
SUBNET_WRITE, VNET_WRITE = "Microsoft.Network/virtualNetworks/subnets/write", "Microsoft.Network/virtualNetworks/write"


def ago(hours: float) -> datetime:
    return Q - timedelta(hours=hours)


def logged(*writes: float, resource: str = NODES, operation: str = SUBNET_WRITE, count: int = 5) -> FakeAzure:
    """A sealed cluster whose log shows these writes, in hours before it was asked, and some other events."""
    events = [{"at": ago(write).isoformat(), "operation": operation, "resource": resource.upper()} for write in writes]
    log_body = {"since": ago(89 * 24).isoformat(), "until": Q.isoformat(), "count": count, "events": events}
    return small_cluster().put(GROUP, log_body)


def attested(since: float, observed: float) -> Policy:
    """An earlier attestation: private since, and last seen, so many hours before; its audit took a minute."""
    before = AttestedPrivate(NODES, ago(since), ago(observed) - timedelta(minutes=1), ago(observed), DIGEST)
    return Policy(attested_private=(before,))


def stated(since: float, through: float | None = None) -> Policy:
    statement_fields = {"subnet": NODES, "since": ago(since), "statedBy": "network-team"}
    if through is not None:
        statement_fields["through"] = ago(through)
    return Policy.model_validate({"subnetsPrivateSince": [statement_fields]})


def known(azure: FakeAzure, policy: Policy) -> Since | VoidProof | None:
    answers: list[Since | VoidProof | None] = []

    def judge(estate: Estate) -> None:
        answers[:] = [private_since(estate, policy, Lookup(NODES, None))]

    azure.settled(judge)
    return answers[0]


@pytest.mark.parametrize(
    ("writes", "since", "observed", "expected"),
    [
        ((), 48, 24, (89 * 24, Basis.ACTIVITY_LOG)),  # no write in the window: private since it begins
        ((500,), 48, 24, (500, Basis.ACTIVITY_LOG)),  # the last write before it was seen
        ((700, 500), 48, 24, (500, Basis.ACTIVITY_LOG)),
        ((36,), 48, 24, (36, Basis.ACTIVITY_LOG)),  # between two audits: the moment moves
        ((12,), 48, 24, None),  # after the last audit: flipped, for all that is known
        ((24.005,), 48, 24, None),  # while the last audit was going on
        ((0.5,), 48, 24, None),
        ((), 48, 0.5, (48, Basis.ATTESTATION)),  # the audit is younger than what the log shows
        ((500,), 48, 0.5, (48, Basis.ATTESTATION)),
        ((36,), 48, 0.5, None),
        ((), 90 * 24, 24, (90 * 24, Basis.ATTESTATION)),  # known from before the window
    ],
)
def test_the_log_is_held_against_the_attestation_before(
    writes: tuple[float, ...], since: float, observed: float, expected: tuple[float, Basis] | None
) -> None:
    privacy = known(logged(*writes), attested(since, observed))
    if expected is None:
        assert isinstance(privacy, VoidProof)
        assert "write" in privacy.message
    else:
        assert isinstance(privacy, Since)
        assert (privacy.at, privacy.basis) == (ago(expected[0]), expected[1])
        assert any(evidence.sha256 == "ab" * 32 for look in privacy.observations for evidence in look.evidence)


@pytest.mark.parametrize("resource", [NODES, VNET, VNET.lower(), f"{VNET}/"])
@pytest.mark.parametrize(
    "operation", [SUBNET_WRITE, VNET_WRITE, "Microsoft.Network/virtualNetworks/subnets/delete", "x/y"]
)
def test_any_operation_on_the_subnet_or_its_network_counts_as_a_write(resource: str, operation: str) -> None:
    assert isinstance(known(logged(12, resource=resource, operation=operation), attested(48, 24)), VoidProof)


@pytest.mark.parametrize(
    ("resource", "operation"),
    [
        (f"{VNET}/subnets/other", SUBNET_WRITE),
        (f"{VNET}/virtualNetworkPeerings/p", "Microsoft.Network/virtualNetworks/virtualNetworkPeerings/write"),
        (NODES, "Microsoft.Network/virtualNetworks/subnets/join/action"),
    ],
)
def test_what_leaves_the_subnet_as_it_is_does_not_count(resource: str, operation: str) -> None:
    assert isinstance(known(logged(12, resource=resource, operation=operation), attested(48, 24)), Since)


@pytest.mark.parametrize(
    "reason", [UnreadReason.FORBIDDEN, UnreadReason.TRUNCATED, UnreadReason.UNAVAILABLE, UnreadReason.UNREADABLE]
)
def test_a_log_that_was_not_read_whole_says_nothing(reason: UnreadReason) -> None:
    azure = logged(12).refuse(GROUP, reason)
    assert known(azure, attested(48, 24)) == known(small_cluster(), attested(48, 24))
    assert isinstance(known(azure, attested(48, 24)), Since)
    assert isinstance(known(azure, stated(48)), Since)


def test_a_log_without_any_event_is_not_known_to_be_one() -> None:
    privacy = known(logged(count=0), attested(48, 24))
    assert isinstance(privacy, Since)
    assert (privacy.at, privacy.basis) == (ago(48), Basis.ATTESTATION)


def test_the_log_alone_knows_no_moment() -> None:
    """A subnet that was made private a minute ago looks like one that was never written."""
    assert known(logged(500), Policy()) is None


@pytest.mark.parametrize(
    ("writes", "since", "through", "holds"),
    [((500,), 48, None, True), ((12,), 48, None, False), ((12,), 48, 10, True), ((12, 9), 48, 10, False)],
)
def test_a_statement_holds_until_a_later_write_that_it_does_not_cover(
    writes: tuple[float, ...], since: float, through: float | None, holds: bool
) -> None:
    privacy = known(logged(*writes), stated(since, through))
    assert isinstance(privacy, Since if holds else VoidProof)
    if isinstance(privacy, Since):
        assert (privacy.at, privacy.basis) == (ago(since), Basis.POLICY)


def test_what_a_person_states_is_not_handed_on_as_known() -> None:
    both = Policy(
        subnets_private_since=(DeclaredPrivateSubnet(subnet=NODES, since=ago(500), stated_by="network-team"),)
    )
    estate = small_cluster().settled(lambda small_estate: private_subnets(small_estate, both, Q))
    [private_subnet] = private_subnets(estate, both, Q)
    assert (private_subnet.subnet, private_subnet.since, private_subnet.basis) == (NODES, Q, Basis.AUDIT)
    assert (private_subnet.stated_since, private_subnet.stated_by) == (ago(500), "network-team")


@pytest.mark.parametrize("change", [{"defaultOutboundAccess": None}, {"defaultOutboundAccess": True}])
def test_a_subnet_that_is_not_private_is_not_named_so_its_chain_begins_anew(change: dict[str, Any]) -> None:
    azure = small_cluster().change(NODES, **change)
    policy = attested(48, 24)
    assert private_subnets(azure.settled(lambda settling: private_subnets(settling, policy, Q)), policy, Q) == ()
    unread = small_cluster().refuse(NODES)
    assert private_subnets(unread.settled(lambda settling: private_subnets(settling, policy, Q)), policy, Q) == ()


def test_the_earliest_moment_is_handed_on_until_a_write_voids_it() -> None:
    for azure, moment, basis in (
        (small_cluster(), ago(48), Basis.ATTESTATION),
        (logged(500), ago(500), Basis.ACTIVITY_LOG),
        (logged(12), Q, Basis.AUDIT),
    ):
        policy = attested(48, 24)
        estate = azure.settled(
            lambda settling, policy=policy: (
                proven_since(settling, policy, NODES),
                private_subnets(settling, policy, Q),
            )
        )
        [private_subnet] = private_subnets(estate, policy, Q)
        assert (private_subnet.since, private_subnet.basis) == (moment, basis)


@pytest.mark.parametrize(("count", "named"), [(1, "snet-0 has"), (3, "snet-2 have"), (7, "snet-2 and 4 more have")])
def test_what_passes_by_a_statement_is_one_sentence_however_many_subnets_it_names(count: int, named: str) -> None:
    subnets = [f"{VNET}/subnets/snet-{number}" for number in range(count)]
    statements = [{"subnet": subnet, "since": ago(500), "statedBy": "network-team"} for subnet in subnets]
    policy = Policy.model_validate({"subnetsPrivateSince": statements})
    rests = [
        Finding("nic-default-outbound", NODES, Verdict.PASS, Severity.HIGH, evidence=(statement(statement_of),))
        for statement_of in policy.subnets_private_since
    ]
    estate = small_cluster().settled(lambda settling: list(statement_notes(settling, policy, ())))
    [note] = statement_notes(estate, policy, rests)
    assert note.startswith(f"network-team states that {VNET}/subnets/snet-0")
    assert note.endswith(f"{named} been private since 2026-10-30T16:00:00Z; {count} findings pass on that")
