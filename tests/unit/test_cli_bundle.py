"""`hermetic bundle verify`: a whole bundle is accepted, and one line names what is wrong with any other."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from hermetic.cli.bundle import archive
from hermetic.cli.bundle.layout import BLOBS, CHECKSUMS, PLAIN_SIGNATURE, SIGNATURE, sign_checksums
from hermetic.signing.keys import SigningKey, read_signing_key
from hermetic.signing.signatures import sign
from testbed.images.oci import as_json, digest_of
from tests.bundles import (
    ARM_IMAGE,
    IMAGE,
    IMAGE_INDEX,
    LAYER,
    MANIFEST,
    content,
    index_content,
    sealed,
    written,
)
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
    key_option = "--public-key", public(tmp_path, key)
    of_others = sealed({**content(), "docs/b.md": b""}, key)[SIGNATURE]
    edited = bytearray(sealed(content(), key)[SIGNATURE])
    edited[edited.index(b'"sig":"') + 10] ^= 1
    for files, problem in (
        (sealed(content()), "is not signed"),
        (sealed(content(), other), "UnknownKey"),
        ({**sealed(content()), SIGNATURE: of_others}, "over something else than this SHA256SUMS"),
        ({**sealed(content()), SIGNATURE: bytes(edited)}, "signature.json"),
        ({**sealed(content()), SIGNATURE: b"{}"}, "signature.json: Malformed"),
    ):
        ran = verified(tmp_path, files, *key_option)
        assert (ran.code, len(ran.errors)) == (1, 1)
        assert ran.errors[0].startswith("error: HRM-BND-001: ")
        assert problem in ran.errors[0]


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
    "a name outside": (lambda files: {**files, "../a": b""}, "'../a' is not a name of a file in a bundle"),
    "a name outside inside": (lambda files: {**files, "docs/../../a": b""}, "is not a name of a file in a bundle"),
    "an absolute name": (lambda files: {**files, "/etc/passwd": b""}, "is not a name of a file in a bundle"),
    "a name of another place": (lambda files: {**files, "bin/sh": b""}, "is not a name of a file in a bundle"),
    "a name with a line break": (lambda files: {**files, "docs/a\nb": b""}, "is not a name of a file in a bundle"),
    "a name for pax": (lambda files: {**files, "docs/é": b""}, "is not a name of a file in a bundle"),
}


def without(files: Files, name: str) -> Files:
    return {file: files[file] for file in files if file != name}


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_afterwards_is_named(change: str, tmp_path: Path) -> None:
    changed, problem = CHANGES[change]
    refused_with(problem, verified(tmp_path, changed(sealed(content()))))


IMAGES: dict[str, tuple[Callable[[Files], Files], str]] = {
    "a layer that is not there": (lambda files: without(files, LAYER), f"{LAYER} is missing; {MANIFEST} names it"),
    "another layer under its name": (lambda files: {**files, LAYER: b"x"}, f"{LAYER} is sha256:"),
    "a blob of no image": (lambda files: {**files, f"blobs/sha256/{'0' * 64}": b""}, "does not belong to the image"),
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
    changed, problem = IMAGES[change]
    refused_with(problem, verified(tmp_path, sealed(changed(content()))))


ARM_MANIFEST, ARM_LAYER = (BLOBS + digest[7:] for digest in (ARM_IMAGE.digest, ARM_IMAGE.layers[0].digest))
INDEX_BLOB = BLOBS + IMAGE_INDEX.digest[7:]


def nested(files: Files) -> Files:
    """The index of the layout names an index that names the index of the platforms."""
    outer = as_json({"manifests": [{"digest": IMAGE_INDEX.digest, "size": len(IMAGE_INDEX.manifest)}]})
    digest = digest_of(outer)
    return {
        **files,
        "bundle.json": files["bundle.json"].replace(IMAGE_INDEX.digest.encode(), digest.encode()),
        "index.json": as_json({"manifests": [{"digest": digest, "size": len(outer)}]}),
        BLOBS + digest[7:]: outer,
    }


def ambiguous(files: Files) -> Files:
    """Readers disagree about such a document: https://github.com/advisories/GHSA-77vh-xpmg-72qh"""
    document = as_json({**json.loads(IMAGE_INDEX.manifest), "layers": json.loads(IMAGE.manifest)["layers"]})
    digest = digest_of(document)
    return {
        **without(files, INDEX_BLOB),
        "bundle.json": files["bundle.json"].replace(IMAGE_INDEX.digest.encode(), digest.encode()),
        "index.json": as_json({"manifests": [{"digest": digest, "size": len(document)}]}),
        BLOBS + digest[7:]: document,
    }


