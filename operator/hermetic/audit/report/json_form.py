"""The JSON report in the form of the contract: what scripts read and what an attestation signs.

The fields of the contract are always present, in its order. `exception` is only in an Excepted finding, `notes` only
where there are any, `baseline` only where one was named: a script that knows the contract alone gets every verdict and
count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from hermetic.api.times import timestamp
from hermetic.audit.model.findings import CheckPage, Evidence, Finding, Parts, by_check
from hermetic.audit.report.causes import Cause, causes_of
from hermetic.audit.result.comparison import SCHEMA
from hermetic.audit.result.comparison import shown as compared
from hermetic.audit.result.open_since import listed
from hermetic.audit.result.report import Report

if TYPE_CHECKING:
    from hermetic.audit.policy.exceptions import Term
    from hermetic.audit.result.coverage import Coverage
    from hermetic.audit.result.private_subnets import PrivateSubnet

TOKENS_A_PIECE = 20_000


def as_json(report: Report, pages: Mapping[str, CheckPage]) -> str:
    """UTF-8 safe text ending in a newline; equal reports give equal bytes, whatever order their findings came in."""
    return "".join(pieces(report, pages))


def pieces(report: Report, pages: Mapping[str, CheckPage]) -> Iterator[str]:
    """The same text in pieces: as one string, the report of a large cluster takes as much memory as its audit."""
    tokens = json.JSONEncoder(indent=2).iterencode(document(report, pages))
    while piece := "".join(islice(tokens, TOKENS_A_PIECE)):
        yield piece
    yield "\n"


def digest(report: Report, pages: Mapping[str, CheckPage]) -> str:
    """SHA-256 of the JSON report in hexadecimal: other formats include it, so that they can be matched with it."""
    sha256 = hashlib.sha256()
    for piece in pieces(report, pages):
        sha256.update(piece.encode())
    return sha256.hexdigest()


def document(report: Report, pages: Mapping[str, CheckPage]) -> dict[str, Any]:
    """The report as a dict with the structure of the JSON."""
    shown: dict[str, Any] = {
        "schema": SCHEMA,
        "cluster": report.cluster,
        "sources": list(report.sources),
        "profile": report.profile,
        "startedAt": timestamp(report.started_at),
        "finishedAt": timestamp(report.finished_at),
        "verdict": report.verdict.value,
        "notAsked": {source: sorted(checks) for source, checks in sorted(report.not_asked.items())},
        "summary": {verdict.value: count for verdict, count in report.summary.items()},
        "findings": _findings(report),
    }
    if (run := report.run) is not None:
        shown["run"] = {"by": run.by, "policy": run.policy, "exceptions": run.exceptions}
    if causes := causes_of(report.findings, pages):
        shown["causes"] = [_cause(cause, causes) for cause in causes]
    if report.ended_exceptions:
        shown["endedExceptions"] = [_ended(ended_exception) for ended_exception in report.ended_exceptions]
    if report.private_subnets:
        shown["privateSubnets"] = [_private(private_subnet) for private_subnet in report.private_subnets]
    if (ownership := report.ownership) is not None:
        shown["subscription"] = {"id": ownership.subscription, "name": ownership.subscription_name}
        shown["tenant"] = {"id": ownership.tenant, "name": ownership.tenant_name}
    if report.openings:
        shown["openSince"] = listed(report.openings, by_check(report.findings))
    if report.coverage is not None:
        shown["coverage"] = _coverage(report.coverage)
    if report.comparison is not None:
        shown["baseline"] = compared(report.comparison)
    return shown | ({"notes": list(report.notes)} if report.notes else {})


def _cause(cause: Cause, causes: tuple[Cause, ...]) -> dict[str, Any]:
    return {
        "id": cause.id,
        "title": cause.title,
        "verdict": cause.worst.verdict.value,
        "severity": cause.worst.severity.value,
        "settles": [{"check": finding.check, "resource": finding.resource} for finding in cause.findings],
        "derived": [{"check": finding.check, "resource": finding.resource} for finding in cause.derived],
        "awaits": [causes[number - 1].id for number in cause.awaits],
    }


def _findings(report: Report) -> list[dict[str, Any]]:
    """The findings as dicts; an exchange that many findings rest on is one shared object, which saves memory."""
    exchanges: dict[Evidence, dict[str, Any]] = {}

    def shown(evidence: Evidence) -> dict[str, Any]:
        if evidence not in exchanges:
            exchanges[evidence] = _evidence(evidence)
        return exchanges[evidence]

    return [_finding(finding, shown) for finding in by_check(report.findings)]


def _finding(finding: Finding, exchange: Callable[[Evidence], dict[str, Any]]) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "check": finding.check,
        "verdict": finding.verdict.value,
        "severity": finding.severity.value,
        "resource": finding.resource,
        "reason": finding.reason,
        "message": finding.message,
        "remedy": finding.remedy,
        "paths": list(finding.path_texts),
        "evidence": [exchange(evidence) for evidence in finding.evidence],
    }
    if finding.masked:
        shown["masked"] = True
    if (parts := finding.derived_from) is not None:
        shown["derivedFrom"] = _parts(parts)
    if (accepted := finding.exception) is None:
        return shown
    text = {"reason": accepted.reason, "owner": accepted.owner, "expiry": accepted.expiry}
    return shown | {"exception": text | {"accepted": accepted.accepted.value}}


def _ended(term: Term) -> dict[str, str]:
    return {"check": term.check, "resource": term.resource, "owner": term.owner, "expiry": term.expiry}


def _private(private_subnet: PrivateSubnet) -> dict[str, Any]:
    shown = {
        "subnet": private_subnet.subnet,
        "since": timestamp(_up(private_subnet.since)),
        "basis": private_subnet.basis.value,
    }
    if private_subnet.stated_since is not None:
        shown |= {"statedSince": timestamp(_up(private_subnet.stated_since)), "statedBy": private_subnet.stated_by}
    return shown


def _coverage(coverage: Coverage) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "pools": [
            {
                "name": pool.name,
                "subnets": list(pool.subnets),
                "scaleSets": list(pool.scale_sets),
                "nodeImage": pool.node_image,
            }
            for pool in coverage.pools
        ],
        "subnets": [{"id": subnet.id, "prefixes": list(subnet.prefixes)} for subnet in coverage.subnets],
    }
    return shown | ({"provisionedSubnets": list(coverage.provisioned)} if coverage.provisioned else {})


def _up(moment: datetime) -> datetime:
    """Round up to the next whole second: rounded down, it would be before the moment was known."""
    return moment if moment.microsecond == 0 else moment.replace(microsecond=0) + timedelta(seconds=1)


def _parts(parts: Parts) -> dict[str, Any]:
    return {
        "checks": list(parts.checks),
        "resources": list(parts.resources),
        "failReason": parts.fail_reason,
        "unknownReason": parts.unknown_reason,
        "worst": parts.worst.value,
    }


def _evidence(evidence: Evidence) -> dict[str, Any]:
    shown: dict[str, Any] = {"request": evidence.request, "status": evidence.status, "sha256": evidence.sha256}
    return shown | ({"value": evidence.value} if evidence.value else {})
