"""Whether weights can be verified with a configuration. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.configuration import Configuration
from hermetic.cli.check.rows import CheckRow, RowVerdict, passes

_WHY = "those who may write to a share decide what an engine loads from it, unless the weights are verified"
_FIX = "name the operator's image by digest under `integrity.verifiers`; docs/weights.md has the keys and digests"


def verification(configuration: Configuration) -> Iterator[CheckRow]:
    """One row where models may read shares, or claims of the platform team."""
    check, integrity = "weights", configuration.integrity
    if not configuration.shares and configuration.volumes.create:
        return
    if integrity.verifiers:
        yield passes(check, f"the configuration names an image that verifies weights: {integrity.verifiers[0]}")
        return
    namespaces = [name for share in configuration.shares for name in share.namespaces] or ["*"]
    message = "the configuration names no image that verifies weights: "
    if refused := sorted({name for name in namespaces if integrity.minimum_of(name) == "Require"}):
        message += f"models that read a share or claim are refused in {_in_words(refused)} (VerifierNotConfigured)"
        fix = f'{_FIX}; or accept weights that are not verified: `integrity.minimumPolicy: "Off"`'
        yield CheckRow(check, RowVerdict.WARNING, message, _WHY, fix)
    else:
        yield CheckRow(check, RowVerdict.WARNING, f"{message}those of shares and claims are not verified", _WHY, _FIX)


def _in_words(namespaces: list[str]) -> str:
    return "every namespace" if "*" in namespaces else f"namespace {', '.join(namespaces)}"
