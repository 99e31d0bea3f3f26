"""`hermetic audit` of several clusters: they share one session, each has its reports, and one summary has all."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermetic.audit.checks.registry import PAGES
from hermetic.audit.cluster.members import cluster_of
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.report.json_form import as_json
from hermetic.audit.report.page import as_html
from hermetic.audit.result.comparison import compare
from hermetic.audit.result.report import Report
from hermetic.audit.summary.cluster_result import ClusterResult, StoredReport, read_result
from hermetic.audit.summary.forms import FORMS
from hermetic.audit.summary.summary import summary_of
from hermetic.cli.audit.files import (
    content_of,
    make_folder,
    must_be_earlier,
    read_earlier,
    read_exceptions,
    read_policy,
    run_of,
    write_file,
)
from hermetic.cli.audit.progress import ProgressLine
from hermetic.cli.audit.reporting import idle_exceptions, old_pins, report_of, with_openings
from hermetic.cli.audit.sources import Collected, collect_from
from hermetic.cli.audit.summaries import SUMMARY, write_summary
from hermetic.cli.exit_codes import OF_VERDICT
from hermetic.cli.running import run
from hermetic.cli.terminal import note
from hermetic.collect.azure.answering import cluster_id
from hermetic.collect.azure.clouds import PUBLIC
from hermetic.collect.azure.session import AzureSession, AzureSettings, client_opened
from hermetic.controller.clock import SystemClock
from hermetic.errors import InputError, Unreachable

if TYPE_CHECKING:
    from hermetic.audit.policy.declarations import Policy
    from hermetic.audit.policy.exceptions import Exceptions
    from hermetic.collect.collecting import Answerer

STANDARD_INPUT = "-"
LARGEST_LIST = 1 << 20
"""Bytes of a list of clusters that are read: more than ten thousand ids."""
NOT_FOR_SEVERAL = {
    "kube": "--kube",
    "probe": "--probe",
    "snapshot": "--snapshot",
    "save_snapshot": "--save-snapshot",
    "baseline": "--baseline",
    "out": "--out",
    "sign": "--sign",
    "check_access": "--check-access",
}


@dataclass(slots=True)
class SeveralAudits:
    """A run about several clusters. `sentences` are what the audits note, each with the number of audits that do."""

    policy: Policy
    exceptions: Exceptions
    options: dict[str, Any]
    results: list[ClusterResult] = field(default_factory=list)
    sentences: dict[str, int] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        folder: Path = self.options["reports"]
        return folder

    def add(self, collected: Collected) -> None:
        """Write the reports of one cluster, and keep its row of the summary. Raises InputError, Unreachable."""
        file = self.folder / f"{file_stem(collected.estate.cluster)}.json"
        report = replace(
            report_of(collected, self.policy, self.exceptions),
            run=run_of(self.options["policy"], self.options["exceptions"]),
        )
        if file.exists():
            baseline = read_earlier(file, report.cluster)
            report = with_openings(replace(report, comparison=compare(baseline, report)), [baseline])
        page, text = file.with_suffix(".html"), as_json(report, PAGES)
        write_file(page, as_html(report, PAGES))
        write_file(file, text)
        self._count_sentences(report)
        stored = StoredReport(text.encode(), file.name, page.name)
        self.results.append(read_result(stored, pages=PAGES, now=SystemClock().now(), max_age=timedelta.max))
        note(f"audit: {report.verdict.value}  {file}")

    def _count_sentences(self, report: Report) -> None:
        for sentence in {*report.notes, *idle_exceptions(self.exceptions, report), *old_pins(report)}:
            self.sentences[sentence] = self.sentences.get(sentence, 0) + 1


def audit_several(options: dict[str, Any]) -> int:
    """Audit each cluster, write its reports and the summary, and print the summary. The worst verdict decides."""
    clusters = clusters_in(options["azure"], options["clusters"])
    _must_fit_several(options)
    policy = read_policy(options["policy"], options["profile"]).with_hermetic_in(options["probe_namespace"])
    audits = SeveralAudits(policy, read_exceptions(options["exceptions"], PAGES), options)
    _must_be_comparable(audits.folder, clusters)
    run(_audit_each(audits, clusters))
    summary = summary_of(audits.results, SystemClock().now())
    write_summary(summary, options["output"] or "table", [audits.folder / f"{SUMMARY}.{form}" for form in FORMS[1:]])
    for sentence, count in audits.sentences.items():
        if count == len(clusters):  # an exception that one cluster does not need may be for another
            note(sentence)
    return OF_VERDICT[summary.verdict.value]


def clusters_in(typed: Sequence[str], file: str | None) -> tuple[str, ...]:
    """The ARM ids of --azure and of the file of --clusters, one a line. Raises InputError, Unreachable."""
    listed = _text_of(file).splitlines() if file is not None else []
    entries = [line.strip() for line in listed if line.strip() and not line.lstrip().startswith("#")]
    clusters = tuple(cluster_id(text) for text in (*typed, *entries))
    if not clusters:
        raise InputError(
            f"--clusters {file}: names no cluster", fix="write an ARM id a line; 'az aks list' prints them"
        )
    for position, cluster in enumerate(clusters):
        if cluster.lower() in {other.lower() for other in clusters[:position]}:
            raise InputError(f"{cluster} is named twice", fix="name each cluster once")
    return clusters


def file_stem(cluster: str) -> str:
    """The name of a cluster's report files: the same in every run, and no other cluster's."""
    digest = hashlib.sha256(cluster.lower().encode()).hexdigest()[:8]
    return f"{name_of(cluster)}-{digest}"


def _text_of(file: str) -> str:
    content = sys.stdin.buffer.read(LARGEST_LIST) if file == STANDARD_INPUT else content_of(Path(file))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"--clusters {file}: is not UTF-8: {error}", fix="write one ARM id a line") from error


def _must_fit_several(options: dict[str, Any]) -> None:
    """Raises InputError for options that are about one cluster, or without a folder for the reports."""
    for name, option in NOT_FOR_SEVERAL.items():
        if options[name]:
            raise InputError(
                f"{option} is for one cluster, and several are named",
                fix="name one cluster with --azure ID, without --clusters and --reports",
            )
    if options["output"] not in {None, *FORMS}:
        raise InputError(
            f"-o {options['output']}: a summary of several clusters cannot have this form",
            fix=f"use one of {', '.join(FORMS)}",
        )
    if options["reports"] is None:
        raise InputError("several clusters need a folder for their reports", fix="--reports FOLDER")
    make_folder(options["reports"])


def _must_be_comparable(folder: Path, clusters: Sequence[str]) -> None:
    """Read the reports of the last run before minutes of auditing. Raises InputError for what is no such report."""
    for cluster in clusters:
        file = folder / f"{file_stem(cluster)}.json"
        if file.exists():
            must_be_earlier(file, read_earlier(file, None), cluster)


async def _audit_each(audits: SeveralAudits, clusters: Sequence[str]) -> None:
    async for collected in _collected_each(audits, clusters):
        audits.add(collected)
        del collected  # before the next estate, which takes as much memory


async def _collected_each(audits: SeveralAudits, clusters: Sequence[str]) -> AsyncIterator[Collected]:
    """What Azure answers about each cluster. All begin with the run: an answer that they share may be so old."""
    options, clock = audits.options, SystemClock()
    settings = AzureSettings(
        clusters[0],
        arm_endpoint=options["arm_endpoint"] or PUBLIC,
        discovery=options["discovery"],
        retry_budget=options["retry_budget"],
    )
    started_at = clock.now().replace(microsecond=0)
    with ProgressLine() as progress:
        async with client_opened(settings, environment=os.environ, clock=clock, progress=progress) as client:
            session = AzureSession(client, settings.discovery)
            for cluster in clusters:
                await _must_be_readable(cluster, session.answerer(cluster))
            for number, cluster in enumerate(clusters, 1):
                progress.note(f"{number} of {len(clusters)}: {cluster}")
                answerer = session.answerer(cluster)
                yield await collect_from(cluster, {"azure": answerer}, audits.policy, progress, started_at)


async def _must_be_readable(cluster: str, azure: Answerer) -> None:
    """Read the cluster itself before any audit. Raises InputError if it does not exist, Unreachable without a token."""
    estate = Estate(cluster, ("azure",), {})
    cluster_of(estate)
    answers = await azure.answers(tuple(estate.wanted.values()))
    for answer in answers.values():
        if answer.problem is not None and answer.problem.reason is UnreadReason.UNAUTHENTICATED:
            raise Unreachable(
                f"{cluster}: Azure refuses the token: {answer.problem.detail}",
                fix="audit the clusters of one tenant in a run, and log in there: az login --tenant TENANT",
            )
