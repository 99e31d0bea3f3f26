"""Objects by which add-ons of AKS are told what to call. Their own pods are in namespaces without default deny.

Sources: learn.microsoft.com/azure/azure-monitor/containers/prometheus-metrics-scrape-crd, which names the group, and
prometheus-operator.dev/docs/api-reference/api for the fields; Azure/secrets-store-csi-driver-provider-azure
(pkg/provider/types) and secrets-store-csi-driver.sigs.k8s.io/providers; Gatekeeper: External data; microsoft/retina,
crds/retina.sh_captures.yaml and retina.sh_tracesconfigurations.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from hermetic.audit.estate.kubernetes.callers import UNRESOLVED, CallerByFields, addresses_in, list_of
from hermetic.audit.estate.kubernetes.objects import api_object

# A relabeling that keeps the address of the pod and takes the port from a label, as it is documented.
_KEEPS_ADDRESS = frozenset({r"([^:]+)(?::\d+)?;(\d+)", r"(.+?)(?::\d+)?;(\d+)", r"(.+)(?::\d+);(\d+)"})
_JOINED = frozenset({"$1:$2", "${1}:${2}"})
# Names of labels and annotations begin with a letter or a digit: mapped whole, none becomes __address__.
_MAPPED_LABELS = frozenset(
    f"__meta_kubernetes_{of}_{kind}_(.+)"
    for of in ("pod", "service", "node", "namespace")
    for kind in ("label", "annotation")
)


class Monitor(CallerByFields):
    """`ENDPOINTS` is the field with the endpoints that are scraped."""

    CALLED_BY = "the metrics add-on"
    HOP = "collector of metrics"
    OPERATED_BY = frozenset({"ama-metrics", "ama-metrics-operator-targets"})
    ENDPOINTS: ClassVar[str]

    @classmethod
    def named_addresses(cls, spec: Mapping[str, Any]) -> Iterator[str]:
        """Proxies, servers of tokens, and addresses that relabeling puts in the place of a pod's."""
        for endpoint in list_of(spec.get(cls.ENDPOINTS)):
            yield from addresses_in(endpoint, "proxyUrl")
            if isinstance(endpoint, Mapping):
                yield from addresses_in(endpoint.get("oauth2"), "tokenUrl", "proxyUrl")
                for rule in list_of(endpoint.get("relabelings")):
                    yield from _relabelled_address(rule)


def _relabelled_address(rule: Any) -> Iterator[str]:
    """The address that a rule gives to every target; UNRESOLVED where it depends on labels."""
    if not isinstance(rule, Mapping):
        yield UNRESOLVED
    elif str(rule.get("action", "")).lower() == "labelmap":
        if rule.get("regex") not in _MAPPED_LABELS or rule.get("replacement", "$1") not in {"$1", "${1}"}:
            yield UNRESOLVED
    elif "__address__" in str(rule.get("targetLabel")) or "$" in str(rule.get("targetLabel")):
        replacement = rule.get("replacement", "$1")
        if isinstance(replacement, str) and "$" not in replacement:
            yield from addresses_in({"address": replacement})
        elif not _keeps_the_address(rule):
            yield UNRESOLVED


def _keeps_the_address(rule: Mapping[str, Any]) -> bool:
    is_split = rule.get("regex") in _KEEPS_ADDRESS and rule.get("separator", ";") == ";"
    return is_split and list_of(rule.get("sourceLabels"))[:1] == ["__address__"] and rule.get("replacement") in _JOINED


@api_object("azmonitoring.coreos.com/v1/podmonitors", "PodMonitor")
class PodMonitor(Monitor):
    ENDPOINTS = "podMetricsEndpoints"


@api_object("azmonitoring.coreos.com/v1/servicemonitors", "ServiceMonitor")
class ServiceMonitor(Monitor):
    ENDPOINTS = "endpoints"


