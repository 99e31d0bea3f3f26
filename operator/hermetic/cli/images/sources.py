"""From which registry an image of the private registry comes: by --from, by a file, or because its name is well known.

A prefix of the target, at the boundary of a path component, is replaced by the source: with
`contoso.azurecr.io/mirror=docker.io`, the image `contoso.azurecr.io/mirror/vllm/vllm-openai` comes from
`docker.io/vllm/vllm-openai`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hermetic.api.image_references import DEFAULT, digest_of, is_public, registry_of, repository_of, tag_of
from hermetic.api.kubernetes_yaml import NotReadable, read_documents
from hermetic.errors import InputError, Unreachable

_PREFIX = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*(?::[0-9]{1,5})?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*")
# Repositories under which the engines are published:
# https://docs.vllm.ai/en/stable/deployment/docker.html, https://docs.sglang.io/get_started/install.html and
# https://docs.nvidia.com/nim/large-language-models/latest/getting-started.html
_PUBLISHED = (
    (re.compile(r"(?:^|/)(vllm/vllm-openai|lmsysorg/sglang)$"), "docker.io"),
    (re.compile(r"(?:^|/)(nim/[^/]+/[^/]+)$"), "nvcr.io"),
)
_FORM = "TARGET=SOURCE, such as contoso.azurecr.io/mirror=docker.io; an empty SOURCE leaves the images out"


@dataclass(frozen=True, slots=True)
class SourceMap:
    """Source prefix by target prefix; "" where the images of the target are to be left out."""

    prefixes: Mapping[str, str]

    def repository(self, image: str) -> str | None:
        """Registry and repository that the image comes from; "" to leave it out, None where no source is known."""
        target = repository_of(image)
        for prefix in sorted(self.prefixes, key=len, reverse=True):
            if target == prefix or target.startswith(f"{prefix}/"):
                source = self.prefixes[prefix]
                return _normalized(source + target.removeprefix(prefix)) if source else ""
        if is_public(registry_of(image)):
            return target
        for pattern, registry in _PUBLISHED:
            if published := pattern.search(target.partition("/")[2]):
                return f"{registry}/{published[1]}"
        return None

    def reference(self, image: str) -> str:
        """The image in its source, with the same tag and digest; "" where no source is known."""
        repository = self.repository(image)
        if not repository:
            return ""
        tag, digest = tag_of(image), digest_of(image)
        return repository + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")


def source_map(typed: Sequence[str], file: Path | None) -> SourceMap:
    """The sources of --from, which come before those of the file of --from-file. Raises InputError, Unreachable."""
    prefixes = _of_file(file) if file is not None else {}
    for text in typed:
        target, equals, source = text.partition("=")
        if not equals:
            raise InputError(f"--from {text}: is not of the form {_FORM}", fix=f"--from {text}=docker.io")
        prefixes[_prefix(target, f"--from {text}")] = _prefix(source, f"--from {text}") if source else ""
    return SourceMap(prefixes)


def _of_file(file: Path) -> dict[str, str]:
    fix = "write one mapping in YAML: 'contoso.azurecr.io: docker.io'"
    try:
        documents = list(read_documents(file.read_text(encoding="utf-8-sig")))
    except FileNotFoundError:
        raise InputError(f"{file}: No such file or directory", fix="name a file that exists") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: {error}", fix="save the file as UTF-8") from None
    except OSError as error:
        raise Unreachable(f"{file}: {error.strerror}", fix="name a file that can be read") from None
    except NotReadable as error:
        raise InputError(f"{file}:{error.place}: is not YAML: {error.message}", fix=fix) from None
    match documents:
        case [document] if isinstance(document.value, dict) and not document.faults:
            pairs = document.value.items()
        case _:
            raise InputError(f"{file}: is not one mapping of target to source, each key once", fix=fix)
    if strange := [key for key, value in pairs if not (isinstance(key, str) and isinstance(value, str | None))]:
        raise InputError(f"{file}: {strange[0]}: must be a registry or a path in it", fix=fix)
    return {_prefix(key, str(file)): _prefix(value, str(file)) if value else "" for key, value in pairs}


def _prefix(text: str, origin: str) -> str:
    if not _PREFIX.fullmatch(text):
        raise InputError(
            f"{origin}: {text!r} is not a registry, or a path in a registry, in lower case",
            fix="name it as in an image reference, without https:// and without a slash at the end",
        )
    return text


def _normalized(repository: str) -> str:
    """Docker Hub keeps official images in `library/`, and only some programs add that."""
    registry, _, path = repository.partition("/")
    return f"{registry}/library/{path}" if registry == DEFAULT and "/" not in path else repository
