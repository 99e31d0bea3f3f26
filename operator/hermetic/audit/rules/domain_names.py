"""Domain names as rules and policies write them."""

from __future__ import annotations

from collections.abc import Iterable


def plain(domain: str) -> str:
    """The domain in lower case, without blanks and dots around it."""
    return domain.strip().strip(".").lower()


def is_within(domain: str, allowed: Iterable[str]) -> bool:
    """Whether the domain is one of these or below one."""
    name = plain(domain)
    return any(
        name == allowed_name or name.endswith(f".{allowed_name}")
        for allowed_name in map(plain, allowed)
        if allowed_name
    )
