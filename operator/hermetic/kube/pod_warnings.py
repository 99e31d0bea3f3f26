"""Newest warning Event about each pod, a bounded number of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from hermetic.kube.owners import About, Key, Manifest, about_of
from hermetic.kube.projections import warned
from hermetic.plan.snapshot import Warned

REMEMBERED_WARNINGS = 5_000
LONGEST_ABOUT = 36 + 63 + 253


class PodWarnings:
    """Warnings by the pod that they are about, and the ModelDeployment of each pod that is known."""

    def __init__(self) -> None:
        self._pods: dict[About, Key] = {}
        self._warnings: OrderedDict[About, tuple[int, Warned]] = OrderedDict()

    def put(self, event: Manifest) -> frozenset[Key]:
        """Keep an Event if it is the newest about its pod; returns the ModelDeployment of that pod, if known."""
        subject, metadata = event.get("involvedObject") or event.get("regarding") or {}, event["metadata"]
        # The namespace is the Event's own. A tenant can name another tenant's pod by uid, namespace and name: the API
        # server compares the two namespaces only in Events without `eventTime`.
        about = (str(subject.get("uid") or ""), str(metadata.get("namespace") or ""), str(subject.get("name") or ""))
        version = int(metadata["resourceVersion"])
        if not about[0] or len("".join(about)) > LONGEST_ABOUT or self._warnings.get(about, (-1,))[0] >= version:
            return frozenset()
        # An Event can arrive before its pod, so Events of unknown pods are kept, as far as REMEMBERED_WARNINGS allows.
        self._warnings[about] = (version, warned(event))
        self._warnings.move_to_end(about)
        if len(self._warnings) > REMEMBERED_WARNINGS:
            # The oldest Event of an unknown pod is dropped first: a flood of Events displaces only those.
            oldest = next(
                (candidate for candidate in self._warnings if candidate not in self._pods), next(iter(self._warnings))
            )
            del self._warnings[oldest]
        return frozenset({self._pods[about]} if about in self._pods else ())

    def put_pod(self, pod: Manifest, owner: Key) -> None:
        """Record the ModelDeployment of a pod."""
        self._pods[about_of(pod["metadata"])] = owner

    def drop_pod(self, about: About) -> bool:
        """Forget a pod and what was warned of; whether the pod was known."""
        self._warnings.pop(about, None)
        return self._pods.pop(about, None) is not None

    def of(self, pods: Iterable[Manifest]) -> dict[str, Warned]:
        """The warnings about these pods, by uid."""
        abouts = [about_of(pod["metadata"]) for pod in pods]
        return {about[0]: self._warnings[about][1] for about in abouts if about in self._warnings}
