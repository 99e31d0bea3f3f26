"""A real API server and `hermetic validate` give every manifest the same verdict, and blame the same field.

The corpus of tests/unit/test_corpus.py once more, then random mutations of it. Every create is a dry run with
fieldValidation=Strict, which is what kubectl asks for; updates are made for real, in a namespace of their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from hermetic.api.modeldeployment import ModelDeployment
from testbed.kubectl import Kubectl, KubectlError
from tests.corpus.cases import Invalid
from tests.corpus.invalid import INVALID
from tests.corpus.manifests import Manifest
from tests.corpus.mutations import mutated
from tests.corpus.updates import ALLOWED_UPDATES, FORBIDDEN_UPDATES, Update
from tests.corpus.valid import VALID
from tests.corpus.verdicts import COLLECTION, Answer, Judge, verdict_of_pydantic
from tests.corpus.yaml_traps import TRAPS, Trap

SHOWS_VALUES = 35
"""The minor release of Kubernetes from which a refusal by a CEL rule names the value; before, it names the type."""
TYPE_SHOWN = re.compile(r'Invalid value: "(string|integer|number|boolean|object|array)?"')


@pytest.fixture(scope="module")
def judge(cluster: Path) -> Iterator[Judge]:
    with Judge(cluster) as server:
        server.install_crds()
        yield server


@pytest.mark.parametrize("manifest", [manifest for _, manifest in VALID], ids=[name for name, _ in VALID])
def test_valid_manifests_are_accepted_without_warnings(judge: Judge, manifest: Manifest) -> None:
    answer = judge.create(manifest)
    assert answer.accepted, answer.message
    # The policies that warn of what the operator would refuse: tests/controlplane/test_model_warnings.py.
    assert [warning for warning in answer.warnings if "hermetic-model-" not in warning] == []


@pytest.mark.parametrize("manifest", [manifest for _, manifest in VALID], ids=[name for name, _ in VALID])
def test_what_the_server_keeps_means_what_was_typed(judge: Judge, manifest: Manifest) -> None:
    live = judge.create(manifest).body
    typed = ModelDeployment.model_validate(manifest)
    assert ModelDeployment.model_validate(live).spec == typed.spec
    dumped = typed.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert _without_empty(json.loads(json.dumps(live["spec"]), parse_int=str)) == _without_empty(
        json.loads(json.dumps(dumped), parse_int=str)
    )


def _without_empty(value: object) -> object:
    """The API server keeps an empty list that was typed and adds none: both mean the same."""
    if isinstance(value, dict):
        reduced = {key: _without_empty(item) for key, item in value.items()}
        return {key: item for key, item in reduced.items() if item not in ([], {})}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case.name)
def test_invalid_manifests_are_refused_by_field_value_and_what_is_accepted(judge: Judge, case: Invalid) -> None:
    answer = judge.create(case.manifest)
    assert answer.status in {400, 422}, answer.message
    messages = answer.messages_about(case.path)
    assert case.words_of_the_server in messages, answer.message
    if case.value is not None and not (judge.minor_version < SHOWS_VALUES and TYPE_SHOWN.search(messages)):
        assert case.value in messages


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_yaml_that_means_something_else_is_refused_by_both(judge: Judge, kubectl: Kubectl, trap: Trap) -> None:
    problems = verdict_of_pydantic(yaml.safe_load(trap.text))
    assert any(problem.path == trap.path and trap.says in problem.message for problem in problems), problems
    assert judge
    with pytest.raises(KubectlError) as refused:
        kubectl("create", "--dry-run=server", "--filename=-", stdin=trap.text)
    assert trap.server_says in str(refused.value)


def test_a_manifest_beyond_every_limit_is_refused_before_it_is_read(judge: Judge) -> None:
    manifest = {**VALID[0][1], "metadata": {"name": "huge", "annotations": {"a": "x" * 4_000_000}}}
    answer = judge.create(manifest)
    assert answer.status in {413, 422}
    assert "too large" in answer.message.lower() or "Too long" in answer.message


@pytest.mark.parametrize("update", FORBIDDEN_UPDATES, ids=lambda update: update.name)
def test_what_cannot_change_is_refused_with_old_and_new_value(judge: Judge, namespace: str, update: Update) -> None:
    answer = _updated(judge, namespace, update)
    assert answer.status == 422
    assert update.says in answer.messages_about(update.path), answer.message


@pytest.mark.parametrize("update", ALLOWED_UPDATES, ids=lambda update: update.name)
def test_everything_else_can_change(judge: Judge, namespace: str, update: Update) -> None:
    answer = _updated(judge, namespace, update)
    assert answer.accepted, answer.message


def _updated(judge: Judge, namespace: str, update: Update) -> Answer:
    collection = COLLECTION.replace("/default/", f"/{namespace}/")
    created = judge.ask("POST", collection, update.before)
    assert created.accepted, created.message
    version = created.body["metadata"]["resourceVersion"]
    after = {**update.after, "metadata": {**update.after["metadata"], "resourceVersion": version}}
    return judge.ask("PUT", f"{collection}/{after['metadata']['name']}?dryRun=All", after)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
@given(manifest=mutated())
def test_both_judges_agree_on_mutations(judge: Judge, manifest: Manifest) -> None:
    answer = judge.create(manifest)
    problems = verdict_of_pydantic(manifest)
    assert answer.accepted == (not problems), (
        f"server: {answer.message or 'accepted'}\npydantic: {problems or 'accepted'}"
    )
