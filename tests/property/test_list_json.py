"""A list that is parsed item by item says what it says to `json.loads`, and is refused where that refuses it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermetic.kube import list_json
from hermetic.kube.list_json import PARSED_AT_ONCE, parsed_list

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.just("items"), inner),
    max_leaves=12,
)


@pytest.fixture(autouse=True)
def item_by_item(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what is small: `test_json_text.py` is about what is parsed in one step."""
    monkeypatch.setattr(list_json, "PARSED_WHOLE", -1)


def parsed(body: bytes) -> Any:
    return asyncio.run(parsed_list(body))


@given(value=values, indent=st.sampled_from([None, 1]), items=st.none() | st.lists(values, max_size=5))
def test_it_says_the_same_as_json_loads(value: Any, indent: int | None, items: list[Any] | None) -> None:
    if items is not None and isinstance(value, dict):
        value = {**value, "items": items}
    body = json.dumps(value, indent=indent).encode()
    assert parsed(body) == json.loads(body)


@given(value=values, cut=st.integers(min_value=0, max_value=200), more=st.sampled_from(["", "x", "}", "]", ",", '"']))
@example(value={"items": [1, 2]}, cut=1, more="")
@example(value={"items": [1]}, cut=0, more="{}")
def test_it_refuses_what_json_loads_refuses(value: Any, cut: int, more: str) -> None:
    text = json.dumps({"items": [value], "kind": value})
    torn = (text[: max(0, len(text) - cut)] + more).encode()
    try:
        expected = json.loads(torn)
    except ValueError:
        with pytest.raises(ValueError):
            parsed(torn)
    else:
        assert parsed(torn) == expected


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"items":[1,]}', b'{"items":[,1]}', b"{1:2}", b'{"a":1,}', b"\xff", b"{,}"]
)
def test_what_is_torn_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError):
        json.loads(body)
    with pytest.raises(ValueError):
        parsed(body)


def test_everything_else_has_its_turn_between_the_items() -> None:
    body = json.dumps({"items": ["x" * PARSED_AT_ONCE] * 10}).encode()

    async def scenario() -> int:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.ensure_future(other())
        await parsed_list(body)
        task.cancel()
        return turns

    assert asyncio.run(scenario()) >= 10
