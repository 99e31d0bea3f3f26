"""`hermetic bundle verify`: a whole bundle is accepted, and one line names what is wrong with any other."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from hermetic.cli.bundle import archive
from hermetic.cli.bundle.layout import CHECKSUMS, SIGNATURE
from hermetic.signing.keys import SigningKey, read_signing_key
from testbed.images.oci import as_json
from tests.bundles import IMAGE, LAYER, MANIFEST, content, sealed, written
from tests.commandline import Ran, hermetic

Files = dict[str, bytes]


def a_key() -> SigningKey:
    key = Ed25519PrivateKey.generate()
    return read_signing_key("key", key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


def public(folder: Path, key: SigningKey) -> Path:
    file = folder / "platform.pub"
    file.write_bytes(key.public.key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return file


def verified(folder: Path, files: Files, *arguments: str | Path) -> Ran:
    return hermetic("bundle", "verify", written(folder / "b.tar", files), *arguments)


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type, header.linkname = kind, target
    return header


def test_a_whole_bundle_is_accepted_and_the_image_named(tmp_path: Path) -> None:
    ran = verified(tmp_path, sealed(content()))
    assert ran.code == 0, ran.err
    assert f"image: {IMAGE.by_digest}" in ran.out
    assert "it is not signed" in ran.err


def test_a_signature_of_the_given_key_is_accepted(tmp_path: Path) -> None:
    key = a_key()
    ran = verified(tmp_path, sealed(content(), key), "--public-key", public(tmp_path, key), "-o", "json")
    assert ran.code == 0, ran.err
    printed = json.loads(ran.out)
    assert (printed["valid"], printed["signed"], printed["signedBy"]) == (True, True, key.public.keyid)
    assert "no key was given" in verified(tmp_path, sealed(content(), key)).err


def test_every_field_of_the_json_is_documented(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text().split("\n## hermetic bundle\n")[1]
    printed = json.loads(verified(tmp_path, sealed(content()), "-o", "json").out)
    assert [field for field in printed if f"`{field}`" not in page.split("\n## ")[0]] == []


def test_a_signature_that_is_missing_of_another_key_or_of_other_files_is_refused(tmp_path: Path) -> None:
    key, other = a_key(), a_key()
    asked = "--public-key", public(tmp_path, key)
    of_others = sealed({**content(), "docs/b.md": b""}, key)[SIGNATURE]
    edited = bytearray(sealed(content(), key)[SIGNATURE])
    edited[edited.index(b'"sig":"') + 10] ^= 1
    for files, what in (
        (sealed(content()), "is not signed"),
        (sealed(content(), other), "UnknownKey"),
        ({**sealed(content()), SIGNATURE: of_others}, "over something else than this SHA256SUMS"),
        ({**sealed(content()), SIGNATURE: bytes(edited)}, "signature.json"),
        ({**sealed(content()), SIGNATURE: b"{}"}, "signature.json: Malformed"),
    ):
        ran = verified(tmp_path, files, *asked)
        assert (ran.code, len(ran.errors)) == (1, 1)
        assert ran.errors[0].startswith("error: HRM-BND-001: ")
        assert what in ran.errors[0]


def test_a_key_that_is_trusted_until_a_moment_is_bad_input(tmp_path: Path) -> None:
    dated = f"{public(tmp_path, a_key())}@2026-12-31T23:59:59Z"
    assert verified(tmp_path, sealed(content()), "--public-key", dated).code == 2


CHANGES: dict[str, tuple[Callable[[Files], Files], str]] = {
    "a changed document": (lambda files: {**files, "docs/a.md": b"Text\n"}, "docs/a.md has the SHA-256"),
    "a changed layer": (lambda files: {**files, LAYER: files[LAYER][:-1] + b"x"}, f"{LAYER} has the SHA-256"),
    "a file that is not listed": (lambda files: {**files, "docs/b.md": b""}, "docs/b.md is not listed"),
    "a missing file": (lambda files: without(files, "docs/a.md"), "docs/a.md is missing"),
    "no checksums": (lambda files: without(files, CHECKSUMS), "SHA256SUMS is missing"),
    "unsorted checksums": (lambda files: {**files, CHECKSUMS: files[CHECKSUMS] * 2}, "every name occurs once"),
    "a name outside": (lambda files: {**files, "../a": b""}, "'../a' is no file of a bundle"),
    "a name outside inside": (lambda files: {**files, "docs/../../a": b""}, "is no file of a bundle"),
    "an absolute name": (lambda files: {**files, "/etc/passwd": b""}, "is no file of a bundle"),
    "a name of another place": (lambda files: {**files, "bin/sh": b""}, "is no file of a bundle"),
    "a name with a line break": (lambda files: {**files, "docs/a\nb": b""}, "is no file of a bundle"),
    "a name for pax": (lambda files: {**files, "docs/é": b""}, "is no file of a bundle"),
}


def without(files: Files, name: str) -> Files:
    return {each: files[each] for each in files if each != name}


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_afterwards_is_named(change: str, tmp_path: Path) -> None:
    changed, what = CHANGES[change]
    refused_with(what, verified(tmp_path, changed(sealed(content()))))


IMAGES: dict[str, tuple[Callable[[Files], Files], str]] = {
    "a layer that is not there": (lambda files: without(files, LAYER), f"{LAYER} is missing; {MANIFEST} names it"),
    "another layer under its name": (lambda files: {**files, LAYER: b"x"}, f"{LAYER} is sha256:"),
    "a blob of no image": (lambda files: {**files, f"blobs/sha256/{'0' * 64}": b""}, "is no part of the image"),
    "no image": (lambda files: {**files, "index.json": b'{"manifests":[]}'}, "index.json has no list 'manifests'"),
    "an index that is no JSON": (lambda files: {**files, "index.json": b"["}, "index.json is not JSON"),
    "a descriptor without a size": (
        lambda files: {**files, "index.json": as_json({"manifests": [{"digest": IMAGE.digest}]})},
        "names no blob by SHA-256 and size",
    ),
    "another image than described": (
        lambda files: {**files, "bundle.json": files["bundle.json"].replace(b"hermetic@sha256:", b"hermetic@sha256:0")},
        "bundle.json names hermetic@sha256:0",
    ),
    "a later schema": (
        lambda files: {**files, "bundle.json": files["bundle.json"].replace(b"bundle/v1", b"bundle/v2")},
        "this release reads hermetic.dev/bundle/v1",
    ),
}


@pytest.mark.parametrize("change", IMAGES)
def test_an_image_that_is_not_whole_is_named_although_the_checksums_match(change: str, tmp_path: Path) -> None:
    changed, what = IMAGES[change]
    refused_with(what, verified(tmp_path, sealed(changed(content()))))


@pytest.mark.parametrize(
    ("strange", "what"),
    [
        (member("docs/link", tarfile.SYMTYPE, "/etc/passwd"), "'docs/link' is no plain file"),
        (member("docs/hard", tarfile.LNKTYPE, "docs/a.md"), "'docs/hard' is no plain file"),
        (member("docs", tarfile.DIRTYPE), "'docs' is no plain file"),
        (member("docs/null", tarfile.CHRTYPE), "'docs/null' is no plain file"),
        (member("docs/a.md"), "docs/a.md is there twice"),
    ],
)
def test_what_is_no_plain_file_of_its_own_name_is_refused(strange: tarfile.TarInfo, what: str, tmp_path: Path) -> None:
    refused_with(what, hermetic("bundle", "verify", written(tmp_path / "b.tar", sealed(content()), strange)))


@pytest.mark.parametrize(
    ("limit", "what"),
    [
        ("LARGEST_BUNDLE", "the file has"),
        ("LARGEST_FILE", "SHA256SUMS has"),
        ("LARGEST_BLOB", "blobs/sha256/"),
        ("LARGEST_KEPT", "SHA256SUMS has"),
        ("MOST_FILES", "there are more than 3 files"),
    ],
)
def test_what_is_too_large_is_refused(limit: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, limit, 3)
    refused_with(what, verified(tmp_path, sealed(content())))


def test_a_tar_that_was_cut_lengthened_or_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "b.tar"
    whole = written(file, sealed(content())).read_bytes()
    damaged = bytearray(whole)
    damaged[whole.index(b"docs/a.md\0") + 150] ^= 0xFF  # the checksum of the second header and later
    for changed in (whole[:3000], whole[: len(whole) // 2], whole + b"x", bytes(damaged), b"", b"PK" + b"x" * 2000):
        file.write_bytes(changed)
        refused_with("b.tar: ", hermetic("bundle", "verify", file))


def test_a_refusal_is_one_json_document(tmp_path: Path) -> None:
    ran = verified(tmp_path, {**sealed(content()), "docs/a.md": b""}, "-o", "json")
    printed = json.loads(ran.out)
    assert ran.code == 1
    assert (printed["valid"], printed["message"].split()[0]) == (False, "docs/a.md")


def test_a_file_that_is_not_there_is_not_reachable_and_a_folder_is_bad_input(tmp_path: Path) -> None:
    assert hermetic("bundle", "verify", tmp_path / "none.tar").code == 4
    assert hermetic("bundle", "verify", tmp_path).code == 2


def refused_with(what: str, ran: Ran) -> None:
    assert (ran.code, len(ran.errors), ran.out) == (1, 1, "")
    assert ran.errors[0].startswith("error: HRM-BND-001: ")
    assert what in ran.errors[0]
