"""Replaces the placeholders of a remedy with the finding's own names, quoted for the shell.

Names come from ARM and from the Kubernetes API and may contain any character. A value that a shell or a program could
misread (an option, a control character) is not filled in: the placeholder stays.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hermetic.audit.estate.arm_ids import group_of, is_arm_id, name_of, parent_of, type_of
from hermetic.audit.remedies.placeholders import PLACEHOLDER, STEMS
from hermetic.audit.remedies.steps import RemedyStep

_STEM_OF = {kind.lower(): stem for kind, stem in STEMS.items()}
_OBJECT = re.compile(r"(?:([a-z0-9.-]+)/)?v[a-z0-9]+/([A-Z][A-Za-z0-9]*) (?:([a-z0-9.-]+)/)?([a-z0-9.:-]+)")
_PROBED = re.compile(r"agentPools/([^/]+)/subnets/.+")
# The cloud provider names a Linux pool's scale set after the pool.
_SCALE_SET_OF_A_POOL = re.compile(r"aks-([a-z0-9]{1,12})-[0-9]{8}-vmss")
_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+""")
# What the az CLI's shorthand syntax accepts as a plain value.
_PLAIN = re.compile(r"[A-Za-z0-9_./-]+")
_MOST = 2048

Fill = Mapping[str, str | Sequence[str]]
"""Values by placeholder. A command is repeated for each of several values, and left out where there is none."""


def values_of(resource: str, cluster: str, node_group: str = "") -> dict[str, str]:
    """The values that a finding's resource and its cluster give, by placeholder. `node_group` is a name, or ""."""
    values = {**_of_the_cluster(cluster), "NODE_GROUP": node_group}
    if is_arm_id(resource):
        values |= _of_a_resource(resource)
    elif match := _OBJECT.fullmatch(resource):
        group, kind, namespace, name = match.groups()
        values |= {"KIND": ".".join(filter(None, (kind.lower(), group))), "NAMESPACE": namespace or "", "NAME": name}
    elif match := _PROBED.fullmatch(resource):
        values["POOL_NAME"] = match[1]
    return {name: value for name, value in values.items() if value}


def filled(steps: Iterable[RemedyStep], values: Fill) -> tuple[RemedyStep, ...]:
    """The steps with those placeholders of their commands replaced that have a value safe to type."""
    usable = {
        name: tuple(filter(_can_be_typed, [value] if isinstance(value, str) else value))
        for name, value in values.items()
    }
    none = frozenset(name for name, value in values.items() if not isinstance(value, str) and not value)
    return tuple(filled_step for step in steps if (filled_step := _filled_step(step, usable, none)) is not None)


def _filled_step(step: RemedyStep, values: Mapping[str, tuple[str, ...]], none: frozenset[str]) -> RemedyStep | None:
    """The step filled; None where every command needs a placeholder of which the resource has no value."""
    usable_commands = [command for command in step.commands if none.isdisjoint(PLACEHOLDER.findall(command))]
    if step.commands and not usable_commands:
        return None
    commands = dict.fromkeys(variant for command in usable_commands for variant in _each_filled(command, values))
    return RemedyStep(step.explanation, step.warning, tuple(commands))


def _each_filled(command: str, values: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """The command once for each value; placeholders with several values advance together."""
    here = {name: values[name] for name in PLACEHOLDER.findall(command) if values.get(name)}
    for position in range(max(map(len, here.values()), default=1)):
        yield filled_command(
            command, {name: choices[min(position, len(choices) - 1)] for name, choices in here.items()}
        )


def filled_command(command: str, values: Mapping[str, str]) -> str:
    """One command with its placeholders filled: a shell word stays one word for every value."""
    return _WORD.sub(lambda match: _filled_word(match[0], values), command)


def merged(first: Iterable[RemedyStep], second: Iterable[RemedyStep]) -> tuple[RemedyStep, ...]:
    """Merge two remedies of one resource: a step in both has the commands of both."""
    steps = list(first)
    for step in second:
        position = next((i for i, candidate in enumerate(steps) if _says_the_same(candidate, step)), None)
        if position is None:
            steps.append(step)
        else:
            commands = tuple(dict.fromkeys((*steps[position].commands, *step.commands)))
            steps[position] = RemedyStep(step.explanation, step.warning, commands)
    return tuple(steps)


def _says_the_same(step: RemedyStep, other: RemedyStep) -> bool:
    return (step.explanation, step.warning) == (other.explanation, other.warning)


def _of_the_cluster(cluster: str) -> dict[str, str]:
    if not is_arm_id(cluster):
        return {}
    return {
        "CLUSTER_ID": cluster,
        "CLUSTER_NAME": name_of(cluster),
        "CLUSTER_GROUP": name_of(group_of(cluster)),
        "CLUSTER_SUBSCRIPTION": _subscription(cluster),
    }


def _of_a_resource(resource: str) -> dict[str, str]:
    values = {
        "RESOURCE_ID": resource,
        "RESOURCE_NAME": name_of(resource),
        "RESOURCE_GROUP": name_of(group_of(resource)),
        "SUBSCRIPTION_ID": _subscription(resource),
    }
    lineage = list(_lineage(resource))
    for ancestor in lineage:
        if stem := _STEM_OF.get(type_of(ancestor).lower()):
            values |= {f"{stem}_ID": ancestor, f"{stem}_NAME": name_of(ancestor)}
    if len(lineage) > 1:
        values |= {"PARENT_ID": lineage[1], "PARENT_NAME": name_of(lineage[1])}
    if (match := _SCALE_SET_OF_A_POOL.fullmatch(values.get("SCALE_SET_NAME", ""))) is not None:
        values["POOL_NAME"] = match[1]
    return values


def _lineage(resource: str) -> Iterator[str]:
    """The resource, then its parents up to the top-level resource."""
    while type_of(resource).count("/") >= 1:
        yield resource
        resource = parent_of(resource)


def _subscription(arm_id: str) -> str:
    return arm_id.split("/")[2]


def _can_be_typed(value: str) -> bool:
    """Whether it is not empty, at most `_MOST` characters, printable, and does not begin with "-"."""
    return bool(value) and value.isprintable() and not value.startswith("-") and len(value) <= _MOST


def _filled_word(word: str, values: Mapping[str, str]) -> str:
    if not any(name in values for name in PLACEHOLDER.findall(word)):
        return word
    text = shlex.split(word)[0]
    if text.startswith(("{", "[")):
        return shlex.quote(_filled_document(text, values))
    return shlex.quote(_replaced(text, values))


def _filled_document(text: str, values: Mapping[str, str]) -> str:
    try:
        document = json.loads(text)
    except ValueError:
        return _replaced(text, {name: value for name, value in values.items() if _PLAIN.fullmatch(value)})
    return json.dumps(_filled_leaves(document, values), separators=(",", ":"), ensure_ascii=False)


def _filled_leaves(document: Any, values: Mapping[str, str]) -> Any:
    match document:
        case dict():
            return {key: _filled_leaves(value, values) for key, value in document.items()}
        case list():
            return [_filled_leaves(value, values) for value in document]
        case str():
            return _replaced(document, values)
    return document


def _replaced(text: str, values: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda match: values.get(match[0], match[0]), text)
