"""Canonical JSON is what RFC 8785 says, judged by another implementation of it, and is read one way only."""

from __future__ import annotations

import json

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from hermetic.errors import EnvelopeRefused
from hermetic.signing.canonical_json import LARGEST_INTEGER, canonical, read_canonical_json, read_json
from hermetic.signing.faults import EnvelopeFault

texts = st.text(st.characters(codec="utf-8"), max_size=12)
scalars = st.none() | st.booleans() | st.integers(-LARGEST_INTEGER, LARGEST_INTEGER) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=5), max_leaves=25
)


@given(values)
def test_canonical_bytes_are_those_of_another_implementation(value) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(values)
def test_what_is_written_is_read_again(value) -> None:
    assert read_canonical_json(canonical(value), "it") == value


@given(values, st.integers(0, 8))
def test_any_other_writing_is_not_canonical(value, indent: int) -> None:
    other = json.dumps(value, indent=indent, ensure_ascii=True).encode()
    if other == canonical(value):
        return
    with pytest.raises(EnvelopeRefused) as caught:
        read_canonical_json(other, "it")
    assert caught.value.refusal == EnvelopeFault.NOT_CANONICAL


@given(st.binary(max_size=64))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        value = read_json(content, "it")
    except EnvelopeRefused:
        return
    assert json.loads(content) == value


@given(st.dictionaries(texts, values, min_size=1, max_size=4))
def test_every_beginning_of_a_document_is_truncated(value) -> None:
    encoded = json.dumps(value).encode()
    for end in range(len(encoded)):
        with pytest.raises(EnvelopeRefused) as caught:
            read_json(encoded[:end], "it")
        assert caught.value.refusal == EnvelopeFault.TRUNCATED, encoded[:end]


@given(st.dictionaries(texts, values, min_size=1, max_size=4), values)
def test_a_key_that_stands_twice_is_found_at_any_depth(value, around) -> None:
    inner = json.dumps(value)
    twice = f"{inner[:-1]},{json.dumps(next(iter(value)))}:null}}"
    with pytest.raises(EnvelopeRefused) as caught:
        read_json(f'{{"a":[{json.dumps(around)},{twice}]}}'.encode(), "it")
    assert caught.value.refusal == EnvelopeFault.DUPLICATE_KEYS


@pytest.mark.parametrize(
    "value", [1.0, float("nan"), float("inf"), 2**53, -(2**53), {1: 2}, {"a": b"x"}, "\ud800", {"\ud800": 1}, {1, 2}]
)
def test_what_cannot_be_written_one_way_is_not_written(value) -> None:
    with pytest.raises(ValueError):
        canonical({"within": [value]})


def test_keys_are_in_the_order_of_utf_16() -> None:
    assert canonical({"\ufb33": 1, "\U0001f600": 2}) == '{"\U0001f600":2,"\ufb33":1}'.encode()


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "bomb", [b'"\\"' * 300_000, b'"' * 999_999, b"\\" * 999_999, b"[]," * 300_000, b'{"a":' * 190_000]
)
def test_what_is_made_to_be_slow_is_refused_quickly(bomb: bytes) -> None:
    with pytest.raises(EnvelopeRefused):
        read_json(bomb, "it")


@pytest.mark.timeout(20)
def test_a_hundred_thousand_keys_are_read_quickly() -> None:
    many = "{" + ",".join(f'"{number}":0' for number in range(100_000)) + "}"
    assert len(read_json(many.encode(), "it")) == 100_000
