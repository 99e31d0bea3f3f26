"""Whom the API server and the cluster's drivers call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.calls import (
    ApiService,
    CsiDriver,
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
    WebhookConfiguration,
)
from hermetic.audit.estate.kubernetes.names import is_inside
from hermetic.audit.estate.kubernetes.services import Service
from hermetic.audit.judging import Judgement, cannot_say, fails
from hermetic.audit.looking_at_objects import counted, everywhere, objections, settled
from hermetic.audit.policy import Policy

# Drivers that mount what a private endpoint serves, and call no cloud from the node.
KNOWN_DRIVERS = frozenset(
    {"disk.csi.azure.com", "file.csi.azure.com", "blob.csi.azure.com", "nfs.csi.k8s.io", "csi.tigera.io"}
)


def webhooks(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """A webhook with a URL makes the API server call it, with the object in the request."""
    validating = everywhere(estate, ValidatingWebhookConfiguration)
    mutating = everywhere(estate, MutatingWebhookConfiguration)

    def judge(configuration: WebhookConfiguration) -> Iterator[Judgement]:
        for webhook in configuration.webhooks or ():
            url = webhook.client_config.url
            if url is not None and not is_inside(_host(url)):
                yield fails(
                    configuration.id,
                    "WebhookOutside",
                    f"webhook {webhook.name} calls {_host(url) or url}",
                    configuration,
                    paths=(f"API server -> {_host(url) or url}",),
                )

    said = (*objections(validating, judge), *objections(mutating, judge))
    number = len(validating) + len(mutating)
    fine = f"{counted(number, 'webhook configuration')}: none calls anything outside"
    yield from settled(estate, said, "WebhooksInside", fine, validating, mutating)


def aggregated(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """An aggregated API is answered by a Service, and a driver calls whom it likes: both are worth a look."""
    api_services, drivers = everywhere(estate, ApiService), everywhere(estate, CsiDriver)
    services = everywhere(estate, Service)
    known = {(one.namespace, one.metadata.name): one for one in services}

    def judge_driver(driver: CsiDriver) -> Iterator[Judgement]:
        if driver.metadata.name not in KNOWN_DRIVERS:
            message = "a driver that this release does not know: its nodes or controller may call a cloud service"
            yield cannot_say(driver.id, "DriverUnknown", message, driver, remedy="Look whom it calls, and accept it.")

    said = (
        *objections(api_services, lambda one: _judge_api(one, known)),
        *objections(drivers, judge_driver),
    )
    fine = f"{counted(len(api_services), 'APIService')} and {counted(len(drivers), 'CSI driver')}: none calls outside"
    yield from settled(estate, said, "CallsInside", fine, api_services, drivers, services)


def _judge_api(one: ApiService, services: Mapping[tuple[str, str], Service]) -> Iterator[Judgement]:
    reference = one.spec.service
    if reference is None:
        return
    where = f"{reference.namespace}/{reference.name}"
    service = services.get((reference.namespace, reference.name))
    if service is None:
        yield cannot_say(one.id, "ServiceNotSeen", f"is answered by Service {where}, which was not seen", one)
    elif service.spec.type == "ExternalName" and not is_inside(service.spec.external_name or ""):
        name = service.spec.external_name
        yield fails(one.id, "AnsweredOutside", f"is answered by Service {where}, which stands for {name}", one, service)
    elif not service.spec.selector and service.spec.type != "ExternalName":
        message = f"is answered by Service {where}, which selects no pod: see k8s-endpoints-external for where it leads"
        yield cannot_say(one.id, "ServiceWithoutPods", message, one, service)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
