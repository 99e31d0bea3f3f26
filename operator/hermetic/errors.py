"""The one exception hierarchy of Hermetic.

::

    HermeticError                    has a code, a message and a fix; `hermetic explain CODE` has a page for each
    ├── InputError                   what a person typed is wrong (exit 2)
    │   ├── ConfigurationInvalid     HRM-CFG-001  the operator's configuration file
    │   ├── ManifestInvalid          HRM-API-001  a field or rule of a manifest given to the command line
    │   ├── ManifestUnreadable       HRM-API-002  a file that is not YAML, JSON or UTF-8, or has a key twice
    │   ├── OperatorRefuses          HRM-API-003  a valid manifest that the operator would start nothing for
    │   ├── KeyUnusable              HRM-ATT-002  a file that should hold a key does not
    │   ├── ReportUnusable           HRM-ATT-003  a report that must not be signed
    │   ├── ReportTooLarge           HRM-ATT-004  a report that does not fit into an EgressAttestation
    │   ├── ModelFactsUnusable       HRM-SIZ-001  a folder or file that should describe a model does not
    │   ├── SigningKeyUnusable       HRM-WGT-003  a file that should hold a key or certificate for weights does not
    │   └── SnapshotUnusable         HRM-AUD-002  a file that should hold a snapshot of an audit does not
    ├── AttestationRefused           HRM-ATT-001  signed evidence that does not count; has the code of the refusal
    ├── EnvelopeRefused              HRM-SIG-001  signed JSON, an envelope or a signature that is not acceptable
    ├── BenchmarkFailed              HRM-BEN-001  a benchmark that cannot begin now, or gave no result
    ├── BundleRefused                HRM-BND-001  an air-gap bundle that is not what was built or signed
    ├── RegistryRefused              HRM-REG-001  a registry refuses a push, or stores other bytes (exit 4)
    ├── ChainBroken                  HRM-ATT-005  attestations that do not follow each other without a gap
    ├── FactDamaged                  HRM-AUD-001  an answer holds a field that cannot be read: its check is Unknown
    ├── NeverSettled                 HRM-AUD-003  checks that never stop asking: a defect of this release
    ├── WriteAttempted               HRM-AZR-001  a request to Azure that is no known read: a defect, not sent
    ├── NotLeading                   HRM-RUN-001  another process holds the Lease: this one must not write
    ├── StagingBusy                  HRM-WGT-005  another process stages into the same destination
    ├── StagingStopped               HRM-WGT-004  staging ended early, and can be resumed
    ├── StagingUnconfirmed           HRM-WGT-006  weights are published, and may not outlast a power failure (exit 3)
    ├── WeightsRefused               HRM-WGT-001  weights are not what was listed or signed, or not what may be served
    │   └── WeightsUnread            HRM-WGT-002  not everything could be read: nothing is decided (exit 3)
    ├── Unreachable                  HRM-NET-001  the API server (or a file) cannot be reached (exit 4)
    └── ApiRefused                   the API server refused; has the HTTP status and the reason of its Status
        ├── Conflict                 HRM-KUB-409  another writer was first: read again, then retry
        ├── NotFound                 HRM-KUB-404  the object, its namespace or its kind is not there
        ├── Forbidden                HRM-KUB-403  RBAC, quota, admission, or a namespace that is going away
        │   └── Unauthenticated      HRM-KUB-401  the login has expired, or was never one of this cluster
        ├── Throttled                HRM-KUB-429  the API server asks to retry later; has retry_after in seconds
        ├── Rejected                 HRM-KUB-422  the object is invalid, retrying the same bytes cannot help
        └── ServerError            HRM-KUB-500  5xx and every other transient error

Raise at the edge (kube/, cli/, controller/settings), translate once (plan/api_rejections), never swallow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class HermeticError(Exception):
    """Something failed, and a user can fix it."""

    code = "HRM-GEN-001"
    """Stable for ever; `hermetic explain` shows the docstring and the remedy of the class."""
    remedy = "Read the message: it names what failed."
    """What to do, if the raise gives no `fix`."""

    def __init__(self, message: str, *, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix or self.remedy


class InputError(HermeticError):
    """An argument of the command cannot be used."""

    code = "HRM-INP-001"
    remedy = "Correct what the message names; --help of the command shows an example."


class ConfigurationInvalid(InputError):
    """The operator's configuration file is missing, unreadable or contradictory."""

    code = "HRM-CFG-001"
    remedy = "Correct the file; docs/configuration.md describes every key."


class ManifestInvalid(InputError):
    """A manifest given on the command line does not describe an acceptable ModelDeployment."""

    code = "HRM-API-001"
    remedy = "Correct the fields that the message names; docs/api.md describes each of them."


