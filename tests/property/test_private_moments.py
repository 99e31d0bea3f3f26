"""A subnet that is switched at random, a log that shows it late, and audits of it: no moment is ever too early."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from hermetic.audit.egress.private_since import Since
from hermetic.audit.policy.declarations import AttestedPrivate, Policy
from tests.audit_estates import GROUP, NODES, small_cluster
from tests.unit.test_private_since import DIGEST, SUBNET_WRITE, known

START = datetime(2026, 11, 1, tzinfo=UTC)
MINUTES = st.integers(0, 60 * 12)


def at(minute: int) -> datetime:
    return START + timedelta(minutes=minute)


@given(
    writes=st.dictionaries(MINUTES, st.booleans(), max_size=6),
    observations=st.lists(MINUTES, min_size=1, max_size=3, unique=True),
    lag=st.integers(0, 60),
    asked=MINUTES,
    window=st.integers(0, 60 * 12),
)
def test_from_the_moment_on_the_subnet_was_private_as_far_as_the_log_reaches(
    writes: dict[int, bool], observations: list[int], lag: int, asked: int, window: int
) -> None:
    """`writes` set private or not; an audit sees the state of its minute; an event shows `lag` minutes later."""

    def private(minute: int) -> bool:
        before = [write for write in writes if write <= minute]
        return writes[max(before)] if before else False

    attestation: AttestedPrivate | None = None
    begins = max(0, asked - window)
    for look in sorted(observation for observation in observations if observation < asked):
        if not private(look):
            attestation = None
            continue
        earlier = attestation.since if attestation is not None else at(look)
        attestation = AttestedPrivate(NODES, earlier, at(look), at(look), DIGEST)
    if attestation is None or not private(asked):
        return
    shown = [write for write in writes if begins <= write and write + lag <= asked]
    events = [{"at": at(write).isoformat(), "operation": SUBNET_WRITE, "resource": NODES} for write in shown]
    log_body = {
        "since": at(begins).isoformat(),
        "until": at(asked).isoformat(),
        "count": len(events) + 1,
        "events": events,
    }
    privacy = known(small_cluster().put(GROUP, log_body), Policy(attested_private=(attestation,)))
    if not isinstance(privacy, Since):
        return
    # between two audits before the window begins, only the audits are known
    first = max(round((privacy.at - START).total_seconds() / 60), begins)
    assert all(private(minute) for minute in range(first, asked - 60 + 1))
