"""The payload: an in-toto Statement about one audit of one cluster, with exactly these fields.

::

    {"_type": "https://in-toto.io/Statement/v1",
     "subject": [{"name": CLUSTER ARM ID, "digest": {"sha256": HEX OF THE SNAPSHOT}}],
     "predicateType": "https://hermetic.dev/attestation/egress-audit/v1",
     "predicate": {
       "scope": {"clusterArmId", "apiServerCaFingerprint", "kubeSystemUid"},
       "sequence": 1.., "previous": DIGEST or null,
       "observedAt", "expiresAt",
       "tool": {"name", "version", "digest"},
       "inputs": {"snapshot": DIGEST, "policy": DIGEST or null, "exceptions": DIGEST or null},
       "reportDigest": DIGEST of the whole report, "omitted": {VERDICT: {CHECK: COUNT}}, "report": {...}}}

A DIGEST is "sha256:" and 64 hexadecimal digits; times are UTC to the second, "2026-11-21T10:00:00Z". The subject is the
cluster as it was read: tools that know in-toto but not Hermetic can match it with the snapshot file.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

from hermetic.api.egressaudit import CLUSTER_ARM_ID, Digest
from hermetic.audit.attestation.refusals import Refusal, as_attestation, refused
from hermetic.signing.canonical_json import read_canonical_json
from hermetic.signing.faults import EnvelopeFault

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "https://hermetic.dev/attestation/egress-audit/v1"

Moment = Annotated[
    str, StringConstraints(pattern=r"^2[0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z$")
]
Name = Annotated[str, StringConstraints(min_length=1, max_length=253)]
Uid = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
Hex = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
ArmId = Annotated[str, StringConstraints(max_length=512, pattern=CLUSTER_ARM_ID)]
Counts = dict[Name, Annotated[int, Field(ge=1)]]


class StatementPart(BaseModel):
    """Frozen, camelCase in JSON, strict: no extra field, no value of another type."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )


class Scope(StatementPart):
    """What identifies the cluster. Without a kubeconfig the last two could not be read, and are null."""

    cluster_arm_id: ArmId
    api_server_ca_fingerprint: Digest | None
    """SHA-256 of the CA certificate of the API server, in DER."""
    kube_system_uid: Uid | None
    """uid of the namespace kube-system: it differs for every cluster."""


class Tool(StatementPart):
    """The audit program: `digest` is that of its files."""

    name: Name
    version: Name
    digest: Digest


class Inputs(StatementPart):
    """Digests of the input files of the report; null where none was given."""

    snapshot: Digest
    policy: Digest | None
    exceptions: Digest | None


class Omitted(StatementPart):
    """How many findings of each check were left out of the report, by verdict: Pass and NotApplicable only."""

    passed: Annotated[Counts, Field(alias="Pass")] = {}
    not_applicable: Annotated[Counts, Field(alias="NotApplicable")] = {}


class Predicate(StatementPart):
    """The statement about the cluster."""

    scope: Scope
    sequence: Annotated[int, Field(ge=1)]
    previous: Digest | None
    observed_at: Moment
    expires_at: Moment
    tool: Tool
    inputs: Inputs
    report_digest: Digest
    omitted: Omitted
    report: dict[str, Any]


class SubjectDigest(StatementPart):
    """In-toto writes digests without the algorithm as prefix."""

    sha256: Hex


class Subject(StatementPart):
    """The cluster and the digest of its snapshot."""

    name: ArmId
    digest: SubjectDigest


class Statement(StatementPart):
    """The payload as a whole."""

    type_: Annotated[Literal["https://in-toto.io/Statement/v1"], Field(alias="_type")]
    subject: Annotated[list[Subject], Field(min_length=1, max_length=1)]
    predicate_type: Literal["https://hermetic.dev/attestation/egress-audit/v1"]
    predicate: Predicate

    def as_json(self) -> dict[str, Any]:
        """The object in the form of the module's docstring."""
        return self.model_dump(mode="json", by_alias=True)


def read_statement(payload: bytes) -> Statement:
    """Parse the statement. Raises AttestationRefused; the signature is not verified here."""
    with as_attestation():
        value = read_canonical_json(payload, "the payload")
    if not isinstance(value, dict):
        raise refused(EnvelopeFault.MALFORMED, "the payload is not an object")
    for field, expected in (("_type", STATEMENT_TYPE), ("predicateType", PREDICATE_TYPE)):
        if value.get(field) != expected:
            shown = str(value.get(field))[:128]
            raise refused(Refusal.WRONG_PREDICATE, f"{field} of the payload is '{shown}', not '{expected}'")
    try:
        return Statement.model_validate(value, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        unknown = first["type"] == "extra_forbidden"
        where = ".".join(str(part)[:64] for part in first["loc"])
        explanation = f"'{where}' of the payload: {first['msg']}"
        raise refused(EnvelopeFault.UNKNOWN_FIELD if unknown else EnvelopeFault.MALFORMED, explanation) from None


def moment(text: str) -> datetime:
    """Parse a time of a statement. Raises ValueError, as for 30 February."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
