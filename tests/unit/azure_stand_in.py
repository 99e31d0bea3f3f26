"""A caller of the stand-in for Azure, as its tests need one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from testbed.azure.estate import Estate
from testbed.azure.server import ArmStandIn

NETWORK = "2025-05-01"


class Caller:
    """Asks with the stand-in's token unless it is given another."""

    def __init__(self, arm: ArmStandIn) -> None:
        self.arm = arm
        self.client = httpx.Client(base_url=arm.url, headers={"Authorization": f"Bearer {arm.token}"})

    def get(self, path: str, version: str = NETWORK, **query: str) -> httpx.Response:
        parameters = {"api-version": version} if version else {}
        return self.client.get(path, params={**parameters, **query})

    def post(self, path: str, body: Any = None, version: str = NETWORK) -> httpx.Response:
        return self.client.post(path, params={"api-version": version}, json=body or {})

    def act(self, path: str, body: Any = None) -> Any:
        """The result of a long-running action, polled to its end."""
        accepted = self.post(path, body)
        assert accepted.status_code == 202, accepted.text
        for _ in range(20):
            answer = self.client.get(accepted.headers["Location"])
            if answer.status_code != 202:
                return answer.json()
        raise AssertionError("the action does not end")

    def every(self, path: str, version: str = NETWORK, **query: str) -> list[dict[str, Any]]:
        """All rows of a list."""
        page = self.get(path, version, **query).json()
        rows = list(page["value"])
        while link := page.get("nextLink"):
            page = self.client.get(link).json()
            rows += page["value"]
        return rows

    def graph(self, query: str, **options: Any) -> httpx.Response:
        path = "/providers/Microsoft.ResourceGraph/resources"
        keys = {"top": "$top", "skip_token": "$skipToken", "result_format": "resultFormat"}
        named = {keys[name]: value for name, value in options.items()}
        return self.post(path, {"query": query, "options": named}, "2024-04-01")


@contextmanager
def calling(estate: Estate, **manner: Any) -> Iterator[Caller]:
    with ArmStandIn(estate, **manner) as arm:
        caller = Caller(arm)
        try:
            yield caller
        finally:
            caller.client.close()


def code_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]
