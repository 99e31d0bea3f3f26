"""`spec.weights.integrity` and the operator's `integrity`: how weights are verified before an engine starts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from hermetic.api.field_types import CertificatePem, Namespaces, PinnedImage, PublicKeyPem, list_of, matches
from hermetic.api.rules import ApiModel, Rule
from hermetic.api.strictness import Strictness

IntegrityPolicy = Literal["Require", "Warn", "Off"]
INTEGRITY_POLICIES: Strictness[IntegrityPolicy] = Strictness(("Require", "Warn", "Off"))

RootDigest = Annotated[
    str,
    StringConstraints(max_length=71),
    matches(r"^sha256:[a-f0-9]{64}$", "must be a root digest as 'hermetic stage' prints it: sha256: and 64 digits"),
]
AllowedFile = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1024),
    matches(r"^[^-\x00-\x1f\x7f][^\x00-\x1f\x7f]*$", "must be a path in the folder, or the name of a file"),
]


class Integrity(ApiModel):
    """What the weights must be before an engine starts."""

    policy: IntegrityPolicy = "Require"
    """Require: no engine starts on weights that do not match. Warn: they are verified, the status says what does not
    match, and the engine starts. "Off" (quote it): they are not verified. The operator's configuration sets the least
    that counts, by namespace: less is raised to it. Default: Require."""
    digest: RootDigest | None = None
    """Root digest that the manifest must have, as 'hermetic stage' prints it. Default: any that is signed by a trusted
    key."""
    public_key: PublicKeyPem | None = None
    """PEM of the P-256, P-384 or P-521 key that must have signed the manifest; where the operator's configuration lists
    keys, one of these. Default: any of the keys that the operator's configuration lists."""
    allow: Annotated[list[AllowedFile], Field(max_length=64), list_of("set")] = []
    """Files that may hold code (pickle, Python, an archive), by path or name, as --allow of 'hermetic stage'.
    Default: none."""


def _are_signing_keys(keys: list[str]) -> bool:
    from hermetic.signing.keys import is_ecdsa_public_key  # a tenth of a second to import, for `hermetic validate`

    return all(is_ecdsa_public_key(pem) for pem in keys)


class IntegrityOverride(ApiModel):
    """Another least policy of integrity for some namespaces."""

    minimum_policy: IntegrityPolicy
    """The least `weights.integrity.policy` that counts in these namespaces: Require, Warn or "Off"."""
    namespaces: Namespaces
    """Namespaces that it is about; '*' means every namespace. Of several that name one, the strictest counts."""


class IntegrityFloor(ApiModel):
    """How weights on shares and claims are verified before an engine starts."""

    RULES = (
        Rule(
            cel="",
            message="`publicKeys`: each must be one P-256, P-384 or P-521 public key in PEM",
            holds=lambda floor: not floor.public_keys or _are_signing_keys(floor.public_keys),
        ),
    )

    verifiers: Annotated[list[PinnedImage], Field(max_length=8)] = []
    """Images of Hermetic by digest that verify weights in an init container of the pods, the newest first. New pod
    templates take the first; a template that has another one of the list keeps it, so that adding an image restarts no
    pod, and removing one restarts those that have it. Default: none, and deployments whose weights must be verified are
    refused with the reason VerifierNotConfigured."""
    public_keys: Annotated[list[PublicKeyPem], Field(max_length=16)] = []
    """PEM of the keys that may sign weights. With one, every manifest must be signed by one of them, beside any
    `digest` that a deployment pins. A template keeps its keys while all of them are listed. Default: none, and each
    deployment pins a digest or names a key."""
    certificate_roots: Annotated[list[CertificatePem], Field(max_length=8)] = []
    """PEM of certificates that a signer's may lead to, beside the keys, and as these. Default: none."""
    minimum_policy: IntegrityPolicy = "Require"
    """The least `weights.integrity.policy` that counts, for `azureFiles`, `nfs` and `persistentVolumeClaim`: a
    deployment that asks for less, or says nothing, is treated as if it asked for this. Require, Warn or "Off" (quote
    it: weights are then served unverified, unless a deployment asks for more). Default: Require."""
    overrides: Annotated[list[IntegrityOverride], Field(max_length=64)] = []
    """Namespaces with another minimum. Default: none."""

    def minimum_of(self, namespace: str) -> IntegrityPolicy:
        named = ((override.namespaces, override.minimum_policy) for override in self.overrides)
        return INTEGRITY_POLICIES.minimum(named, namespace, self.minimum_policy)
