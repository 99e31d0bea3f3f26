"""Every az and kubectl command of Hermetic's pages and remedies, and values to parse it with."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hermetic.audit.checks.registry import CHECKS
from hermetic.audit.remedies.placeholders import (
    CHOSEN,
    FROM_THE_CHECK,
    FROM_THE_CLUSTER,
    FROM_THE_RESOURCE,
    PLACEHOLDER,
    STEMS,
)
from hermetic.audit.remedies.steps import is_command, steps_of

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs", "manifests")
GROUP = "/subscriptions/00000000-0000-4000-8000-000000000000/resourceGroups/rg"
KNOWN = frozenset(
    {
        *FROM_THE_RESOURCE,
        *FROM_THE_CLUSTER,
        *FROM_THE_CHECK,
        *CHOSEN,
        *(f"{stem}_{part}" for stem in STEMS.values() for part in ("ID", "NAME")),
    }
)
"""Every placeholder that a remedy may contain."""
SAMPLES = {
    "ALLOWED_RANGES": "10.0.0.0/8",
    "DESTINATION": "10.0.0.0/8",
    "PRIVATE_PREFIX": "10.0.0.0/8",
    "IPV4_PREFIX": "10.0.0.0/24",
    "LOCATION": "swedencentral",
    "ADDON_NAME": "monitoring",
    "SUBSCRIPTION_ID": "00000000-0000-4000-8000-000000000000",
    "CLUSTER_SUBSCRIPTION": "00000000-0000-4000-8000-000000000000",
    "KIND": "ingress",
    "NSG_GROUP": "rg",
    "PLACE": "0",
}

_FENCE = re.compile(r"^```[a-z]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(\\?[`'])((?:az|kubectl) [^`'\n]+?)\1")  # a quote inside a quoted expression has a backslash
_ENDS = re.compile(r"(?:\s(?:\.\.\.|…))?\s(?:\||&&|>|;)\s.*| #.*|\s(?:\.\.\.|…)$")
# Words in capitals that a command means as they are.
_LITERAL = frozenset({"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "JSON", "TCP", "UDP"})


@dataclass(frozen=True)
class Typed:
    """One command, whence it is, and whether prose only names it (`kubectl apply`), with as much as it wants."""

    command: str
    origin: str
    is_named_only: bool = False

    @property
    def words(self) -> list[str]:
        """As a shell would split it, with values in place of placeholders, and without the program."""
        return [with_samples(word) for word in shlex.split(self.command)][1:]


def placeholders_in(command: str) -> tuple[str, ...]:
    """The words in capitals of a command, each once, known or not."""
    return tuple(dict.fromkeys(word for word in PLACEHOLDER.findall(command) if word not in _LITERAL))


def with_samples(word: str) -> str:
    return PLACEHOLDER.sub(lambda match: sample_of(match[0]) if match[0] in placeholders_in(word) else match[0], word)


def sample_of(placeholder: str) -> str:
    """A value of the right form: an ARM id of the type for what is an id, a name for the rest."""
    if placeholder in SAMPLES:
        return SAMPLES[placeholder]
    kind = next((kind for kind, stem in STEMS.items() if placeholder == f"{stem}_ID"), "")
    if kind:
        namespace, *types = kind.split("/")
        return f"{GROUP}/providers/{namespace}/{'/'.join(f'{type_segment}/x' for type_segment in types)}"
    ending = placeholder.rpartition("_")[2]
    if ending in {"ID", "IDS"}:
        like = next((f"{stem}_ID" for stem in ("SUBNET", "NIC", "ROUTE_TABLE", "VM") if stem in placeholder), "")
        return sample_of(like) if like else f"{GROUP}/providers/Microsoft.Network/publicIPAddresses/x"
    return "x"


def commands_of(program: str) -> list[Typed]:
    """Every command of a program, each text once; of one that is both named and told whole, the whole one."""
    typed_commands: dict[str, Typed] = {}
    for typed in (*_of_pages(), *_of_code(), *_of_documents()):
        if typed.command.startswith(f"{program} ") and (typed.command not in typed_commands or not typed.is_named_only):
            typed_commands[typed.command] = typed
    return list(typed_commands.values())


def page_steps() -> Iterator[tuple[str, str]]:
    """Check and text of every remedy of a page."""
    for check in CHECKS:
        for text in (check.page.remedy, check.page.remedy_in_node_group):
            if text:
                yield check.page.id, text


def _of_pages() -> Iterator[Typed]:
    for check, text in page_steps():
        for step in steps_of(text):
            yield from (Typed(command, f"check {check}") for command in step.commands)
            yield from _in_prose(f"{step.explanation} {step.warning}", f"check {check}")


def _of_code() -> Iterator[Typed]:
    for path in sorted((ROOT / "operator").rglob("*.py")):
        origin = str(path.relative_to(ROOT))
        for text in _strings(ast.parse(path.read_text(encoding="utf-8"))):
            for step in steps_of(text):
                yield from (Typed(command, origin) for command in step.commands if _looks_typed(command))
            yield from _in_prose(text, origin)


def _strings(tree: ast.Module) -> Iterator[str]:
    """Every string of a module; what is filled in at run time is a name."""
    inner = {id(value) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for value in node.values}
    inner |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield _named(node.value)
        elif isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
            yield "".join(map(str, parts))


def _named(text: str) -> str:
    return re.sub(r"\{[a-z_]+\}", "x", text) if re.search(r"(?m)^(az|kubectl) .*\{[a-z_]+\}", text) else text


def _looks_typed(command: str) -> bool:
    return command.startswith(("az ", "kubectl ")) and re.match(r"\w+ [a-z-]", command) is not None


def _of_documents() -> Iterator[Typed]:
    for name in DOCUMENTS:
        path = ROOT / name
        files = [path] if path.is_file() else sorted((*path.rglob("*.md"), *path.rglob("*.yaml")))
        for page in files:
            if page.name != "checks.md":  # made of the pages
                yield from _of_document(page.read_text(encoding="utf-8"), str(page.relative_to(ROOT)))


def _of_document(text: str, origin: str) -> Iterator[Typed]:
    for block in _FENCE.findall(text):
        for line in re.sub(r"[ \t]*\\\n[ \t]*", " ", block).splitlines():
            for part in re.split(r"\s(?:\||&&|;)\s", line.strip().removeprefix("$ ")):
                if is_command(part) and "    " not in part:  # a drawing has no commands
                    yield Typed(_ENDS.sub("", part).strip(), origin)
    yield from _in_prose(_FENCE.sub("", text), origin)


def _in_prose(text: str, origin: str) -> Iterator[Typed]:
    for _, span in _SPAN.findall(text):
        command = _ENDS.sub("", span).strip()
        yield Typed(command, origin, is_named_only=True)
