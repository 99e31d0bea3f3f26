"""Resource Graph: POST /providers/Microsoft.ResourceGraph/resources over what an estate shows there.

Its traps are Azure's. Rows that the caller may not read are missing without a word. A page has at most 1,000 rows;
more follow by $skipToken only when the query keeps the column `id`, otherwise only `resultTruncated` shows it.
It is an index of its own, so an estate can make it lag (`Estate.in_graph`). Some types are not in it at all, and the
interfaces of scale set instances are only in `ComputeResources`.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from testbed.azure import refusals, versions
from testbed.azure.estate import Estate
from testbed.azure.ids import group_of, subscription_of, take_apart
from testbed.azure.index import INSTANCE_NICS, SCALE_SET
from testbed.azure.kql import Query, parse
from testbed.azure.kql_tokens import KqlError
from testbed.azure.reads import OUTBOUND

Body = dict[str, Any]

MOST_ROWS = 1000
# coverage of these is unconfirmed: a reader must not take their absence for an answer
NOT_COVERED = {"microsoft.network/servicegateways", "microsoft.network/virtualnetworkappliances"}
CHILDREN_COVERED = {
    "microsoft.network/privatednszones/virtualnetworklinks",
    "microsoft.network/networkwatchers/flowlogs",
    "microsoft.network/dnsresolverpolicies/virtualnetworklinks",
    "microsoft.network/dnsresolverpolicies/dnssecurityrules",
    "microsoft.network/dnsforwardingrulesets/virtualnetworklinks",
    "microsoft.containerregistry/registries/replications",
    "microsoft.containerregistry/registries/webhooks",
}
# what Network Manager applies to a network: only in the table NetworkResources
NETWORK_MANAGERS = {
    "microsoft.network/effectiveconnectivityconfigurations",
    "microsoft.network/effectivesecurityadminrules",
}
EXTENSIONS = ("microsoft.authorization/", "microsoft.kubernetesconfiguration/")
# What a row has in a column that its resource knows nothing of. A string of the query language is never null
# (learn.microsoft.com/azure/data-explorer/kusto/query/scalar-data-types/null-values).
COLUMNS: dict[str, Any] = {
    "kind": "", "location": "", "managedBy": "", "sku": None, "plan": None, "properties": None, "tags": None,
    "identity": None, "zones": None, "extendedLocation": None,
}  # fmt: skip


class ResourceGraph:
    """Answers queries; remembers what it still has to page out."""

    def __init__(self) -> None:
        self._paged: OrderedDict[str, list[Body]] = OrderedDict()

    def query(self, estate: Estate, version: str, body: Body) -> Body:
        """The body of a 200; raises the refusal for a version, a token or a query that it does not know."""
        versions.check_endpoint(version, versions.GRAPH)
        options = body.get("options") or {}
        most = min(int(options.get("$top") or MOST_ROWS), MOST_ROWS)
        token = options.get("$skipToken")
        try:
            query = parse(str(body.get("query") or ""))
            rows = self._resumed(token) if token else query.run(list(rows_of(estate, query, body.get("subscriptions"))))
        except KqlError as error:
            raise _not_understood(str(error)) from None
        start = int(token.partition(":")[2]) if token else int(options.get("$skip") or 0)
        return self._page(rows, start, most, query, options)

    def _resumed(self, token: str) -> list[Body]:
        name, _, offset = token.partition(":")
        if name not in self._paged or not offset.isdigit():
            raise refusals.bad_request("InvalidSkipToken", "The $skipToken is not one that this query gave out.")
        return self._paged[name]

    def _page(self, rows: list[Body], start: int, most: int, query: Query, options: Body) -> Body:
        page, end = rows[start : start + most], start + most
        more = end < len(rows)
        pageable = more and not query.limited and "id" in rows[0]
        answer: Body = {
            "totalRecords": len(rows),
            "count": len(page),
            "resultTruncated": "true" if more and not pageable else "false",
            "facets": [],
            "data": _as_table(page) if options.get("resultFormat") == "table" else page,
        }
        if pageable:
            answer["$skipToken"] = self._token(rows, end)
        return answer

    def _token(self, rows: list[Body], end: int) -> str:
        page_name = next((name for name, page_rows in self._paged.items() if page_rows is rows), None)
        name = page_name or secrets.token_hex(8)
        self._paged[name] = rows
        while len(self._paged) > 16:
            self._paged.popitem(last=False)
        return f"{name}:{end}"


def rows_of(estate: Estate, query: Query, subscriptions: list[str] | None) -> Iterator[Body]:
    """The rows of a query's table that the caller may read, of the types that can pass its first filters."""
    requested = {subscription.lower() for subscription in subscriptions} if subscriptions else None
    if query.table == "resourcecontainers":
        yield from (
            row for row in _containers(estate) if requested is None or row["subscriptionId"].lower() in requested
        )
        return
    belongs = _TABLES.get(query.table)
    if belongs is None:
        raise KqlError(f"unknown table {query.table!r}")
    for kind in sorted(query.types if query.types is not None else estate.index.types):
        if not belongs(kind):
            continue
        for body in estate.index.of_type(kind):
            row = _row(estate, body)
            if row and (requested is None or row["subscriptionId"].lower() in requested):
                yield row


