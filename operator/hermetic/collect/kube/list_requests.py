"""Translates a question about the cluster into the list request that answers it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from hermetic.audit.estate.kubernetes.all_kinds import BY_TYPE, question
from hermetic.audit.estate.kubernetes.objects import KubernetesObject
from hermetic.audit.estate.kubernetes.served import ALWAYS_SERVED
from hermetic.audit.estate.questions import Question, fixed_json
from hermetic.kinds import Kind
from hermetic.kube.paging import Selection


@dataclass(frozen=True, slots=True)
class ListRequest:
    """One list: all objects of a kind, of a namespace of it, or the one object "namespace/name".

    `served_as` is the version that the API server serves, where it is not that of the model.
    """

    model: type[KubernetesObject]
    scope: str
    served_as: str = field(default="", compare=False)

    @property
    def kind(self) -> Kind:
        """The REST coordinates."""
        *group, version, plural = self.model.TYPE.split("/")
        return Kind("/".join(group), self.served_as or version, self.model.KIND, plural, self.model.NAMESPACED)

    @property
    def is_optional(self) -> bool:
        """Whether a cluster may not serve the kind."""
        return self.kind.group not in ALWAYS_SERVED

    @property
    def namespace(self) -> str | None:
        """None for everywhere."""
        return self.scope.partition("/")[0] or None

    @property
    def field_selector(self) -> str:
        """Narrows the list to one object: a role can name that object."""
        name = self.scope.partition("/")[2]
        return f"metadata.name={name}" if name else ""

    @property
    def selection(self) -> Selection:
        """What is listed and watched."""
        return Selection(self.kind, self.namespace, field_selector=self.field_selector)

    @property
    def path(self) -> str:
        """The URL path, as evidence shows it."""
        selector = self.field_selector.replace("=", "%3D")
        return self.kind.path(self.namespace) + (f"?fieldSelector={selector}" if selector else "")

    @property
    def resource(self) -> str:
        """As kubectl names it: "pods", "networkpolicies.networking.k8s.io"."""
        return f"{self.kind.plural}.{self.kind.group}" if self.kind.group else self.kind.plural

    @property
    def question(self) -> Question:
        return question(self.model, self.scope)


def list_request_of(query: Question) -> ListRequest | None:
    """The list that answers a question; None for a question that this source cannot answer."""
    model = BY_TYPE.get(query.kind.lower())
    return ListRequest(model, query.target) if model is not None and query.verb == "list" else None


def digest_of(bodies: Iterable[Mapping[str, Any]]) -> str:
    """SHA-256 over the kept part of a list: each object as canonical JSON on a line, in order."""
    digest = sha256()
    for body in bodies:
        digest.update(fixed_json(body).encode() + b"\n")
    return digest.hexdigest()


def identity(manifest: Mapping[str, Any]) -> tuple[str, str]:
    """(Namespace or "", name)."""
    metadata = manifest["metadata"]
    return (str(metadata.get("namespace") or ""), str(metadata["name"]))
