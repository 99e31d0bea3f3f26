"""`python -m shipping site DIR`: the documentation as a site that fetches nothing, from docs/ and the README."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hermetic import __version__
from testbed.errors import BuildError
from testbed.locked_environment import LockedEnvironment

REPOSITORY = Path(__file__).resolve().parent.parent
DOCS = REPOSITORY / "docs"
FROM_THE_ROOT = {"index.md": REPOSITORY / "README.md", "changelog.md": REPOSITORY / "CHANGELOG.md"}
"""Pages of the site that lie outside of docs/, by their name on the site."""
CONFIGURATION, LOCK = Path(__file__).with_name("mkdocs.yaml"), Path(__file__).with_name("site.lock")
STYLE = Path(__file__).with_name("site.css")
ENVIRONMENT = LockedEnvironment("docs-site", LOCK, "about 20 MB to fetch, 80 MB on disk")
SITE_NAME = "site_name: Hermetic"
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
PICTURE = re.compile(
    r'<picture>\n  <source media="[^"]*" srcset="([^"]+)">\n  <img alt="([^"]+)" src="([^"]+)">\n</picture>'
)
PICTURES = DOCS / "pictures"


def build(target: Path) -> None:
    """Build the site into a folder, which is replaced; BuildError with mkdocs' words where a link leads nowhere."""
    python = ENVIRONMENT.installed() / "bin" / "python"
    with tempfile.TemporaryDirectory() as temporary:
        stage = Path(temporary)
        _stage(stage / "pages")
        configuration = CONFIGURATION.read_text().replace(SITE_NAME, f"{SITE_NAME} {__version__}", 1)
        (stage / "mkdocs.yml").write_text(configuration)
        shutil.copy(STYLE, stage / "pages" / STYLE.name)
        options: list[str | Path] = ["-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", stage / "site"]
        done = subprocess.run([python, *options], cwd=stage, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BuildError(f"mkdocs: {done.stdout}{done.stderr}")
        shutil.rmtree(target, ignore_errors=True)
        shutil.move(stage / "site", target)


def _stage(pages: Path) -> None:
    pages.mkdir()
    shutil.copytree(PICTURES, pages / PICTURES.name)
    for file in DOCS.iterdir():
        if file.is_dir():  # pictures, and samples, which pages show and link by their path
            continue
        text = _within(file.read_text(), DOCS) if file.suffix == ".md" else file.read_text()
        (pages / file.name).write_text(text)
    for name, source in FROM_THE_ROOT.items():
        (pages / name).write_text(_within(source.read_text(), REPOSITORY))


def _within(text: str, folder: Path) -> str:
    """The page with links as they are on the site; what lies outside of docs/ is named by its path."""

    def linked(match: re.Match[str]) -> str:
        label, link = match[1], match[2]
        path, _, anchor = link.partition("#")
        if not path or ":" in path:
            return match[0]
        file = (folder / path).resolve()
        if file.parent == DOCS:
            return f"[{label}]({file.name}{'#' if anchor else ''}{anchor})"
        for name, source in FROM_THE_ROOT.items():
            if file == source:
                return f"[{label}]({name})"
        return label if label.strip("`") == path else f"{label} (`{file.relative_to(REPOSITORY)}`)"

    return PICTURE.sub(_picture, LINK.sub(linked, text))


def _picture(match: re.Match[str]) -> str:
    """The picture in the theme of the page, which the reader can change on the site: Material hides the other image."""
    dark, description, light = match.groups()
    images = {"only-light": light, "only-dark": dark}
    return "\n".join(f"![{description}]({PICTURES.name}/{Path(file).name}#{theme})" for theme, file in images.items())


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m shipping site", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the site is written")
    target: Path = parser.parse_args(arguments).folder
    target.parent.mkdir(parents=True, exist_ok=True)
    build(target)
    print(f"{target / 'index.html'}", file=sys.stderr)
    return 0
