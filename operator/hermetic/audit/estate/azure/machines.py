"""Machines: when Azure created them, and which identities they have.

`timeCreated` is the time at which the machine's resource was created (api-version 2021-11-01 and later). A re-image and
a node image upgrade keep the resource, and so the date; only a new machine has a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Self

from hermetic.api.times import zoned
from hermetic.audit.estate.azure.versions import COMPUTE
from hermetic.audit.estate.azure.vnet import MachineExtension, MachineIdentity
from hermetic.audit.estate.questions import Body
from hermetic.audit.estate.resource import Resource
from hermetic.audit.estate.spelling import child
from hermetic.errors import FactDamaged


class _Machine(Resource):
    """What both kinds have."""

    time_created: str | None = None

    @property
    def created_at(self) -> datetime | None:
        """When it was created; None where the answer does not say. Raises FactDamaged for a time without a zone."""
        if self.time_created is None:
            return None
        found = zoned(self.time_created)
        if found is None:
            words = f"{self.id}: timeCreated: {self.time_created!r} is not a time with a zone"
            raise FactDamaged(words, resource=self.id, evidence=self.evidence)
        return found


class ScaleSetInstance(_Machine):
    """Microsoft.Compute/virtualMachineScaleSets/virtualMachines: one instance of a uniform scale set."""

    TYPE: ClassVar[str] = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"
    API_VERSION: ClassVar[str] = COMPUTE


class VirtualMachine(_Machine):
    """Microsoft.Compute/virtualMachines: a machine of its own, or an instance of a flexible scale set."""

    TYPE: ClassVar[str] = "Microsoft.Compute/virtualMachines"
    API_VERSION: ClassVar[str] = COMPUTE

    identity: MachineIdentity | None = None


class VirtualMachineExtension(Resource):
    """Microsoft.Compute/virtualMachines/extensions: code that Azure puts onto one machine, and runs as root.

    Its own `type` is that of the extension, and the answer has the type of the resource beside it.
    """

    TYPE: ClassVar[str] = "Microsoft.Compute/virtualMachines/extensions"
    API_VERSION: ClassVar[str] = COMPUTE

    code: MachineExtension | None = None

    @classmethod
    def read(cls, body: Body) -> Self:
        """With the properties in a place of their own, so that the outer `type` does not stand for the inner one."""
        inner, name = child(body.value, "properties"), body.value.get("name")
        kept = {"code": {**inner, "name": name}} if isinstance(inner, Mapping) else inner
        return super().read(Body({"id": body.value.get("id"), "name": name, "properties": kept}, body.evidence))
