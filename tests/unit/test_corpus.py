"""`hermetic validate` accepts and refuses what the corpus says, naming field, value and what is accepted.

tests/controlplane/test_corpus.py holds the real API server against the same corpus. Rows of the bad-input catalogue
and the cases that cover them: tests/corpus/catalogue.py and the `rows` of tests/corpus/invalid.py.
"""

from __future__ import annotations

import pytest

from tests.corpus.cases import Invalid
from tests.corpus.catalogue import ROWS
from tests.corpus.invalid import INVALID
from tests.corpus.manifests import Manifest
from tests.corpus.updates import FORBIDDEN_UPDATES
from tests.corpus.valid import VALID
from tests.corpus.verdicts import verdict_of_pydantic
from tests.corpus.yaml_traps import TRAPS


@pytest.mark.parametrize("manifest", [manifest for _, manifest in VALID], ids=[name for name, _ in VALID])
def test_valid_manifests_are_accepted(manifest: Manifest) -> None:
    assert verdict_of_pydantic(manifest) == ()


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case.name)
def test_invalid_manifests_are_refused_by_field_value_and_what_is_accepted(case: Invalid) -> None:
    problems = verdict_of_pydantic(case.manifest)
    blamed = [problem for problem in problems if problem.path == case.path and case.says in problem.message]
    assert blamed, [str(problem) for problem in problems]
    if case.value is not None:
        assert case.value in blamed[0].value


def test_names_of_cases_are_distinct() -> None:
    names = [name for name, _ in VALID] + [case.name for case in INVALID]
    assert len(names) == len(set(names))


def test_every_row_of_the_catalogue_has_a_case() -> None:
    covered = {row for case in INVALID for row in case.rows}
    covered |= {row for update in FORBIDDEN_UPDATES for row in update.rows}
    covered |= {45 for _ in TRAPS}
    assert covered == ROWS.keys()
