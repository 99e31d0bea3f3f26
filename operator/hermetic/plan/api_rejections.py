"""Translates errors of the API server into reasons of the status: the only such table."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hermetic.api.condition_updates import ConditionReason
from hermetic.api.gateway_reasons import GatewayReason
from hermetic.api.reasons import Reason
from hermetic.api.text import cut_middle
from hermetic.errors import ApiRefused, Conflict, Forbidden, HermeticError, NotFound, Rejected
from hermetic.kinds import HTTP_ROUTE

LONGEST_MESSAGE = 1024
_UNKNOWN_FIELD = "field not declared in schema"
# A refused pod has a generated name, another one at each attempt: the same refusal must give the same message.
_CHANCE_NAME = re.compile(r'^pods "[^"]*" is forbidden: ')
_RBAC = re.compile(r'cannot (?P<verb>\w+) resource "(?P<resource>[\w./-]+)"')


@dataclass(frozen=True, slots=True)
class ApiRejection:
    """One write that was refused: the object as text, with reason and message for the status."""

    subject: str
    reason: ConditionReason
    message: str


def refusal(subject: str, error: HermeticError) -> ApiRejection:
    """The reason for an error that came back for `subject`, for example "Deployment 'llama'"."""
    reason, message = _translate(error)
    return ApiRejection(subject, reason, cut_middle(f"{subject}: {message}", LONGEST_MESSAGE))


def _translate(error: HermeticError) -> tuple[ConditionReason, str]:
    match error:
        case Forbidden():
            return _forbidden(error)
        case Rejected():
            return _rejected(error)
        case Conflict():
            return Reason.PROGRESSING_WITH_RETRY, "another writer changed it at the same moment; trying again"
        case NotFound():
            return Reason.PROGRESSING_WITH_RETRY, error.message
        case _:
            return Reason.API_SERVER_TROUBLE, error.message


def _forbidden(error: ApiRefused) -> tuple[Reason, str]:
    if any(kind == "NamespaceTerminating" for kind, _ in error.causes):
        return Reason.NAMESPACE_TERMINATING, "the namespace is being deleted"
    return refused_pod(error.message)


def refused_pod(text: str) -> tuple[Reason, str]:
    """Reason and message for the text of a 403, which a ReplicaSet repeats when its pods are refused."""
    if "being terminated" in text:
        return Reason.NAMESPACE_TERMINATING, "the namespace is being deleted"
    text = _CHANCE_NAME.sub("pods are refused: ", text)
    if "exceeded quota" in text:
        return Reason.QUOTA_EXCEEDED, text
    if "violates PodSecurity" in text:
        return Reason.POD_SECURITY_VIOLATION, text
    if (denied := _RBAC.search(text)) is not None:
        return (
            Reason.PERMISSION_LOST,
            f"the operator may not '{denied['verb']}' resource '{denied['resource']}'; apply the RBAC of manifests/",
        )
    return Reason.ADMISSION_DENIED, text


def _rejected(error: ApiRefused) -> tuple[ConditionReason, str]:
    if "ValidatingAdmissionPolicy" in error.message or "denied the request" in error.message:
        return Reason.ADMISSION_DENIED, error.message
    if _UNKNOWN_FIELD in error.message and f"Kind={HTTP_ROUTE.kind}" in error.message:
        return GatewayReason.GATEWAY_API_TOO_OLD, error.message
    return Reason.OBJECT_REFUSED, error.message
