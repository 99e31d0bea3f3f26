"""How weights are verified: what the spec asks for, within what the operator's configuration allows.

A template keeps its image and its keys while the configuration lists them: a new release of the image, or one more key,
restarts no pod.
"""

from __future__ import annotations

from hermetic.api.conditions import ConditionType
from hermetic.api.integrity import INTEGRITY_POLICIES, IntegrityPolicy
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.spec_reasons import SpecReason
from hermetic.api.weights_reasons import WeightsReason
from hermetic.engines.adapters import mounted_adapters
from hermetic.objects.weights_verifier import Signers, Verifier, verifier_in, verifies_adapters
from hermetic.plan.gate_results import HOLDS, Blocks, Verdict
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.weights_verification import verifications

_KIND = ConditionType.WEIGHTS_VERIFIED
_FIELD = "spec.weights.integrity"


def integrity_policy(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> IntegrityPolicy:
    """The policy in effect: a deployment may ask for more than its namespace's minimum, never for less."""
    if not spec.weights.is_mounted:
        return "Off"
    minimum, policy = snapshot.policy.integrity.minimum_of(snapshot.owner.namespace), _stated_policy(spec)
    return INTEGRITY_POLICIES.strictest(policy, minimum) if policy is not None else minimum


def _stated_policy(spec: ModelDeploymentSpec) -> IntegrityPolicy | None:
    """The policy of the spec; a digest of an adapter states one as a digest of the weights does."""
    if spec.weights.integrity is not None:
        return spec.weights.integrity.policy
    return "Require" if any(adapter.integrity is not None for adapter in spec.adapters) else None


def integrity_is_pinned(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """Where the weights must be verified, an image does it, and a digest or a trusted key says what they must be."""
    policy = integrity_policy(spec, snapshot)
    if policy == "Off":
        return HOLDS
    if not snapshot.policy.integrity.verifiers:
        return HOLDS if policy == "Warn" else _verifier_not_configured(spec, snapshot)
    if (refused := _key_is_refused(spec, snapshot)) is not None:
        return refused
    return HOLDS if policy == "Warn" or is_pinned(spec, snapshot) else _not_pinned(spec, snapshot)


def is_pinned(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> bool:
    """Whether a digest or a trusted key says what the weights and every adapter must be."""
    return bool(signers(spec, snapshot)) or (_has_digest(spec) and not _adapters_without_digest(spec))


def _has_digest(spec: ModelDeploymentSpec) -> bool:
    return spec.weights.integrity is not None and spec.weights.integrity.digest is not None


def _adapters_without_digest(spec: ModelDeploymentSpec) -> list[str]:
    return [adapter.name for adapter in mounted_adapters(spec) if adapter.integrity is None]


def integrity_key_is_usable(spec: ModelDeploymentSpec, _: ClusterSnapshot) -> Verdict:
    """The key of the spec is one that signs manifests of weights."""
    key = _key_of(spec)
    if key is None:
        return HOLDS
    from hermetic.signing.keys import is_ecdsa_public_key  # a tenth of a second to import, for `hermetic validate`

    if is_ecdsa_public_key(key):
        return HOLDS
    return _blocks(
        SpecReason.INTEGRITY_KEY_REFUSED,
        "`weights.integrity.publicKey` is not one P-256, P-384 or P-521 public key in PEM and nothing else; "
        "'openssl ec -in KEY -pubout' prints one",
        f"{_FIELD}.publicKey",
    )


def _key_of(spec: ModelDeploymentSpec) -> str | None:
    return spec.weights.integrity.public_key if spec.weights.integrity is not None else None


def _key_is_refused(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Blocks | None:
    key, listed = _key_of(spec), _listed(snapshot)
    if key is None or not listed or key.strip() in {pem.strip() for pem in listed.public_keys}:
        return None
    return _blocks(
        SpecReason.INTEGRITY_KEY_REFUSED,
        "`weights.integrity.publicKey` is not listed in the operator's configuration under "
        "`integrity.publicKeys`; sign the weights with one of these and leave `publicKey` out, or have this one listed",
        f"{_FIELD}.publicKey",
    )


def _verifier_not_configured(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Blocks:
    integrity, namespace = spec.weights.integrity, snapshot.owner.namespace
    remedies = []
    if snapshot.policy.integrity.minimum_of(namespace) == "Require":
        lowered = f"or for namespace '{namespace}' by `integrity.overrides`"
        remedies.append(f'set `integrity.minimumPolicy: "Off"` there, {lowered}')
    if integrity is not None and integrity.policy == "Require":
        remedies.append("leave `weights.integrity` out")
    return _blocks(
        SpecReason.VERIFIER_NOT_CONFIGURED,
        "the weights must be verified before an engine starts, and the operator's configuration names no image that "
        "does it; name the operator's image by digest there, under `integrity.verifiers`, or accept weights that are "
        f"not verified: {', and '.join(remedies)}",
        _FIELD,
    )


def _not_pinned(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Blocks:
    integrity = spec.weights.integrity
    if _has_digest(spec):
        names = ", ".join(f"'{name}'" for name in _adapters_without_digest(spec))
        return _blocks(
            SpecReason.INTEGRITY_NOT_PINNED,
            f"the adapters must be verified, and nothing defines what {names} must be: set `integrity.digest` of the "
            "adapter to what 'hermetic stage' printed, or `weights.integrity.publicKey` to the key that signed model "
            "and adapters",
            "spec.adapters",
        )
    raised = (
        f"`weights.integrity.policy` {integrity.policy} is raised to Require, the minimum that the operator's "
        f"configuration sets for namespace '{snapshot.owner.namespace}'; "
        if integrity is not None and integrity.policy != "Require"
        else ""
    )
    return _blocks(
        SpecReason.INTEGRITY_NOT_PINNED,
        f"{raised}the weights must be verified, and nothing defines what they must be: set `weights.integrity.digest` "
        "to what 'hermetic stage' printed, or `weights.integrity.publicKey` to the key that signed them",
        _FIELD,
    )


def signers(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Signers:
    """Who must have signed the weights: the key of the spec, else all that the configuration lists."""
    key = _key_of(spec)
    return Signers((key,)) if key is not None else _listed(snapshot)


def _listed(snapshot: ClusterSnapshot) -> Signers:
    configured = snapshot.policy.integrity
    return Signers(tuple(configured.public_keys), tuple(configured.certificate_roots))


def verifier(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verifier | None:
    """What verifies the weights of the next pods; None where they are not verified."""
    policy, images = integrity_policy(spec, snapshot), snapshot.policy.integrity.verifiers
    if policy == "Off" or not images:
        return None
    desired_signers = signers(spec, snapshot)
    present = verifier_in(snapshot.workload.template)
    if present is None:
        return Verifier(images[0], policy, desired_signers)
    image, present_signers = present
    if any(mounted_adapters(spec)) and not verifies_adapters(snapshot.workload.template):
        # The image in the template may be of a release that does not know adapters, and the pods are replaced anyway.
        image = images[0]
    keeps = (
        bool(present_signers) == bool(desired_signers)
        and present_signers.are_among(desired_signers)
        and not _lacks_a_key(snapshot)
    )
    return Verifier(image if image in images else images[0], policy, present_signers if keeps else desired_signers)


def _lacks_a_key(snapshot: ClusterSnapshot) -> bool:
    """Whether a pod does not know the signer of its weights: a key that was listed later may be the one."""
    unknown = {WeightsReason.WRONG_KEY, WeightsReason.CERTIFICATE_UNTRUSTED}
    return any(result.reason in unknown for _, result in verifications(snapshot))


def _blocks(reason: SpecReason, message: str, field: str) -> Blocks:
    return Blocks(reason, message, _KIND, field=field)
