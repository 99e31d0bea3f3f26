"""Resource Graph of the stand-in: the queries it understands, and the traps that Azure's has."""

from __future__ import annotations

import pytest

from testbed.azure.baseline import sealed_estate
from testbed.azure.baseline.layout import CONNECTIVITY, WORKLOAD
from testbed.azure.large_estate import large_estate
from tests.sampled_groups import AZURE_STAND_IN
from tests.unit.azure_stand_in import calling, code_of

pytestmark = AZURE_STAND_IN

PUBLIC = f"/subscriptions/{CONNECTIVITY}/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/pip"
NICS = "Resources | where type =~ 'Microsoft.Network/networkInterfaces'"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        (f"{NICS} | project name | order by name asc", ["nic-sentinel", "pe-registry", "pe-share", "pe-storage"]),
        ("resources | where name == 'nic-sentinel' | project name", ["nic-sentinel"]),
        ("Resources | where name == 'NIC-sentinel' | project name", []),
        ("Resources | where name =~ 'NIC-sentinel' | project name", ["nic-sentinel"]),
        (f"{NICS} | where name startswith 'PE-S' | project name | order by name desc", ["pe-storage", "pe-share"]),
        (f"{NICS} | where id contains '/nic-' and isnotempty(properties.virtualMachine.id) | project name",
         ["nic-sentinel"]),
        (f"{NICS} | where properties.enableIPForwarding == false and not(name startswith 'pe-') | project name",
         ["nic-sentinel"]),
        ("Resources | where type in~ ('microsoft.network/natGateways', 'MICROSOFT.NETWORK/ROUTETABLES') "
         "| project name", ["rt-sealed"]),
        (f"{NICS} | order by name asc | project name | limit 1", ["nic-sentinel"]),
    ],
)  # fmt: skip
def test_query_finds(query: str, names: list[str]) -> None:
    with calling(sealed_estate()) as caller:
        rows = caller.graph(query).json()["data"]

    assert [row["name"].removesuffix(".nic.4d1f8c02") for row in rows] == names


def test_subnets_expand_out_of_their_network() -> None:
    estate = sealed_estate()
    estate.properties(estate.site.gpu_subnet)["defaultOutboundAccess"] = None
    query = (
        f"Resources | where type =~ 'microsoft.network/virtualnetworks' and id =~ '{estate.site.vnet.upper()}' "
        "| mv-expand s = properties.subnets | project subnetId=tostring(s.id), doa=s.properties.defaultOutboundAccess"
    )
    with calling(estate) as caller:
        rows = caller.graph(query).json()["data"]

    assert {row["subnetId"]: row["doa"] for row in rows}[estate.site.gpu_subnet] is None
    assert len(rows) == len(estate.properties(estate.site.vnet)["subnets"])


def test_interfaces_of_instances_are_only_among_compute_resources() -> None:
    estate = sealed_estate()
    estate.scale_set_outbound_shown_by = frozenset({"graph"})
    kind = "microsoft.compute/virtualmachinescalesets/virtualmachines/networkinterfaces"
    with calling(estate) as caller:
        assert caller.graph(f"Resources | where type =~ '{kind}'").json()["count"] == 0
        rows = caller.graph(f"ComputeResources | where type =~ '{kind}'").json()["data"]

    assert [row["properties"]["defaultOutboundConnectivityEnabled"] for row in rows] == [False] * 4
    assert {row["type"] for row in rows} == {kind}


def test_a_row_has_every_column_and_no_string_is_null() -> None:
    kind = "microsoft.compute/virtualmachinescalesets/virtualmachines/networkinterfaces"
    with calling(sealed_estate()) as caller:
        rows = caller.graph(f"ComputeResources | where type =~ '{kind}'").json()["data"]

    assert rows
    assert {(row["location"], row["kind"], row["sku"], row["tags"]) for row in rows} == {("", "", None, None)}


def test_rows_that_may_not_be_read_are_missing_without_a_word() -> None:
    estate = sealed_estate()
    estate.add(PUBLIC, {"ipAddress": "20.91.1.1"})
    query = "Resources | where type =~ 'microsoft.network/publicipaddresses' | project id"
    with calling(estate) as caller:
        assert caller.graph(query).json()["count"] == 1
        estate.deny(f"/subscriptions/{CONNECTIVITY}")
        blind = caller.graph(query).json()

    assert (blind["count"], blind["totalRecords"], blind["resultTruncated"]) == (0, 0, "false")


def test_subscriptions_narrow_the_answer() -> None:
    estate = sealed_estate()
    estate.add(PUBLIC, {})
    body = {"query": "Resources | summarize n = count() by subscriptionId", "subscriptions": [CONNECTIVITY.upper()]}
    with calling(estate) as caller:
        answer = caller.post("/providers/Microsoft.ResourceGraph/resources", body, "2024-04-01").json()

    assert answer["data"] == [{"subscriptionId": CONNECTIVITY, "n": 1}]


def test_pages_follow_only_when_the_query_keeps_the_id() -> None:
    estate = large_estate(2_400, pools=0)
    with calling(estate) as caller:
        pages, token = [], {}
        while True:
            page = caller.graph("Resources | project id", **token).json()
            pages.append(page)
            if "$skipToken" not in page:
                break
            token = {"skip_token": page["$skipToken"]}
        cut = caller.graph("Resources | project name").json()

    assert [page["count"] for page in pages] == [1000, 1000, pages[0]["totalRecords"] - 2000]
    assert len({row["id"] for page in pages for row in page["data"]}) == pages[0]["totalRecords"]
    assert {page["resultTruncated"] for page in pages} == {"false"}
    assert cut["resultTruncated"] == "true"
    assert "$skipToken" not in cut
    assert (cut["count"], cut["totalRecords"]) == (1000, pages[0]["totalRecords"])


def test_index_may_lag_behind() -> None:
    estate = sealed_estate()
    stale = estate.copy()[estate.site.sentinel]
    stale["properties"]["enableIPForwarding"] = True
    estate.in_graph(estate.site.sentinel, stale)
    estate.in_graph(estate.site.registry, None)
    with calling(estate) as caller:
        row = caller.graph("Resources | where name == 'nic-sentinel'").json()["data"][0]
        registries = caller.graph("Resources | where type =~ 'microsoft.containerregistry/registries'").json()
        arm = caller.get(estate.site.sentinel).json()

    assert row["properties"]["enableIPForwarding"] is True
    assert arm["properties"]["enableIPForwarding"] is False
    assert registries["count"] == 0


@pytest.mark.parametrize(
    "query",
    [
        "",
        "Nonsense",
        "Resources | join kind=inner Resources on id",
        "Resources | where",
        "Resources | where type =~ 'x",
        "Resources | where nope == 1",
        "Resources | where dance(type) == 1",
        "Resources ; drop",
    ],
)
def test_query_that_is_not_understood_is_refused(query: str) -> None:
    with calling(sealed_estate()) as caller:
        answer = caller.graph(query)

    assert code_of(answer) == (400, "BadRequest")
    assert answer.json()["error"]["details"][0]["code"] == "InvalidQuery"


def test_containers_are_in_a_table_of_their_own() -> None:
    with calling(sealed_estate()) as caller:
        query = "ResourceContainers | where type == 'microsoft.resources/subscriptions' | project id"
        assert caller.graph(query).json()["data"] == [{"id": f"/subscriptions/{WORKLOAD}"}]
