"""The files of crds/: one CustomResourceDefinition each, made from the models."""

from __future__ import annotations

import yaml

from hermetic.api.crd import DEFINITIONS, Definition, crd

HEADER = "# Generated from the models in operator/hermetic/api by `python -m tools crds`. Do not edit.\n"


def as_yaml(definition: Definition) -> str:
    """The file as it is checked in: equal models give equal bytes."""
    return HEADER + yaml.dump(crd(definition), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


class _Dumper(yaml.SafeDumper):
    """Shows a text of several paragraphs as it is meant to be read, and everything in its place, without aliases."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


def file_name(definition: Definition) -> str:
    return f"{definition.name}.yaml"


def files() -> dict[str, str]:
    """The text of each file by its path in the repository."""
    return {f"crds/{file_name(definition)}": as_yaml(definition) for definition in DEFINITIONS}
