"""OCI layouts as tests read them: every blob checked against its name, and the layers unpacked in order."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any


class LayoutOnDisk:
    """A layout in a folder, whose blobs are all what their names say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.blobs = {f"sha256:{path.name}": path for path in (folder / "blobs" / "sha256").iterdir()}
        for digest, path in self.blobs.items():
            with path.open("rb") as file:
                assert f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" == digest
        assert json.loads((folder / "oci-layout").read_bytes()) == {"imageLayoutVersion": "1.0.0"}
        (self.entry,) = json.loads((folder / "index.json").read_bytes())["manifests"]
        self.digest: str = self.entry["digest"]
        self.manifest = self._document(self.entry)
        self.config = self._document(self.manifest["config"])
        assert len(self.config["rootfs"]["diff_ids"]) == len(self.manifest["layers"])
        for layer in self.manifest["layers"]:
            assert self.blobs[layer["digest"]].stat().st_size == layer["size"]
        used = {self.digest, self.manifest["config"]["digest"], *(layer["digest"] for layer in self.manifest["layers"])}
        assert used == self.blobs.keys()

    def _document(self, descriptor: dict[str, Any]) -> dict[str, Any]:
        content = self.blobs[descriptor["digest"]].read_bytes()
        assert len(content) == descriptor["size"]
        return json.loads(content)

    def members(self) -> list[list[str]]:
        """The names of the files and links of each layer; folders are left out."""
        names_by_layer = []
        for layer in self.manifest["layers"]:
            with tarfile.open(self.blobs[layer["digest"]]) as archive:
                names_by_layer.append([member.name for member in archive if not member.isdir()])
        return names_by_layer

    def unpack(self, into: Path) -> Path:
        """One layer over the other."""
        for layer in self.manifest["layers"]:
            with tarfile.open(self.blobs[layer["digest"]]) as archive:
                assert all((member.uid, member.gid, member.mtime) == (0, 0, 0) for member in archive.getmembers())
                archive.extractall(into, filter="tar")
        return into


def write_layout(folder: Path, files: dict[str, bytes]) -> Path:
    """A layout from the contents of its files."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def unpacked_archive(archive: Path, into: Path) -> Path:
    """The layout in a tar, which two programs read alike: a name occurs once, and nothing follows the end."""
    with tarfile.open(archive) as opened:
        names = opened.getnames()
        assert len(names) == len(set(names))
        opened.extractall(into, filter="data")
        end = opened.offset
    with archive.open("rb") as file:
        file.seek(end)
        assert not io.BytesIO(file.read()).read().strip(b"\0")
    return into
