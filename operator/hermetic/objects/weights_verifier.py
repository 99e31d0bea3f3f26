"""The init container that verifies the weights on the mount that is served, before the engine starts.

It runs `hermetic verify` with the rights of the engine's container. Its result is its termination message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from hermetic.api.integrity import Integrity
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.adapters import adapter_path, mounted_adapters
from hermetic.engines.launch import WEIGHTS, InitContainer, InitContainerName, Launch
from hermetic.objects.pod import REQUESTED_MEMORY

VERIFIER: InitContainerName = "verify-weights"
_KEY, _ROOT, _ADAPTER, _RANK = "--public-key-pem", "--certificate-root-pem", "--adapter", "--max-lora-rank"


@dataclass(frozen=True, slots=True)
class Signers:
    """Who may sign weights: public keys, and certificates that a signer's may lead to, in PEM."""

    public_keys: tuple[str, ...] = ()
    certificate_roots: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.public_keys or self.certificate_roots)

    def are_among(self, signers: Signers) -> bool:
        return {*self.public_keys} <= {*signers.public_keys} and {*self.certificate_roots} <= {
            *signers.certificate_roots
        }


@dataclass(frozen=True, slots=True)
class Verifier:
    """Which image verifies, who must have signed, and whether a mismatch keeps the engine from starting."""

    image: str
    policy: Literal["Require", "Warn"]
    signers: Signers = Signers()


def is_required(verifier: Verifier | None) -> bool:
    """Whether no engine starts on weights that do not match."""
    return verifier is not None and verifier.policy == "Require"


def verified_first(launch: Launch, spec: ModelDeploymentSpec, verifier: Verifier | None) -> Launch:
    """The launch with the verification before everything else.

    Code of the weights (compile caches) is left out where an engine may start on weights that do not match.
    """
    trusted = is_required(verifier) or not spec.weights.is_mounted
    unverified = tuple(
        init_container for init_container in launch.init_containers if trusted or not init_container.brings_code
    )
    first = () if verifier is None else (_container(spec, verifier),)
    return replace(launch, init_containers=(*first, *unverified))


def verifier_in(template: Mapping[str, Any]) -> tuple[str, Signers] | None:
    """Image and signers of the verification in a pod template; None where it has none."""
    for container in (template.get("spec") or {}).get("initContainers") or ():
        if container.get("name") == VERIFIER:
            arguments = container.get("args") or []
            keys = {flag: tuple(after for word, after in pairwise(arguments) if word == flag) for flag in (_KEY, _ROOT)}
            return str(container.get("image", "")), Signers(keys[_KEY], keys[_ROOT])
    return None


def verifies_adapters(template: Mapping[str, Any]) -> bool:
    """Whether the verification in a pod template reads adapters, which the images of earlier releases cannot."""
    containers = (template.get("spec") or {}).get("initContainers") or ()
    return any(
        container.get("name") == VERIFIER and _ADAPTER in (container.get("args") or ()) for container in containers
    )


def _container(spec: ModelDeploymentSpec, verifier: Verifier) -> InitContainer:
    return InitContainer(
        VERIFIER,
        verifier.image,
        command=(),
        args=tuple(_arguments(spec, verifier)),
        mounts=frozenset({"weights"}),
        # The requests of the engine, which runs later: they cost nothing more. A lower memory limit would drop from the
        # page cache what the engine reads next.
        cpu=spec.resources.cpu,
        memory=spec.resources.memory or REQUESTED_MEMORY,
        memory_limit=spec.resources.memory,
        budget_seconds=spec.startup_budget_seconds,
    )


def _arguments(spec: ModelDeploymentSpec, verifier: Verifier) -> Iterator[str]:
    integrity = spec.weights.integrity or Integrity()
    yield from ("verify", WEIGHTS)
    if integrity.digest is not None:
        yield from ("--digest", integrity.digest)
    for key in verifier.signers.public_keys:
        yield from (_KEY, key)
    for root in verifier.signers.certificate_roots:
        yield from (_ROOT, root)
    for adapter in mounted_adapters(spec):
        digest = f"={adapter.integrity.digest}" if adapter.integrity is not None else ""
        yield from (_ADAPTER, f"{adapter_path(spec.weights, adapter)}{digest}")
    if any(mounted_adapters(spec)):
        # The engine keeps room for the largest rank, whichever adapter has it.
        yield from (_RANK, str(max(adapter.rank for adapter in spec.adapters)))
    for name in integrity.allow:
        yield from ("--allow", name)
    yield from ("--timeout", str(spec.startup_budget_seconds))
    yield from ("--termination-log", "/dev/termination-log")
    if verifier.policy == "Warn":
        yield "--report-only"
