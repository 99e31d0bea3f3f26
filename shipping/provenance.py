"""Provenance of a build, as an in-toto statement with the predicate SLSA v1.

https://slsa.dev/spec/v1.0/provenance. It has no time of the build and no number of a run: two builds of one commit give
the same statement. The level is SLSA Build L1: the builder itself signs it. Repeating the build and comparing the bytes
is the stronger proof (docs/supply-chain.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from hermetic.audit.attestation.statement import STATEMENT_TYPE
from shipping.components import Component
from shipping.revision import CHANGED, Revision, builder

PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "https://hermetic.dev/build/make/v1"
BUILDER = "https://hermetic.dev/builder/local"
"""The owner of the machine that runs `make bundle` or `make release`: the signature names the owner of the key."""


def provenance(
    subjects: Mapping[str, str],
    target: str,
    revision: Revision,
    components: Iterable[Component],
    locks: Mapping[str, str],
) -> dict[str, Any]:
    """The statement about subjects (SHA-256 by name) that `make TARGET` wrote."""
    packages = [
        {"uri": component.url, "digest": {"sha256": component.sha256}} for component in components if component.sha256
    ]
    locked = [{"uri": f"file:{name}", "digest": {"sha256": sha256}} for name, sha256 in locks.items()]
    commit = revision.commit.removesuffix(CHANGED)
    source = [{"uri": f"git+{revision.source}", "digest": {"gitCommit": commit}}] if commit else []
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": sha256}} for name, sha256 in subjects.items()],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"source": revision.source, "revision": revision.commit, "target": target},
                "internalParameters": builder(),
                "resolvedDependencies": [*source, *locked, *packages],
            },
            "runDetails": {"builder": {"id": BUILDER, "version": builder()}},
        },
    }


def is_commit(text: str) -> bool:
    """Whether the text names a commit that can be built again."""
    return bool(re.fullmatch("[0-9a-f]{40}", text))
