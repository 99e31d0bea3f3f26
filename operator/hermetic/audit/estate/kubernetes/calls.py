"""Outbound calls of the API server (webhooks, aggregated APIs), CSI drivers, and ConfigMaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.kubernetes.config_values import kept_variables
from hermetic.audit.estate.kubernetes.engine_settings import CILIUM_CONFIG, kept_settings
from hermetic.audit.estate.kubernetes.environment import NOT_KEPT
from hermetic.audit.estate.kubernetes.mesh_config import MeshConfig, mesh_summary
from hermetic.audit.estate.kubernetes.objects import KubernetesObject, Trimmed, api_object
from hermetic.audit.estate.resource import Part

IMPORTED = (".server", ".override")
"""Suffixes of the keys of kube-system/coredns-custom that AKS's Corefile imports."""


class ServiceReference(Part):
    namespace: str = ""
    name: str = ""


class ClientConfig(Part):
    """The target of a call: a URL, or a Service of the cluster."""

    url: str | None = None
    service: ServiceReference | None = None


class Webhook(Part):
    name: str = ""
    client_config: ClientConfig = ClientConfig()


class WebhookConfiguration(KubernetesObject):
    webhooks: list[Webhook] | None = None


@api_object(
    "admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
class ValidatingWebhookConfiguration(WebhookConfiguration):
    pass


@api_object(
    "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False
)
class MutatingWebhookConfiguration(WebhookConfiguration):
    pass


class ConversionWebhook(Part):
    """The target that the API server calls to convert an object to another version."""

    client_config: ClientConfig = ClientConfig()


class Conversion(Part):
    webhook: ConversionWebhook | None = None


class CustomResourceDefinitionSpec(Part):
    """Only the conversion of a definition: its schemas are hundreds of KiB."""

    conversion: Conversion | None = None


@api_object("apiextensions.k8s.io/v1/customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
class CustomResourceDefinition(Trimmed, KubernetesObject):
    """Kept of those with a conversion webhook: name, webhook, writer."""

    spec: CustomResourceDefinitionSpec = CustomResourceDefinitionSpec()

    @classmethod
    def trimmed(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Keep the name and the field managers of the metadata only."""
        metadata = fields.get("metadata")
        if not isinstance(metadata, Mapping):
            return fields
        return {**fields, "metadata": {key: metadata[key] for key in ("name", "managedFields") if key in metadata}}

    @classmethod
    def is_relevant(cls, fields: Mapping[str, Any]) -> bool:
        """False without a conversion webhook, as for most of them."""
        value: Any = fields
        for field in ("spec", "conversion", "webhook"):
            value = value.get(field)
            if not isinstance(value, Mapping):
                return value is not None  # a check must report a value that cannot be read
        return True


class ApiServiceSpec(Part):
    """The Service of an API group; without one, the API server itself."""

    service: ServiceReference | None = None


@api_object("apiregistration.k8s.io/v1/apiservices", "APIService", namespaced=False)
class ApiService(KubernetesObject):
    spec: ApiServiceSpec = ApiServiceSpec()


@api_object("storage.k8s.io/v1/csidrivers", "CSIDriver", namespaced=False)
class CsiDriver(KubernetesObject):
    pass


@api_object("v1/configmaps", "ConfigMap")
class ConfigMap(Trimmed, KubernetesObject):
    """Kept are Corefiles, the mesh's outbound configuration, and values that matter as variables."""

    data: FreeMap[str] | None = None
    binary_data: FreeMap[str] | None = None
    """Names only: CoreDNS reads these files like all others."""
    variables: FreeMap[str] | None = None
    """What is kept of each value, see `config_values`."""
    mesh: MeshConfig | None = None
    engine_settings: FreeMap[str] | None = None
    """Of Cilium's own ConfigMap, see `engine_settings`."""

    @classmethod
    def trimmed(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Keep files that CoreDNS imports, and the summaries made of the other keys."""
        data, binary = fields.get("data"), fields.get("binaryData")
        named = {"metadata": fields["metadata"]} if "metadata" in fields else {}
        metadata = named.get("metadata")
        is_resolvers = isinstance(metadata, Mapping) and metadata.get("namespace") == "kube-system"
        if not isinstance(data, Mapping | None):
            return {**named, "data": data}
        data = data or {}
        files = {key: value for key, value in data.items() if is_resolvers and _is_imported(str(key))}
        names = {key: NOT_KEPT for key in binary or () if is_resolvers and _is_imported(str(key))}
        summary = {
            "data": files,
            "binaryData": names,
            "variables": kept_variables({key: value for key, value in data.items() if key not in files}),
            "mesh": mesh_summary(_name(metadata), data),
            "engineSettings": kept_settings(data) if _is_of_cilium(metadata) else {},
        }
        return {**named, **{key: value for key, value in summary.items() if value}}

    @classmethod
    def is_relevant(cls, fields: Mapping[str, Any]) -> bool:
        """False where nothing was kept, as for most of them."""
        return any(fields.get(key) for key in ("data", "binaryData", "variables", "mesh", "engineSettings"))


def _name(metadata: Any) -> str:
    return str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""


def _is_of_cilium(metadata: Any) -> bool:
    return isinstance(metadata, Mapping) and (metadata.get("namespace"), metadata.get("name")) == CILIUM_CONFIG


def _is_imported(key: str) -> bool:
    return key == "Corefile" or key.endswith(IMPORTED)
