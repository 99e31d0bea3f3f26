"""Write the golden files anew, for a reviewer to read the difference.

    python -m tests.golden.update                        what is rendered, also for a benchmark, and what is planned
    python -m tests.golden.update --restart-every-pod    the digests of all pod templates as well

The digest of a new shape is added by both. Another digest of a shape means that an upgrade of the operator replaces
every pod of every user: never in passing.
"""

from __future__ import annotations

import sys

import yaml

from tests.golden import benchmarks, planned
from tests.golden.scenarios import SCENARIOS, TEMPLATES, as_text, file_of, template_digests

RESTART = "--restart-every-pod"


def main(arguments: list[str]) -> int:
    if unknown := [word for word in arguments if word != RESTART]:
        sys.stderr.write(f"unknown: {' '.join(unknown)}\n\n{__doc__}")
        return 2
    for name, manifest in SCENARIOS.items():
        file_of(name).write_text(as_text(manifest))
    for name in planned.PLANS:
        planned.file_of(name).write_text(planned.printed(name), "utf-8")
    for name in benchmarks.SHAPES:
        benchmarks.file_of(name).write_text(benchmarks.as_text(name))
    agreed = {} if RESTART in arguments else yaml.safe_load(TEMPLATES.read_text())
    digests = {name: agreed.get(name, digest) for name, digest in template_digests().items()}
    TEMPLATES.write_text(yaml.safe_dump(digests, sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
