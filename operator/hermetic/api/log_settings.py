"""The part of the operator's configuration that is about its log."""

from __future__ import annotations

from typing import Literal

from hermetic.api.rules import ApiModel


class LogSettings(ApiModel):
    """What the operator writes to standard output, and in which form."""

    level: Literal["debug", "info", "warning"] = "info"
    """Least level that is written. debug: also one line for each reconcile that changes nothing. Default: info."""
    format: Literal["json", "text"] = "json"
    """json: one object per line, for programs. text: time, level, event and fields, for people. Default: json."""
