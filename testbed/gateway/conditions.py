"""The conditions of the Gateway API that the stand-in sets, by the names of the project's Go sources.

Source: sigs.k8s.io/gateway-api v1.6.3, apis/v1/gateway_types.go, gatewayclass_types.go and shared_types.go. The comment
above each constant there says when a controller sets it. `tests/unit/test_testbed_gateway_conditions.py` looks every
value up in these files.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Conditions = list[dict[str, Any]]


class ClassCondition(StrEnum):
    """`GatewayClassConditionStatus...`"""

    ACCEPTED = "Accepted"


class GatewayCondition(StrEnum):
    """`GatewayCondition...`"""

    ACCEPTED = "Accepted"
    PROGRAMMED = "Programmed"


class GatewayReason(StrEnum):
    """`GatewayReason...`"""

    ACCEPTED = "Accepted"
    LISTENERS_NOT_VALID = "ListenersNotValid"
    UNSUPPORTED_ADDRESS = "UnsupportedAddress"
    PROGRAMMED = "Programmed"
    INVALID = "Invalid"
    NO_RESOURCES = "NoResources"
    ADDRESS_NOT_ASSIGNED = "AddressNotAssigned"


class ListenerCondition(StrEnum):
    """`ListenerCondition...`"""

    ACCEPTED = "Accepted"
    CONFLICTED = "Conflicted"
    RESOLVED_REFS = "ResolvedRefs"
    PROGRAMMED = "Programmed"


class ListenerReason(StrEnum):
    """`ListenerReason...`"""

    ACCEPTED = "Accepted"
    UNSUPPORTED_PROTOCOL = "UnsupportedProtocol"
    PROTOCOL_CONFLICT = "ProtocolConflict"
    NO_CONFLICTS = "NoConflicts"
    RESOLVED_REFS = "ResolvedRefs"
    INVALID_ROUTE_KINDS = "InvalidRouteKinds"
    INVALID_CERTIFICATE_REF = "InvalidCertificateRef"
    REF_NOT_PERMITTED = "RefNotPermitted"
    PROGRAMMED = "Programmed"
    INVALID = "Invalid"
    PENDING = "Pending"


class RouteCondition(StrEnum):
    """`RouteCondition...`"""

    ACCEPTED = "Accepted"
    RESOLVED_REFS = "ResolvedRefs"


class RouteReason(StrEnum):
    """`RouteReason...`"""

    ACCEPTED = "Accepted"
    NO_MATCHING_PARENT = "NoMatchingParent"
    NOT_ALLOWED_BY_LISTENERS = "NotAllowedByListeners"
    NO_MATCHING_LISTENER_HOSTNAME = "NoMatchingListenerHostname"
    UNSUPPORTED_VALUE = "UnsupportedValue"
    RESOLVED_REFS = "ResolvedRefs"
    REF_NOT_PERMITTED = "RefNotPermitted"
    INVALID_KIND = "InvalidKind"
    BACKEND_NOT_FOUND = "BackendNotFound"


@dataclass(frozen=True)
class Condition:
    """One condition as the stand-in decides it; the time of its last transition comes from what was there before."""

    type: StrEnum
    is_true: bool
    reason: StrEnum
    message: str

    def as_json(self, generation: int, previous: Conditions, now: str) -> dict[str, Any]:
        """`lastTransitionTime` changes only with the status, as the Kubernetes API conventions ask."""
        status = "True" if self.is_true else "False"
        same = (old for old in previous if old["type"] == self.type and old["status"] == status)
        return {
            "type": str(self.type),
            "status": status,
            "reason": str(self.reason),
            "message": self.message,
            "observedGeneration": generation,
            "lastTransitionTime": next((old["lastTransitionTime"] for old in same), now),
        }


def merged(conditions: list[Condition], generation: int, previous: Conditions, now: str) -> Conditions:
    """The conditions of ours, then those of types that another party set: the API forbids to remove them."""
    ours = {condition.type for condition in conditions}
    foreign = [old for old in previous if old["type"] not in ours]
    return [condition.as_json(generation, previous, now) for condition in conditions] + foreign
