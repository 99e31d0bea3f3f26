"""Take pictures of the audit's HTML report for the README, in light and dark.

    python -m tests.browser.pictures [FOLDER]    report-light.png and report-dark.png, by default in docs/pictures

The report is that of `python -m tools.pictures`: the public reference deployment behind the stand-in for Azure.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

from testbed.errors import BuildError
from testbed.packages import BROWSERS, browser, what_to_install
from tests.browser.chromium import Tab, a_tab
from tools.pictures import PICTURES, REPORT, save_audit
from tools.terminal import THEMES

WIDTH, HEIGHT = 1280, 900


def take(tab: Tab, report: Path, target: Path) -> None:
    """Write the first screen of a report in every theme, and print the paths."""
    tab.call("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False)
    for theme in THEMES:
        tab.media(prefers_color_scheme=theme)
        tab.open(report.as_uri())
        file = target / f"report-{theme}.png"
        file.write_bytes(base64.b64decode(tab.call("Page.captureScreenshot", format="png")["data"]))
        sys.stdout.write(f"{file}\n")
    tab.media()
    tab.call("Emulation.clearDeviceMetricsOverride")


def main(arguments: list[str]) -> int:
    """Take the pictures; returns the exit code."""
    target = Path(arguments[0]) if arguments else PICTURES
    path = browser()
    if path is None:
        raise BuildError(what_to_install([BROWSERS[0]]))
    with tempfile.TemporaryDirectory() as folder, a_tab(path) as tab:
        save_audit(Path(folder))
        take(tab, Path(folder) / REPORT, target)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BuildError as error:
        sys.exit(f"error: {error}")
