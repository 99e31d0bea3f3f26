"""The dry run of the CRDs by `hermetic check`: what is asked, and what each answer of an API server decides."""

from __future__ import annotations

import pytest

from hermetic.api.crd import DEFINITIONS, crd
from hermetic.cli.check.collecting import _dry_run
from hermetic.cli.check.facts import DryRun
from hermetic.errors import Unreachable
from tests.fakes.local_api_server import client_of, serving, status_body

MANIFEST = crd(DEFINITIONS[0])
NAME = DEFINITIONS[0].name
# Answers of Kubernetes 1.31 (cost budget), of its authorizer, and of one that calls a webhook without dry run.
REFUSED = f'CustomResourceDefinition "{NAME}" is invalid: estimated rule cost exceeds budget by factor of 100x'
DENIED = 'admission webhook "y" denied the request'
NO_DRY_RUN = 'admission webhook "x.example" does not support dry run'


@pytest.mark.parametrize(
    ("code", "reason", "message", "expected"),
    [
        (422, "Invalid", REFUSED, DryRun(NAME, refusal=REFUSED)),
        (403, "Forbidden", "cannot patch resource", DryRun(NAME, problem="cannot patch resource")),
        (400, "BadRequest", NO_DRY_RUN, DryRun(NAME, problem=NO_DRY_RUN)),
        (400, "", DENIED, DryRun(NAME, problem=DENIED)),
        (500, "InternalError", "etcd is away", DryRun(NAME, problem="etcd is away")),
    ],
)  # fmt: skip
async def test_only_a_refusal_of_the_object_itself_is_one(
    code: int, reason: str, message: str, expected: DryRun
) -> None:
    async with serving() as server, client_of(server) as api:
        server.answers = [status_body(code, reason, message)]
        assert await _dry_run(api, MANIFEST) == expected


async def test_nothing_is_stored_and_the_whole_crd_is_asked_about() -> None:
    async with serving() as server, client_of(server) as api:
        server.otherwise = None
        server.answers = [status_body(200)]
        assert await _dry_run(api, MANIFEST) == DryRun(NAME)
    [request] = server.seen
    assert (request.method, request.path) == (
        "PATCH",
        f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{NAME}",
    )
    assert (request.query["dryRun"], request.query["fieldValidation"]) == ("All", "Strict")
    assert request.body == MANIFEST


async def test_an_api_server_that_is_not_reached_ends_the_check() -> None:
    async with serving() as server:
        pass
    async with client_of(server) as api:
        with pytest.raises(Unreachable):
            await _dry_run(api, MANIFEST)
