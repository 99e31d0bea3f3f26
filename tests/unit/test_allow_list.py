"""Every name that a release of vLLM knows has been judged, and only what was allowed goes through."""

from __future__ import annotations

import pytest

from hermetic.api.reserved_flags import ENVIRONMENT, RESERVED_ENDINGS, VLLM_FLAGS, reserved_variable
from hermetic.engines import nim, vllm
from hermetic.engines.allow_list import COMMON, WHY
from hermetic.engines.vllm.tables import TABLES

EVERY = [TABLES.table_for(minor) for minor in TABLES.supported]
by_version = pytest.mark.parametrize("table", EVERY, ids=lambda table: table.version)
LISTS = [
    vllm.ALLOWED.flags,
    nim.SGLANG_INSIDE.flags,
    vllm.ALLOWED.variables,
    COMMON.variables,
    nim.ALLOWED.variables,
]


@by_version
def test_every_flag_of_a_release_is_reviewed_exactly_once(table):
    listed = vllm.ALLOWED.flags
    judged = [listed.allowed, frozenset(listed.refused), frozenset(VLLM_FLAGS)]
    for flag in table.flags:
        assert sum(flag in names for names in judged) == 1, (
            f"{flag} of vLLM {table.version}: judge it in allow_list.toml"
        )


@by_version
def test_every_variable_of_a_release_is_reviewed_exactly_once(table):
    listed = vllm.ALLOWED.variables
    for name in table.environment:
        judged = [name in listed.allowed, name in listed.refused, reserved_variable(name)]
        assert sum(judged) == 1, f"{name} of vLLM {table.version}: judge it in allow_list.toml"


def test_no_list_names_what_no_release_knows():
    known_flags = {flag for table in EVERY for flag in table.flags}
    variables = {name for table in EVERY for name in table.environment}
    assert vllm.ALLOWED.flags.allowed | vllm.ALLOWED.flags.refused.keys() <= known_flags
    assert vllm.ALLOWED.variables.allowed | vllm.ALLOWED.variables.refused.keys() <= variables


@pytest.mark.parametrize("listed", LISTS)
def test_a_list_allows_nothing_that_is_reserved_or_refused(listed):
    reserved = set(VLLM_FLAGS) | set(ENVIRONMENT)
    assert not listed.allowed & reserved
    assert not [name for name in listed.allowed if name.upper().endswith(RESERVED_ENDINGS)]
    assert not listed.allowed & listed.refused.keys()
    assert set(listed.refused.values()) <= set(WHY)


@pytest.mark.parametrize("listed", LISTS)
def test_what_is_said_about_values_is_about_allowed_names(listed):
    named = {
        name.partition(".")[0]
        for names in (listed.paths, listed.values, listed.keys, listed.keywords)
        for name in names
    }
    assert named <= listed.allowed
    assert set(listed.paths.values()) <= {"image", "data", "model", "adapter", "scratch", "url", "prefix", "overrides"}
