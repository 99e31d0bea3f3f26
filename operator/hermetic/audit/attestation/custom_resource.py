"""The EgressAttestation object that contains an envelope for kubectl or Flux: written and read.

Name, labels and annotations are not signed, so they are not read. The name consists of the time and the digest:
names sort by time, and the same attestation applied twice is the same object.
"""

from __future__ import annotations

from typing import Any

from hermetic.audit.attestation.refusals import as_attestation, refused
from hermetic.audit.attestation.statement import read_statement
from hermetic.kinds import EGRESS_ATTESTATION
from hermetic.signing.envelope import Envelope, envelope_from
from hermetic.signing.faults import EnvelopeFault

_DIGITS_OF_DIGEST = 12


def as_object(envelope: Envelope) -> dict[str, Any]:
    """The manifest. Raises AttestationRefused where the payload is no statement; the signature is not verified."""
    return {
        "apiVersion": EGRESS_ATTESTATION.api_version,
        "kind": EGRESS_ATTESTATION.kind,
        "metadata": {"name": name_of(envelope)},
        "spec": {"envelope": envelope.as_json()},
    }


def name_of(envelope: Envelope) -> str:
    """`egress-20261121t100000z-0123456789ab`: the time of observation, and the start of its digest."""
    observed_at = read_statement(envelope.payload).predicate.observed_at
    time = observed_at.replace("-", "").replace(":", "").lower()
    return f"egress-{time}-{envelope.digest.removeprefix('sha256:')[:_DIGITS_OF_DIGEST]}"


def from_object(value: Any) -> Envelope:
    """The envelope of an EgressAttestation from the API server or a file. Raises AttestationRefused."""
    if not isinstance(value, dict) or value.get("kind") != EGRESS_ATTESTATION.kind:
        actual = value.get("kind") if isinstance(value, dict) else None
        raise refused(EnvelopeFault.MALFORMED, f"kind is '{str(actual)[:64]}', not '{EGRESS_ATTESTATION.kind}'")
    if value.get("apiVersion") != EGRESS_ATTESTATION.api_version:
        actual = str(value.get("apiVersion"))[:64]
        raise refused(EnvelopeFault.MALFORMED, f"apiVersion is '{actual}', not '{EGRESS_ATTESTATION.api_version}'")
    spec = value.get("spec")
    if not isinstance(spec, dict) or "envelope" not in spec:
        raise refused(EnvelopeFault.MALFORMED, "spec.envelope is missing")
    if unknown := sorted(str(name) for name in spec if name != "envelope"):
        raise refused(EnvelopeFault.UNKNOWN_FIELD, f"spec holds '{unknown[0][:64]}'; there is only envelope")
    with as_attestation():
        return envelope_from(spec["envelope"])
