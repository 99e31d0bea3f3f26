"""Validates manifests: the schema and its rules, then the gates that need no cluster."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ConfigDict, Field, ValidationError

from hermetic.api.condition_updates import StatusReason
from hermetic.api.configuration import Configuration
from hermetic.api.field_types import DnsLabel, LabelValue
from hermetic.api.modeldeployment import NAME_RULE, ModelDeployment, ModelDeploymentSpec
from hermetic.api.rules import ApiModel
from hermetic.api.spec_reasons import SpecReason
from hermetic.api.validation_errors import FieldError, problems_of
from hermetic.cli.manifest_fixes import fix_of
from hermetic.cli.manifests import ManifestFinding, TypedManifest
from hermetic.cli.repository import KINDS
from hermetic.errors import OperatorRefuses
from hermetic.kinds import EGRESS_AUDIT, GROUP, MODEL_DEPLOYMENT
from hermetic.objects.names import Owner
from hermetic.plan.allowed_gateways import gateway_is_allowed, route_is_allowed
from hermetic.plan.allowed_scheduling import scheduling_is_allowed
from hermetic.plan.allowed_sources import registry_is_allowed, share_is_allowed
from hermetic.plan.engine_settings import engine_settings_are_allowed
from hermetic.plan.gate_results import Blocks, Gate
from hermetic.plan.gates import (
    address_is_allowed,
    cpu_limit_holds_the_request,
    engine_flags_are_known,
    ephemeral_storage_limit_holds_the_folders,
    memory_holds_shared_memory,
    propagated_annotations_are_short,
    tolerations_are_allowed,
)
from hermetic.plan.model_fit import model_fits_the_gpus
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.vm_sizes import gpus_suit_the_engine, vm_size_offers_the_pod
from hermetic.plan.weights_integrity import integrity_is_pinned, integrity_key_is_usable

NO_UID = "00000000-0000-0000-0000-000000000000"

GATES_OF_THE_SPEC: tuple[Gate, ...] = (
    engine_flags_are_known,
    engine_settings_are_allowed,
    memory_holds_shared_memory,
    cpu_limit_holds_the_request,
    ephemeral_storage_limit_holds_the_folders,
    vm_size_offers_the_pod,
    gpus_suit_the_engine,
    model_fits_the_gpus,
    integrity_key_is_usable,
)
GATES_OF_THE_PLATFORM: tuple[Gate, ...] = (
    registry_is_allowed,
    share_is_allowed,
    integrity_is_pinned,
    tolerations_are_allowed,
    scheduling_is_allowed,
    propagated_annotations_are_short,
    address_is_allowed,
    gateway_is_allowed,
    route_is_allowed,
)


# The field to point at for a gate's message, which names fields in its text.
_FIELD_OF: dict[StatusReason, str] = {
    SpecReason.ENGINE_SETTING_NOT_ALLOWED: "spec.engine",
    SpecReason.MEMORY_TOO_SMALL: "spec.resources.memory",
    SpecReason.REGISTRY_NOT_ALLOWED: "spec.engine",
    SpecReason.SHARE_NOT_ALLOWED: "spec.weights",
    SpecReason.VOLUME_CREATION_OFF: "spec.weights",
    SpecReason.TOLERATION_NOT_ALLOWED: "spec.accelerator.tolerations",
    SpecReason.ADDRESS_NOT_ALLOWED: "spec.endpoint.internalLoadBalancer.address",
}


BESIDE_AUTOSCALING = "must be absent with `autoscaling`: the autoscaler writes it; set `minReplicas` and `maxReplicas`"


class ManifestMetadata(ApiModel):
    """The fields of an object's metadata that are checked here; the API server knows the rest."""

    model_config = ConfigDict(extra="ignore")

    name: str = ""
    namespace: DnsLabel | None = None
    uid: str | None = None
    labels: dict[str, LabelValue] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


class _WithMetadata(ApiModel):
    model_config = ConfigDict(extra="ignore")

    metadata: ManifestMetadata


class _WithModelName(ApiModel):
    RULES = (NAME_RULE,)

    model_config = ConfigDict(extra="ignore")

    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AcceptedManifest:
    """A valid manifest; `spec` is that of a ModelDeployment, None for the other kinds."""

    typed: TypedManifest
    kind: str
    owner: Owner
    spec: ModelDeploymentSpec | None
    metadata: ManifestMetadata


def validate(
    typed: Sequence[TypedManifest],
    *,
    namespace: str,
    policy: Configuration | None = None,
    gates: tuple[Gate, ...] = GATES_OF_THE_SPEC,
) -> tuple[list[AcceptedManifest], list[ManifestFinding]]:
    """The accepted manifests, and every finding about the others.

    `namespace` is used for manifests without one; `gates` are the gates of the spec to run; with a `policy` its
    allow lists are checked as well.
    """
    all_gates = (*gates, *(GATES_OF_THE_PLATFORM if policy is not None else ()))
    accepted: list[AcceptedManifest] = []
    findings: list[ManifestFinding] = []
    for manifest in typed:
        verdict = _validated(manifest, namespace, policy or Configuration(), all_gates)
        if isinstance(verdict, AcceptedManifest):
            findings.extend(_repeats(verdict, accepted))
            accepted.append(verdict)
        else:
            findings.extend(verdict)
    return accepted, findings


