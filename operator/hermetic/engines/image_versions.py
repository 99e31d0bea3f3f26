"""Whether the tag of an engine's image contradicts the release that the spec names."""

from __future__ import annotations

import re

from hermetic.api.engine_nim import Nim
from hermetic.api.image_references import tag_of
from hermetic.api.modeldeployment import ModelDeploymentSpec

# "v0.32.0", "0.5.23.post1-cu128": tags of https://hub.docker.com/r/vllm/vllm-openai/tags and lmsysorg/sglang.
_RELEASE = re.compile(r"v?(\d+(?:\.\d+)+)(?![\d.])")


def contradicting_tag(spec: ModelDeploymentSpec) -> str:
    """The tag of the engine's image that names another release than the spec does; "" for every other tag.

    Only a tag that begins as a release does, with the same first number, says something about the engine: "2026-11-01"
    and "4.2.0" of an image of the user's own do not. The lines of NIM are 1 and 2.
    """
    engine = spec.engine.chosen
    tag, release = tag_of(engine.image), engine.line if isinstance(engine, Nim) else engine.version
    named, meant = _RELEASE.match(tag), _RELEASE.match(release)
    if named is None or meant is None:
        return ""
    tag_numbers, wanted_numbers = named[1].split("."), meant[1].split(".")
    is_line_of_nim = isinstance(engine, Nim) and tag_numbers[0] in {"1", "2"}
    if tag_numbers[0] != wanted_numbers[0] and not is_line_of_nim:
        return ""
    length = min(len(tag_numbers), len(wanted_numbers))
    return "" if tag_numbers[:length] == wanted_numbers[:length] else tag
