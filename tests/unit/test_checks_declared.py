"""How a check is declared: one name for its page, its function and its id; and the check of a single property."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from hermetic.audit.checks import disks, outbound
from hermetic.audit.checks.disks import export, sharing
from hermetic.audit.checks.family import check, family
from hermetic.audit.checks.properties import Fact, PropertyIs
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup
from hermetic.audit.evaluation.results import CheckResult
from hermetic.audit.model.findings import Verdict
from hermetic.audit.model.hops import INTERNET, path_of
from hermetic.audit.policy.declarations import Policy

PACKAGE = disks.__name__
SEEN: Lookup[ModuleType] = Lookup("/cluster", None, (), None)


def disk_export(_estate: Estate, _policy: Policy) -> Iterator[CheckResult]:
    """A function of the name that the check has."""
    yield from ()


def test_a_function_is_called_as_its_check_is() -> None:
    with pytest.raises(ValueError, match="the function of disk-link is called disk_export"):
        check("disk-link")(disk_export)
    assert check("disk-export")(disk_export).id == "disk-export"


def test_a_page_without_a_function_stops_the_import() -> None:
    with pytest.raises(ValueError, match=r"disk-export, disk-shared: no @check in the modules that __init__\.py names"):
        family(PACKAGE, ModuleType("empty"))


def test_a_function_without_a_page_stops_the_import() -> None:
    module = ModuleType(__name__)
    module.declared = check("disk-export")(disk_export)  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"disk-export: no page in checks\.toml"):
        family(outbound.__name__, module)


def test_a_page_with_an_unknown_control_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "family_of_one"
    package.mkdir()
    (package / "__init__.py").touch()
    page = """
        family = "One"
        [[check]]
        id = "disk-export"
        title = ""
        severity = "low"
        controls = {nist = ["AC-99"]}
        why = ""
        reads = []
        remedy = ""
        source = ""
    """
    (package / "checks.toml").write_text(page, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=r"disk-export: nist has no control AC-99 in the lists of hermetic"):
        family("family_of_one", export)


def test_a_function_counts_where_it_is_written_and_not_where_it_is_imported() -> None:
    importing = ModuleType("importing")
    importing.imported = export.disk_export  # type: ignore[attr-defined]
    assert [declared_check.page.id for declared_check in family(PACKAGE, export, sharing, importing)] == [
        "disk-export",
        "disk-shared",
    ]


def test_a_check_that_is_declared_twice_stops_the_import() -> None:
    with pytest.raises(ValueError, match="declared twice"):
        family(PACKAGE, export, export, sharing)


MODE = PropertyIs(
    "mode", "Off", absent_means="On", fine=("IsOff", ""), wrong=("IsOn", ""), paths=(path_of("a", INTERNET),)
)
FLAG = PropertyIs("flag", required=True, absent_means=False, fine=("Set", ""), wrong=("Unset", "not set"))


@pytest.mark.parametrize(
    ("rule", "fact", "verdict", "reason", "message"),
    [
        (MODE, "Off", Verdict.PASS, "IsOff", "mode is Off"),
        (MODE, "oFF", Verdict.PASS, "IsOff", "mode is oFF"),
        (MODE, "on", Verdict.FAIL, "IsOn", "mode is on"),
        (MODE, None, Verdict.FAIL, "IsOn", "mode is absent, which means On"),
        (MODE, "", Verdict.FAIL, "IsOn", "mode is absent, which means On"),
        (MODE, "Sometimes", Verdict.UNKNOWN, "ValueUnknown", "mode 'Sometimes' is not known"),
        (MODE, "Off ", Verdict.UNKNOWN, "ValueUnknown", "mode 'Off ' is not known"),
        (FLAG, True, Verdict.PASS, "Set", "flag is true"),
        (FLAG, False, Verdict.FAIL, "Unset", "not set"),
        (FLAG, None, Verdict.FAIL, "Unset", "not set"),
    ],
)
def test_a_property_is_what_is_wanted_or_not_or_not_known(
    rule: PropertyIs, fact: Fact, verdict: Verdict, reason: str, message: str
) -> None:
    judged = rule.result("/cluster", SEEN, fact)
    assert (judged.verdict, judged.reason, judged.message) == (verdict, reason, message)
    assert judged.paths == (rule.paths if verdict is Verdict.FAIL else ())
