"""How deep JSON may be nested: whoever reads an answer recurses, and must come back."""

from __future__ import annotations

from typing import Any

DEEPEST = 100
"""No answer of Azure or Kubernetes is nearly as deep."""


def is_too_deep(value: Any, deepest: int = DEEPEST) -> bool:
    """Whether objects and lists are nested more than so deep."""
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
