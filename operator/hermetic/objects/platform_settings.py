"""What the operator's configuration adds to the objects of a spec."""

from __future__ import annotations

from dataclasses import dataclass

from hermetic.objects.weights_verifier import Verifier


@dataclass(frozen=True, slots=True)
class PlatformSettings:
    """`verifier`: None where no weights are verified. `pod_ranges`: CIDRs of the cluster's pods, if they are known."""

    verifier: Verifier | None = None
    pod_ranges: tuple[str, ...] = ()


NO_SETTINGS = PlatformSettings()