INDEXES: dict[str, tuple[Callable[[Files], Files], str]] = {
    "an image of a platform that is not there": (
        lambda files: without(files, ARM_MANIFEST),
        f"{ARM_MANIFEST} is missing; {INDEX_BLOB} names it",
    ),
    "a layer of a platform that is not there": (
        lambda files: without(files, ARM_LAYER),
        f"{ARM_LAYER} is missing; {ARM_MANIFEST} names it",
    ),
    "another layer of a platform": (lambda files: {**files, ARM_LAYER: b"x"}, f"{ARM_LAYER} is sha256:"),
    "a blob of no platform": (lambda files: {**files, f"{BLOBS}{'0' * 64}": b""}, "does not belong to the image"),
    "the image of one platform under the name of the index": (
        lambda files: {**files, "index.json": as_json({"manifests": [ARM_IMAGE.descriptor()]})},
        f"index.json names the image {ARM_IMAGE.digest}",
    ),
    "an index in an index": (nested, "has no list 'layers'"),
    "an index that is also a manifest": (ambiguous, "is both an index and a manifest"),
}


@pytest.mark.parametrize("change", INDEXES)
def test_an_index_of_platforms_that_is_not_whole_is_named(change: str, tmp_path: Path) -> None:
    changed, problem = INDEXES[change]
    refused_with(problem, verified(tmp_path, sealed(changed(index_content()))))


def test_an_index_of_platforms_is_accepted_and_named_by_its_digest(tmp_path: Path) -> None:
    ran = verified(tmp_path, sealed(index_content()))
    assert ran.code == 0, ran.err
    assert IMAGE_INDEX.by_digest in ran.out


@pytest.mark.parametrize(
    ("strange", "problem"),
    [
        (member("docs/link", tarfile.SYMTYPE, "/etc/passwd"), "'docs/link' is a link or a device"),
        (member("docs/hard", tarfile.LNKTYPE, "docs/a.md"), "'docs/hard' is a link or a device"),
        (member("docs/empty", tarfile.DIRTYPE), "'docs/empty' is a folder in which no file of the bundle lies"),
        (member("bin", tarfile.DIRTYPE), "'bin' is not a name of a file in a bundle"),
        (member("../docs", tarfile.DIRTYPE), "'../docs' is not a name of a file in a bundle"),
        (member("docs/a.md", tarfile.DIRTYPE), "docs/a.md is there twice"),
        (member("README.md", tarfile.DIRTYPE), "'README.md' is not a name of a file in a bundle"),
        (member("docs/null", tarfile.CHRTYPE), "'docs/null' is a link or a device"),
        (member("docs/a.md"), "docs/a.md is there twice"),
    ],
)
def test_what_is_no_plain_file_of_its_own_name_is_refused(
    strange: tarfile.TarInfo, problem: str, tmp_path: Path
) -> None:
    refused_with(problem, hermetic("bundle", "verify", written(tmp_path / "b.tar", sealed(content()), strange)))


def test_the_folders_that_files_lie_in_may_be_named_once(tmp_path: Path) -> None:
    parents = [member(name, tarfile.DIRTYPE) for name in ("blobs", "blobs/sha256", "docs")]
    ran = hermetic("bundle", "verify", written(tmp_path / "b.tar", sealed(content()), *parents))
    assert ran.code == 0, ran.err
    twice = written(tmp_path / "b.tar", sealed(content()), *parents, parents[0])
    refused_with("blobs is there twice", hermetic("bundle", "verify", twice))


