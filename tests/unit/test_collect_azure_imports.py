"""A request to ARM imports nothing anew."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec

import pytest

from testbed.azure.baseline import sealed_estate
from testbed.azure.server import ArmStandIn
from tests.azure_collecting import audited
from tests.sampled_groups import AZURE_AUDITS

pytestmark = AZURE_AUDITS


class _Counting:
    """A finder that finds nothing, and notes what was looked for."""

    def __init__(self) -> None:
        self.sought: list[str] = []

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Never anything."""
        self.sought.append(name)
        return None


async def test_what_is_not_installed_is_sought_once_and_not_at_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "sniffio", raising=False)
    finder = _Counting()
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    with ArmStandIn(sealed_estate()) as arm:
        await audited(arm)
        assert len(arm.requests) > 50
    assert finder.sought.count("sniffio") <= 1
