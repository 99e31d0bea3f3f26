"""Random mutations of the valid manifests: grafts from each other, nudged values, wrong types, doubled items."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.corpus.manifests import DIGEST, Manifest
from tests.corpus.valid import VALID

_PIECES = (
    *("", "-", "--", ".", "..", "/", "a", "A", "é", "🦙", " ", "\t", "\n", "\x00", "\x7f", "\x85", "\u00a0", "\u2028"),
    *("'", '"', "\\", "$(x)", "=", "_", ":", "://", "%", "0", "1", "9", "10.0.0.0", "/8", "0.32.0", "16Gi", "m"),
    *("--model", "--trust-remote-code", "-tp", "HF_TOKEN", "nvidia.com/gpu", f"r.io/x@{DIGEST}", "true", "null"),
)
_TEXTS = st.one_of(
    st.lists(st.sampled_from(_PIECES), max_size=4).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.sampled_from(["x" * 64, "x" * 254, "x" * 1025, "10.1.2.3", "fd00::1", "::ffff:10.0.0.1", "10.0.0.0/8", "::/1"]),
)
_NUMBERS = st.one_of(st.integers(-2, 20), st.sampled_from([256, 1023, 65536, 2**31, 2**53, 2**63, 10**25, 0.5, -1.5]))
_SCALARS = st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXTS)
_VALUES = st.one_of(
    _SCALARS,
    st.lists(_SCALARS, max_size=3),
    st.dictionaries(_TEXTS, _SCALARS, max_size=2),
    st.sampled_from([{}, [], [{}], {"name": "a"}, [{"name": "a"}, {"name": "a"}], {"matchLabels": {"a": "b"}}]),
).map(copy.deepcopy)


@dataclass(frozen=True)
class Place:
    """A value in a manifest: where it hangs, and its path without list indices."""

    container: Any
    key: int | str
    path: tuple[str, ...]

    @property
    def value(self) -> Any:
        return self.container[self.key]


def _places(container: Any, path: tuple[str, ...] = ()) -> Iterator[Place]:
    """Every value below a container."""
    if isinstance(container, dict):
        for key, value in list(container.items()):
            yield Place(container, key, (*path, key))
            yield from _places(value, (*path, key))
    elif isinstance(container, list):
        for index, value in enumerate(container):
            yield Place(container, index, (*path, "[]"))
            yield from _places(value, (*path, "[]"))


def _seen() -> dict[tuple[str, ...], list[tuple[str, Any]]]:
    """For every object of the corpus, by path: the fields and values that some valid manifest has there."""
    values_by_path: dict[tuple[str, ...], list[tuple[str, Any]]] = {}
    for _, manifest in VALID:
        for location in _places({"spec": manifest["spec"]}):
            if isinstance(location.key, str):
                values_by_path.setdefault(location.path[:-1], []).append((location.key, location.value))
    return values_by_path


_SEEN = _seen()


@st.composite
def mutated(draw: st.DrawFn) -> Manifest:
    """A valid manifest after one to three changes anywhere in its spec, or to its name."""
    manifest = copy.deepcopy(draw(st.sampled_from([manifest for _, manifest in VALID])))
    for _ in range(draw(st.sampled_from([1, 1, 2, 3]))):
        change = draw(st.sampled_from([_graft, _graft, _nudge, _nudge, _nudge, _remove, _wild]))
        change(draw, draw(st.sampled_from(list(_places({"spec": manifest["spec"]})))))
        if not isinstance(manifest["spec"], dict):
            break
    if draw(st.integers(0, 19)) == 0:
        manifest["metadata"]["name"] = draw(_TEXTS.filter(bool))
    return manifest


def _graft(draw: st.DrawFn, node: Place) -> None:
    """What another valid manifest says here."""
    if isinstance(node.value, dict) and node.path in _SEEN:
        field, value = draw(st.sampled_from(_SEEN[node.path]))
        node.value[field] = copy.deepcopy(value)


def _nudge(draw: st.DrawFn, node: Place) -> None:
    """Another value of the same type, close to the one that is there."""
    value = node.value
    if isinstance(value, bool):
        node.container[node.key] = not value
    elif isinstance(value, int):
        node.container[node.key] = draw(st.sampled_from([value + 1, value - 1, value * 2, value * 1000]))
    elif isinstance(value, str):
        at, more = draw(st.integers(0, len(value))), draw(_TEXTS)
        cut = draw(st.integers(0, min(2, len(value) - at)))
        node.container[node.key] = value[:at] + more + value[at + cut :]
    elif isinstance(value, list) and value:
        value.append(copy.deepcopy(draw(st.sampled_from(value))))


def _remove(draw: st.DrawFn, node: Place) -> None:
    """Nothing there, or null."""
    if draw(st.booleans()) and len(node.path) > 1:
        del node.container[node.key]
    elif len(node.path) > 1:
        node.container[node.key] = None


def _wild(draw: st.DrawFn, node: Place) -> None:
    """Anything at all, there or under an unknown name."""
    if isinstance(node.value, dict) and draw(st.booleans()):
        node.value[draw(_TEXTS.filter(bool))] = draw(_VALUES)
    elif len(node.path) > 1:
        node.container[node.key] = draw(_VALUES)
