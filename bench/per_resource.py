"""The peer of the audit's figures: what one writes first with an SDK. List everything, then get each thing by its id.

One request at a time, as the synchronous clients of the SDK do; on 429 it waits for Retry-After and repeats. It
evaluates nothing: its time is reading alone.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import httpx

from testbed.azure import versions
from testbed.azure.estate import Estate
from testbed.azure.ids import type_of

LISTED = "2021-04-01"


@dataclass
class Read:
    """What the loop did."""

    seconds: float = 0.0
    requests: int = 0
    resources: int = 0
    refused: int = 0


def read_everything(url: str, token: str, estate: Estate) -> Read:
    """Every resource of every subscription of an estate, with the newest api-version of its type."""
    read, began = Read(), time.monotonic()
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, trust_env=False) as client:
        for subscription in estate.index.subscriptions.values():
            for listed in _listed(client, read, subscription):
                kind = type_of(listed)
                for identifier in (listed, *_instances(client, read, listed, kind)):
                    newest = versions.supported(type_of(identifier))[-1]
                    _got(client, read, f"{identifier}?api-version={newest}")
                    read.resources += 1
    read.seconds = time.monotonic() - began
    return read


def _listed(client: httpx.Client, read: Read, subscription: str) -> list[str]:
    return _ids(client, read, f"{subscription}/resources?api-version={LISTED}")


def _instances(client: httpx.Client, read: Read, identifier: str, kind: str) -> list[str]:
    """The interfaces of a scale set's instances, which no list of a subscription has."""
    if kind.lower() != "microsoft.compute/virtualmachinescalesets":
        return []
    return _ids(client, read, f"{identifier}/networkInterfaces?api-version=2018-10-01")


def _ids(client: httpx.Client, read: Read, target: str) -> list[str]:
    identifiers: list[str] = []
    while target:
        page = _got(client, read, target)
        identifiers += [row["id"] for row in page["value"]]
        target = page.get("nextLink", "")
    return identifiers


def _got(client: httpx.Client, read: Read, target: str) -> Any:
    while True:
        answer = client.get(target)
        read.requests += 1
        if answer.status_code != 429:
            answer.raise_for_status()
            return answer.json()
        read.refused += 1
        time.sleep(float(answer.headers["Retry-After"]))
