"""`spec.weights.integrity` and the operator's `integrity`: how weights are verified before an engine starts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from hermetic.api.field_types import PublicKeyPem, list_of, matches
from hermetic.api.rules import ApiModel
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
