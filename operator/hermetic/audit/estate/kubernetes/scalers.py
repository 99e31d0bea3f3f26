"""KEDA's objects: what its operator calls for them.

Kept are the addresses outside that they name, for a value may be secret.
Source: keda.sh/docs/latest: scalers, concepts/authentication, authentication-providers, operate/cloud-events.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.kubernetes.callers import (
    UNRESOLVED,
    Caller,
    CallerByFields,
    addresses_in,
    addresses_kept,
    list_of,
    names_an_address,
)
from hermetic.audit.estate.kubernetes.objects import Trimmed, WithUnreadFields, api_object
from hermetic.audit.estate.resource import Part

# Services that a trigger calls by its type alone, where it names no address.
SERVICES_OUTSIDE = {
    "aws-": "amazonaws.com",
    "datadog": "datadoghq.com",
    "gcp-": "googleapis.com",
    "github-runner": "api.github.com",
    "new-relic": "api.newrelic.com",
}
# Fields of an authentication: services that it fetches from, and lists of parameters with the trigger's names.
_SECRETS_OUTSIDE = {"awsSecretManager": "amazonaws.com", "gcpSecretManager": "googleapis.com"}
_SECRETS = ("hashiCorpVault", "azureKeyVault", *_SECRETS_OUTSIDE)
_PARAMETERS = ("secretTargetRef", "configMapTargetRef", "env", "filePath", "secrets")
_CONNECTION = re.compile(r"connection(string)?", re.IGNORECASE)


class Trigger(Trimmed):
    """Where a scaler asks; `type` names it."""

    type: str = ""
    metadata: FreeMap[str] | None = None

    @classmethod
    def trimmed(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Reduce each value of the metadata to the addresses outside that it names."""
        metadata = fields.get("metadata")
        return {**fields, "metadata": addresses_kept(metadata)} if isinstance(metadata, Mapping) else fields

    @property
    def addresses(self) -> Iterator[str]:
        """What the scaler calls outside."""
        named = [address for text in (self.metadata or {}).values() for address in text.split()]
        yield from named
        if not named:
            yield from (host for prefix, host in SERVICES_OUTSIDE.items() if self.type.startswith(prefix))


class ScalerSpec(Part):
    triggers: list[Trigger] | None = None


class OfKeda(Caller):
    CALLED_BY = "KEDA's operator"
    HOP = "operator of KEDA"
    OPERATED_BY = frozenset({"keda-operator"})


class Scaler(OfKeda):
    spec: ScalerSpec = ScalerSpec()

    @property
    def calls(self) -> Iterator[str]:
        """The addresses of all triggers."""
        for trigger in self.spec.triggers or ():
            yield from trigger.addresses


@api_object("keda.sh/v1alpha1/scaledobjects", "ScaledObject")
class ScaledObject(Scaler):
    pass


@api_object("keda.sh/v1alpha1/scaledjobs", "ScaledJob")
class ScaledJob(Scaler):
    pass


class Authentication(CallerByFields, OfKeda):
    """Where the operator fetches parameters of triggers, and those of them that are addresses."""

    @classmethod
    def named_addresses(cls, spec: Mapping[str, Any]) -> Iterator[str]:
        """The servers of secrets, and UNRESOLVED where a parameter from elsewhere names what a trigger calls."""
        yield from addresses_in(spec.get("hashiCorpVault"), "address")
        vault = spec.get("azureKeyVault")
        yield from addresses_in(vault, "vaultUri")
        if isinstance(vault, Mapping):
            yield from addresses_in(vault.get("cloud"))
        yield from (f"https://{host}" for field, host in _SECRETS_OUTSIDE.items() if spec.get(field) is not None)
        for source in (spec, *(spec.get(field) for field in _SECRETS)):
            if isinstance(source, Mapping):
                yield from (UNRESOLVED for field in _PARAMETERS for _ in _address_parameters(source.get(field)))


def _address_parameters(parameters: Any) -> Iterator[str]:
    for entry in list_of(parameters):
        name = entry.get("parameter") if isinstance(entry, Mapping) else ""
        if not isinstance(name, str) or not name or names_an_address(name) or _CONNECTION.fullmatch(name):
            yield str(name)


@api_object("keda.sh/v1alpha1/triggerauthentications", "TriggerAuthentication")
class TriggerAuthentication(Authentication):
    pass


@api_object("keda.sh/v1alpha1/clustertriggerauthentications", "ClusterTriggerAuthentication", namespaced=False)
class ClusterTriggerAuthentication(Authentication):
    pass


class EventReceiver(Trimmed):
    """`uri` of an HTTP receiver, `endpoint` of a topic of Event Grid."""

    uri: str = ""
    endpoint: str = ""

    @classmethod
    def trimmed(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Reduce both to the addresses outside that they name."""
        texts = {key: value for key, value in fields.items() if isinstance(value, str)}
        return {**{key: value for key, value in fields.items() if key not in texts}, **addresses_kept(texts)}


class EventDestination(WithUnreadFields):
    http: EventReceiver | None = None
    azure_event_grid_topic: EventReceiver | None = None


class EventSourceSpec(WithUnreadFields):
    HARMLESS: ClassVar = frozenset({"authenticationRef", "clusterName", "eventSubscription"})
    destination: EventDestination | None = None


class EventSource(OfKeda):
    spec: EventSourceSpec = EventSourceSpec()

    @property
    def calls(self) -> Iterator[str]:
        """The addresses of its receivers."""
        destination = self.spec.destination or EventDestination()
        for receiver in (destination.http, destination.azure_event_grid_topic):
            if receiver is not None:
                yield from f"{receiver.uri} {receiver.endpoint}".split()


@api_object("eventing.keda.sh/v1alpha1/cloudeventsources", "CloudEventSource")
class CloudEventSource(EventSource):
    pass


@api_object("eventing.keda.sh/v1alpha1/clustercloudeventsources", "ClusterCloudEventSource", namespaced=False)
class ClusterCloudEventSource(EventSource):
    pass
