"""The probe of `hermetic audit --probe`: as declared in the cluster's EgressAudit, plus the options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from hermetic.api.egressaudit import Probe
from hermetic.collect.probe.job import ProbePods
from hermetic.controller.audit.probe_scheduler import targets_of
from hermetic.errors import InputError


def probe_pods(namespace: str, image: str | None, declared: Mapping[str, Any]) -> ProbePods:
    """The pods of a round, with the same calls that the operator makes. `declared` is spec.probe, empty without one.

    Raises InputError where the image is not given, or not by digest, or a declared target cannot be called.
    """
    if not image and not declared:
        raise InputError(
            "--probe needs an image, and the cluster has no EgressAudit that names one (spec.probe.image)",
            fix="--probe-image IMAGE@sha256:…, anything that has python3 and can be pulled there",
        )
    try:
        probe = Probe.model_validate({**declared, **({"image": image} if image else {})}, extra="ignore")
        return ProbePods(namespace=namespace, image=probe.image, targets=targets_of(probe))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in problem["loc"])
        where = "--probe-image" if image and field == "image" else f"spec.probe.{field} of the EgressAudit"
        explanation = problem["msg"].removeprefix("Value error, ")
        raise InputError(
            f"{where}: {explanation}", fix="--probe-image IMAGE@sha256:…; docs/audit.md shows a probe"
        ) from None
