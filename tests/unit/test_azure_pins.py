"""The pins of the api-versions: what they show, and how they age."""

from __future__ import annotations

from datetime import date

import pytest

from hermetic.audit.estate.arm_fields import spelling
from hermetic.audit.estate.azure.cluster_unread import KNOWN
from hermetic.audit.estate.azure.pins import COMPARED, MONTHS, note_on_age
from hermetic.audit.estate.azure.versions import CONTAINER_SERVICE
from testbed.azure import versions


def _after(months: int) -> date:
    year, month = divmod(COMPARED.month - 1 + months, 12)
    return COMPARED.replace(year=COMPARED.year + year, month=month + 1)


@pytest.mark.parametrize("today", [COMPARED, _after(MONTHS - 1), date(2020, 1, 1)])
def test_a_comparison_that_still_counts_is_not_mentioned(today: date) -> None:
    assert note_on_age(today) == ""


@pytest.mark.parametrize("today", [_after(MONTHS), _after(MONTHS + 30)])
def test_an_old_comparison_says_since_when_and_what_to_do(today: date) -> None:
    note = note_on_age(today)
    assert str(COMPARED) in note
    assert "Update Hermetic" in note


def test_the_day_before_the_month_is_full_does_not_count() -> None:
    assert note_on_age(_after(MONTHS).replace(day=COMPARED.day - 1)) == ""


def test_the_version_that_is_asked_hides_nothing_that_the_stand_in_can_hide_but_previews() -> None:
    since = versions.SINCE["microsoft.containerservice/managedclusters"]
    hidden = {field for field, first in since.items() if first > CONTAINER_SERVICE}
    assert hidden == {field for field, first in since.items() if first == versions.NEVER_STABLE}


def test_every_object_whose_fields_are_listed_is_itself_listed() -> None:
    for path in filter(None, KNOWN):
        holder, _, name = path.rpartition(".")
        assert spelling(name) in KNOWN[holder]
