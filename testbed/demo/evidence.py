"""Evidence of isolation in the demo: a key pair, an estate behind the stand-in for Azure, and real audits of it."""

from __future__ import annotations

import copy
import os
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from testbed.azure.baseline import sealed_estate
from testbed.azure.plants import PLANTS
from testbed.azure.server import ArmStandIn
from testbed.certificates import write_private
from testbed.demo.estate import SAMPLES

KEY_NAME = "demo"
# RFC 5737: represents a storage account of another customer in the same region.
FOREIGN_STORAGE = "203.0.113.10"
# What a bare node of this machine cannot have; a real cluster fails here until it has it.
NOT_HERE = {
    "k8s-policy-engine-live": "the demo's node runs no network policy engine",
    **dict.fromkeys(("imds-lb", "imds-nic-pip", "imds-identity"), "the demo's node has no instance metadata service"),
}


class JumpBox:
    """The machine outside the cluster from which the platform team audits: a private key, and a way to Azure."""

    def __init__(self, folder: Path, hermetic: str, kubeconfig: Path) -> None:
        self.estate = sealed_estate()
        self.estate.scale_set_outbound_shown_by = frozenset({"arm", "graph"})  # so that no policy file is needed
        self.arm = ArmStandIn(self.estate)
        self._folder = folder
        self._hermetic = hermetic
        self._kubeconfig = kubeconfig
        self._attestation = folder / "attestation.yaml"
        self._before = self.estate.resources
        self._beside = ThreadPoolExecutor(1)
        self._begun: Future[tuple[int, str, Path]] | None = None
        key = Ed25519PrivateKey.generate()
        self._key = write_private(
            folder / "audit-key.pem", key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        )
        self._public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def egress_audit(self, probe_image: str) -> dict[str, Any]:
        """The EgressAudit of the samples, for this estate, this key and the image that is there."""
        audit: dict[str, Any] = yaml.safe_load((SAMPLES / "egress-audit.yaml").read_text())
        audit["spec"] |= {
            "cluster": self.estate.cluster,
            "trustedKeys": [{"name": KEY_NAME, "publicKey": self._public}],
            "probe": {
                "image": probe_image,
                "targets": {"storageAddresses": [FOREIGN_STORAGE]},
            },
            "exceptions": [
                {"check": check, "resource": "*", "reason": reason, "owner": "demo", "expires": "2099-12-31"}
                for check, reason in NOT_HERE.items()
            ],
        }
        return audit

    def plant(self, name: str) -> None:
        """Open a path in the estate."""
        self._before = copy.deepcopy(self.estate.resources)
        PLANTS[name].into(self.estate)

    def take_back(self) -> None:
        """Close the path that was opened last."""
        self.estate.restore(self._before)

    def begin(self) -> None:
        """Begin an audit, whose outcome the next `audit` gives."""
        self._begun = self._beside.submit(self._audit)

    def audit(self) -> tuple[int, str, Path]:
        """`hermetic audit --azure … --sign …`: its exit code, what it printed, and the signed attestation."""
        begun, self._begun = self._begun, None
        return begun.result() if begun is not None else self._audit()

    def _audit(self) -> tuple[int, str, Path]:
        previous = ["--previous", str(self._attestation)] if self._attestation.exists() else []
        following = self._folder / "attestation-next.yaml"
        command = [self._hermetic, "audit", "--azure", self.estate.cluster, "--arm-endpoint", self.arm.url]
        command += ["--kubeconfig", str(self._kubeconfig), "--sign", str(self._key), "--attestation", str(following)]
        environment = {**os.environ, "HERMETIC_ARM_TOKEN": self.arm.token}
        done = subprocess.run([*command, *previous], capture_output=True, text=True, check=False, env=environment)
        if following.exists():
            following.replace(self._attestation)
        return done.returncode, done.stdout + done.stderr, self._attestation
