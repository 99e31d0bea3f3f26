"""Every name that a release of vLLM knows has been judged, and only what was allowed goes through."""

from __future__ import annotations

import pytest

from hermetic.api.reserved_flags import ENVIRONMENT, RESERVED_ENDINGS, VLLM_FLAGS, reserved_variable
from hermetic.engines.allow_list import WHY, flags_of, variables_of
from hermetic.engines.vllm_tables import supported_minors, table_for

TABLES = [table_for(minor) for minor in supported_minors()]
by_version = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.version)
LISTS = [flags_of("vllm"), flags_of("sglang"), *(variables_of(name) for name in ("vllm", "common", "nim"))]


@by_version
def test_every_flag_of_a_release_is_judged_exactly_once(table):
    listed = flags_of("vllm")
    judged = [listed.allowed, frozenset(listed.refused), frozenset(VLLM_FLAGS)]
    for flag in table.flags:
        assert sum(flag in names for names in judged) == 1, f"{flag} of vLLM {table.version}: judge it in vllm.toml"


@by_version
def test_every_variable_of_a_release_is_judged_exactly_once(table):
    listed = variables_of("vllm")
    for name in table.environment:
        judged = [name in listed.allowed, name in listed.refused, reserved_variable(name)]
        assert sum(judged) == 1, f"{name} of vLLM {table.version}: judge it in vllm.toml"


def test_no_list_names_what_no_release_knows():
    known = {flag for table in TABLES for flag in table.flags}
    variables = {name for table in TABLES for name in table.environment}
    assert flags_of("vllm").allowed | flags_of("vllm").refused.keys() <= known
    assert variables_of("vllm").allowed | variables_of("vllm").refused.keys() <= variables


@pytest.mark.parametrize("listed", LISTS)
def test_a_list_allows_nothing_that_is_reserved_or_refused(listed):
    reserved = set(VLLM_FLAGS) | set(ENVIRONMENT)
    assert not listed.allowed & reserved
    assert not [name for name in listed.allowed if name.upper().endswith(RESERVED_ENDINGS)]
    assert not listed.allowed & listed.refused.keys()
    assert set(listed.refused.values()) <= set(WHY)


@pytest.mark.parametrize("listed", LISTS)
def test_what_is_said_about_values_is_about_allowed_names(listed):
    named = {name.partition(".")[0] for said in (listed.paths, listed.values, listed.keys) for name in said}
    assert named <= listed.allowed
    assert set(listed.paths.values()) <= {"image", "data", "model", "scratch", "url", "prefix"}
