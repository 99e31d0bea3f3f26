"""`hermetic explain` has a page for everything that Hermetic calls by a name, and docs/ says the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from hermetic import errors
from hermetic.api.condition_updates import STATUS_REASONS, StatusReason
from hermetic.api.conditions import ConditionType
from hermetic.api.configuration import Configuration
from hermetic.api.kubernetes_yaml import dump
from hermetic.api.pod_reasons import PodReason
from hermetic.api.reserved_flags import ENVIRONMENT, VLLM_FLAGS
from hermetic.audit.checks.registry import CHECKS, PAGES
from hermetic.audit.evaluation.check_findings import Check
from hermetic.audit.remedies.steps import steps_of
from hermetic.cli.exit_codes import exit_code
from tests.commandline import hermetic
from tools.checks_reference import checks_markdown
from tools.cli_reference import EXAMPLE, GENERATED, configuration_markdown, reasons_markdown
from tools.troubleshooting import NOTHING, SYMPTOMS, troubleshooting_markdown

DOCS = Path(__file__).resolve().parents[2] / "docs"
ERRORS = [
    error_class
    for error_class in vars(errors).values()
    if isinstance(error_class, type) and issubclass(error_class, errors.HermeticError)
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_every_error_code_is_explained_with_a_remedy(error: type[errors.HermeticError]) -> None:
    ran = hermetic("explain", error.code)
    assert ran.code == 0
    assert ran.out.startswith(f"{error.code} (error)\n")
    assert error.remedy.split(";")[0].split(":")[0] in " ".join(ran.out.split())


def test_codes_of_errors_are_distinct_and_of_one_form() -> None:
    codes = [error.code for error in ERRORS]
    assert len(set(codes)) == len(codes)
    for code in codes:
        family, subject, number = code.split("-")
        assert (family, len(subject), len(number)) == ("HRM", 3, 3)


@pytest.mark.parametrize("reason", STATUS_REASONS, ids=lambda reason: reason.value)
def test_every_reason_is_explained_with_meaning_and_remedy(reason: StatusReason) -> None:
    message = " ".join(hermetic("explain", reason.value).out.split())
    assert reason.meaning in message
    assert reason.remedy in message


@pytest.mark.parametrize("condition", list(ConditionType), ids=lambda condition: condition.value)
def test_every_condition_is_explained(condition: ConditionType) -> None:
    assert condition.meaning in " ".join(hermetic("explain", condition.value).out.split())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.page.id)
def test_every_check_is_explained_with_why_reads_remedy_and_source(check: Check) -> None:
    page, ran = check.page, hermetic("explain", check.page.id)
    assert ran.out.startswith(f"{page.id} (check)\n")
    message = " ".join(ran.out.split())
    for text in (page.title, page.why, *page.reads, page.remedy, page.source, page.severity.value, *check.needs):
        assert " ".join(text.split()) in message


def test_commands_of_a_remedy_are_never_wrapped() -> None:
    for page in PAGES.values():
        lines = [line.strip() for line in hermetic("explain", page.id).out.splitlines()]
        commands = [command for step in steps_of(page.remedy) for command in step.commands]
        assert [command for command in commands if command not in lines] == []


def test_the_page_of_invalid_manifests_lists_every_reserved_name_with_its_cause() -> None:
    message = " ".join(hermetic("explain", "HRM-API-001").out.split())
    for reserved in (VLLM_FLAGS, ENVIRONMENT):
        for name, cause in reserved.items():
            assert name in message
            assert cause in message


@pytest.mark.parametrize(
    ("typed", "page"),
    [
        ("isolationevidencestale", "IsolationEvidenceStale (reason)"),
        ("hrm-api-001", "HRM-API-001 (error)"),
        ("ready", "Ready (condition)"),
        ("--trust-remote-code", "--trust-remote-code (reserved flag)"),
        ("--trust_remote_code=true", "--trust-remote-code (reserved flag)"),
        ("--trust-rem", "--trust-remote-code (reserved flag)"),
        ("-tp", "--tensor-parallel-size (reserved flag)"),
        ("HF_TOKEN", "HF_TOKEN (reserved variable)"),
        ("Subnet-NAT-Gateway", "subnet-nat-gateway (check)"),
    ],
)
def test_names_are_found_however_they_are_typed(typed: str, page: str) -> None:
    assert hermetic("explain", typed).out.splitlines()[0] == page


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("IsolationStale", "IsolationEvidenceStale"),
        ("HRM-API-009", "HRM-API-001"),
        ("subnet-nat-gatway", "subnet-nat-gateway"),
    ],
)
def test_what_nothing_is_called_is_bad_input_and_something_close_is_offered(typed: str, meant: str) -> None:
    ran = hermetic("explain", typed)
    assert (ran.code, ran.out) == (2, "")
    assert f"nothing is called '{typed}'; did you mean" in ran.err
    assert meant in ran.err


def test_what_is_like_nothing_gets_no_offer() -> None:
    assert hermetic("explain", "xyzzy").errors == ["error: HRM-INP-001: nothing is called 'xyzzy'"]


def test_without_a_name_everything_is_listed() -> None:
    listed = hermetic("explain").out
    names = [*(error.code for error in ERRORS), *STATUS_REASONS, *ConditionType, *VLLM_FLAGS, *ENVIRONMENT, *PAGES]
    assert [name for name in names if f"\n  {name} " not in listed] == []


def test_json_holds_the_same_pages() -> None:
    page = json.loads(hermetic("explain", "CrashLoop", "-o", "json").out)
    assert (page["schema"], page["name"], page["sort"]) == ("hermetic.dev/explanation/v1", "CrashLoop", "reason")
    assert page["meaning"] == PodReason.CRASH_LOOP.meaning
    listed = json.loads(hermetic("explain", "-o", "json").out)["pages"]
    assert {entry["name"] for entry in listed} >= {
        "CrashLoop",
        "HRM-API-001",
        "Ready",
        "HF_TOKEN",
        "subnet-nat-gateway",
    }


def test_a_refusal_never_looks_like_a_verdict() -> None:
    assert exit_code(errors.Forbidden("no", status=403)) == 4
    assert exit_code(errors.ManifestInvalid("no")) == 2


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("reasons.md", reasons_markdown),
        ("configuration.md", configuration_markdown),
        ("checks.md", lambda: GENERATED + checks_markdown()),
        ("troubleshooting.md", lambda: GENERATED + troubleshooting_markdown()),
    ],
)
def test_checked_in_pages_equal_the_code(file: str, text) -> None:
    assert (DOCS / file).read_text(encoding="utf-8") == text(), "run `make generate`"


def test_every_reason_that_asks_for_something_is_behind_exactly_one_symptom() -> None:
    explained_reasons = sorted(reason.value for symptom in SYMPTOMS for reason in symptom.reasons)
    assert explained_reasons == sorted(reason.value for reason in STATUS_REASONS if reason.remedy != NOTHING)


def test_the_example_of_the_configuration_is_one() -> None:
    Configuration.model_validate(yaml.safe_load(dump(EXAMPLE)))


def test_every_key_of_the_configuration_has_a_row() -> None:
    page = configuration_markdown()
    names = [field.alias for field in Configuration.model_fields.values()]
    assert [name for name in names if f"| `{name}` |" not in page] == []
