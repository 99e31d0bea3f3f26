"""Where the images of running pods come from."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.images import registry_of
from hermetic.audit.estate.kubernetes.platform import is_the_platforms
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.judging import Judgement, cannot_say, fails
from hermetic.audit.looking_at_objects import counted, everywhere, objections, settled
from hermetic.audit.policy import Policy

# Registries that anybody can pull from: an image of theirs that runs here has come, or will be asked for, from outside.
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
# What AKS runs for itself is named so everywhere, and is served by the bootstrap registry where there is one.
OF_THE_PLATFORM = frozenset({"mcr.microsoft.com", "mcr.azk8s.cn"})


def image_origin(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """Images come from registries that the policy approves; the platform's own from the platform's."""
    pods = everywhere(estate, Pod)
    approved = frozenset(one.lower() for one in policy.allowed_registries)
    undeclared: dict[str, Pod] = {}

    def judge(pod: Pod) -> Iterator[Judgement]:
        if pod.has_ended:
            return
        of_platform = OF_THE_PLATFORM if is_the_platforms(pod) else frozenset()
        registries = {registry_of(container.image) for container in pod.containers} - approved - of_platform
        foreign = sorted(one for one in registries if approved or _is_public(one))
        if foreign:
            yield fails(pod.workload, "ForeignImage", f"its images come from {', '.join(foreign)}", pod)
        for one in registries.difference(foreign):
            undeclared.setdefault(one, pod)

    said = [*objections(pods, judge)]
    if undeclared:
        said.append(
            cannot_say(
                estate.cluster,
                "NoRegistryApproved",
                f"no policy says which registries are approved; in use: {', '.join(sorted(undeclared))}",
                *undeclared.values(),
                remedy="List the registries that are yours under `allowedRegistries` in the file given to --policy.",
            )
        )
    fine = f"{counted(len(pods), 'pod')}: every image comes from an approved registry"
    yield from settled(estate, said, "ImagesApproved", fine, pods)


def _is_public(registry: str) -> bool:
    return registry in PUBLIC or registry.endswith(PUBLIC_ENDINGS)
