"""Signatures of Hermetic and of model-signing verify each other: by its command line, and by its library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermetic.weights.entries import SIGNATURE
from testbed.damaged_files import flip_a_bit
from testbed.model_signing import model_signing, signed_by_the_library, verified_by_the_library
from tests.commandline import hermetic
from tests.weights import a_certificate, a_model, keys

pytestmark = pytest.mark.sampled(3, of="the command line of model_signing")

SHARD_SIZE = 2**20
SHARD = "model-00002-of-00003.safetensors"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return a_model(tmp_path / "model", size=300 * 2**10)


def test_its_command_line_verifies_what_hermetic_signed(model: Path, tmp_path: Path) -> None:
    private, public = keys(tmp_path)
    assert hermetic("manifest", model, "--method", "files").code == 0
    assert hermetic("sign", model, "--key", private).code == 0
    command = ("verify", "key", model, "--signature", model / SIGNATURE, "--public_key", public)
    assert "Verification succeeded" in (ran := model_signing(*command)).stdout, ran.stderr
    flip_a_bit(model / SHARD)
    assert f"Hash mismatch for '{SHARD}'" in model_signing(*command).stderr


def test_its_library_verifies_a_manifest_by_shards(model: Path, tmp_path: Path) -> None:
    private, public = keys(tmp_path)
    (model / "extra" / "empty.txt").unlink()  # by shards the library has no entry for an empty file
    assert hermetic("manifest", model, "--shard-size", str(SHARD_SIZE)).code == 0
    assert hermetic("sign", model, "--key", private).code == 0
    assert (ran := verified_by_the_library(model, model / SIGNATURE, public)).returncode == 0, ran.stderr
    flip_a_bit(model / SHARD)
    assert SHARD in verified_by_the_library(model, model / SIGNATURE, public).stderr


def test_hermetic_verifies_what_its_command_line_signed(model: Path, tmp_path: Path) -> None:
    private, public = keys(tmp_path)
    signed = model_signing("sign", "key", model, "--signature", model / "model.sig", "--private_key", private)
    assert signed.returncode == 0, signed.stderr
    assert (ran := hermetic("verify", model, "--public-key", public)).code == 0, ran.err
    flip_a_bit(model / SHARD)
    assert f"DigestMismatch: {SHARD}" in hermetic("verify", model, "--public-key", public).err


def test_hermetic_verifies_what_its_library_signed_by_shards(model: Path, tmp_path: Path) -> None:
    private, public = keys(tmp_path)
    (model / "extra" / "empty.txt").unlink()
    signed = signed_by_the_library(model, tmp_path / "model.sig", private, SHARD_SIZE)
    assert signed.returncode == 0, signed.stderr
    (tmp_path / "model.sig").rename(model / "model.sig")
    assert (ran := hermetic("verify", model, "--public-key", public)).code == 0, ran.err
    (model / "extra" / "new.jinja").write_text("")
    assert "FileNotListed: extra/new.jinja" in hermetic("verify", model, "--public-key", public).err


def test_the_root_digest_is_the_same(model: Path, tmp_path: Path) -> None:
    """Both list the same files: `.hermetic/names.json` is one of them."""
    private, _ = keys(tmp_path)
    printed = json.loads(hermetic("manifest", model, "--method", "files", "-o", "json").out)
    (model / ".hermetic" / "manifest.json").unlink()
    assert (
        model_signing("sign", "key", model, "--signature", model / "model.sig", "--private_key", private).returncode
        == 0
    )
    assert json.loads(hermetic("verify", model, "-o", "json").out)["digest"] == printed["digest"]


def test_certificates_verify_both_ways(model: Path, tmp_path: Path) -> None:
    key, certificate, root = a_certificate(tmp_path)
    assert hermetic("manifest", model, "--method", "files").code == 0
    assert hermetic("sign", model, "--key", key, "--certificate", certificate).code == 0
    chain = ("--certificate_chain", root)
    theirs = model_signing("verify", "certificate", model, "--signature", model / SIGNATURE, *chain)
    assert "Verification succeeded" in theirs.stdout, theirs.stderr
    (model / SIGNATURE).unlink()
    signing = ("--private_key", key, "--signing_certificate", certificate, *chain)
    signed = model_signing(
        "sign",
        "certificate",
        model,
        "--signature",
        model / "model.sig",
        *signing,
        "--ignore-paths",
        model / ".hermetic",
    )
    assert signed.returncode == 0, signed.stderr
    assert (ran := hermetic("verify", model, "--certificate-root", root)).code == 0, ran.err
