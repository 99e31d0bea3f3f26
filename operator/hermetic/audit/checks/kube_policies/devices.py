"""Network devices that pods are given by Dynamic Resource Allocation, and that no NetworkPolicy applies to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from hermetic.api.field_managers import SPEC
from hermetic.audit.cluster.objects import everywhere
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.devices import (
    ClaimSpec,
    DeviceClass,
    DeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from hermetic.audit.estate.kubernetes.objects import KubernetesObject
from hermetic.audit.estate.observation import Listing
from hermetic.audit.evaluation.each_object import objections
from hermetic.audit.evaluation.results import CheckResult, fails, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.hops import POD, path_of
from hermetic.errors import FactDamaged

_OF_DRANET = "dra.net"
# dranet.sigs.k8s.io/docs/user/azure-aks, learn.microsoft.com/azure/aks/managed-support-for-dranet;
# docs.nvidia.com/networking, DRA SR-IOV Driver.
NETWORK_DRIVERS = frozenset({_OF_DRANET, "sriovnetwork.k8snetworkplumbingwg.io"})
# github.com/kubernetes-sigs/dra-driver-nvidia-gpu; dranet.sigs.k8s.io/docs/user/azure-aks for that of AMD.
GPU_DRIVERS = frozenset({"gpu.nvidia.com", "compute-domain.nvidia.com", "gpu.amd.com"})
_REMEDY = """
Delete the claims, the class and the driver of the device. Where pods need it, for RDMA in a fabric without a router for
example, make sure that its network leads nowhere else, and accept it by an exception.
kubectl get deviceclasses,resourceslices && kubectl get resourceclaims,resourceclaimtemplates --all-namespaces
"""


@dataclass(frozen=True)
class _Inventory:
    """Drivers that offer devices, and the driver of each class ("" for any)."""

    installed: frozenset[str]
    classes: Mapping[str, str]

    def of_a_class(self, driver: str) -> frozenset[str]:
        return frozenset({driver}) if driver else self.installed

    def of_a_request(self, request: DeviceRequest) -> frozenset[str]:
        """The drivers whose devices can meet it; empty for a class that does not exist, which nothing meets."""
        if request.device_class_name not in self.classes:
            return frozenset()
        drivers = self.of_a_class(self.classes[request.device_class_name])
        return drivers & {request.driver} if request.driver else drivers


def device_listings(estate: Estate) -> tuple[Listing[KubernetesObject], ...]:
    """The lists that `device_results` rests on."""
    kinds: tuple[type[KubernetesObject], ...] = (ResourceClaim, ResourceClaimTemplate, DeviceClass, ResourceSlice)
    return tuple(everywhere(estate, kind) for kind in kinds)


def device_results(estate: Estate) -> Iterator[CheckResult]:
    """What is wrong with classes, claims and templates, and with drivers that no class names."""
    inventory = _inventory(estate)
    yield from objections(everywhere(estate, DeviceClass), partial(_evaluate_class, inventory))
    yield from objections(everywhere(estate, ResourceClaimTemplate), partial(_evaluate_template, inventory))
    yield from objections(everywhere(estate, ResourceClaim), partial(_evaluate_claim, inventory))
    reported = frozenset().union(*map(inventory.of_a_class, inventory.classes.values()))
    # A slice for each node: the first one stands for its driver.
    drivers: dict[str, ResourceSlice] = {}
    for offered in everywhere(estate, ResourceSlice):
        yield from objections((offered,), partial(_collect_driver, drivers))
    for driver, offered in sorted(drivers.items()):
        if driver not in reported:
            yield from _evaluate_drivers(offered, "offers", frozenset({driver}))


def _inventory(estate: Estate) -> _Inventory:
    classes: dict[str, str] = {}
    installed: dict[str, ResourceSlice] = {}
    for device_class in everywhere(estate, DeviceClass):
        try:
            classes[device_class.metadata.name] = device_class.driver
        except FactDamaged:  # reported for the class itself
            classes[device_class.metadata.name] = ""
    for offered in everywhere(estate, ResourceSlice):
        tuple(objections((offered,), partial(_collect_driver, installed)))
    return _Inventory(frozenset(installed), classes)


def _collect_driver(drivers: dict[str, ResourceSlice], offered: ResourceSlice) -> Iterator[CheckResult]:
    drivers.setdefault(offered.spec.driver, offered)
    yield from ()


def _evaluate_class(inventory: _Inventory, device_class: DeviceClass) -> Iterator[CheckResult]:
    drivers = inventory.of_a_class(device_class.driver)
    configured = (entry.opaque.driver for entry in device_class.spec.config or () if entry.opaque is not None)
    yield from _evaluate_drivers(device_class, "lets pods claim", drivers | frozenset(configured))


def _evaluate_template(inventory: _Inventory, template: ResourceClaimTemplate) -> Iterator[CheckResult]:
    yield from _evaluate_drivers(template, "gives each pod", _drivers_of(inventory, template.spec.spec))


def _evaluate_claim(inventory: _Inventory, claim: ResourceClaim) -> Iterator[CheckResult]:
    if claim.status.has_an_interface:
        yield _network_device(claim, "its status shows a network interface that a driver moved into the pod")
        return
    drivers = _drivers_of(inventory, claim.spec) | frozenset(claim.status.allocated_drivers)
    yield from _evaluate_drivers(claim, "gives its pods", drivers)


def _drivers_of(inventory: _Inventory, spec: ClaimSpec) -> frozenset[str]:
    requested = (driver for request in spec.requests for driver in inventory.of_a_request(request))
    return frozenset(requested) | frozenset(spec.configured_drivers)


def _evaluate_drivers(source: KubernetesObject, verb: str, drivers: frozenset[str]) -> Iterator[CheckResult]:
    network = sorted(driver for driver in drivers if is_of_a_network(driver))
    unknown_drivers = sorted(drivers - GPU_DRIVERS - frozenset(network))
    if network:
        yield _network_device(source, f"{verb} network devices of {', '.join(network)}")
    elif unknown_drivers:
        message = (
            f"{verb} devices of {', '.join(name or '(no name)' for name in unknown_drivers[:3])}, a driver that this "
            "release does not know: one of a network would give a pod an interface that no NetworkPolicy applies to"
        )
        yield unknown(source.id, "DeviceDriverNotKnown", message, source, remedy=_REMEDY)


def is_of_a_network(driver: str) -> bool:
    """Whether a driver is known to move network interfaces into pods."""
    return driver in NETWORK_DRIVERS or driver.endswith(f".{_OF_DRANET}")


def _network_device(source: KubernetesObject, text: str) -> CheckResult:
    path = path_of(POD, hops.kubernetes(source.id), "network of the device")
    message = f"{text}: no NetworkPolicy applies to such an interface"
    return fails(source.id, "NetworkDevice", message, source, paths=(path,), remedy=_REMEDY, blames=(SPEC,))
