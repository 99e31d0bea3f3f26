"""Distributions of engines from the package index that pip is configured with.

The index is read by the simple repository API, as JSON or, where a mirror only offers that, as HTML.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import ssl
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import IO
from urllib.parse import urldefrag, urljoin

ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
CHUNK = 1 << 20


class IndexUnavailable(Exception):
    """The package index does not answer, or does not offer what was asked for."""


@dataclass(frozen=True)
class Project:
    """A package of the index, and the one file of each release to read: groups 1 to 3 are X, Y and Z."""

    name: str
    file: re.Pattern[str]


VLLM = Project("vllm", re.compile(r"vllm-(\d+)\.(\d+)\.(\d+)\.tar\.gz"))


@dataclass(frozen=True)
class SourceDistribution:
    """One released file of the index; pre-releases and yanked files never become one."""

    version: tuple[int, int, int]
    url: str
    sha256: str

    @property
    def name(self) -> str:
        return ".".join(map(str, self.version))

    @property
    def minor(self) -> str:
        return ".".join(map(str, self.version[:2]))


@dataclass(frozen=True)
class Index:
    """The index that pip would use, and the bundle of authorities it would trust (None: the system's)."""

    url: str
    authorities: str | None

    def open(self, url: str) -> IO[bytes]:
        if not url.startswith(("https://", "http://")):
            raise IndexUnavailable(f"the package index points to {url}, which is not an HTTP address")
        request = urllib.request.Request(url, headers={"Accept": ACCEPT, "User-Agent": "hermetic-vllm-tables"})
        context = ssl.create_default_context(cafile=self.authorities)
        try:
            answer: IO[bytes] = urllib.request.urlopen(request, timeout=60, context=context)
        except OSError as error:
            raise IndexUnavailable(f"the package index does not answer for {url}: {error}") from error
        return answer


def configured_index() -> Index:
    """The index that `pip download` would use here: environment, configuration files, then pip's own default."""
    try:
        from pip._internal.commands import create_command
    except ImportError:
        url = os.environ.get("PIP_INDEX_URL") or os.environ.get("UV_DEFAULT_INDEX")
        if not url:
            raise IndexUnavailable("this Python has no pip to ask for its index: set PIP_INDEX_URL") from None
        return Index(url, os.environ.get("PIP_CERT"))
    options = create_command("download").parser.get_default_values()
    return Index(str(options.index_url), options.cert or None)


def source_distributions(index: Index, project: Project = VLLM) -> list[SourceDistribution]:
    """Every released distribution the index offers, oldest first."""
    page = index.url.rstrip("/") + f"/{project.name}/"
    with index.open(page) as answer:
        body = answer.read()
    links = _json_links(body) if body.lstrip().startswith(b"{") else _html_links(body)
    found = (_as_release(project, urljoin(page, url), sha256) for url, sha256 in links)
    return sorted((release for release in found if release), key=lambda release: release.version)


def _json_links(body: bytes) -> Iterator[tuple[str, str]]:
    for file in json.loads(body)["files"]:
        if not file.get("yanked"):
            yield file["url"], file["hashes"].get("sha256", "")


def _html_links(body: bytes) -> Iterator[tuple[str, str]]:
    links: list[dict[str, str | None]] = []

    class Anchors(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            if tag == "a":
                links.append(dict(attrs))

    Anchors().feed(body.decode())
    for link in links:
        url, fragment = urldefrag(link.get("href") or "")
        if "data-yanked" not in link:
            yield url, fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else ""


def _as_release(project: Project, url: str, sha256: str) -> SourceDistribution | None:
    match = project.file.fullmatch(url.rsplit("/", 1)[-1])
    if match is None or not sha256:
        return None
    major, minor, patch = (int(part) for part in match.groups())
    return SourceDistribution((major, minor, patch), url, sha256)


def choose(offered: list[SourceDistribution], expected: str) -> SourceDistribution:
    """`wanted` is a version (0.33.0), or a minor version (0.33) and then its newest patch release."""
    matching = [release for release in offered if expected in {release.name, release.minor}]
    if not matching:
        newest = ", ".join(release.name for release in offered[-5:])
        raise IndexUnavailable(f"the package index has no distribution of {expected} to read; its newest are {newest}")
    return matching[-1]


def cache_folder() -> Path:
    """Where downloads are kept between runs, outside of the checkout."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "hermetic" / "vllm-sdist"


def fetch(index: Index, release: SourceDistribution) -> Path:
    """The archive on disk, its SHA-256 equal to the one the index states; about 44 MB the first time."""
    archive = cache_folder() / release.url.rsplit("/", 1)[-1]
    if archive.exists() and _sha256(archive) == release.sha256:
        return archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    partial = archive.with_name(f"{archive.name}.{os.getpid()}.partial")
    print(f"downloading {archive.name}", file=sys.stderr)
    with index.open(release.url) as answer, partial.open("wb") as file:
        while chunk := answer.read(CHUNK):
            file.write(chunk)
    if _sha256(partial) != release.sha256:
        partial.unlink()
        raise IndexUnavailable(
            f"{release.url} is not what the index promised: its SHA-256 differs from {release.sha256}"
        )
    partial.rename(archive)
    return archive


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
