"""JSON of the API server: read and written as the standard library does, and stored without loss."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermetic.kube.json_text import compact, parse
from hermetic.objects.names import digest

LEAST, MOST = -(2**63), 2**64 - 1
"""The integers that orjson writes (https://github.com/ijl/orjson#int)."""

characters = st.characters(codec="utf-8")
scalars = (
    st.none()
    | st.booleans()
    | st.integers(LEAST, MOST)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(characters)
)


def nested(leaves: st.SearchStrategy[Any], keys: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=15
    )


values = nested(scalars, st.text(characters, max_size=6))
any_values = nested(scalars | st.integers() | st.floats() | st.text(), st.text(max_size=6))


def is_same(first: Any, other: Any) -> bool:
    """Equal, of equal types: 1 is not 1.0 and True is not 1; NaN is NaN, and -0.0 is not 0.0."""
    if type(first) is not type(other):
        return False
    if isinstance(first, dict):
        return first.keys() == other.keys() and all(is_same(value, other[key]) for key, value in first.items())
    if isinstance(first, list):
        return len(first) == len(other) and all(map(is_same, first, other))
    if isinstance(first, float):
        return (math.isnan(first) and math.isnan(other)) or (
            first == other and math.copysign(1, first) == math.copysign(1, other)
        )
    return bool(first == other)


@given(value=values, ascii_only=st.booleans(), indent=st.sampled_from([None, 1]))
@example(value=[1e-5, 1e16, 5e-324, -0.0, 0.1, 1e22], ascii_only=True, indent=None)
@example(value=[LEAST, MOST, 2**53 + 1], ascii_only=True, indent=None)
@example(value={"\u2028": "\U0001f600\x7f\x00/<"}, ascii_only=True, indent=None)
def test_parse_returns_what_the_standard_library_returns(value: Any, ascii_only: bool, indent: int | None) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    assert is_same(parse(body), json.loads(body))


@given(value=values)
def test_what_is_stored_is_read_back_unchanged(value: Any) -> None:
    assert is_same(parse(compact(value)), value)
    assert is_same(json.loads(compact(value)), value)


@pytest.mark.parametrize("body", [b"", b"{", b'{"a":1,}', b"{1:2}", b'{"a":1}x', b"\xff", b'"\x00"', b"[01]", b"nul"])
def test_what_is_no_json_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError):
        json.loads(body)
    with pytest.raises(ValueError):
        parse(body)


@pytest.mark.parametrize("body", [b'"\\ud800"', b"NaN", b"-Infinity", b"1e400", b"\xef\xbb\xbf{}"])
def test_what_orjson_alone_refuses_is_read_as_before(body: bytes) -> None:
    assert is_same(parse(body), json.loads(body))


@pytest.mark.parametrize("number", [MOST + 1, LEAST - 1, 10**30])
def test_an_integer_beyond_64_bits_is_read_as_the_nearest_float_as_go_reads_it(number: int) -> None:
    """https://pkg.go.dev/k8s.io/apimachinery/pkg/util/json: int64, else float64."""
    assert is_same(parse(str(number).encode()), float(number))


def test_an_integer_beyond_64_bits_is_written_whole() -> None:
    assert compact({"n": 10**30}) == b'{"n":1000000000000000000000000000000}'


def test_a_lone_surrogate_is_refused_as_before() -> None:
    with pytest.raises(UnicodeEncodeError):
        compact({"message": "\ud800"})


def of_the_standard_library(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@given(value=any_values)
@example(value={"gpu": 0.9, "small": 1e-5, "large": 10**30, "nan": float("nan")})
def test_digests_are_of_the_text_of_the_standard_library(value: Any) -> None:
    import hashlib

    try:
        expected = hashlib.sha256(of_the_standard_library(value).encode()).hexdigest()
    except UnicodeEncodeError:
        with pytest.raises(UnicodeEncodeError):
            digest(value)
    else:
        assert digest(value) == expected


@given(value=values)
def test_a_value_that_went_through_the_api_server_has_the_same_digest(value: Any) -> None:
    assert digest(parse(compact(value))) == digest(value)
