"""The audit reports whose text is kept, in every format: files of `audit/` beside this one.

python -m tests.golden.audits    writes them anew, for a reviewer to read the difference
"""

from __future__ import annotations

import sys
from pathlib import Path

from hermetic.cli.audit.formats import FORMS, rendered
from tests.audit_reports import a_failing_report, a_hostile_report, pages

FOLDER = Path(__file__).resolve().parent / "audit"
REPORTS = {"failing": a_failing_report(), "hostile": a_hostile_report()}
ENDINGS = {
    "table": "txt",
    "json": "json",
    "sarif": "sarif",
    "junit": "xml",
    "openreports": "openreports.json",
    "html": "html",
    "oscal": "oscal.json",
    "csv": "csv",
}
# all formats of the report that users will meet; of the other one those that a person or a browser reads
KEPT = (
    *(("failing", name) for name in FORMS),
    ("hostile", "table"),
    ("hostile", "html"),
    ("hostile", "junit"),
    ("hostile", "csv"),
)


def text_of(report: str, name: str) -> str:
    return rendered(name, REPORTS[report], pages())


def file_of(report: str, name: str) -> Path:
    return FOLDER / f"{report}.{ENDINGS[name]}"


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    for report, name in KEPT:
        file_of(report, name).write_text(text_of(report, name), encoding="utf-8", newline="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
