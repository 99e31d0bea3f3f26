"""The kinds that the API server serves, from its discovery, by group."""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.questions import Question, Source
from hermetic.audit.estate.resource import Part, Resource

ALWAYS_SERVED = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "batch",
        "discovery.k8s.io",
        "networking.k8s.io",
        "storage.k8s.io",
    }
)
"""Built-in groups, which are always served. Kinds of any other group may be absent, which discovery shows."""


class ServedKind(Part):
    """One kind by its plural name, and the versions in which it is served."""

    plural: str = ""
    kind: str = ""
    versions: list[str] = []


class ServedGroup(Resource):
    """One API group; `id` is its name. `stale` versions are those whose server did not answer discovery."""

    SOURCE: ClassVar[Source] = "kube"
    TYPE: ClassVar[str] = "apis"
    WRAPPED: ClassVar[bool] = False

    kinds: list[ServedKind] = []
    stale: list[str] = []


SERVED = Question("kube", "list", ServedGroup.TYPE, "")
"""The question for the served kinds."""
