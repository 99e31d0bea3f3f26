"""How large the estates of the audit's figures are, and how they are made."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from testbed.azure.crowd import crowded_estate
from testbed.azure.estate import Estate

PER_ENDPOINT = 3

Body = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """resources: in all. pools and nodes: GPU pools, and nodes in each. endpoints: private ones in the network."""

    resources: int
    pools: int
    nodes: int
    endpoints: int


LARGE = Size(50_000, pools=99, nodes=50, endpoints=1_000)
"""The largest cluster that AKS makes (100 pools, 5,000 nodes) in a network with as many private endpoints as Azure
allows, each to an account of its own; the other resources of the subscription belong to other teams."""
SMALL = Size(2_000, pools=4, nodes=50, endpoints=40)
"""What the peer can read in a minute or two."""


def estate_of(size: Size) -> Estate:
    """A sealed estate of that size."""
    estate = crowded_estate(size.resources - PER_ENDPOINT * size.endpoints, size.pools, size.nodes)
    bodies = _endpoint_of(estate, estate.site.storage)
    for number in range(size.endpoints):
        for body in bodies:
            _add_copy(estate, body, number, bodies)
    return estate


def _endpoint_of(estate: Estate, account: str) -> tuple[Body, ...]:
    """The account, its private endpoint and that one's interface."""
    every = estate.of_type("Microsoft.Network/privateEndpoints")
    endpoint = next(body for body in every if account in json.dumps(body["properties"]))
    return estate[account], endpoint, estate[endpoint["properties"]["networkInterfaces"][0]["id"]]


def _add_copy(estate: Estate, body: Body, number: int, together: tuple[Body, ...]) -> None:
    text = json.dumps(body)
    for one in together:
        text = text.replace(f"/{one['name']}", f"/{one['name']}-{number}")
    copied = json.loads(text)
    rest = {key: value for key, value in copied.items() if key not in {"id", "name", "type", "properties"}}
    estate.add(copied["id"], copied["properties"], **rest)
