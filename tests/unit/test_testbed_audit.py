"""The audit log is read as far as it is whole, from where the reader left off."""

from __future__ import annotations

import json
from pathlib import Path

from testbed import audit
from tests.sampled_groups import TEST_BED

pytestmark = TEST_BED


def line(verb: str, user: str = "operator", **target: str) -> str:
    return json.dumps({
        "verb": verb,
        "requestURI": "/readyz",
        "user": {"username": user},
        "objectRef": target or None,
        "responseStatus": {"code": 200},
        "userAgent": "tests",
    }) + "\n"  # fmt: skip


def test_requests_after_an_offset_are_read_and_an_unfinished_line_is_left(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(line("create", resource="pods", namespace="team", name="model"))
    offset = log.stat().st_size
    with log.open("a") as more:
        more.write(line("patch", resource="deployments", subresource="status", namespace="team", name="model"))
        more.write(line("get"))
        more.write('{"verb": "unfin')

    requests = list(audit.requests(log, offset))

    assert [(request.verb, request.resource, request.is_write) for request in requests] == [
        ("patch", "deployments/status", True),
        ("get", "/readyz", False),
    ]


def test_an_offset_in_the_middle_of_a_line_is_after_that_line(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    full_line = line("create", resource="pods")
    log.write_text(full_line[:40])
    offset = log.stat().st_size
    log.write_text(full_line + line("patch", resource="deployments"))

    assert [request.verb for request in audit.requests(log, offset)] == ["patch"]


def test_policy_names_users_or_applies_to_all(tmp_path: Path) -> None:
    some = json.loads(audit.write_policy(tmp_path / "some", ("operator",)).read_text())
    everybody = json.loads(audit.write_policy(tmp_path / "all", ()).read_text())

    assert [rule.get("users") for rule in some["rules"]] == [["operator"], None]
    assert some["rules"][-1]["level"] == "None"
    assert [rule["level"] for rule in everybody["rules"]] == ["Metadata"]