class ManifestUnreadable(InputError):
    """A file of manifests is unreadable: not YAML or JSON, not UTF-8, too large, or with a duplicate key."""

    code = "HRM-API-002"
    remedy = "Correct the file at the position that the message names."


class OperatorRefuses(InputError):
    """The API server would accept the manifest, but the operator would not start it. The message names the reason."""

    code = "HRM-API-003"
    remedy = "'hermetic explain REASON' shows what the reason means and what to do."


class KeyUnusable(InputError):
    """The key has an unsupported type. Hermetic uses Ed25519 and P-256 keys in PEM."""

    code = "HRM-ATT-002"
    remedy = "Give a PEM file as docs/attestation.md makes them: 'openssl genpkey -algorithm ed25519'."


class ReportUnusable(InputError):
    """The report cannot be signed: it contradicts itself, lacks a field, or is too old."""

    code = "HRM-ATT-003"
    remedy = "Audit again with this release and sign that report."


class ReportTooLarge(InputError):
    """The results that must be signed in full (all except Pass) do not fit into an EgressAttestation."""

    code = "HRM-ATT-004"
    remedy = "Fix the findings of the report, beginning with the check that has most findings, and audit again."


class SigningKeyUnusable(InputError):
    """The key or certificate for weights has an unsupported type. Use P-256, P-384 or P-521, in PEM."""

    code = "HRM-WGT-003"
    remedy = "Give a PEM file as docs/weights.md makes them: 'openssl ecparam -name prime256v1 -genkey -noout'."


class SnapshotUnusable(InputError):
    """The file is not a snapshot that this release reads: damaged, truncated, changed, or of another schema."""

    code = "HRM-AUD-002"
    remedy = "Give the file as 'hermetic audit --save-snapshot FILE' wrote it, or audit again."


class ModelFactsUnusable(InputError):
    """The input does not describe a model: a folder without weights, a damaged file, or impossible facts."""

    code = "HRM-SIZ-001"
    remedy = (
        "Name the folder that holds config.json and the safetensors files, or the facts as --show-facts prints them."
    )


class AttestationRefused(HermeticError):
    """Signed evidence is refused. `refusal` is the reason in one word; `hermetic explain` describes it."""

    code = "HRM-ATT-001"
    remedy = "Read the reason: 'hermetic explain REASON' shows what it means and what to do."

    def __init__(self, message: str, *, refusal: str = "", fix: str = "") -> None:
        super().__init__(message, fix=fix)
        self.refusal = refusal


class EnvelopeRefused(HermeticError):
    """Signed JSON, its envelope or its signature is not acceptable. `refusal` is the reason in one word.

    Who reads a signed file of one kind turns this into the error of that kind.
    """

    code = "HRM-SIG-001"
    remedy = "Read the reason: 'hermetic explain REASON' shows what it means and what to do."

    def __init__(self, message: str, *, refusal: str = "", fix: str = "") -> None:
        super().__init__(message, fix=fix)
        self.refusal = refusal


class BenchmarkFailed(HermeticError):
    """A benchmark cannot begin in the present state of the model, or ended without a result. Nothing was recorded."""

    code = "HRM-BEN-001"
    remedy = "Read the message: it has the end of the benchmark's own output. The model serves as before."


class BundleRefused(HermeticError):
    """An air-gap bundle is damaged, changed, not signed by the given key, or of a form that is not known."""

    code = "HRM-BND-001"
    remedy = "Do not load it. Copy the bundle again from where it was built, and verify it again."


class RegistryRefused(HermeticError):
    """A registry refuses a login or a push, answers with a redirect, or holds other bytes than were pushed."""

    code = "HRM-REG-001"
    remedy = "Read the message: it quotes the registry. Then run the same command again: it continues."


class WeightsRefused(HermeticError):
    """Weights differ from the signed list, or contain forbidden content. `findings` has the details."""

    code = "HRM-WGT-001"
    remedy = "Read the reason: 'hermetic explain REASON' shows what it means and what to do."

    def __init__(self, findings: Sequence[Any], where: str, *, fix: str = "") -> None:
        first = findings[0]
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        super().__init__(f"{where}: {first.message}{more}", fix=fix or first.reason.remedy)
        self.findings = tuple(findings)


class WeightsUnread(WeightsRefused):
    """A part of the weights could not be read, so the verdict about them is open."""

    code = "HRM-WGT-002"
    remedy = "Look at the share and the network to it, then verify again."


class StagingStopped(HermeticError):
    """Staging stopped early: the destination is full or not writable. The same command continues it."""

    code = "HRM-WGT-004"
    remedy = "Fix what the message names, and run the same command again: what is staged is kept."


