"""Names of subscription and tenant: read with two requests, and never needed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermetic.audit.estate.estate import Estate
from hermetic.audit.report.json_form import document
from hermetic.audit.report.page import as_html
from hermetic.audit.report.table import as_table
from hermetic.audit.result.ownership import Ownership, ownership_of
from testbed.azure.baseline import sealed_estate
from testbed.azure.refusals import TENANT
from testbed.azure.requests import ArmRequest
from tests.audit_reports import SCRIPT, a_failing_report, pages
from tests.azure_audits import evaluated


async def test_both_names_are_read_with_two_requests():
    estate, requests = sealed_estate(), list[ArmRequest]()
    subscription = estate.cluster.split("/")[2].lower()
    ownership = await evaluated(estate, "graph", ownership_of, requests)
    assert ownership == Ownership(subscription, "Contoso AI", TENANT, "Contoso")
    assert [request.path.lower() for request in requests] == [f"/subscriptions/{subscription}", "/tenants"]


async def test_a_caller_who_may_not_read_the_subscription_gets_its_id():
    estate = sealed_estate()
    subscription = estate.cluster.split("/")[2]
    estate.deny(f"/subscriptions/{subscription}", "Microsoft.Resources/subscriptions/read")
    ownership = await evaluated(estate, "graph", ownership_of)
    assert ownership == Ownership(subscription.lower())


def test_without_azure_there_is_none():
    assert ownership_of(Estate("aks", ("kube",), {})) is None
    assert ownership_of(Estate("aks", ("azure",), {})) is None


@pytest.mark.parametrize("name", ["Production", SCRIPT, ""])
def test_every_person_reads_them(name: str):
    report = replace(a_failing_report(), ownership=Ownership("1234", name, "5678", "Contoso"))
    shown = document(report, pages())
    assert shown["subscription"] == {"id": "1234", "name": name}
    assert shown["tenant"] == {"id": "5678", "name": "Contoso"}
    expected = f"subscription {f'{name} (1234)' if name else '1234'}; tenant Contoso (5678)"
    assert expected in as_table(report, pages())
    page = as_html(report, pages())
    assert SCRIPT not in page
    assert "tenant Contoso (5678)" in page
