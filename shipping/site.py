"""`python -m shipping site DIR`: the documentation as a site that fetches nothing, from docs/ and the README."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from testbed.errors import BuildError
from testbed.locked_environment import LockedEnvironment

REPOSITORY = Path(__file__).resolve().parent.parent
DOCS, README = REPOSITORY / "docs", REPOSITORY / "README.md"
CONFIGURATION, LOCK = Path(__file__).with_name("mkdocs.yaml"), Path(__file__).with_name("site.lock")
STYLE = Path(__file__).with_name("site.css")
ENVIRONMENT = LockedEnvironment("docs-site", LOCK, "about 20 MB to fetch, 80 MB on disk")
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")


def build(target: Path) -> None:
    """Build the site into a folder, which is replaced; BuildError with mkdocs' words where a link leads nowhere."""
    python = ENVIRONMENT.installed() / "bin" / "python"
    with tempfile.TemporaryDirectory() as place:
        stage = Path(place)
        _stage(stage / "pages")
        shutil.copy(CONFIGURATION, stage / "mkdocs.yml")
        shutil.copy(STYLE, stage / "pages" / STYLE.name)
        options: list[str | Path] = ["-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", stage / "site"]
        done = subprocess.run([python, *options], cwd=stage, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BuildError(f"mkdocs: {done.stdout}{done.stderr}")
        shutil.rmtree(target, ignore_errors=True)
        shutil.move(stage / "site", target)


def _stage(pages: Path) -> None:
    pages.mkdir()
    for file in DOCS.iterdir():
        text = _within(file.read_text(), DOCS) if file.suffix == ".md" else file.read_text()
        (pages / file.name).write_text(text)
    (pages / "index.md").write_text(_within(README.read_text(), REPOSITORY))


def _within(text: str, folder: Path) -> str:
    """The page with links as they are on the site; what lies outside of docs/ is named by its path."""

    def linked(found: re.Match[str]) -> str:
        label, link = found[1], found[2]
        path, _, anchor = link.partition("#")
        if not path or ":" in path:
            return found[0]
        file = (folder / path).resolve()
        if file.parent == DOCS:
            return f"[{label}]({file.name}{'#' if anchor else ''}{anchor})"
        if file == README:
            return f"[{label}](index.md)"
        return label if label.strip("`") == path else f"{label} (`{file.relative_to(REPOSITORY)}`)"

    return LINK.sub(linked, text)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m shipping site", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the site is written")
    target: Path = parser.parse_args(arguments).folder
    target.parent.mkdir(parents=True, exist_ok=True)
    build(target)
    print(f"{target / 'index.html'}", file=sys.stderr)
    return 0
