"""What runs a model's pods, as it was last observed: decisions read the fields of a Deployment here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hermetic.objects.names import template_of


@dataclass(frozen=True, slots=True)
class Workload:
    """The live object, None where there is none: it asks for `replicas` pods of the `template`, {} for none.

    Of the `existing` pods, `updated` are of the template; of all, `serving` serve. `is_observed`: these counts are of
    the present generation. `conditions` are by (type, status or reason).
    """

    live: Mapping[str, Any] | None
    replicas: int
    template: Mapping[str, Any]
    existing: int
    updated: int
    serving: int
    is_observed: bool
    conditions: Mapping[tuple[str, str], Mapping[str, Any]]

    @classmethod
    def of(cls, live: Mapping[str, Any] | None) -> Workload:
        """From the Deployment as its controller last reported it."""
        metadata, spec, status = ((live or {}).get(part) or {} for part in ("metadata", "spec", "status"))
        conditions = status.get("conditions") or ()
        return cls(
            live,
            replicas=int(spec.get("replicas", 1)),
            template=spec.get("template") or {},
            existing=int(status.get("replicas") or 0),
            updated=int(status.get("updatedReplicas") or 0),
            serving=int(status.get("availableReplicas") or 0),
            is_observed=status.get("observedGeneration", 0) >= metadata.get("generation", 1),
            conditions={(one.get("type"), one.get(word)): one for one in conditions for word in ("status", "reason")},
        )

    def is_present(self, pod: Mapping[str, Any]) -> bool:
        """Whether the pod is of the template, by its mark."""
        return bool(mark := template_of(pod)) and mark == template_of(self.template)