def _validated(
    typed: TypedManifest, namespace: str, policy: Configuration, gates: tuple[Gate, ...]
) -> AcceptedManifest | list[ManifestFinding]:
    kind = _kind(typed)
    if isinstance(kind, FieldError):
        return [_found(typed, kind)]
    if problems := _problems(kind, typed.value):
        return [_found(typed, problem) for problem in problems]
    metadata = ManifestMetadata.model_validate(typed.value["metadata"])
    owner = Owner(metadata.namespace or namespace, metadata.name, metadata.uid or NO_UID)
    if kind != MODEL_DEPLOYMENT.kind:
        return AcceptedManifest(typed, kind, owner, None, metadata)
    spec = ModelDeployment.model_validate(typed.value).spec
    accepted = AcceptedManifest(typed, kind, owner, spec, metadata)
    return list(_blocks(typed, spec, snapshot_of(accepted, policy), gates)) or accepted


def _kind(typed: TypedManifest) -> str | FieldError:
    if not isinstance(typed.value, dict):
        return FieldError("", "", "must be an object with `apiVersion`, `kind`, `metadata` and `spec`")
    kind, version = typed.value.get("kind"), typed.value.get("apiVersion")
    if kind in KINDS:
        return str(kind)
    near = difflib.get_close_matches(str(kind), KINDS, n=1) if GROUP in str(version) else []
    meant = f"; did you mean '{near[0]}'?" if near else ""
    return FieldError("kind", str(kind), f"must be one of {', '.join(KINDS)}{meant}", "".join(near))


def _problems(kind: str, value: dict[str, Any]) -> list[FieldError]:
    """Violations of the schema and its rules, and of the API server's rules for metadata.

    The name is checked separately: rules about a whole object run only when its fields are valid.
    """
    problems = list(_refusals(_WithMetadata, value))
    if kind == MODEL_DEPLOYMENT.kind:
        problems += _refusals(_WithModelName, value)
        problems += _replicas_beside_autoscaling(value)
    problems += _refusals(_model(kind), value)
    return list({(problem.path, problem.message): problem for problem in problems}.values())


def _replicas_beside_autoscaling(value: dict[str, Any]) -> Iterator[FieldError]:
    """A manifest that is applied again would undo what the autoscaler wrote; an object of a cluster has both fields.

    The API server refuses it by the policy 'hermetic-autoscaled-replicas'.
    """
    spec, metadata = value.get("spec"), value.get("metadata")
    is_live = isinstance(metadata, dict) and "uid" in metadata
    if isinstance(spec, dict) and {"autoscaling", "replicas"} <= spec.keys() and not is_live:
        yield FieldError("spec.replicas", str(spec["replicas"]), BESIDE_AUTOSCALING)


def _refusals(model: type[ApiModel], value: Any) -> tuple[FieldError, ...]:
    try:
        model.model_validate(value)
    except ValidationError as refusal:
        return problems_of(refusal, model)
    return ()


def _model(kind: str) -> type[ApiModel]:
    if kind == MODEL_DEPLOYMENT.kind:
        return ModelDeployment
    # Building these models takes longer than reading a file: done only for manifests that need them.
    from hermetic.api.egressaudit import EgressAttestation, EgressAudit

    return EgressAudit if kind == EGRESS_AUDIT.kind else EgressAttestation


def snapshot_of(accepted: AcceptedManifest, policy: Configuration) -> ClusterSnapshot:
    """What is known of a manifest without a cluster."""
    own = accepted.metadata
    return ClusterSnapshot(
        owner=accepted.owner, generation=0, policy=policy, labels=own.labels, annotations=own.annotations
    )


def _blocks(
    typed: TypedManifest, spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, gates: tuple[Gate, ...]
) -> Iterator[ManifestFinding]:
    for gate in gates:
        verdict = gate(spec, snapshot)
        if isinstance(verdict, Blocks):
            reason, path = verdict.reason, verdict.field or _FIELD_OF.get(verdict.reason, "spec")
            yield replace(
                typed.finding(verdict.message, path=path, reason=reason.value, fix=reason.remedy), kind=OperatorRefuses
            )


def _repeats(accepted_manifest: AcceptedManifest, accepted: Sequence[AcceptedManifest]) -> Iterator[ManifestFinding]:
    """Manifests of one object: kubectl would apply the last of them silently.

    Folders of one repository may each describe it, one cluster each.
    """
    for other in accepted:
        if (other.kind, other.owner.key, other.typed.folder) == (
            accepted_manifest.kind,
            accepted_manifest.owner.key,
            accepted_manifest.typed.folder,
        ):
            first = f"must not be described twice: first at {other.typed.where()}"
            yield accepted_manifest.typed.finding(first, path="metadata.name", value=accepted_manifest.owner.name)


def _found(typed: TypedManifest, problem: FieldError) -> ManifestFinding:
    return typed.finding(problem.message, path=problem.path, value=problem.value, fix=fix_of(problem))
