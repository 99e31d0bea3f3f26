"""The nodes that a pod template is restricted to, as far as their operating system goes.

Source: kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node. `nodeSelector` and the required node affinity
must both match a node; the terms of the affinity are alternatives, and the expressions of a term must all match.
"""

from __future__ import annotations

from typing import Any

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.resource import Part

OS_LABEL = "kubernetes.io/os"
LINUX, WINDOWS = "linux", "windows"


class NodeExpression(Part):
    """`operator` is In, NotIn, Exists, DoesNotExist, Gt, Lt; open."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None

    @property
    def is_windows_only(self) -> bool:
        """Whether it matches nodes of Windows and no other."""
        return self.key == OS_LABEL and self.operator == "In" and self.values == [WINDOWS]


class NodeTerm(Part):
    match_expressions: list[NodeExpression] | None = None

    @property
    def is_windows_only(self) -> bool:
        """Whether one of its expressions matches nodes of Windows and no other."""
        return any(expression.is_windows_only for expression in self.match_expressions or ())


class RequiredNodes(Part):
    node_selector_terms: list[NodeTerm] | None = None


class NodeAffinity(Part):
    required_during_scheduling_ignored_during_execution: RequiredNodes | None = None


class Affinity(Part):
    node_affinity: NodeAffinity | None = None


def is_windows_only(selector: FreeMap[Any] | None, affinity: Affinity | None) -> bool:
    """Whether the pods can run on nodes of Windows and no other."""
    if (selector or {}).get(OS_LABEL) == WINDOWS:
        return True
    nodes = affinity.node_affinity if affinity is not None else None
    required = nodes.required_during_scheduling_ignored_during_execution if nodes is not None else None
    terms = (required.node_selector_terms if required is not None else None) or ()
    return bool(terms) and all(term.is_windows_only for term in terms)
