"""What a plant is: one change to the manifests of a sealed cluster that opens one path, and what must then be found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Manifest = dict[str, Any]
Manifests = list[Manifest]
# Changes the manifests; returns the reference that the finding must name: "v1/Service planted/shop".
Change = Callable[[Manifests], str]


@dataclass(frozen=True)
class Expected:
    """A finding that must be there: its check, the reference of the object that it names, severity and verdict."""

    check: str
    resource: str
    severity: str
    verdict: str = "Fail"


@dataclass(frozen=True)
class KubernetesPlant:
    """name: of the function that changes the manifests; its docstring says what was opened.

    source: the document that shows that it is a way. also: check ids that may object beside it, on any resource.
    """

    name: str
    check: str
    severity: str
    verdict: str
    change: Change
    source: str
    also: frozenset[str]

    @property
    def title(self) -> str:
        return (self.change.__doc__ or self.name).strip()

    def into(self, manifests: Manifests) -> Expected:
        """Opens the path among these manifests, in place, and says what must be found."""
        return Expected(self.check, self.change(manifests), self.severity, self.verdict)


PLANTS: dict[str, KubernetesPlant] = {}
"""Every plant by name. Filled by the modules beside this one; `testbed.kubernetes_plants` has them all."""


def plant(
    check: str, severity: str, source: str, *, verdict: str = "Fail", also: tuple[str, ...] = (), name: str = ""
) -> Callable[[Change], Change]:
    """Makes a plant of a function that changes manifests and returns the reference that the finding must name."""

    def taken(change: Change) -> Change:
        named = name or getattr(change, "__name__", check)
        if named in PLANTS:
            raise ValueError(f"two plants are called {named}")
        PLANTS[named] = KubernetesPlant(named, check, severity, verdict, change, source, frozenset(also))
        return change

    return taken
