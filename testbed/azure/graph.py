"""Resource Graph: POST /providers/Microsoft.ResourceGraph/resources over what an estate shows there."""

from __future__ import annotations

from typing import Any

from testbed.azure.estate import Estate

Body = dict[str, Any]


def query_graph(estate: Estate, version: str, body: Body) -> Body:
    raise NotImplementedError
