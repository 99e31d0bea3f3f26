"""What the commands about weights load: `hermetic verify` runs in front of every engine, so modules cost each start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.weights import a_model, keys

SCRIPT = """
import atexit, sys
from hermetic.cli import main
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
main(sys.argv[1:])
"""
NEVER_VERIFIES = {"pydantic", "kubernetes", "yaml", "hermetic.audit.estate", "cryptography.x509", "email", "shutil"}
NEVER_STAGES_A_FOLDER = {"kubernetes", "yaml", "cryptography", "hermetic.weights.images", "hermetic.weights.sealing"}


def loaded_by(*arguments: str | Path) -> set[str]:
    """The modules that a command has loaded when it ends well."""
    command = [sys.executable, "-c", SCRIPT, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


@pytest.fixture
def staged(tmp_path: Path) -> tuple[Path, Path]:
    """A model with a signature, and the key that verifies it. It has no template to be parsed."""
    private, public = keys(tmp_path)
    model = a_model(tmp_path / "model", shards=1)
    (model / "extra" / "chat_template.jinja").unlink()
    loaded_by("stage", model, tmp_path / "staged", "--key", private)
    return tmp_path / "staged", public


def test_verifying_a_signature_by_key_loads_nothing_of_certificates_and_of_the_api(staged: tuple[Path, Path]) -> None:
    model, public = staged
    loaded = loaded_by("verify", model, "--public-key", public)
    assert "hermetic.weights.signatures" in loaded
    assert loaded & NEVER_VERIFIES == set()


def test_verifying_without_a_key_loads_nothing_of_signatures(staged: tuple[Path, Path]) -> None:
    loaded = loaded_by("verify", staged[0])
    assert "hermetic.weights.verification" in loaded
    assert loaded & (NEVER_VERIFIES | {"cryptography"}) == set()


def test_staging_a_folder_loads_nothing_of_images_and_of_signatures(tmp_path: Path) -> None:
    loaded = loaded_by("stage", a_model(tmp_path / "model", shards=1), tmp_path / "staged")
    assert "hermetic.weights.copying" in loaded
    assert loaded & NEVER_STAGES_A_FOLDER == set()