def test_a_folder_with_content_is_refused(tmp_path: Path) -> None:
    header = member("docs", tarfile.DIRTYPE)
    header.size = 1
    refused_with(
        "'docs' is not a name", hermetic("bundle", "verify", written(tmp_path / "b.tar", sealed(content()), header))
    )


@pytest.mark.parametrize(
    ("limit", "problem"),
    [
        ("LARGEST_BUNDLE", "the file has"),
        ("LARGEST_FILE", "SHA256SUMS has"),
        ("LARGEST_BLOB", "blobs/sha256/"),
        ("LARGEST_KEPT", "SHA256SUMS has"),
        ("MOST_FILES", "there are more than 3 files"),
    ],
)
def test_what_is_too_large_is_refused(
    limit: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, limit, 3)
    refused_with(problem, verified(tmp_path, sealed(content())))


COMMIT = "0123456789abcdef0123456789abcdef01234567"


def described(**fields: object) -> Files:
    described = {**json.loads(content()["bundle.json"]), **fields}
    return {**content(), "bundle.json": as_json(described)}


def test_the_commit_is_told_and_signed(tmp_path: Path) -> None:
    key = a_key()
    files = described(revision=COMMIT, source="https://git.contoso.example/hermetic")
    sums = sealed(files)[CHECKSUMS]
    signed = {**sealed(files), SIGNATURE: sign_checksums(sums, "0.1.0", key, COMMIT).as_bytes()}
    ran = verified(tmp_path, signed, "--public-key", public(tmp_path, key))
    assert ran.code == 0, ran.err
    assert f"revision: {COMMIT} of https://git.contoso.example/hermetic" in ran.out
    printed = json.loads(verified(tmp_path, sealed(files), "-o", "json").out)
    assert (printed["revision"], printed["source"]) == (COMMIT, "https://git.contoso.example/hermetic")
    of_no_commit = {**sealed(files), SIGNATURE: sign_checksums(sums, "0.1.0", key).as_bytes()}
    refused = verified(tmp_path, of_no_commit, "--public-key", public(tmp_path, key))
    refused_with("over something else than this SHA256SUMS", refused)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"revision": "main"}, "revision 'main' is not a commit"),
        ({"revision": COMMIT + "-wip"}, "is not a commit"),
        ({"revision": 1}, "'revision' is not text"),
        ({"locks": "none"}, "'locks' is not an object of texts"),
        ({"builder": {"python": 3}}, "'builder' is not an object of texts"),
        ({"owner": "contoso"}, "bundle.json holds 'owner'"),
    ],
)
def test_a_description_with_other_fields_is_refused(fields: dict[str, object], problem: str, tmp_path: Path) -> None:
    refused_with(problem, verified(tmp_path, sealed(described(**fields))))


def test_a_description_that_lacks_the_image_is_refused(tmp_path: Path) -> None:
    fields = json.loads(content()["bundle.json"])
    del fields["image"]
    refused_with("bundle.json lacks 'image'", verified(tmp_path, sealed({**content(), "bundle.json": as_json(fields)})))


def test_the_signature_for_openssl_is_checked_too(tmp_path: Path) -> None:
    key, other = a_key(), a_key()
    sums = sealed(content(), key)[CHECKSUMS]
    for signature, problem in (
        (sign(key, sums), ""),
        (sign(other, sums), "SHA256SUMS.sig is not a signature of the key"),
        (sign(key, sums + b"\n"), "SHA256SUMS.sig is not a signature of the key"),
        (b"", "SHA256SUMS.sig: Truncated"),
    ):
        ran = verified(
            tmp_path, {**sealed(content(), key), PLAIN_SIGNATURE: signature}, "--public-key", public(tmp_path, key)
        )
        assert ran.code == bool(problem), ran.err
        if problem:
            refused_with(problem, ran)


