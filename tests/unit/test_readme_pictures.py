"""The pictures of the README: `make recording` makes them, each page shows one for light and one for dark."""

from __future__ import annotations

import re
import struct
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from testbed.errors import BuildError
from tests.browser.pictures import HEIGHT, WIDTH
from tests.sampled_groups import LONG
from tools import pictures
from tools.pictures import PICTURES, REPORT, REPOSITORY, drawing, manifests, recorded, recorded_run, save_audit
from tools.terminal import COLUMNS, THEMES, Run, output_on_terminal, picture, rows_of

SVG = "{http://www.w3.org/2000/svg}"
LARGEST = 300_000
PAGES = ("README.md", *sorted(f"docs/{path.name}" for path in (REPOSITORY / "docs").glob("*.md")))
# A picture as a page has it: the dark file, the text for those who do not see it, the light file.
SHOWN = re.compile(
    r'<picture>\n  <source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)-dark\.(svg|png)">\n'
    r'  <img alt="([^"]+)" src="([^"]+)-light\.(svg|png)"(?: width="\d+")?>\n</picture>'
)
RED, RESET = "\x1b[31m\x1b[1m", "\x1b[0m"


def texts_of(svg: str) -> str:
    """What a picture of a terminal or of a drawing shows, with plain blanks."""
    texts = ElementTree.fromstring(svg).iter(f"{SVG}text")
    return "\n".join("".join(text.itertext()).replace("\N{NO-BREAK SPACE}", " ") for text in texts)


def shown_pictures() -> list[tuple[str, Path, str, str]]:
    """Every picture of every page: the page, its file without theme, its ending, and its description."""
    return [
        (page, (REPOSITORY / page).parent / match[1], match[2], match[3])
        for page in PAGES
        for match in SHOWN.finditer((REPOSITORY / page).read_text(encoding="utf-8"))
    ]


@LONG
def test_command_makes_terminal_and_drawing_of_the_same_audit(tmp_path: Path) -> None:
    manifests(tmp_path)
    save_audit(tmp_path)
    page = (tmp_path / REPORT).read_text(encoding="utf-8")
    assert "<dd>platform on jump-box</dd>" in page
    runs = recorded_run(tmp_path)
    for theme in THEMES:
        terminal = texts_of(picture(runs, "a terminal", theme))
        assert "did you mean `folder`?" in terminal
        assert "Standard_NC24ads_A100_v4: 1 x NVIDIA A100 80 GB, tensor parallel 1: fits" in terminal
        assert "Fail  aks-inference" in terminal
        assert "run by platform on jump-box" in terminal
        assert re.search(r"\.\.\. \(\d+ more lines\)$", terminal)
        drawn = texts_of(drawing(page, theme))
        assert {"default outbound", "internet"} <= set(drawn.splitlines())


@LONG
def test_command_that_ends_otherwise_makes_no_picture(tmp_path: Path) -> None:
    (tmp_path / "llama.yaml").write_text("kind: ModelDeployment\n")
    with pytest.raises(BuildError, match="ended with 2, not with 0"):
        recorded("hermetic validate -f llama.yaml", tmp_path, 0)


def a_demo(folder: Path, monkeypatch: pytest.MonkeyPatch, last: str) -> list[str]:
    """A repository whose demo ends with this command, and the arguments that record it."""
    (folder / "Makefile").write_text(f"demo:\n\t@echo 'exit at the end: '$$DEMO_EXIT\n\t@{last}\n")
    monkeypatch.setattr(pictures, "REPOSITORY", folder)
    return ["--demo", "--folder", str(folder / "pictures")]


def test_demo_that_ends_green_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pictures.main(a_demo(tmp_path, monkeypatch, "true")) == 0
    for theme in THEMES:
        shown = texts_of((tmp_path / "pictures" / f"demo-{theme}.svg").read_text(encoding="utf-8"))
        assert shown.splitlines()[-2:] == ["make demo", "exit at the end: 1"]


def test_recording_inside_make_looks_like_one_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line of a nested make names its level, and one with another make's jobs warns that it cannot reach it."""
    inside = {"MAKEFLAGS": " -k -j4 --jobserver-auth=98,99", "MAKELEVEL": "2", "MFLAGS": "-k -j4", "NO_COLOR": "1"}
    for name, value in inside.items():
        monkeypatch.setenv(name, value)
    arguments = a_demo(tmp_path, monkeypatch, "echo level $$MAKELEVEL flags $$MAKEFLAGS color $$NO_COLOR")
    assert pictures.main(arguments) == 0
    shown = texts_of((tmp_path / "pictures" / "demo-light.svg").read_text(encoding="utf-8"))
    assert shown.splitlines()[-3:] == ["make demo", "exit at the end: 1", "level 1 flags color"]


def test_demo_that_fails_is_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BuildError, match="ended with 2"):
        pictures.main(a_demo(tmp_path, monkeypatch, "false"))
    assert not (tmp_path / "pictures").exists()


