"""How large the estates of the audit's figures are, and how they are made."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from testbed.azure.estate import Estate
from testbed.azure.large_estate import large_estate

PER_ENDPOINT = 4
SERVICE = "default"
"""The name of the one service that an account for files has."""

Body = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """resources: in all, at least those of the sealed estate. pools and nodes: GPU pools, and nodes in each.

    endpoints: private ones in the network.
    """

    resources: int
    pools: int
    nodes: int
    endpoints: int


LARGE = Size(50_000, pools=99, nodes=50, endpoints=1_000)
"""The largest cluster that AKS makes (100 pools, 5,000 nodes) in a network with as many private endpoints as Azure
allows, each to an account of its own; the other resources of the subscription belong to other teams."""
SMALL = Size(2_000, pools=4, nodes=50, endpoints=40)
"""What the peer can read in a minute or two."""
PLAIN = Size(0, pools=0, nodes=0, endpoints=0)
"""One sealed cluster and nothing beside it."""


def estate_of(size: Size) -> Estate:
    """A sealed estate of that size; it passes with its own policy."""
    estate = large_estate(size.resources - PER_ENDPOINT * size.endpoints, size.pools, size.nodes)
    estate.scale_set_outbound_shown_by = frozenset()  # as Azure documents it: dates decide, and the policy states one
    bodies = _endpoint_of(estate, estate.site.storage)
    for number in range(size.endpoints):
        for body in bodies:
            _add_copy(estate, body, number, bodies)
    return estate


def _endpoint_of(estate: Estate, account: str) -> tuple[Body, ...]:
    """The account, its one service, its private endpoint and that one's interface."""
    every = estate.of_type("Microsoft.Network/privateEndpoints")
    endpoint = next(body for body in every if account in json.dumps(body["properties"]))
    return (
        estate[account],
        estate[f"{account}/fileServices/{SERVICE}"],
        endpoint,
        estate[endpoint["properties"]["networkInterfaces"][0]["id"]],
    )


def _add_copy(estate: Estate, body: Body, number: int, together: tuple[Body, ...]) -> None:
    text = json.dumps(body)
    for name in {body["name"] for body in together} - {SERVICE}:
        text = text.replace(f"/{name}", f"/{name}-{number}")
    copied = json.loads(text)
    fields = {key: value for key, value in copied.items() if key not in {"id", "name", "type", "properties"}}
    estate.add(copied["id"], copied["properties"], **fields)
