"""Evidence of isolation, written by hand: what an audit from outside would bring in, marked as what it is."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from testbed.api import Api
from testbed.demo.estate import SAMPLES

AUDITS = "/apis/hermetic.dev/v1alpha1/egressaudits"


def an_audit() -> dict[str, Any]:
    """The EgressAudit of the samples."""
    found: dict[str, Any] = yaml.safe_load((SAMPLES / "egress-audit.yaml").read_text())
    return found


def judge(api: Api, verdict: str, message: str = "") -> None:
    """Write the verdict that an audit would have come to. Only an administrator of the demo's cluster can."""
    generation = api.get(f"{AUDITS}/cluster")["metadata"]["generation"]
    now = datetime.now(UTC)
    stamp, later = (moment.strftime("%Y-%m-%dT%H:%M:%SZ") for moment in (now, now + timedelta(hours=12)))
    status = {
        "observedGeneration": generation,
        "verdict": verdict,
        "message": message or "written by hand for this demo, nothing was audited",
        "evidence": {
            "azure": {
                "digest": "sha256:" + hashlib.sha256(stamp.encode()).hexdigest(),
                "observedAt": stamp,
                "expiresAt": later,
                "signedBy": "nobody-demo",
            },
            "kubernetes": {"observedAt": stamp},
            "probe": {"observedAt": stamp, "nodes": 1},
        },
    }
    api.merge(f"{AUDITS}/cluster/status", {"status": status})