def test_report_without_a_drawing_is_refused() -> None:
    with pytest.raises(BuildError, match="has no drawing"):
        drawing("<html><style></style></html>", "light")


def test_readme_without_a_manifest_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "README.md").write_text("```yaml\nkind: Pod\n```\n")
    monkeypatch.setattr(pictures, "REPOSITORY", tmp_path)
    with pytest.raises(BuildError, match="no manifest"):
        manifests(tmp_path)


def test_command_on_a_terminal_sees_a_terminal_and_its_width(tmp_path: Path) -> None:
    script = "import os, sys; print(sys.stdout.isatty(), os.get_terminal_size().columns, os.environ['A']); sys.exit(3)"
    assert output_on_terminal([sys.executable, "-c", script], tmp_path, {"A": "b"}) == (3, f"True {COLUMNS} b\n")


def test_row_is_no_wider_than_the_terminal_and_a_row_written_anew_counts_once() -> None:
    rows = [str(row) for row in rows_of(f"one\rtwo\n\n{'x' * (COLUMNS + 1)}\n")]
    assert rows == ["two", "", "x" * COLUMNS, "x"]


@pytest.mark.parametrize("theme", THEMES)
def test_picture_has_text_in_the_colours_of_the_command_and_says_what_is_left_out(theme: str) -> None:
    output = f"{RED}Fail{RESET} <a & b> {{c}}\nsecond\nthird\nfourth\n"
    svg = picture([Run("hermetic audit", output, rows=2), Run("true", "")], "name & {title}", theme)
    shown = texts_of(svg)
    assert {"hermetic audit", "Fail", "second", "... (2 more lines)", "true"} <= set(shown.splitlines())
    assert "third" not in shown
    root = ElementTree.fromstring(svg)
    assert [root.findtext(f"{SVG}{name}", "").splitlines()[0] for name in ("title", "desc")] == [
        "name & {title}", "$ hermetic audit",
    ]  # fmt: skip
    assert "<a & b> {c}" in root.findtext(f"{SVG}desc", "")
    (red,) = [text.get("class") for text in root.iter(f"{SVG}text") if text.text == "Fail"]
    assert f".{red} {{ fill: {THEMES[theme].ansi_colors[1].hex};font-weight: bold }}" in svg


def test_pages_show_every_picture_and_no_other() -> None:
    named = {
        file.with_name(f"{file.name}-{theme}.{ending}") for _, file, ending, _ in shown_pictures() for theme in THEMES
    }
    assert named == set(PICTURES.iterdir())
    images = sum((REPOSITORY / page).read_text(encoding="utf-8").count("<img") for page in PAGES)
    assert images == len(shown_pictures())


@pytest.mark.parametrize(("page", "file", "ending", "description"), shown_pictures())
def test_picture_of_a_page_is_there_in_both_themes_is_small_and_is_described(
    page: str, file: Path, ending: str, description: str
) -> None:
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    light = f'src="{file.relative_to((REPOSITORY / page).parent)}-light.{ending}"'
    assert light in text
    assert len(description.split()) > 10
    for theme in THEMES:
        picture_file = file.with_name(f"{file.name}-{theme}.{ending}")
        assert 0 < picture_file.stat().st_size < LARGEST
    assert file.with_name(f"{file.name}-light.{ending}").read_bytes() != picture_file.read_bytes()


@pytest.mark.parametrize("file", sorted(PICTURES.glob("*.svg")), ids=lambda file: file.name)
def test_svg_runs_no_script_and_fetches_nothing(file: Path) -> None:
    svg = file.read_text(encoding="utf-8")
    elements = [*ElementTree.fromstring(svg).iter()]
    names = {element.tag.removeprefix(SVG) for element in elements}
    assert not names & {"script", "image", "use", "foreignObject", "a"}
    assert "@font-face" not in svg
    assert "@import" not in svg
    assert re.findall(r"url\((?!#)", svg) == []
    assert re.findall(r"\bon\w+=|href=", svg) == []
    # A terminal may show an address; a browser fetches what stands in attributes and styles.
    styles = [element.text or "" for element in elements if element.tag == f"{SVG}style"]
    assert not [
        text
        for text in (*styles, *(value for element in elements for value in element.attrib.values()))
        if "://" in text
    ]


def test_png_is_one_screen() -> None:
    for content in (file.read_bytes() for file in PICTURES.glob("*.png")):
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        assert struct.unpack(">II", content[16:24]) == (WIDTH, HEIGHT)


def test_recording_of_the_readme_shows_the_commands_that_make_it() -> None:
    for theme in THEMES:
        shown = texts_of((PICTURES / f"run-{theme}.svg").read_text(encoding="utf-8"))
        for command in ("validate -f llama.yaml", "plan -f sized.yaml", "audit --snapshot aks-inference.json"):
            assert f"hermetic {command}" in shown
        assert "Fail  aks-inference" in shown
        drawn = texts_of((PICTURES / f"drawing-{theme}.svg").read_text(encoding="utf-8"))
        assert {"default outbound", "internet"} <= set(drawn.splitlines())
