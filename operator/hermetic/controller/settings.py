"""Reads the operator's configuration file once and validates it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hermetic.api.configuration import Configuration
from hermetic.api.kubernetes_yaml import Document, NotReadable, dump, read_documents
from hermetic.api.validation_errors import problems_of
from hermetic.errors import ConfigurationInvalid, InputError, Unreachable


def load_configuration(path: Path) -> Configuration:
    """The configuration in a YAML file.

    Raises ConfigurationInvalid with file, field, value and what is accepted, InputError for a missing file, and
    Unreachable for one that cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationInvalid(f"{path}: {error}", fix="save the file as UTF-8") from error
    except FileNotFoundError:
        raise InputError(f"{path}: No such file or directory", fix="name a file that exists") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        problem = getattr(error, "strerror", "") or str(error)
        raise Unreachable(f"{path}: {problem}", fix="name a file that can be read with --config") from error
    try:
        documents = list(read_documents(text))
    except NotReadable as error:
        raise ConfigurationInvalid(f"{path}:{error.place}: is not YAML: {error.message}") from error
    if not documents:  # a file of comments only means the defaults
        return Configuration()
    return _configuration(path, documents)


def _configuration(path: Path, documents: list[Document]) -> Configuration:
    document = documents[0]
    if len(documents) > 1:
        raise ConfigurationInvalid(f"{path}:{documents[1].place('')}: must be one document, not {len(documents)}")
    if document.faults:
        raise ConfigurationInvalid("; ".join(f"{path}:{fault.place}: {fault.message}" for fault in document.faults))
    try:
        configuration = Configuration.model_validate(document.value)
    except ValidationError as refusal:
        raise ConfigurationInvalid("; ".join(_problems(path, document, refusal))) from refusal
    if configuration.preflight.floors:
        _check_sizes(path, document, configuration)
    return configuration


def _check_sizes(path: Path, document: Document, configuration: Configuration) -> None:
    """Raises ConfigurationInvalid for a floor of a VM size that the catalogue lacks: it would never count."""
    from hermetic.sizing.catalogue import nearest_size, sizes  # a catalogue to parse, for a field that few files have

    for size in configuration.preflight.floors:
        if size not in sizes():
            field, similar = f"preflight.floors.{size}", nearest_size(size)
            raise ConfigurationInvalid(
                f"{path}:{document.place(field)}: {field}: is not a VM size with GPUs that Hermetic knows",
                fix=f"write '{similar}'" if similar else "write the name as the label node.kubernetes.io/instance-type",
            )


def _problems(path: Path, document: Document, refusal: ValidationError) -> Iterator[str]:
    for problem in problems_of(refusal, Configuration):
        yield f"{path}:{document.place(problem.path)}: {problem}"


def dump_configuration(configuration: Configuration) -> str:
    """The effective values as YAML, defaults included."""
    return dump(effective(configuration))


def effective(configuration: Configuration) -> dict[str, Any]:
    """The effective values, defaults included, by the names that the file uses."""
    return configuration.model_dump(by_alias=True, mode="json", exclude_none=True)


def with_namespaces(configuration: Configuration, namespaces: list[str]) -> Configuration:
    """The same configuration for other namespaces. Raises ConfigurationInvalid for invalid names."""
    try:
        return Configuration.model_validate({**effective(configuration), "watchNamespaces": namespaces})
    except ValidationError as refusal:
        raise ConfigurationInvalid("; ".join(map(str, problems_of(refusal, Configuration)))) from refusal
