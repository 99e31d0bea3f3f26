"""Whether the configuration of an installation can be used, and weights be verified with it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import yaml
from pydantic import ValidationError

from hermetic.api.configuration import Configuration
from hermetic.api.kubernetes_yaml import LOADER
from hermetic.api.validation_errors import problems_of
from hermetic.cli.allowed import NAME as ALLOWED
from hermetic.cli.allowed import allowed
from hermetic.cli.check.facts import DEPLOYMENT, Installed, Manifest
from hermetic.cli.check.rows import APPLY_RIGHTS, CheckRow, RowVerdict, passes, unread

_RISK = "those who may write to a share decide what an engine loads from it, unless the weights are verified"
_REMEDY = "name the operator's image by digest under `integrity.verifiers`; docs/weights.md has the keys and digests"
CONFIG_FILE = "config.yaml"


def configuration_rows(facts: Installed) -> tuple[Configuration | None, list[CheckRow]]:
    """The configuration, None where it cannot be used, and the rows about it."""
    check = "configuration"
    for read, description in ((facts.deployments, "Deployments"), (facts.config_maps, "ConfigMaps")):
        if read.problem:
            return None, [unread(check, f"{description} of {facts.namespace}", read.problem)]
    deployment = facts.deployments.named(DEPLOYMENT, facts.namespace)
    if deployment is None:
        return None, []
    name = next(iter(_config_maps_of(deployment)), "")
    config_map = facts.config_maps.named(name, facts.namespace)
    if config_map is None:
        description = f"the ConfigMap '{name}' of the operator is not there"
        return None, [
            CheckRow(
                check,
                RowVerdict.FAIL,
                description,
                "the operator's pod cannot start",
                "apply the operator's manifests again",
            )
        ]
    try:
        configuration = Configuration.model_validate(yaml.load(config_map["data"][CONFIG_FILE], Loader=LOADER) or {})  # noqa: S506 - a safe loader
    except (KeyError, yaml.YAMLError) as error:
        return None, [_unusable(name, str(error))]
    except ValidationError as refusal:
        return None, [_unusable(name, "; ".join(map(str, problems_of(refusal, Configuration))))]
    return configuration, [
        passes(check, f"the configuration in ConfigMap {name} is valid"),
        *_limits(facts, configuration),
        *verification(configuration),
    ]


def _config_maps_of(deployment: Manifest) -> Iterator[str]:
    for volume in deployment["spec"]["template"]["spec"].get("volumes") or ():
        if "configMap" in volume:
            yield volume["configMap"]["name"]


def _unusable(name: str, problem: str) -> CheckRow:
    return CheckRow(
        "configuration",
        RowVerdict.FAIL,
        f"the configuration in ConfigMap {name} cannot be used: {' '.join(problem.split())}",
        "the operator ends with exit code 2 when it starts next",
        "correct it; docs/configuration.md describes every key",
    )


def _limits(facts: Installed, configuration: Configuration) -> Iterator[CheckRow]:
    config_map = facts.config_maps.named(ALLOWED, facts.namespace)
    why = "the policies hold the operator's account to the registries and shares that are listed there"
    if config_map is None:
        explanation = (
            f"the ConfigMap {ALLOWED} is not there: no policy bounds what a stolen token of the operator may use"
        )
        yield CheckRow("configuration", RowVerdict.WARNING, explanation, why, "apply it", APPLY_RIGHTS)
    elif any((config_map.get("data") or {}).get(key) != value for key, value in _lists(configuration).items()):
        explanation = f"the ConfigMap {ALLOWED} does not match the configuration"
        yield CheckRow(
            "configuration",
            RowVerdict.FAIL,
            explanation,
            f"{why}; entries that differ are refused",
            "apply it again",
            APPLY_RIGHTS,
        )
    else:
        yield passes("configuration", f"the ConfigMap {ALLOWED} matches the configuration")


def _lists(configuration: Configuration) -> Mapping[str, str]:
    data: Mapping[str, str] = allowed(configuration)["data"]
    return {key: value for key, value in data.items() if key in {"namespaces", "registries", "shares"}}


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
        message += f"models that read a share or claim are refused in {_names(refused)} (VerifierNotConfigured)"
        fix = f'{_REMEDY}; or accept weights that are not verified: `integrity.minimumPolicy: "Off"`'
        yield CheckRow(check, RowVerdict.WARNING, message, _RISK, fix)
    else:
        yield CheckRow(
            check,
            RowVerdict.WARNING,
            f"{message}those of shares and claims are not verified",
            _RISK,
            _REMEDY,
        )


def _names(namespaces: list[str]) -> str:
    return "every namespace" if "*" in namespaces else f"namespace {', '.join(namespaces)}"
