"""The library and command line of OpenSSF Model Signing, as the other side of an exchange of signatures."""

from __future__ import annotations

import subprocess
from pathlib import Path

from testbed.locked_environment import LockedEnvironment

HERE = Path(__file__).resolve().parent
ENVIRONMENT = LockedEnvironment("model-signing", HERE / "requirements.lock", "25 MB to fetch, seconds")


def model_signing(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """`model_signing ARGUMENTS...`, as a process of its own."""
    return _run("-m", "model_signing", *arguments)


def verified_by_the_library(folder: Path, signature: Path, public_key: Path) -> subprocess.CompletedProcess[str]:
    """Verification by the library: its command line reads no manifest by shards, its Python interface does."""
    program = (
        "import sys; from model_signing import verifying; "
        "verifying.Config().use_elliptic_key_verifier(public_key=sys.argv[3]).verify(sys.argv[1], sys.argv[2])"
    )
    return _run("-c", program, folder, signature, public_key)


def signed_by_the_library(
    folder: Path, signature: Path, key: Path, shard_size: int
) -> subprocess.CompletedProcess[str]:
    """A signature by shards, which the command line cannot write."""
    program = (
        "import sys; from model_signing import hashing, signing; "
        "sharded = hashing.Config().use_shard_serialization(shard_size=int(sys.argv[4])); "
        "signer = signing.Config().use_elliptic_key_signer(private_key=sys.argv[3]).set_hashing_config(sharded); "
        "signer.sign(sys.argv[1], sys.argv[2])"
    )
    return _run("-c", program, folder, signature, key, str(shard_size))


def _run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    python = ENVIRONMENT.installed() / "bin" / "python"
    return subprocess.run([str(python), *map(str, arguments)], capture_output=True, text=True, check=False)
