"""The real cosign and notation, by the commands of docs/supply-chain.md, where no host but this machine answers."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from testbed.installation import REPOSITORY
from testbed.programs import programs
from tests.install_page import commands
from tests.shipping.signed_artifacts import Keys

PAGE = REPOSITORY / "docs" / "supply-chain.md"
HEADING = "Verify in the registry"
REGISTRY = "contoso.azurecr.io"
DOCUMENTED = f"{REGISTRY}/hermetic@sha256:DIGEST"
COSIGN = ("cosign verify", "cosign verify-attestation")
NOTATION = "notation verify"
# A proxy that refuses every connection. Both programs reach localhost without it.
NO_ONE = "http://127.0.0.1:9"


def on_localhost(host: str) -> str:
    """The registry by the only name for which both programs try plain HTTP without a flag."""
    return host.replace("127.0.0.1", "localhost")


def verifier(folder: Path, keys: Keys, host: str, policy: str = "") -> Path:
    """A folder with the public key, and with trust store and trust policy of notation as the page makes them.

    `policy` is another trust policy, in JSON.
    """
    folder.mkdir(parents=True)
    shutil.copy(keys.public, folder / "platform.pub")
    shutil.copy(keys.certificate, folder / "platform.crt")
    written = policy or "\n".join(commands(HEADING, PAGE, "json"))
    (folder / "trustpolicy.json").write_text(written.replace(REGISTRY, host))
    for start in ("notation cert add", "notation policy import"):
        done = _run(folder, documented(start))
        assert done.returncode == 0, done.stderr
    return folder


def documented(start: str) -> str:
    """The command of the page that begins so."""
    (line,) = [line for line in commands(HEADING, PAGE) if line.startswith(f"{start} ")]
    return line


def judged(folder: Path, start: str, reference: str, **replaced: str) -> subprocess.CompletedProcess[str]:
    """Runs the command of the page that begins so, for this reference; `replaced`: more that is replaced in it."""
    line = documented(start)
    for present, replacement in {DOCUMENTED: reference, **replaced}.items():
        assert present in line
        line = line.replace(present, replacement)
    return _run(folder, line)


def _run(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    settings = {name: str(folder / "home") for name in ("HOME", "XDG_CONFIG_HOME")}
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), NO_ONE)
    path = os.pathsep.join([*(str(program.parent) for program in programs("cosign", "notation").values()), "/usr/bin"])
    environment = {"PATH": path, **settings, **proxies}
    return subprocess.run(["sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False)
