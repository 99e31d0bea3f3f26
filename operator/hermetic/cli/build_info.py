"""What this program is: its version, and the digest of its files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import hermetic
from hermetic import __version__
from hermetic.audit.attestation.statement import Tool


def this_tool() -> Tool:
    """Name, version and digest: SHA-256 over the paths and digests of all files of the package, in order of path."""
    root = Path(hermetic.__file__).parent
    files = sorted(
        file.relative_to(root).as_posix()
        for file in root.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    )
    listed = "".join(f"{hashlib.sha256((root / name).read_bytes()).hexdigest()}  {name}\n" for name in files)
    return Tool(name="hermetic", version=__version__, digest=f"sha256:{hashlib.sha256(listed.encode()).hexdigest()}")
