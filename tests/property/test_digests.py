"""Digests of JSON values: those that objects of earlier versions carry must never change."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermetic.objects.names import digest

TEXT = st.text(st.characters(codec="utf-8"))
"""Every character but lone surrogates."""
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda values: st.lists(values) | st.lists(values).map(tuple) | st.dictionaries(TEXT, values),
    max_leaves=20,
)
"""JSON values without floats, integers beyond 64 bits among them."""


@given(VALUES)
def test_a_digest_is_that_of_the_text_of_the_standard_library(value: Any) -> None:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert digest(value) == hashlib.sha256(text.encode()).hexdigest()


def test_the_digest_of_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        digest({"name": "\ud800"})
