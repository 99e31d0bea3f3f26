"""The CRDs of the Gateway API (gateway.networking.k8s.io), as its project publishes them: files of a pinned Go module.

The module is downloaded by the Go command once and checked against go.sum; nothing of it is built or run.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import yaml

from testbed.api import Api
from testbed.errors import ApiError
from testbed.processes import wait_until
from testbed.programs import module_folder

GROUP = "gateway.networking.k8s.io"
MODULE = "sigs.k8s.io/gateway-api"
PLURALS = ("gatewayclasses", "gateways", "httproutes", "referencegrants")
"""The kinds of the standard channel that a door needs."""
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def sources() -> Path:
    """The folder of the module. Raises CannotRunError without Go."""
    return module_folder(MODULE, "gateway-api")


@cache
def _definition(plural: str) -> dict[str, Any]:
    text = (sources() / "config/crd/standard" / f"{GROUP}_{plural}.yaml").read_text(encoding="utf-8")
    definition: dict[str, Any] = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return definition


def definitions() -> list[dict[str, Any]]:
    """The CustomResourceDefinitions of PLURALS. Raises CannotRunError without Go."""
    return [_definition(plural) for plural in PLURALS]


def install(api: Api) -> None:
    """Create the CRDs that are not there, and return when the API server serves their kinds."""
    for definition in definitions():
        name = definition["metadata"]["name"]
        api.apply(f"{DEFINITIONS}/{name}", definition)
    for plural in PLURALS:
        wait_until(f"the kind of {plural}", partial(_is_served, api, plural), [])


def uninstall(api: Api) -> None:
    """Delete the CRDs, and with them every object of their kinds; returns when the API server serves none."""
    for definition in definitions():
        api.delete(f"{DEFINITIONS}/{definition['metadata']['name']}")
    for plural in PLURALS:
        wait_until(f"the end of {plural}", partial(_is_gone, api, plural), [])


def _is_gone(api: Api, plural: str) -> bool:
    return not _is_served(api, plural)


def _is_served(api: Api, plural: str) -> bool:
    try:
        api.get(f"/apis/{GROUP}/v1/{plural}")
    except ApiError as error:
        if error.status not in (404, 429):
            raise
        return False
    return True
