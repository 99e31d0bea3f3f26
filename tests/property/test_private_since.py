"""Whatever the dates: a machine passes only when it was created strictly after a known moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from hermetic.audit.model.findings import Verdict
from tests.unit.test_checks_outbound_by_time import judged, silent, stated

MOMENTS = st.datetimes(datetime(2026, 1, 1), datetime(2026, 1, 1, 0, 0, 2), timezones=st.just(UTC))  # noqa: DTZ001
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(MOMENTS, MOMENTS, ZONES, ZONES)
def test_only_a_machine_created_strictly_later_passes(
    since: datetime, created: datetime, first: timezone, other: timezone
) -> None:
    finding = judged(silent(created.astimezone(other).isoformat()), stated(since.astimezone(first).isoformat()))
    assert finding.verdict is (Verdict.PASS if created > since else Verdict.UNKNOWN)


@given(MOMENTS, st.text(max_size=40))
def test_no_text_in_place_of_a_date_passes(since: datetime, text: str) -> None:
    try:
        is_later = datetime.fromisoformat(text) > since
    except (ValueError, TypeError):
        is_later = False
    assert judged(silent(text), stated(since.isoformat())).verdict is (Verdict.PASS if is_later else Verdict.UNKNOWN)
