"""What the store keeps of an object is what was put into it, whatever stands in place of the programs of pods."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermetic.in_container import program
from hermetic.kube.json_text import compact
from hermetic.kube.store_entry import PROGRAMS, StoredObject
from hermetic.objects.pod import verbatim

TEXTS = tuple(verbatim(program(name)) for name in ("accelerator_checks", "error_capture", "group_member"))
PIECES = (*TEXTS, *(text[:-1] for text in TEXTS), "ÿ", "\ufffd", '"', "\\", "\x00", "þý")
PARTS = st.integers(0, len(PIECES) - 1).map(lambda index: PIECES[index])  # by number: the programs are long
STRINGS = st.one_of(st.text(st.characters(exclude_categories=["Cs"])), st.lists(PARTS, max_size=4).map("".join))
VALUES = st.recursive(STRINGS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(STRINGS, inner, max_size=3))


def stored(manifest: dict[str, Any]) -> StoredObject:
    return StoredObject.of(manifest, 7, compact(manifest), ())


def object_with(value: Any) -> dict[str, Any]:
    return {"metadata": {"uid": "u", "resourceVersion": "7"}, "spec": value}


@given(VALUES)
def test_any_object_comes_back_as_it_was_put(value: Any) -> None:
    manifest = object_with(value)
    assert stored(manifest).manifest == manifest


@given(VALUES, VALUES)
def test_two_objects_are_the_same_only_where_they_are_equal(one: Any, other: Any) -> None:
    before, after = object_with(one), object_with(other)
    assert stored(before).is_same(after, 7, compact(after), ()) == (before == after)


@pytest.mark.parametrize("text", TEXTS, ids=["accelerator checks", "error capture", "group member"])
def test_a_program_in_an_object_takes_next_to_nothing(text: str) -> None:
    manifest = object_with({"command": ["python3", "-c", text]})
    assert len(stored(manifest).packed) < len(stored(object_with({"command": ["python3", "-c", ""]})).packed) + 10


def test_no_text_contains_what_stands_for_a_program() -> None:
    for short in PROGRAMS:
        with pytest.raises(UnicodeDecodeError):
            short.decode()
