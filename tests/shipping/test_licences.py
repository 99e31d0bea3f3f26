"""Licences are those that a package declares: nothing is guessed, and no text is lost."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from shipping.licences import UNKNOWN, Licence, copyright_files, of_debian, of_wheel
from tests.sampled_groups import SHIPPING

pytestmark = SHIPPING

FORMAT = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"


def declared(packages: list[Path]) -> dict[str, Licence]:
    """What Debian packages declare, by their names."""
    return {name: of_debian(file) for name, file in copyright_files(packages).items()}


def a_wheel(folder: Path, metadata: str, **files: str) -> Path:
    wheel = folder / "some_thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("some_thing-1.0.dist-info/METADATA", f"Metadata-Version: 2.4\nName: some-thing\n{metadata}\n")
        archive.writestr("vendored/other-1.0.dist-info/METADATA", "License-Expression: GPL-3.0-only\n")
        for name, text in files.items():
            archive.writestr(f"some_thing-1.0.dist-info/licenses/{name}", text)
    return wheel


@pytest.mark.parametrize(
    ("metadata", "expression"),
    [
        ("License-Expression: mit OR apache-2.0\nLicense: BSD", "MIT OR Apache-2.0"),
        ("License: MIT", "MIT"),
        ("License: MIT License\nClassifier: License :: OSI Approved :: MIT License", "MIT"),
        ("License: ISC\nClassifier: License :: OSI Approved :: BSD License", "ISC"),
    ],
)
def test_a_wheel_says_what_its_metadata_say(tmp_path, metadata, expression):
    assert of_wheel(a_wheel(tmp_path, metadata)) == Licence(expression)


@pytest.mark.parametrize(
    "metadata",
    [
        "License: Copyright 2020\n  All of the text.",
        "Classifier: License :: OSI Approved :: BSD License",
        "Classifier: License :: OSI Approved :: Apache Software License",
        "Classifier: License :: OSI Approved :: MIT License\nClassifier: License :: OSI Approved :: ISC License (ISCL)",
    ],
)
def test_where_it_names_no_one_licence_the_text_is_kept(tmp_path, metadata):
    licence = of_wheel(a_wheel(tmp_path, metadata, LICENSE="Do what you like."))
    assert licence == Licence("LicenseRef-some-thing", {"LicenseRef-some-thing": "Do what you like."})
    assert of_wheel(a_wheel(tmp_path, metadata)).expression == UNKNOWN


def a_package(folder: Path, name: str, copyright_text: str = "", same_as: str = "") -> Path:
    root = folder / name
    documents = root / "usr/share/doc"
    documents.mkdir(parents=True)
    if same_as:
        (documents / name).symlink_to(same_as)
    elif copyright_text:
        (documents / name).mkdir()
        (documents / name / "copyright").write_text(copyright_text)
    control = root / "DEBIAN" / "control"
    control.parent.mkdir()
    control.write_text(
        f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b.example>\nDescription: none\n"
    )
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", root, folder], capture_output=True, check=True)
    return folder / f"{name}_1_all.deb"


@pytest.mark.parametrize(
    ("files", "expression"),
    [
        (["Expat"], "MIT"),
        (["GPL-2+", "LGPL-2.1"], "GPL-2.0-or-later AND LGPL-2.1-only"),
        (["Apache-2.0", "Expat or GPL-3+"], "Apache-2.0 AND (MIT OR GPL-3.0-or-later)"),
        (["MPL-2.0 and Zlib"], "MPL-2.0 AND Zlib"),
        (["Expat", "Expat"], "MIT"),
    ],
)
def test_a_machine_readable_copyright_names_all_licences_of_the_source(tmp_path, files, expression):
    text = FORMAT + "".join(
        f"\nFiles: {number}\nCopyright: a\nLicense: {licence_name}\n" for number, licence_name in enumerate(files)
    )
    assert declared([a_package(tmp_path, "one", text)]) == {"one": Licence(expression)}


def test_a_licence_without_a_name_of_spdx_keeps_its_text(tmp_path):
    own = "Files: *\nCopyright: a\nLicense: of our own\n Take it.\n .\n Leave the name.\n"
    (licence,) = declared([a_package(tmp_path, "one", f"{FORMAT}\n{own}")]).values()
    name = "LicenseRef-one-of-our-own"
    assert licence == Licence(name, {name: "Take it.\n\nLeave the name."})


def test_prose_is_kept_whole_and_a_shared_folder_of_documents_is_followed(tmp_path):
    packages = [a_package(tmp_path, "two", same_as="one"), a_package(tmp_path, "one", "In prose.\n")]
    prose = Licence("LicenseRef-one", {"LicenseRef-one": "In prose.\n"})
    assert declared(packages) == {"two": prose, "one": prose}
    assert declared([a_package(tmp_path, "three")]) == {"three": Licence()}