def artifacts(*manifests: bytes, **more: bytes) -> Files:
    """A bundle whose artifacts/ names the image and these manifests."""
    blobs = {
        f"artifacts/{BLOBS}{hashlib.sha256(blob).hexdigest()}": blob for blob in (*manifests, b"{}", *more.values())
    }
    entries = [{"digest": digest_of(manifest), "size": len(manifest)} for manifest in (IMAGE.manifest, *manifests)]
    return {
        **content(),
        "artifacts/oci-layout": content()["oci-layout"],
        "artifacts/index.json": as_json({"manifests": entries}),
        **blobs,
    }


def referring(subject: bytes) -> bytes:
    empty = {"digest": digest_of(b"{}"), "size": 2}
    return as_json(
        {"config": empty, "layers": [empty], "subject": {"digest": digest_of(subject), "size": len(subject)}}
    )


def test_what_refers_to_the_image_is_accepted(tmp_path: Path) -> None:
    ran = verified(tmp_path, sealed(artifacts(referring(IMAGE.manifest))))
    assert ran.code == 0, ran.err


def test_what_refers_to_the_index_or_to_the_image_of_a_platform_is_accepted(tmp_path: Path) -> None:
    referrers = [referring(IMAGE_INDEX.manifest), referring(ARM_IMAGE.manifest)]
    blobs = {f"artifacts/{BLOBS}{hashlib.sha256(blob).hexdigest()}": blob for blob in (*referrers, b"{}")}
    entries = [IMAGE_INDEX.descriptor(), *({"digest": digest_of(blob), "size": len(blob)} for blob in referrers)]
    layout = {"artifacts/oci-layout": content()["oci-layout"], "artifacts/index.json": as_json({"manifests": entries})}

    ran = verified(tmp_path, sealed({**index_content(), **layout, **blobs}))

    assert ran.code == 0, ran.err


def test_artifacts_that_refer_to_something_else_or_are_not_named_are_refused(tmp_path: Path) -> None:
    chart = as_json(
        {"config": {"digest": digest_of(b"{}"), "size": 2}, "layers": [{"digest": digest_of(b"{}"), "size": 2}]}
    )
    for files, problem in (
        (artifacts(chart), "refers neither to the image nor to the chart"),
        (artifacts(referring(chart)), "is missing"),
        (artifacts(referring(IMAGE.manifest), other=b"x"), "does not belong to the artifacts"),
        ({**artifacts(referring(IMAGE.manifest)), "artifacts/index.json": b"{}"}, "has no list 'manifests'"),
        (without(artifacts(referring(IMAGE.manifest)), "artifacts/oci-layout"), "artifacts/oci-layout is missing"),
        (described(chart=f"charts/hermetic@{digest_of(chart)}"), "artifacts/oci-layout is missing"),
    ):
        refused_with(problem, verified(tmp_path, sealed(files)))


def test_a_tar_that_was_cut_lengthened_or_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "b.tar"
    bundle_bytes = written(file, sealed(content())).read_bytes()
    damaged = bytearray(bundle_bytes)
    damaged[bundle_bytes.index(b"docs/a.md\0") + 150] ^= 0xFF  # the checksum of the second header and later
    for changed in (
        bundle_bytes[:3000],
        bundle_bytes[: len(bundle_bytes) // 2],
        bundle_bytes + b"x",
        bytes(damaged),
        b"",
        b"PK" + b"x" * 2000,
    ):
        file.write_bytes(changed)
        refused_with("b.tar: ", hermetic("bundle", "verify", file))


def test_a_refusal_is_one_json_document(tmp_path: Path) -> None:
    ran = verified(tmp_path, {**sealed(content()), "docs/a.md": b""}, "-o", "json")
    printed = json.loads(ran.out)
    assert ran.code == 1
    assert (printed["valid"], printed["message"].split()[0]) == (False, "docs/a.md")


def test_a_file_that_is_not_there_and_a_folder_are_bad_input(tmp_path: Path) -> None:
    assert hermetic("bundle", "verify", tmp_path / "none.tar").code == 2
    assert hermetic("bundle", "verify", tmp_path).code == 2


def refused_with(problem: str, ran: Ran) -> None:
    assert (ran.code, len(ran.errors), ran.out) == (1, 1, "")
    assert ran.errors[0].startswith("error: HRM-BND-001: ")
    assert problem in ran.errors[0]
