"""Runs with the validators' own Python: validates two files, prints what is wrong, and nothing where nothing is.

python validating.py SPDX_FILE CYCLONEDX_FILE
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(spdx_file: str, cyclonedx_file: str) -> None:
    """Prints one line for each thing that is wrong."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator
    from spdx_tools.spdx.parser.parse_anything import parse_file
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

    for message in validate_full_spdx_document(parse_file(spdx_file)):
        print(f"SPDX: {message.validation_message}")
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(Path(cyclonedx_file).read_text(encoding="utf-8"))
    if problem is not None:
        print("CycloneDX:", *str(problem.data).split())


if __name__ == "__main__":
    main(*sys.argv[1:])
