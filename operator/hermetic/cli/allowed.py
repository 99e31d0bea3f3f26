"""What an installation may use, as the admission policies read it: the ConfigMap 'hermetic-allowed'."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from hermetic import __version__
from hermetic.api.allow_lists import AllowedRegistry, AllowedShare
from hermetic.api.configuration import Configuration
from hermetic.collect.probe.embedded_program import command

NAME = "hermetic-allowed"
EVERY = "*"
BETWEEN_ARGUMENTS = "\n#\n"


def allowed(configuration: Configuration) -> dict[str, Any]:
    """The ConfigMap for this configuration, in the namespace of the operator."""
    lists = {
        "namespaces": configuration.watch_namespaces or [EVERY],
        # The image that verifies weights is the platform team's, in whichever namespace a pod has it.
        "registries": [
            *(line for registry in configuration.registries for line in _registry(registry)),
            *(f"{EVERY} {image}" for image in configuration.integrity.verifiers),
        ],
        "shares": [line for share in configuration.shares for line in _share(share)],
        "gateways": [
            f"{namespace} {gateway.namespace}/{gateway.name}"
            for gateway in configuration.gateways
            for namespace in gateway.namespaces
        ],
        "labels": sorted(configuration.model_metadata.label_keys),
        "annotations": sorted(configuration.model_metadata.annotation_keys),
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": NAME,
            "namespace": configuration.lease.namespace,
            "labels": {"app.kubernetes.io/name": "hermetic", "app.kubernetes.io/part-of": "hermetic"},
        },
        "data": {
            **{name: "\n".join(lines) for name, lines in lists.items()},
            f"probe-program-{__version__}": BETWEEN_ARGUMENTS.join(command()),
        },
    }


def _registry(registry: AllowedRegistry) -> Iterator[str]:
    for namespace in registry.namespaces:
        yield from (f"{namespace} {registry.host}/{prefix}" for prefix in registry.repositories or [""])


def _share(share: AllowedShare) -> Iterator[str]:
    """An account with a server may be mounted from its default host as well."""
    for namespace, folder in product(share.namespaces, share.folders or [""]):
        if share.account is None:
            yield f"{namespace} nfs {share.server}:{share.path}" + (f"/{folder}" if folder else "")
            continue
        below = f"#{folder}" if folder else ""
        yield f"{namespace} azure {share.account}/{share.share}{below}"
        if share.server is not None:
            yield f"{namespace} azure {share.account}/{share.share} {share.server}{below}"