class StagingBusy(HermeticError):
    """Another process is already staging to this folder. This command made no change."""

    code = "HRM-WGT-005"
    remedy = "Wait until the other process is done, or end it."


class StagingUnconfirmed(HermeticError):
    """The weights are at their destination, but a sync failed, so their name may not be on the disk."""

    code = "HRM-WGT-006"
    remedy = "Check the disk or share, mount the destination again, and verify it."


class ChainBroken(HermeticError):
    """Attestations of one cluster do not follow each other: one is missing, doubled, refused or out of order."""

    code = "HRM-ATT-005"
    remedy = "Add the missing attestations from their source; 'hermetic explain NAME' shows what each finding means."


class Unreachable(HermeticError):
    """A server or file did not respond: connection refused, timeout, TLS failure, missing file."""

    code = "HRM-NET-001"
    remedy = "Check that the target in the message exists, runs and is reachable from this machine."


class FactDamaged(HermeticError):
    """A field of an answer is of the wrong type, or missing where it must be.

    `resource` names what it belongs to, `evidence` the exchanges that brought it. Never leaves the audit: the check
    that needed the field says Unknown.
    """

    code = "HRM-AUD-001"
    remedy = "Audit again; if it stays, a system between this machine and Azure changes answers: read the evidence."

    def __init__(self, message: str, *, resource: str, evidence: tuple[Any, ...]) -> None:
        super().__init__(message)
        self.resource = resource
        self.evidence = evidence


class NeverSettled(HermeticError):
    """The checks of an audit did not stop requesting more data. This is a defect of this release."""

    code = "HRM-AUD-003"
    remedy = "Report it with the snapshot of 'hermetic audit --save-snapshot FILE'; the audit has no verdict."


class WriteAttempted(HermeticError):
    """A request to Azure is not on the closed list of reads, so it was not sent. This is a defect of this release."""

    code = "HRM-AZR-001"
    remedy = "Report it: Hermetic only reads Azure, and has no way to send anything else."


class NotLeading(HermeticError):
    """This process does not hold the Lease (any more), so the write was not sent."""

    code = "HRM-RUN-001"
    remedy = "Nothing: the process that holds the Lease does the work."


class ApiRefused(HermeticError):
    """The API server refused the request.

    `status` is the HTTP status, `reason` the machine-readable reason of the Status body ("" where none came),
    `causes` the pairs (type, message) of its details: quota and terminating namespaces are distinguished by them.
    """

    code = "HRM-KUB-000"
    remedy = "Read the message: it quotes the API server."

    def __init__(
        self, message: str, *, status: int, reason: str = "", causes: tuple[tuple[str, str], ...] = (), fix: str = ""
    ) -> None:
        super().__init__(message, fix=fix)
        self.status = status
        self.reason = reason
        self.causes = causes


class Conflict(ApiRefused):
    """409: a precondition (resourceVersion, uid) or a field manager prevented the write."""

    code = "HRM-KUB-409"
    remedy = "Try again; if it stays, find the other writer in metadata.managedFields."


class NotFound(ApiRefused):
    """404: the object, its namespace or its kind does not exist."""

    code = "HRM-KUB-404"
    remedy = "Check name and namespace, and that the CRDs are installed: 'kubectl get crd'."


class Forbidden(ApiRefused):
    """403: RBAC, ResourceQuota, an admission policy, Pod Security or a terminating namespace."""

    code = "HRM-KUB-403"
    remedy = "Ask for the verb and resource that the message names, or read the policy that it quotes."


class Unauthenticated(Forbidden):
    """401: the API server does not accept the login. It has expired, or belongs to another cluster."""

    code = "HRM-KUB-401"
    remedy = (
        "Log in again: 'az login', where kubelogin keeps tokens after 'kubelogin remove-tokens'. "
        "'kubectl get --raw /version' with the same kubeconfig shows whether it worked."
    )


class Throttled(ApiRefused):
    """429: the API server asks to wait; `retry_after` is for how long, in seconds."""

    code = "HRM-KUB-429"
    remedy = "Wait and try again; if it stays, look at the API server's flow control."

    def __init__(self, message: str, *, retry_after: float, reason: str = "") -> None:
        super().__init__(message, status=429, reason=reason)
        self.retry_after = retry_after


class Rejected(ApiRefused):
    """400, 413, 415 or 422: the same bytes will be refused again."""

    code = "HRM-KUB-422"
    remedy = "Correct the object; check that CRDs and Hermetic are of the same release."


class ServerError(ApiRefused):
    """5xx: the server fails or restarts."""

    code = "HRM-KUB-500"
    remedy = "Try again; if it stays, look at the API server's log."
