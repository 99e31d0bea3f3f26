"""Estates of AKS clusters: profiles, pools and features of one cluster."""

from __future__ import annotations

from typing import Any


def network_profile(**network: Any) -> dict[str, Any]:
    return {"networkProfile": {"outboundType": "none", "networkPolicy": "cilium", **network}}


def addon(name: str) -> dict[str, Any]:
    return {"addonProfiles": {name: {"enabled": True}}}