def _is_resource(kind: str) -> bool:
    is_top = kind.count("/") == 1 and not kind.startswith("microsoft.resources/")
    return (
        (is_top or kind in CHILDREN_COVERED)
        and kind not in NOT_COVERED | NETWORK_MANAGERS
        and not kind.startswith(EXTENSIONS)
    )


_TABLES: dict[str, Callable[[str], bool]] = {
    "resources": _is_resource,
    "computeresources": lambda kind: kind.startswith(f"{SCALE_SET}/virtualmachines"),
    "authorizationresources": lambda kind: kind == "microsoft.authorization/roleassignments",
    # supported-tables-resources of azure-docs lists more types of it; these two are below a network
    "networkresources": lambda kind: kind in NETWORK_MANAGERS,
    "kubernetesconfigurationresources": lambda kind: kind.startswith("microsoft.kubernetesconfiguration/"),
}


def _row(estate: Estate, body: Body) -> Body | None:
    resource: Body | None = estate.graph.get(body["id"].lower(), body) if estate.graph else body
    if resource is None or not estate.may(body["id"], f"{body['type']}/read"):
        return None
    row = _base(body["id"], body["name"], body["type"]) | {
        column: resource.get(column, absent) for column, absent in COLUMNS.items()
    }
    if row["type"] == INSTANCE_NICS and "graph" not in estate.scale_set_outbound_shown_by:
        row["properties"] = {key: value for key, value in resource["properties"].items() if key != OUTBOUND}
    return row


def _containers(estate: Estate) -> Iterator[Body]:
    for scope in (*estate.index.subscriptions.values(), *estate.index.groups.values()):
        kind = take_apart(scope).type
        if estate.may(scope, f"{kind}/read"):
            kind = "microsoft.resources/subscriptions" + ("/resourcegroups" if group_of(scope) else "")
            yield _base(scope, scope.rpartition("/")[2], kind) | COLUMNS


def _base(identifier: str, name: str, kind: str) -> Body:
    return {
        "id": identifier,
        "name": name,
        "type": kind.lower(),
        "tenantId": refusals.TENANT,
        "subscriptionId": subscription_of(identifier),
        "resourceGroup": group_of(identifier).lower(),
    }


def _as_table(rows: list[Body]) -> Body:
    names = list(rows[0]) if rows else []
    columns = [{"name": name, "type": "object"} for name in names]
    return {"columns": columns, "rows": [[row[name] for name in names] for row in rows]}


def _not_understood(reason: str) -> refusals.Refusal:
    refusal = refusals.bad_request("BadRequest", f"The query is invalid: {reason}")
    refusal.details = [{"code": "InvalidQuery", "message": reason}, {"code": "ParserFailure", "message": reason}]
    return refusal
