"""The route from a gateway to a model, or to the models of a group: by a path, and by the model's name in a header.

Source of the fields, of their defaults and of what a rule may combine: kubernetes-sigs/gateway-api,
apis/v1/httproute_types.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hermetic.api.endpoint import Endpoint
from hermetic.api.gateway import DataPlane, GatewayRoute
from hermetic.kinds import GATEWAY, HTTP_ROUTE, MODEL_DEPLOYMENT
from hermetic.objects.names import MANAGED_BY, Owner, metadata

MODEL_NAME_HEADER = "x-gateway-model-name"
ROUTE_GROUP_LABEL = "hermetic.dev/route-group"
# No ModelDeployment has a '.' in its name, so no route of a model has the name of a group's.
GROUP_PREFIX = "group."
MOST_MEMBERS = 16
"""Backends of a rule of an HTTPRoute (`backendRefs`, MaxItems)."""
MOST_SECTIONS = 32
"""Listeners that an HTTPRoute names (`parentRefs`, MaxItems)."""


@dataclass(frozen=True, slots=True)
class Backend:
    """The Service of a model that a route leads to, with the port that clients connect to and its weight."""

    owner: Owner
    port: int
    weight: int


@dataclass(frozen=True, slots=True)
class RouteSettings:
    """What the configuration and the cluster add to `endpoint.gateway`.

    `data_planes`: the pods through which the gateway's requests come. `is_withheld`: no route may lead to the model.
    `has_model_name`: no other model of the gateway has this model's name; otherwise only the path leads here.
    `is_written_here`: the route is written for this model; that of a group is written for one member. `backends`: of a
    group, those of all members; empty: the model's own. `sections`: the listeners that the route attaches to; empty:
    all that take it.
    """

    data_planes: tuple[DataPlane, ...] = ()
    is_withheld: bool = False
    has_model_name: bool = True
    is_written_here: bool = True
    backends: tuple[Backend, ...] = ()
    sections: tuple[str, ...] = ()


PLAIN_ROUTE = RouteSettings()


def route_name(route: GatewayRoute, owner: Owner) -> str:
    """The name of the HTTPRoute that leads to a model."""
    return owner.name if route.group is None else f"{GROUP_PREFIX}{route.group}"


def http_route(
    owner: Owner, engine: str, model_name: str, endpoint: Endpoint, route: GatewayRoute, settings: RouteSettings
) -> dict[str, Any]:
    """The HTTPRoute of one model, or of a group. What the CRD would fill in is rendered.

    Two rules: the filter that cuts off the path may stand only in a rule that matches nothing but that path.
    """
    weight = 1 if route.weight is None else route.weight
    backends = settings.backends or (Backend(owner, endpoint.client_port, weight),)
    rules = [_by_path(route.path_of(owner.namespace, owner.name)), *([_by_name(model_name)] * settings.has_model_name)]
    references = [_reference(backend) for backend in backends]
    return {
        "apiVersion": HTTP_ROUTE.api_version,
        "kind": HTTP_ROUTE.kind,
        "metadata": metadata(owner, engine) if route.group is None else _of_group(route.group, backends),
        "spec": {
            "parentRefs": _parents(*route.gateway(owner.namespace), settings.sections),
            **({"hostnames": [route.hostname]} if route.hostname is not None else {}),
            # Without a limit: an answer may stream for longer than the timeout of any gateway.
            "rules": [{**rule, "backendRefs": references, "timeouts": {"request": "0s"}} for rule in rules],
        },
    }


def _parents(namespace: str, name: str, sections: tuple[str, ...]) -> list[dict[str, Any]]:
    """The Gateway, or each of its listeners that is named."""
    gateway = {"group": GATEWAY.group, "kind": GATEWAY.kind, "namespace": namespace, "name": name}
    return [{**gateway, "sectionName": section} for section in sections[:MOST_SECTIONS]] or [gateway]


def _of_group(group: str, backends: tuple[Backend, ...]) -> dict[str, Any]:
    """All members own the route, and none controls it: it goes with the last of them."""
    return {
        "name": f"{GROUP_PREFIX}{group}",
        "namespace": backends[0].owner.namespace,
        "labels": {
            "app.kubernetes.io/component": "model-server",
            MANAGED_BY[0]: MANAGED_BY[1],
            ROUTE_GROUP_LABEL: group,
        },
        "ownerReferences": [
            {
                "apiVersion": MODEL_DEPLOYMENT.api_version,
                "kind": MODEL_DEPLOYMENT.kind,
                "name": backend.owner.name,
                "uid": backend.owner.uid,
            }
            for backend in backends
        ],
    }


def _reference(backend: Backend) -> dict[str, Any]:
    name, port, weight = backend.owner.name, backend.port, backend.weight
    return {"group": "", "kind": "Service", "name": name, "port": port, "weight": weight}


def is_of_group(name: str) -> bool:
    """Whether an HTTPRoute of this name leads to a group."""
    return name.startswith(GROUP_PREFIX)


def members_of(route: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """(name, uid) of the ModelDeployments that own a live route."""
    references = route["metadata"].get("ownerReferences") or ()
    ours = (reference for reference in references if reference.get("kind") == MODEL_DEPLOYMENT.kind)
    return tuple((str(reference.get("name")), str(reference.get("uid"))) for reference in ours)


def sections_of(route: Mapping[str, Any]) -> tuple[str, ...]:
    """The listeners that a live route names."""
    parents = (route.get("spec") or {}).get("parentRefs") or ()
    return tuple(str(parent["sectionName"]) for parent in parents if parent.get("sectionName"))


def model_names_of(route: Mapping[str, Any]) -> frozenset[str]:
    """The names in the header by which a live route leads to its model."""
    headers = (header for match in _matches(route) for header in match.get("headers") or ())
    return frozenset(str(header.get("value")) for header in headers if header.get("name") == MODEL_NAME_HEADER)


def gateways_of(route: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """(namespace, name) of the parents of a live route."""
    of = str(route["metadata"].get("namespace") or "")
    parents = (route.get("spec") or {}).get("parentRefs") or ()
    return frozenset((str(parent.get("namespace") or of), str(parent.get("name"))) for parent in parents)


def hostnames_of(route: Mapping[str, Any]) -> tuple[str | None, ...]:
    """The host names of a live route; None stands for every name."""
    return tuple((route.get("spec") or {}).get("hostnames") or (None,))


def paths_of(route: Mapping[str, Any]) -> frozenset[str]:
    """The paths by which a live route leads to its model, without a header."""
    paths = (match.get("path") or {} for match in _matches(route) if not match.get("headers"))
    return frozenset(str(path.get("value")) for path in paths)


def _matches(route: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (match for rule in (route.get("spec") or {}).get("rules") or () for match in rule.get("matches") or ())


def _by_path(path: str) -> dict[str, Any]:
    rewrite = {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}
    return {
        "matches": [{"path": {"type": "PathPrefix", "value": path}}],
        "filters": [{"type": "URLRewrite", "urlRewrite": rewrite}],
    }


def _by_name(model_name: str) -> dict[str, Any]:
    header = {"type": "Exact", "name": MODEL_NAME_HEADER, "value": model_name}
    return {"matches": [{"path": {"type": "PathPrefix", "value": "/"}, "headers": [header]}]}