_NAME_OF_A_VAULT = re.compile(r"[A-Za-z0-9-]{3,24}")
# Providers that call the service of their vendor where no parameter names another server.
_OF_VENDORS = {"aws": "https://amazonaws.com", "gcp": "https://googleapis.com", "akeyless": "https://akeyless.io"}
_OF_AZURE = "azure"
_NAMES_OF_SECRETS = frozenset({"objects", "secrets"})


@api_object("secrets-store.csi.x-k8s.io/v1/secretproviderclasses", "SecretProviderClass")
class SecretProviderClass(CallerByFields):
    """A vault of Azure by its name is no address: whether a vault can be reached, the Azure checks decide."""

    CALLED_BY = "a provider of the secrets store"
    HOP = "provider of secrets"
    OPERATED_BY = frozenset(
        {"aks-secrets-store-provider-azure", "csi-secrets-store-provider-azure", "vault-csi-provider"}
    )

    @classmethod
    def named_addresses(cls, spec: Mapping[str, Any]) -> Iterator[str]:
        """Servers among the parameters, and UNRESOLVED where a file of the provider's machine names them."""
        parameters, provider = spec.get("parameters"), spec.get("provider")
        if not isinstance(parameters, Mapping):
            yield from addresses_in(parameters)
            return
        called = {field: value for field, value in parameters.items() if field not in _NAMES_OF_SECRETS}
        named = list(addresses_in(called))
        yield from named
        if not named and provider in _OF_VENDORS:
            yield _OF_VENDORS[str(provider)]
        if provider == _OF_AZURE:
            yield from _of_azure(called)


def _of_azure(parameters: Mapping[str, Any]) -> Iterator[str]:
    name = str(parameters.get("keyvaultName") or "").strip()
    if name and not _NAME_OF_A_VAULT.fullmatch(name):
        yield UNRESOLVED
    if parameters.get("cloudEnvFileName"):
        yield UNRESOLVED


@api_object("externaldata.gatekeeper.sh/v1beta1/providers", "Provider", namespaced=False)
class ExternalDataProvider(CallerByFields):
    CALLED_BY = "Gatekeeper"
    HOP = "Gatekeeper"
    OPERATED_BY = frozenset({"gatekeeper-audit", "gatekeeper-controller", "gatekeeper-controller-manager"})

    @classmethod
    def named_addresses(cls, spec: Mapping[str, Any]) -> Iterator[str]:
        """Its server."""
        yield from addresses_in(spec, "url")


class OfRetina(CallerByFields):
    OPERATED_BY = frozenset({"retina-agent", "retina-operator"})


@api_object("retina.sh/v1alpha1/captures", "Capture")
class Capture(OfRetina):
    """Packets of pods and nodes, and where they are stored."""

    CALLED_BY = "a job of Retina"
    HOP = "captured packets"

    @classmethod
    def named_addresses(cls, spec: Mapping[str, Any]) -> Iterator[str]:
        """The store of packets; UNRESOLVED for one whose URL is in a Secret."""
        output = spec.get("outputConfiguration")
        if not isinstance(output, Mapping):
            yield from addresses_in(output)
            return
        if output.get("blobUpload") is not None:
            yield UNRESOLVED
        store = output.get("s3Upload")
        if isinstance(store, Mapping) and not store.get("endpoint"):
            yield "https://amazonaws.com"
        yield from addresses_in(store, "endpoint")


@api_object("retina.sh/v1alpha1/tracesconfigurations", "TracesConfiguration", namespaced=False)
class TracesConfiguration(OfRetina):
    CALLED_BY = "the agent of Retina"
    HOP = "traces of packets"

    @classmethod
    def named_addresses(cls, spec: Mapping[str, Any]) -> Iterator[str]:
        """The receiver of traces; UNRESOLVED for one that its connection does not name."""
        output = spec.get("outputConfiguration")
        if isinstance(output, Mapping) and output.get("destination") != "stdout":
            addresses = list(addresses_in({"endpoint": output.get("connectionConfiguration")}))
            yield from addresses or (UNRESOLVED,)
