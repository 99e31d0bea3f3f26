"""Limits the nesting of JSON: code that processes an answer is recursive."""

from __future__ import annotations

from typing import Any

DEEPEST = 100
"""Far deeper than any answer of Azure or Kubernetes."""


def is_too_deep(value: Any, deepest: int = DEEPEST) -> bool:
    """Whether objects and lists are nested deeper than `deepest`."""
    level = [value]
    for _ in range(deepest):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node if isinstance(node, list) else ())
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True
