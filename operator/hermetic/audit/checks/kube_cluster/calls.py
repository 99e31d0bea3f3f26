"""Destinations that the API server and the cluster's storage drivers call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlsplit

from hermetic.audit.checks.family import check
from hermetic.audit.cluster.objects import everywhere
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.calls import (
    ApiService,
    ClientConfig,
    CsiDriver,
    CustomResourceDefinition,
    MutatingWebhookConfiguration,
    ServiceReference,
    ValidatingWebhookConfiguration,
    WebhookConfiguration,
)
from hermetic.audit.estate.kubernetes.names import is_inside
from hermetic.audit.estate.kubernetes.objects import KubernetesObject
from hermetic.audit.estate.kubernetes.services import Service
from hermetic.audit.evaluation.each_object import counted, objections, settled
from hermetic.audit.evaluation.results import CheckResult, fails, unknown
from hermetic.audit.model.hops import path_of
from hermetic.audit.policy.declarations import Policy

# Drivers that mount what a private endpoint serves, and call no cloud service from the node.
KNOWN_DRIVERS = frozenset(
    {"disk.csi.azure.com", "file.csi.azure.com", "blob.csi.azure.com", "nfs.csi.k8s.io", "csi.tigera.io"}
)
Services = Mapping[tuple[str, str], Service]
"""By namespace and name."""


_DRIVER = (
    "See which services it calls, and accept it by an exception. No command is given: volumes may need the driver."
)
_GUARDS = """
Let it name a Service of the cluster in place of a URL, or delete the configuration.
Warning: this webhook then no longer guards any object.
kubectl delete validatingwebhookconfiguration NAME
"""
_ADDS = """
Let it name a Service of the cluster in place of a URL, or delete the configuration.
Warning: this webhook then no longer adds to any object.
kubectl delete mutatingwebhookconfiguration NAME
"""


@check("k8s-webhook-external")
def k8s_webhook_external(estate: Estate, _policy: Policy) -> Iterator[CheckResult]:
    """A webhook with a URL makes the API server call it, with the object in the request."""
    validating = everywhere(estate, ValidatingWebhookConfiguration)
    mutating = everywhere(estate, MutatingWebhookConfiguration)
    definitions, services = everywhere(estate, CustomResourceDefinition), everywhere(estate, Service)
    services_by_name = _by_name(services)

    def evaluate(configuration: WebhookConfiguration) -> Iterator[CheckResult]:
        remedy = _GUARDS if isinstance(configuration, ValidatingWebhookConfiguration) else _ADDS
        for webhook in configuration.webhooks or ():
            yield from _evaluate_url(configuration, f"webhook {webhook.name}", webhook.client_config, remedy=remedy)

    results = (
        *objections(validating, evaluate),
        *objections(mutating, evaluate),
        *objections(definitions, lambda definition: _evaluate_conversion(definition, services_by_name)),
    )
    admission = counted(len(validating) + len(mutating), "webhook configuration")
    fine = f"{admission} and {counted(len(definitions), 'conversion webhook')}: none calls anything outside"
    yield from settled(estate, results, "WebhooksInside", fine, validating, mutating, definitions, services)


def _evaluate_conversion(definition: CustomResourceDefinition, services_by_name: Services) -> Iterator[CheckResult]:
    conversion = definition.spec.conversion
    if conversion is None or conversion.webhook is None:
        return
    config = conversion.webhook.client_config
    yield from _evaluate_url(definition, "the conversion webhook", config, remedy=_CONVERT)
    if config.service is not None:
        yield from _evaluate_service(definition, "is converted", config.service, services_by_name, remedy=_CONVERT)


CALLS = (("webhooks",), ("spec", "conversion"))
"""The fields that name what the API server calls."""


def _evaluate_url(
    kubernetes_object: KubernetesObject, who: str, config: ClientConfig, *, remedy: str = ""
) -> Iterator[CheckResult]:
    url = config.url
    if url is not None and not is_inside(_host(url)):
        whom = _host(url) or url
        path = path_of("API server", whom)
        yield fails(
            kubernetes_object.id,
            "WebhookOutside",
            f"{who} calls {whom}",
            kubernetes_object,
            paths=(path,),
            remedy=remedy,
            blames=CALLS,
        )


@check("k8s-apiservice-external")
def k8s_apiservice_external(estate: Estate, _policy: Policy) -> Iterator[CheckResult]:
    """An aggregated API is served by a Service of the cluster; a driver that is not known may call any service."""
    api_services, drivers = everywhere(estate, ApiService), everywhere(estate, CsiDriver)
    services = everywhere(estate, Service)
    services_by_name = _by_name(services)

    def evaluate_driver(driver: CsiDriver) -> Iterator[CheckResult]:
        if driver.metadata.name not in KNOWN_DRIVERS:
            message = "a driver that this release does not know: its nodes or controller may call a cloud service"
            yield unknown(driver.id, "DriverUnknown", message, driver, remedy=_DRIVER)

    results = (
        *objections(api_services, lambda api_service: _evaluate_api(api_service, services_by_name)),
        *objections(drivers, evaluate_driver),
    )
    fine = f"{counted(len(api_services), 'APIService')} and {counted(len(drivers), 'CSI driver')}: none calls outside"
    yield from settled(estate, results, "CallsInside", fine, api_services, drivers, services)


def _evaluate_api(api_service: ApiService, services_by_name: Services) -> Iterator[CheckResult]:
    if api_service.spec.service is not None:
        yield from _evaluate_service(api_service, "is answered", api_service.spec.service, services_by_name)


def _evaluate_service(
    kubernetes_object: KubernetesObject,
    verb: str,
    reference: ServiceReference,
    services_by_name: Services,
    *,
    remedy: str = "",
) -> Iterator[CheckResult]:
    where = f"{verb} by Service {reference.namespace}/{reference.name}, which"
    service = services_by_name.get((reference.namespace, reference.name))
    if service is None:
        yield unknown(kubernetes_object.id, "ServiceNotSeen", f"{where} was not seen", kubernetes_object, remedy=remedy)
    elif service.spec.type == "ExternalName" and not is_inside(service.spec.external_name or ""):
        message = f"{where} is a name for {service.spec.external_name}"
        yield fails(kubernetes_object.id, "AnsweredOutside", message, kubernetes_object, service, remedy=remedy)
    elif not service.spec.selector and service.spec.type != "ExternalName":
        message = f"{where} selects no pod: see k8s-endpoints-external for where it leads"
        yield unknown(kubernetes_object.id, "ServiceWithoutPods", message, kubernetes_object, service, remedy=remedy)


def _by_name(services: Iterable[Service]) -> Services:
    return {(service.namespace, service.metadata.name): service for service in services}


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


_CONVERT = """
Let the conversion webhook name a Service of the cluster, with pods of its own, in place of what it calls. Where the
definition has one version, or all its versions have the same fields, it needs no webhook.
Warning: without it, objects that are stored in another version are served with the fields of that version.
kubectl patch customresourcedefinition NAME --type merge \\
--patch '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'
"""
