"""Where the images of running pods come from."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.field_managers import CONTAINERS
from hermetic.audit.checks.family import check
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.images import MICROSOFT, registry_of
from hermetic.audit.estate.kubernetes.platform import may_run_microsofts_images
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.evaluation import CheckResult, fails, unknown
from hermetic.audit.kube_findings import counted, objections, settled
from hermetic.audit.policy import Policy
from hermetic.audit.workloads import pods_and_templates, trust_of

# Registries with public pull: an image from there was pulled from outside, or will be.
PUBLIC = frozenset(
    {
        "docker.io",
        "gcr.io",
        "ghcr.io",
        "k8s.gcr.io",
        "mcr.microsoft.com",
        "nvcr.io",
        "public.ecr.aws",
        "quay.io",
        "registry-1.docker.io",
        "registry.gitlab.com",
        "registry.k8s.io",
        "xpkg.upbound.io",
    }
)
PUBLIC_ENDINGS = (".gcr.io", ".pkg.dev", ".docker.io", ".gallery.ecr.aws")


@check("k8s-image-origin")
def k8s_image_origin(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Images come from registries that the policy approves; platform pods may also run Microsoft's images."""
    pods, trust = pods_and_templates(estate), trust_of(estate, policy)
    approved = frozenset(one.lower() for one in policy.allowed_registries)
    undeclared: dict[str, Pod] = {}

    def evaluate(pod: Pod) -> Iterator[CheckResult]:
        if pod.has_ended:
            return
        of_platform = MICROSOFT if may_run_microsofts_images(pod, trust) else frozenset()
        registries = {registry_of(image) for image in _images(pod)} - approved - of_platform
        foreign = sorted(one for one in registries if approved or _is_public(one))
        if foreign:
            yield fails(
                pod.workload, "ForeignImage", f"its images come from {', '.join(foreign)}", pod, blames=CONTAINERS
            )
        for one in registries.difference(foreign):
            undeclared.setdefault(one, pod)

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
    yield from (one.image.reference for one in pod.spec.volumes or () if one.image is not None and one.image.reference)


def _is_public(registry: str) -> bool:
    return registry in PUBLIC or registry.endswith(PUBLIC_ENDINGS)
