"""A pod's containers in reduced form: name and image of each, and digests of the other fields that decide what it does.

Pods are stored in this form, and templates are converted to it, so that a pod can be compared with its template.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermetic.objects.names import digest

CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
# Not compared: resources, imagePullPolicy and placement, which admission fills in for a pod.
OF_A_CONTAINER = ("command", "args", "env", "envFrom", "lifecycle", "securityContext", "volumeMounts", "workingDir")
OF_A_POD = (
    "dnsConfig",
    "dnsPolicy",
    "hostAliases",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "serviceAccountName",
    "shareProcessNamespace",
    "volumes",
)
LONGEST_NAME = 512
SHORT = 12


def contents(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of a pod or of a template, reduced to the fields that decide what runs."""
    content: dict[str, Any] = {"marks": _marks(spec, OF_A_POD)}
    for kind in CONTAINERS:
        if items := spec.get(kind):
            content[kind] = [
                {
                    "name": str(item.get("name", "")),
                    "image": str(item.get("image", ""))[:LONGEST_NAME],
                    "marks": _marks(item, OF_A_CONTAINER),
                }
                for item in items
            ]
    return content


def completed(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of a rendered template with what the API server fills into the fields that are compared here."""
    filled = {kind: [_with_environment(item) for item in spec[kind]] for kind in CONTAINERS if spec.get(kind)}
    volumes = [_with_mode(volume) for volume in spec.get("volumes") or ()]
    return {"dnsPolicy": "ClusterFirst", **spec, **filled, "volumes": volumes}


def _with_environment(container: Mapping[str, Any]) -> dict[str, Any]:
    variables = [_with_version(variable) for variable in container.get("env") or ()]
    return {**container, **({"env": variables} if variables else {})}


def _with_version(variable: Mapping[str, Any]) -> Mapping[str, Any]:
    source = variable.get("valueFrom") or {}
    if "fieldRef" not in source:
        return variable
    return {**variable, "valueFrom": {**source, "fieldRef": {"apiVersion": "v1", **source["fieldRef"]}}}


def _with_mode(volume: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**volume, "secret": {"defaultMode": 0o644, **volume["secret"]}} if "secret" in volume else volume


def containers(content: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(kind, container) of every container."""
    for kind in CONTAINERS:
        yield from ((kind, item) for item in content.get(kind) or ())


def differing(marks: Mapping[str, str], other_marks: Mapping[str, str]) -> tuple[str, ...]:
    """The fields in which two parts differ."""
    return tuple(sorted(name for name in {*marks, *other_marks} if marks.get(name) != other_marks.get(name)))


def _marks(item: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, str]:
    return {name: digest(item[name])[:SHORT] for name in fields if item.get(name) not in (None, "", [], {}, False)}
