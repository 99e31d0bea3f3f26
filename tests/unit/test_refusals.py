"""What the API server's no means to the person who reads the status."""

from __future__ import annotations

import pytest

from hermetic.api.reasons import Reason
from hermetic.errors import Conflict, Forbidden, NotFound, Rejected, ServerError, Throttled, Unreachable
from hermetic.plan.api_rejections import refusal, refused_pod

SUBJECT = "Deployment 'llama'"
RBAC = (
    'deployments.apps "llama" is forbidden: User "system:serviceaccount:hermetic-system:hermetic-operator" '
    'cannot patch resource "deployments" in API group "apps" in the namespace "inference"'
)
POLICY = (
    "deployments.apps \"llama\" is forbidden: ValidatingAdmissionPolicy 'team' with binding 'team' denied request: no"
)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Forbidden(RBAC, status=403), Reason.PERMISSION_LOST),
        (Forbidden('services "llama" is forbidden: exceeded quota: q', status=403), Reason.QUOTA_EXCEEDED),
        (Forbidden(POLICY, status=403), Reason.ADMISSION_DENIED),
        (
            Forbidden("unable to create", status=403, causes=(("NamespaceTerminating", "x"),)),
            Reason.NAMESPACE_TERMINATING,
        ),
        (Rejected("ValidatingAdmissionPolicy 'p' denied request: no", status=422), Reason.ADMISSION_DENIED),
        (
            Rejected('admission webhook "v.example" denied the request: no', status=400),
            Reason.ADMISSION_DENIED,
        ),
        (Rejected("Deployment.apps is invalid: spec.x: Invalid value", status=422), Reason.OBJECT_REFUSED),
        (Conflict("the object has been modified", status=409), Reason.PROGRESSING_WITH_RETRY),
        (NotFound("the server could not find the requested resource", status=404), Reason.PROGRESSING_WITH_RETRY),
        (ServerError("etcdserver: request timed out", status=500), Reason.API_SERVER_TROUBLE),
        (Throttled("slow down", retry_after=3), Reason.API_SERVER_TROUBLE),
        (Unreachable("connection refused"), Reason.API_SERVER_TROUBLE),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
)
def test_every_no_has_its_reason_and_names_the_object(error, reason):
    message = refusal(SUBJECT, error)
    assert message.reason is reason
    assert message.message.startswith("Deployment 'llama': ")


def test_lost_permission_names_verb_and_resource():
    message = refusal(SUBJECT, Forbidden(RBAC, status=403))
    assert "may not 'patch' resource 'deployments'" in message.message
    assert "manifests/" in message.message


@pytest.mark.parametrize("text", [POLICY, "Deployment.apps is invalid: spec.replicas: must not be negative"])
def test_words_of_the_policy_or_the_api_server_are_kept(text):
    for error in (Forbidden(text, status=403), Rejected(text, status=422)):
        assert text in refusal(SUBJECT, error).message


def test_message_fits_an_event_and_a_condition():
    assert len(refusal(SUBJECT, Rejected("x" * 5000, status=422)).message) == 1024


def test_what_passes_by_itself_is_not_said_to_need_a_human():
    passing = (Reason.QUOTA_EXCEEDED, Reason.NAMESPACE_TERMINATING, Reason.API_SERVER_TROUBLE)
    stuck = (Reason.PERMISSION_LOST, Reason.ADMISSION_DENIED, Reason.POD_SECURITY_VIOLATION, Reason.OBJECT_REFUSED)
    assert not any(reason.needs_human for reason in passing)
    assert all(reason.needs_human for reason in stuck)


def test_words_of_pod_security_quote_the_rule():
    text = 'pods "llama-x" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false'
    assert refused_pod(text) == (
        Reason.POD_SECURITY_VIOLATION,
        'pods are refused: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false',
    )
