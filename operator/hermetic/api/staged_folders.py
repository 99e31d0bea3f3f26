"""Folders of a staged model that the operator and the commands both know."""

from __future__ import annotations

CACHES = ".hermetic/caches"
"""Compile caches, one folder for each key."""
