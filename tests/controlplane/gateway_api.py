"""Definitions of Gateway and HTTPRoute with the documented fields that are read of them, and nothing else.

Written from https://gateway-api.sigs.k8s.io/reference/spec/ (v1: Gateway, HTTPRoute). Those of the project are
larger; a real API server needs no more than this to store, list and watch the kinds.
"""

from __future__ import annotations

from typing import Any

from testbed.api import Api
from testbed.errors import ApiError

GROUP = "gateway.networking.k8s.io"
# Definitions of names that end with k8s.io need the pull request that approved them; of ours none was.
UNAPPROVED = {"api-approved.kubernetes.io": "unapproved, for tests"}
Schema = dict[str, Any]


def _object(**fields: Schema) -> Schema:
    return {"type": "object", "properties": fields}


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
ADDRESS = _object(type=TEXT, value=TEXT)
REFERENCE = _object(group=TEXT, kind=TEXT, namespace=TEXT, name=TEXT, port=NUMBER)
PARENT = _object(group=TEXT, kind=TEXT, namespace=TEXT, name=TEXT, sectionName=TEXT)
REWRITE = _object(hostname=TEXT, path=_object(type=TEXT, replacePrefixMatch=TEXT))
FILTER = _object(type=TEXT, requestMirror=_object(backendRef=REFERENCE), urlRewrite=REWRITE)
MATCH = _object(path=_object(type=TEXT, value=TEXT), headers=_list(_object(type=TEXT, name=TEXT, value=TEXT)))
BACKEND = _object(group=TEXT, kind=TEXT, namespace=TEXT, name=TEXT, port=NUMBER, weight=NUMBER, filters=_list(FILTER))
CONDITION = _object(type=TEXT, status=TEXT, reason=TEXT, message=TEXT, lastTransitionTime=TEXT)
GATEWAY = {
    "spec": _object(
        gatewayClassName=TEXT,
        listeners=_list(
            _object(
                name=TEXT,
                hostname=TEXT,
                port=NUMBER,
                protocol=TEXT,
                allowedRoutes=_object(namespaces={"type": "object", "properties": {"from": TEXT}}),
            )
        ),
        addresses=_list(ADDRESS),
    ),
    "status": _object(addresses=_list(ADDRESS), conditions=_list(CONDITION)),
}
RULE = {
    "backendRefs": _list(BACKEND),
    "filters": _list(FILTER),
    "matches": _list(MATCH),
    "timeouts": _object(request=TEXT),
}
HTTP_ROUTE = {
    # `useDefaultGateways`: of the experimental channel.
    "spec": _object(
        parentRefs=_list(PARENT), hostnames=_list(TEXT), rules=_list(_object(**RULE)), useDefaultGateways=TEXT
    ),
    "status": _object(parents=_list(_object(parentRef=PARENT, conditions=_list(CONDITION)))),
}


def definitions() -> list[dict[str, Any]]:
    """The CustomResourceDefinitions."""
    return [_definition("Gateway", "gateways", GATEWAY), _definition("HTTPRoute", "httproutes", HTTP_ROUTE)]


def is_served(api: Api, plural: str) -> bool:
    """Whether the API server answers for the kind; while it makes its storage, it answers 429."""
    try:
        api.get(f"/apis/{GROUP}/v1/{plural}")
    except ApiError as error:
        if error.status not in (404, 429):
            raise
        return False
    return True


def _definition(kind: str, plural: str, fields: Schema) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}", "annotations": UNAPPROVED},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [version],
        },
    }
