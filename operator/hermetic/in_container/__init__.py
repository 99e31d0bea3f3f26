"""Programs that run inside the engine's container, as arguments of its Python; nothing of Hermetic imports them."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def program(name: str) -> str:
    """The text of a program, by the name of its module."""
    return resources.files(__name__).joinpath(f"{name}.py").read_text(encoding="utf-8")
