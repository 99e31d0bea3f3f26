"""A rule for an application security group decides about every address that the group holds."""

from __future__ import annotations

import pytest

from tests.decision_cases import Case
from tests.decision_cases_groups import grouped, relay_beside_a_group, relay_of_a_group, sets_that_are_not_readable
from tests.decisions import must_be_decided_as_documented, must_be_distinct_and_sourced

DENY, NODES, OTHERS = "nsg-internet-deny", "10.40.1.0/24", "10.77.0.0/24"
SETS = "Azure CLI: az network asg address-prefix-set"
ESTATES = (
    Case("from a group of nodes' addresses", "Fail", DENY, grouped("source", NODES), SETS, "overlay"),
    Case("from a group of other addresses", "Pass", "", grouped("source", OTHERS), SETS, "overlay"),
    Case("from a group without addresses", "Pass", "", grouped("source"), SETS, "overlay"),
    Case("to a group of public addresses", "Fail", DENY, grouped("destination", "20.91.66.0/24"), SETS, "overlay"),
    Case("to a group of private addresses", "Pass", "", grouped("destination", NODES), SETS, "overlay"),
    Case(
        "denied to a group of every address",
        "Fail",
        DENY,
        grouped("destination", "0.0.0.0/0", access="Deny", without="DenyInternet"),
        SETS,
        "overlay",
    ),
    Case("sets that are not readable", "Unknown", DENY, sets_that_are_not_readable, SETS, "overlay"),
    Case("relay beside a group", "Pass", "", relay_beside_a_group, "Application security groups", "peered"),
    Case("relay of a group", "Fail", "vm-pivot", relay_of_a_group, "Application security groups", "peered"),
)


@pytest.mark.parametrize("tried", ESTATES, ids=lambda tried_estate: tried_estate.name)
def test_the_decision_is_what_the_documents_of_azure_lead_to(tried: Case) -> None:
    must_be_decided_as_documented(tried)


def test_no_estate_is_tried_twice_and_each_names_its_source() -> None:
    must_be_distinct_and_sourced(ESTATES)
