"""Environment variables of containers. Most values are dropped: they may contain credentials."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.kubernetes.names import addresses_of_variables, addresses_outside, host_outside
from hermetic.audit.estate.kubernetes.objects import Trimmed
from hermetic.audit.estate.resource import Part

PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY"})
HUB_KEYS = frozenset(
    {
        "HF_TOKEN",
        "HF_API_TOKEN",
        "HF_TOKEN_PATH",
        "HUGGING_FACE_HUB_TOKEN",
        "HUGGINGFACE_HUB_TOKEN",
        "HUGGINGFACE_TOKEN",
        "HUGGINGFACEHUB_API_TOKEN",
        "NGC_API_KEY",
        "NGC_CLI_API_KEY",
        "MODELSCOPE_API_TOKEN",
        "KAGGLE_KEY",
        "WANDB_API_KEY",
    }
)
ENDPOINTS = frozenset(
    {
        "HF_ENDPOINT",
        "HF_INFERENCE_ENDPOINT",
        "MODELSCOPE_DOMAIN",
        "NIM_REPOSITORY_OVERRIDE",
        "NGC_API_ENDPOINT",
        "PIP_INDEX_URL",
        "PIP_EXTRA_INDEX_URL",
        "UV_INDEX_URL",
        "UV_EXTRA_INDEX_URL",
        "UV_DEFAULT_INDEX",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_S3",
        "S3_ENDPOINT_URL",
        "MLFLOW_TRACKING_URI",
        "WANDB_BASE_URL",
        "SENTRY_DSN",
    }
)
"""Variables that set where models, packages or telemetry are fetched or sent, in any pod."""
_TELEMETRY = ("OTEL_EXPORTER_",)
VALUES_READ = frozenset({"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "NIM_DISABLE_MODEL_DOWNLOAD"})
"""Variables whose value a check reads. Of the others only that they are set is kept, if anything."""
NOT_KEPT = "(not kept)"
_ADDRESS = re.compile(r"://|^[^\s:]+:\d+/?$")
# A name of a pod is none: it may have dots.
_OF_THE_POD = [
    {"fieldPath": path}
    for path in ("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs", "spec.nodeName", "metadata.uid",
                 "metadata.namespace")
]  # fmt: skip
_NO_PROXY = frozenset({"NO_PROXY", "KUBE_PROXY"})


class EnvVar(Trimmed):
    """A variable: a literal, or a reference that the kubelet resolves (`value_from`)."""

    name: str = ""
    value: str | None = None
    value_from: FreeMap[Any] | None = None

    @classmethod
    def trimmed(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Drop values that no check reads: they may contain credentials."""
        named = {"name": fields["name"]} if "name" in fields else {}
        if fields.get("valueFrom"):
            return {**named, "valueFrom": {str(kind): _pointer(some) for kind, some in _items(fields["valueFrom"])}}
        name, value = str(fields.get("name")), fields.get("value")
        if value and is_proxy(name) and name.upper() not in PROXIES and not _ADDRESS.search(str(value)):
            return named  # a switch, such as USE_PROXY=true
        if not value or fields.get("name") in VALUES_READ:
            return {**named, **({"value": value} if "value" in fields else {})}
        return {**named, "value": _hosts(name, str(value)) or NOT_KEPT}

    @property
    def config_map(self) -> tuple[str, str] | None:
        """(Name, key) of the ConfigMap that it is taken from."""
        return self._source("configMapKeyRef")

    @property
    def secret(self) -> str:
        """Name of the Secret that it is taken from."""
        reference = self._source("secretKeyRef")
        return reference[0] if reference else ""

    def _source(self, kind: str) -> tuple[str, str] | None:
        reference = (self.value_from or {}).get(kind)
        if not isinstance(reference, Mapping):
            return None
        return str(reference.get("name") or ""), str(reference.get("key") or "")

    @property
    def is_set(self) -> bool:
        """Whether it may have a value that is not empty."""
        return bool(self.value) or bool(self.value_from)


class EnvSource(Part):
    """All keys of a ConfigMap or a Secret as variables, with a prefix before their names."""

    prefix: str | None = None
    config_map_ref: FreeMap[Any] | None = None
    secret_ref: FreeMap[Any] | None = None


def addresses(text: str, pod_variables: Collection[str] = ()) -> Iterator[str]:
    """Every external address in a text, and every one made of variables that are not known to be of the pod itself."""
    yield from addresses_outside(text)
    yield from addresses_of_variables(text, pod_variables)


def of_the_pod(env: Iterable[Any]) -> frozenset[str]:
    """Names of variables that the kubelet fills with an address of the pod or its node, or with a single label."""
    some = (
        variable for variable in env if isinstance(variable, Mapping) and isinstance(variable.get("valueFrom"), Mapping)
    )
    return frozenset(
        str(variable.get("name")) for variable in some if variable["valueFrom"].get("fieldRef") in _OF_THE_POD
    )


def without_known(variable: Mapping[str, Any], own: Collection[str]) -> Mapping[str, Any]:
    """The variable without the addresses that are made of the pod's own variables alone."""
    value = variable.get("value")
    if not isinstance(value, str) or "://" not in value or "$" not in value:
        return variable
    return {**variable, "value": " ".join(addresses(value, own)) or NOT_KEPT}


def is_kept(variable: Mapping[str, Any]) -> bool:
    """Whether a check reads the variable."""
    name, value = variable.get("name"), variable.get("value")
    if not isinstance(name, str):
        return True
    is_read = name in VALUES_READ or name in HUB_KEYS or is_proxy(name) or name.startswith("NIM_")
    if is_read or is_endpoint(name) or (isinstance(value, str) and any(addresses(value))):
        return True
    source = variable.get("valueFrom")
    return isinstance(source, Mapping) and "configMapKeyRef" in source


def is_proxy(name: str) -> bool:
    """Whether a variable sets a proxy, by the names that programs read and the tool-specific ones."""
    bare = name.upper()
    return bare in PROXIES or (bare.endswith(("_PROXY", "_HTTPS_PROXY")) and bare not in _NO_PROXY)


def is_endpoint(name: str) -> bool:
    """Whether a variable sets where models, packages or telemetry are fetched or sent."""
    return name.upper() in ENDPOINTS or (name.upper().startswith(_TELEMETRY) and name.upper().endswith("_ENDPOINT"))


def _items(source: Any) -> Iterable[tuple[Any, Any]]:
    return source.items() if isinstance(source, Mapping) else ((key, None) for key in source)


def _pointer(reference: Any) -> dict[str, Any]:
    """The source of a value: names, and no value."""
    if not isinstance(reference, Mapping):
        return {}
    return {key: reference[key] for key in ("name", "key", "fieldPath") if isinstance(reference.get(key), str)}


def _hosts(name: str, value: str) -> str:
    urls = list(addresses(value))
    if not urls and is_endpoint(name) and "://" not in value and (host := host_outside(value)):
        urls = [f"//{host}"]
    return " ".join(dict.fromkeys(urls))
