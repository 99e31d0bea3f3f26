"""The operator's configuration file, read once and held against its model."""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import ValidationError

from hermetic.api.configuration import Configuration
from hermetic.errors import ConfigurationInvalid


def load_configuration(path: Path) -> Configuration:
    """The configuration in a YAML file. Raises ConfigurationInvalid naming file, field, value and what is accepted."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationInvalid(f"{path}: {error}", fix="name a readable file with --config") from error
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigurationInvalid(f"{path}: not YAML: {_in_one_line(error)}", fix="correct the file") from error
    try:
        return Configuration.model_validate({} if found is None else found)
    except ValidationError as error:
        problems = "; ".join(_problem(one) for one in error.errors(include_url=False))
        raise ConfigurationInvalid(
            f"{path}: {problems}", fix="every key is described in docs/configuration.md"
        ) from error


def dump_configuration(configuration: Configuration) -> str:
    """The effective values as YAML, defaults included."""
    return yaml.safe_dump(configuration.model_dump(by_alias=True, mode="json", exclude_none=True), sort_keys=False)


def _problem(error: object) -> str:
    assert isinstance(error, dict)  # noqa: S101 - pydantic's ErrorDetails
    where = ".".join(str(part) for part in error["loc"]) or "the file"
    return f"`{where}`: {error['msg']} (found {error.get('input')!r:.80})"


def _in_one_line(error: yaml.YAMLError) -> str:
    return " ".join(str(error).split())
