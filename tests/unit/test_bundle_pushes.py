"""What `hermetic bundle load` pushes of a bundle, and what it refuses before it sends anything."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermetic.cli.bundle.opened import opened
from hermetic.cli.bundle.pushes import CHART, Push, pushes
from hermetic.errors import BundleRefused
from testbed.images.oci import as_json, digest_of
from tests.bundles import IMAGE, VERSION, content, sealed, written
from tests.commandline import hermetic
from tests.unit.test_cli_bundle import a_key, public

Files = dict[str, bytes]


def planned(folder: Path, files: Files, version: str = VERSION) -> list[Push]:
    file = written(folder / "b.tar", files)
    with opened(file, file.stat()) as archive:
        return pushes(archive, IMAGE.digest, version)


def manifest(**fields: object) -> bytes:
    empty = {"mediaType": "application/vnd.oci.empty.v1+json", "digest": digest_of(b"{}"), "size": 2}
    return as_json({"schemaVersion": 2, "config": empty, "layers": [], **fields})


def artifacts(*manifests: bytes) -> Files:
    """A second layout that names these manifests."""
    entries = [{"digest": digest_of(manifest_blob), "size": len(manifest_blob)} for manifest_blob in manifests]
    blobs_by_digest = {digest_of(blob): blob for blob in (*manifests, b"{}")}
    index = as_json({"schemaVersion": 2, "manifests": entries})
    blobs = {f"artifacts/blobs/sha256/{digest[7:]}": blob for digest, blob in blobs_by_digest.items()}
    return {**content(), "artifacts/index.json": index, **blobs}


def subject(digest: str) -> dict[str, object]:
    return {"mediaType": "", "digest": digest, "size": 1}


def test_the_image_has_the_version_as_its_tag_and_every_blob(tmp_path: Path) -> None:
    file = written(tmp_path / "b.tar", content())
    with opened(file, file.stat()) as archive:
        (push,) = pushes(archive, IMAGE.digest, "0.2.0+build.1")
        assert b"".join(blob.read(0, blob.size) for blob in push.blobs) == IMAGE.config + IMAGE.layers[0].tar
    assert (push.repository, push.manifest.tags) == ("hermetic", ("0.2.0_build.1",))
    assert {blob.digest for blob in push.blobs} == {digest_of(IMAGE.config), IMAGE.layers[0].digest}


def test_a_chart_of_the_second_layout_takes_the_place_of_the_packaged_one_and_referrers_follow(tmp_path: Path) -> None:
    config = {"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": digest_of(b"{}"), "size": 2}
    chart = manifest(config=config)
    of_chart = manifest(subject=subject(digest_of(chart)), artifactType="a/signature")
    of_referrer = manifest(subject=subject(digest_of(of_chart)), artifactType="a/countersignature")
    ordered = planned(tmp_path, artifacts(of_referrer, of_chart, chart))
    assert [push.manifest.digest for push in ordered[-3:]] == [
        digest_of(blob) for blob in (chart, of_chart, of_referrer)
    ]
    assert {push.repository for push in ordered[-3:]} == {CHART}
    assert [push.manifest.tags for push in ordered[-3:]] == [(VERSION,), (), ()]


REFUSED = {
    "another image": ({**content(), "index.json": as_json({"manifests": []})}, "does not name the image"),
    "a subject that is not there": (artifacts(manifest(subject=subject(digest_of(b"")))), "refers to nothing"),
    "a blob that is missing": (
        {name: file for name, file in content().items() if not name.endswith(IMAGE.layers[0].digest[7:])},
        "is missing",
    ),
    "a manifest with other content": (
        {**content(), f"blobs/sha256/{IMAGE.digest[7:]}": IMAGE.manifest[:-1] + b" "},
        "is not JSON|other content than its digest",
    ),
    "a blob of another size": (
        {**content(), f"blobs/sha256/{IMAGE.layers[0].digest[7:]}": b"x"},
        "bytes, and its descriptor",
    ),
    "an index that is no object": ({**content(), "index.json": b"[]"}, "is not a JSON object"),
    "a chart that is none": ({**content(), "chart/a.tgz": b"x"}, "no packaged chart"),
    "a descriptor without a digest": (
        {**content(), "index.json": as_json({"manifests": [{"size": 1}]})},
        "names no blob by SHA-256",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_nothing_is_planned_of_a_bundle_that_does_not_fit_together(case: str, tmp_path: Path) -> None:
    files, message = REFUSED[case]
    with pytest.raises(BundleRefused, match=message):
        planned(tmp_path, files)


def test_a_file_that_changed_after_it_was_verified_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "b.tar", content())
    status = file.stat()
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    with pytest.raises(BundleRefused, match="was changed after"), opened(file, status):
        pass
    written(tmp_path / "other.tar", content()).rename(file)
    with pytest.raises(BundleRefused, match="was changed after"), opened(file, status):
        pass


def test_a_bundle_that_is_not_intact_is_not_pushed(tmp_path: Path) -> None:
    files = {**sealed(content()), "docs/a.md": b"changed"}
    ran = hermetic("bundle", "load", written(tmp_path / "b.tar", files), "--to", "127.0.0.1:1")
    assert (ran.code, len(ran.errors)) == (1, 1)
    assert "HRM-BND-001" in ran.errors[0]
    unsigned = written(tmp_path / "c.tar", sealed(content()))
    ran = hermetic("bundle", "load", unsigned, "--to", "127.0.0.1:1", "--public-key", public(tmp_path, a_key()))
    assert (ran.code, "is not signed" in ran.errors[0]) == (1, True)


@pytest.mark.parametrize(
    "options",
    [("--to", "https://contoso.azurecr.io"), ("--to", "contoso.azurecr.io/path"), ("--to", "a@b.example"),
     ("--to", "-a"),
     ("--to", "a.example", "--prefix", "../a"), ("--to", "a.example", "--prefix", "/a"), ("--to", "a.example:x"),
     ("--to", "a.example", "--prefix", "A"), ("--to", "a.example", "--prefix", "a?b"), ("--to", "a b"),
     ("--to", "a.example", "--token-host", "b.example/x"), ("--to", "a.example", "--username", "u"),
     ("--to", "a.example", "--password-stdin"), ("--to", "a.example", "--ca-file", "/no/such/file"), ()],
)  # fmt: skip
def test_a_target_that_is_none_is_bad_input(options: tuple[str, ...], tmp_path: Path) -> None:
    ran = hermetic("bundle", "load", written(tmp_path / "b.tar", sealed(content())), *options)
    assert (ran.code, ran.out, len(ran.errors)) == (2, "", 1), ran.err


def test_key_that_is_trusted_until_a_moment_is_bad_input(tmp_path: Path) -> None:
    dated = f"{public(tmp_path, a_key())}@2026-12-31T23:59:59Z"
    file = written(tmp_path / "b.tar", sealed(content()))
    ran = hermetic("bundle", "load", file, "--to", "127.0.0.1:1", "--public-key", dated)
    assert (ran.code, "a bundle has no signed time" in ran.err) == (2, True)
