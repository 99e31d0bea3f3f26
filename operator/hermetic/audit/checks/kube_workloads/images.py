"""Where the images of running pods come from."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.field_managers import CONTAINERS
from hermetic.api.image_references import is_public, registry_of
from hermetic.audit.checks.family import check
from hermetic.audit.cluster.workloads import pods_and_templates, trust_of
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.images import MICROSOFT
from hermetic.audit.estate.kubernetes.platform import may_run_microsofts_images
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.evaluation.each_object import counted, objections, settled
from hermetic.audit.evaluation.results import CheckResult, fails, unknown
from hermetic.audit.policy.declarations import Policy


@check("k8s-image-origin")
def k8s_image_origin(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Images come from registries that the policy approves; platform pods may also run Microsoft's images."""
    pods, trust = pods_and_templates(estate), trust_of(estate, policy)
    approved = frozenset(registry.lower() for registry in policy.allowed_registries)
    undeclared: dict[str, Pod] = {}

    def evaluate(pod: Pod) -> Iterator[CheckResult]:
        if pod.has_ended:
            return
        of_platform = MICROSOFT if may_run_microsofts_images(pod, trust) else frozenset()
        registries = {registry_of(image) for image in _images(pod)} - approved - of_platform
        foreign = sorted(registry for registry in registries if approved or is_public(registry))
        if foreign:
            yield fails(
                pod.workload, "ForeignImage", f"its images come from {', '.join(foreign)}", pod, blames=CONTAINERS
            )
        for registry in registries.difference(foreign):
            undeclared.setdefault(registry, pod)

    results = [*objections(pods, evaluate)]
    if undeclared:
        results.append(
            unknown(
                estate.cluster,
                "NoRegistryApproved",
                f"no policy lists the approved registries; in use: {', '.join(sorted(undeclared))}",
                *undeclared.values(),
                remedy="List the registries that are yours under `allowedRegistries` in the file given to --policy.",
            )
        )
    fine = f"{counted(len(pods), 'pod')}: every image comes from an approved registry"
    yield from settled(estate, results, "ImagesApproved", fine, pods)


def _images(pod: Pod) -> Iterator[str]:
    """Images of containers, and of image volumes."""
    yield from (container.image for container in pod.containers)
    yield from (
        volume.image.reference
        for volume in pod.spec.volumes or ()
        if volume.image is not None and volume.image.reference
    )
