"""Devices by Dynamic Resource Allocation: what a claim may be given, as far as the driver decides it.

Source: kubernetes.io/docs/concepts/resource-management/dynamic-resource-allocation/dra-api, and the versions
v1beta1 and v1beta2 of the group, whose fields differ where the models say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.kubernetes.objects import KubernetesObject, api_object
from hermetic.audit.estate.resource import Part

_EARLIER = ("v1beta2", "v1beta1")
# The comparison that begins an expression: what is joined to it by && can only narrow it.
_ONE_DRIVER = re.compile(r"""device\.driver\s*==\s*(["'])(?P<driver>[a-z0-9.-]+)\1\s*(&&.*)?""", re.DOTALL)
_ALTERNATIVES = ("||", "?")


class CelExpression(Part):
    expression: str = ""

    @property
    def driver(self) -> str:
        """The only driver that it accepts; "" where it does not say so plainly."""
        text = self.expression.strip()
        match = _ONE_DRIVER.fullmatch(text)
        return match["driver"] if match is not None and not any(mark in text for mark in _ALTERNATIVES) else ""


class DeviceSelector(Part):
    cel: CelExpression | None = None


class DeviceRequest(Part):
    """A class of devices, and selectors that narrow it."""

    device_class_name: str = ""
    selectors: list[DeviceSelector] | None = None

    @property
    def driver(self) -> str:
        """The only driver that its own selectors accept; "" for any."""
        return only_driver(self.selectors or ())


class AnyDeviceRequest(DeviceRequest):
    """One request, in v1 and v1beta2 below `exactly`; `first_available` are alternatives."""

    exactly: DeviceRequest | None = None
    first_available: list[DeviceRequest] | None = None

    @property
    def every(self) -> Iterator[DeviceRequest]:
        """Every class that it may be met from."""
        if self.device_class_name:
            yield self
        if self.exactly is not None:
            yield self.exactly
        yield from self.first_available or ()


class OpaqueParameters(Part):
    driver: str = ""


class DeviceConfiguration(Part):
    """Parameters for one driver."""

    opaque: OpaqueParameters | None = None


class DeviceClaim(Part):
    requests: list[AnyDeviceRequest] | None = None
    config: list[DeviceConfiguration] | None = None


class ClaimSpec(Part):
    devices: DeviceClaim | None = None

    @property
    def requests(self) -> Iterator[DeviceRequest]:
        """Every request, alternatives among them."""
        for request in (self.devices.requests or ()) if self.devices is not None else ():
            yield from request.every

    @property
    def configured_drivers(self) -> Iterator[str]:
        """The drivers that it has parameters for."""
        for configuration in (self.devices.config or ()) if self.devices is not None else ():
            if configuration.opaque is not None:
                yield configuration.opaque.driver


class AllocatedDevice(Part):
    driver: str = ""


class AllocatedDevices(Part):
    results: list[AllocatedDevice] | None = None


class Allocation(Part):
    devices: AllocatedDevices | None = None


class DeviceStatus(Part):
    """`network_data` is there for an interface in a pod's network namespace: its name and addresses."""

    driver: str = ""
    network_data: FreeMap[Any] | None = None


class ClaimStatus(Part):
    allocation: Allocation | None = None
    devices: list[DeviceStatus] | None = None

    @property
    def allocated_drivers(self) -> Iterator[str]:
        """The drivers whose devices the claim was given."""
        if self.allocation is not None and self.allocation.devices is not None:
            yield from (device.driver for device in self.allocation.devices.results or ())
        yield from (device.driver for device in self.devices or ())

    @property
    def has_an_interface(self) -> bool:
        """Whether a driver reported a network interface, whatever its name."""
        return any(device.network_data for device in self.devices or ())


@api_object("resource.k8s.io/v1/resourceclaims", "ResourceClaim", also_served_as=_EARLIER)
class ResourceClaim(KubernetesObject):
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class ClaimTemplateSpec(Part):
    spec: ClaimSpec = ClaimSpec()


@api_object("resource.k8s.io/v1/resourceclaimtemplates", "ResourceClaimTemplate", also_served_as=_EARLIER)
class ResourceClaimTemplate(KubernetesObject):
    spec: ClaimTemplateSpec = ClaimTemplateSpec()


class DeviceClassSpec(Part):
    """Without selectors it accepts every device of the cluster."""

    selectors: list[DeviceSelector] | None = None
    config: list[DeviceConfiguration] | None = None


@api_object("resource.k8s.io/v1/deviceclasses", "DeviceClass", namespaced=False, also_served_as=_EARLIER)
class DeviceClass(KubernetesObject):
    spec: DeviceClassSpec = DeviceClassSpec()

    @property
    def driver(self) -> str:
        """The only driver that it accepts; "" for any."""
        return only_driver(self.spec.selectors or ())


class ResourceSliceSpec(Part):
    """The driver that offers the devices; the devices themselves are not kept."""

    driver: str = ""


@api_object("resource.k8s.io/v1/resourceslices", "ResourceSlice", namespaced=False, also_served_as=_EARLIER)
class ResourceSlice(KubernetesObject):
    spec: ResourceSliceSpec = ResourceSliceSpec()


def only_driver(selectors: Iterable[DeviceSelector]) -> str:
    """The driver that one of the selectors, all of which a device has to meet, insists on; "" without such a one."""
    return next((selector.cel.driver for selector in selectors if selector.cel and selector.cel.driver), "")
