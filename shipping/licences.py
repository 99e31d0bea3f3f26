"""The licences that a package declares, as SPDX expressions.

A Debian package declares them in its copyright file, which is machine readable or prose
(https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/); a wheel in its metadata, as an expression, in a
free field or by classifiers (https://packaging.python.org/en/latest/specifications/core-metadata/). What has no name
of SPDX keeps its text under a LicenseRef, and nothing is guessed: a package that declares nothing is NOASSERTION.
"""

from __future__ import annotations

import email
import io
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from testbed.debian_archive import field_of

UNKNOWN = "NOASSERTION"
REFERENCE = "LicenseRef-"
DOCUMENTS = PurePosixPath("usr/share/doc")
# Names of Debian's format that SPDX spells in another way. Of `GPL` and `Artistic` it does not say which version.
NAMES = {"expat": "MIT", "cc0": "CC0-1.0", "perl": "Artistic-1.0-Perl OR GPL-1.0-or-later"}
GNU = re.compile(r"(?P<name>A?GPL|LGPL|GFDL)-(?P<number>[0-9](?:\.[0-9])?)(?P<later>\+?)", re.IGNORECASE)
# Classifiers that name one licence of one version, as `BSD License` and `Apache Software License` do not.
CLASSIFIERS = {
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}


@dataclass(frozen=True)
class Licence:
    """An SPDX expression, and the text of every LicenseRef in it."""

    expression: str = UNKNOWN
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CopyrightFile:
    """The copyright file of a Debian package, as it is in the image: its folder of documents and its text."""

    folder: str
    text: str


def copyright_files(packages: Iterable[Path]) -> dict[str, CopyrightFile]:
    """The copyright file of each package by its name; packages of one source may share a folder of documents."""
    documents = {field_of(package, "Package"): _documents(package) for package in packages}
    texts = {folder: text for of_package, _ in documents.values() for folder, text in of_package.items()}
    folders = {name: links.get(name, name) for name, (_, links) in documents.items()}
    return {name: CopyrightFile(folder, texts.get(folder, "")) for name, folder in folders.items()}


def of_wheel(wheel: Path) -> Licence:
    """What the metadata of a wheel declares; else a reference with the text of its licence files."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        fields = email.message_from_string(archive.read(metadata).decode())
        classified = [line.rpartition(" :: ")[2] for line in fields.get_all("Classifier", []) if "License ::" in line]
        declared = [fields.get("License-Expression", ""), fields.get("License", "")]
        declared += [CLASSIFIERS[classified[0]]] if len(classified) == 1 and classified[0] in CLASSIFIERS else []
        if expression := next((valid for text in declared if (valid := valid_expression(text))), ""):
            return Licence(expression)
    return _reference(wheel.name.split("-")[0], "\n".join(licence_texts(wheel)))


def licence_texts(wheel: Path) -> tuple[str, ...]:
    """The licence and notice files in the metadata of a wheel, in order of their names."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        return tuple(archive.read(name).decode(errors="replace") for name in sorted(_licence_files(archive, metadata)))


def author_of(wheel: Path) -> str:
    """Who supplies a wheel, as SPDX writes it: author or maintainer of its metadata, else the index."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        fields = email.message_from_string(archive.read(metadata).decode())
    named = [str(fields.get(name) or "") for name in ("Author", "Maintainer", "Author-email", "Maintainer-email")]
    people = [" ".join(re.sub(r"\s*<[^>]*>", "", text).strip().strip('"').split("@")[0].split()) for text in named]
    return next((f"Organization: {text}" for text in people if text), "Organization: Python Package Index")


def _licence_files(archive: zipfile.ZipFile, metadata: str) -> Iterator[str]:
    folder = metadata.rpartition("/")[0]
    for name in archive.namelist():
        if name.startswith(f"{folder}/") and re.match(r"(?i)licen[cs]e|copying|notice", PurePosixPath(name).name):
            yield name


def _documents(package: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The copyright files of a package by their folder, and the folders that are links to another."""
    content = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], capture_output=True, check=True).stdout
    texts, links = {}, {}
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            if member.issym() and path.parent == DOCUMENTS:
                links[path.name] = PurePosixPath(member.linkname).name
            elif member.isfile() and path.name == "copyright" and path.parent.parent == DOCUMENTS:
                read = archive.extractfile(member)
                assert read is not None
                texts[path.parent.name] = read.read().decode(errors="replace")
    return texts, links


def of_debian(file: CopyrightFile) -> Licence:
    """Every licence of the source package; those of its files hold together, so they are joined with AND."""
    text, name = file.text, file.folder
    paragraphs = [_fields(paragraph) for paragraph in re.split(r"\n\s*\n", text)]
    if "format" not in paragraphs[0]:
        return _reference(name, text)
    texts = {
        key: licence_text
        for paragraph in paragraphs
        for key, _, licence_text in [paragraph.get("license", "").partition("\n")]
        if licence_text
    }
    parts, references = [], {}
    for synopsis in sorted(
        {paragraph["license"].partition("\n")[0] for paragraph in paragraphs[1:] if "files" in paragraph}
    ):
        alternatives = [_spdx(part, name) for part in re.split(r" or ", synopsis)]
        parts.append(" OR ".join(alternatives))
        for part, identifier in zip(re.split(r" or ", synopsis), alternatives, strict=True):
            if identifier.startswith(REFERENCE):
                references[identifier] = texts.get(part) or texts.get(synopsis) or f"{part}: see {DOCUMENTS}/{name}"
    joined = " AND ".join(f"({part})" if " OR " in part and len(parts) > 1 else part for part in parts)
    return Licence(canonicalize_license_expression(joined), references) if parts else _reference(name, text)


def _fields(paragraph: str) -> dict[str, str]:
    """The fields of a paragraph by their names in lower case, without the space that begins a continuation."""
    fields: dict[str, str] = {}
    for name, value in re.findall(r"^([A-Za-z-]+):[ \t]*(.*(?:\n[ \t].*)*)", paragraph, re.MULTILINE):
        fields[name.lower()] = re.sub(r"\n[ \t]\.?", "\n", value).strip()
    return fields


def _spdx(name: str, package: str) -> str:
    """One short name of Debian's format as SPDX has it, else a reference."""
    if gnu := GNU.fullmatch(name):
        number = gnu["number"] if "." in gnu["number"] else gnu["number"] + ".0"
        return f"{gnu['name'].upper()}-{number}-{'or-later' if gnu['later'] else 'only'}"
    return NAMES.get(name.lower()) or valid_expression(name) or _named(f"{package}-{name}")


def valid_expression(expression: str) -> str:
    """The expression as SPDX writes it, or nothing where it is none."""
    try:
        return str(canonicalize_license_expression(expression))
    except InvalidLicenseExpression:
        return ""


def _reference(name: str, text: str) -> Licence:
    return Licence(_named(name), {_named(name): text}) if text.strip() else Licence()


def _named(name: str) -> str:
    return REFERENCE + re.sub(r"[^A-Za-z0-9.-]+", "-", name)
