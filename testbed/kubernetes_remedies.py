"""Carries out kubectl commands of remedies on manifests, as an API server would.

    carry_out(manifests, "kubectl --namespace team delete service shop")

What kubectl documents: kubernetes.io/docs/reference/kubectl/generated (delete, annotate, label, patch, cordon). A
command that is not here raises NotCarriedOut: nothing is guessed.
"""

from __future__ import annotations

import json
import shlex
from typing import Any

Manifest = dict[str, Any]
# They change no object that an audit reads.
_READS = frozenset({"get", "describe", "auth", "logs", "explain"})
_WITHOUT_EFFECT = frozenset({"rollout", "cordon"})


class NotCarriedOut(Exception):
    """The command has no row; the text says which."""


def is_read(command: str) -> bool:
    """Whether a command only shows something."""
    return _parts(command)[1] in _READS


def carry_out(manifests: list[Manifest], command: str) -> None:
    """Change the manifests in place."""
    namespace, verb, words, options = _parts(command)
    if verb in _READS or verb in _WITHOUT_EFFECT:
        return
    if verb == "edit":
        raise NotCarriedOut("an edit by hand")
    if verb not in {"delete", "annotate", "label", "patch"} or len(words) < 2:
        raise NotCarriedOut(f"no row: kubectl {verb}")
    target = _object(manifests, words[0], words[1], namespace)
    if verb == "delete":
        manifests.remove(target)
    elif verb == "patch":
        _patch(target, options)
    else:
        _mark(target["metadata"].setdefault(f"{verb}s" if verb == "label" else "annotations", {}), words[2:])


def _parts(command: str) -> tuple[str, str, list[str], dict[str, str]]:
    """(Namespace, verb, words after it, options)."""
    tokens = iter(shlex.split(command)[1:])
    options: dict[str, str] = {}
    words: list[str] = []
    for token in tokens:
        if token in {"--overwrite", "--all-namespaces"}:
            continue
        if token.startswith("--"):
            name, mark, value = token.removeprefix("--").partition("=")
            options[name] = value if mark else next(tokens, "")
        else:
            words.append(token)
    return options.get("namespace", ""), words[0] if words else "", words[1:], options


def _object(manifests: list[Manifest], resource: str, name: str, namespace: str) -> Manifest:
    """The object by its kind, singular or plural, with or without its group."""
    wanted, _, group = resource.lower().partition(".")
    for manifest in manifests:
        kind = manifest["kind"].lower()
        spelled = {kind, f"{kind}s", f"{kind}es", f"{kind[:-1]}ies"}
        metadata = manifest["metadata"]
        is_of_group = not group or manifest["apiVersion"].partition("/")[0] == group
        if wanted in spelled and is_of_group and (metadata["name"], metadata.get("namespace", "")) == (name, namespace):
            return manifest
    raise NotCarriedOut(f"not found: {resource} {name} in {namespace or '(no namespace)'}")


def _mark(values: dict[str, str], texts: list[str]) -> None:
    for word in texts:
        name, mark, value = word.partition("=")
        if mark:
            values[name] = value
        else:
            values.pop(name.removesuffix("-"), None)


def _patch(target: Manifest, options: dict[str, str]) -> None:
    document = json.loads(options["patch"])
    if options.get("type") == "merge":
        _merge(target, document)
        _drop_dependent_fields(target)
        return
    for operation in document:
        *path, last = operation["path"].strip("/").split("/")
        parent = target
        for step in path:
            parent = parent[step]
        if operation["op"] != "remove":
            raise NotCarriedOut(f"no row: kubectl patch, {operation['op']}")
        del parent[last]


def _drop_dependent_fields(target: Manifest) -> None:
    """What the API server clears when the type changes: pkg/registry/core/service, dropTypeDependentFields."""
    if target["kind"] == "Service" and target["spec"].get("type") == "ClusterIP":
        for port in target["spec"].get("ports", ()):
            port.pop("nodePort", None)


def _merge(target: Manifest, change: Manifest) -> None:
    """RFC 7386: null removes a field."""
    for key, value in change.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = value
