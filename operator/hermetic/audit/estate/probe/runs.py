"""One run of the probe in one pod, parsed once."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from pydantic import PrivateAttr

from hermetic.api.ip_ranges import is_address, is_public
from hermetic.audit.estate.arm_fields import MISSHAPEN
from hermetic.audit.estate.probe.dns import DnsReading, DnsReply, dns_reply
from hermetic.audit.estate.probe.readings import ProbeTarget, Reading, Reply, reply
from hermetic.audit.estate.questions import Body, Problem, Source, UnreadReason
from hermetic.audit.estate.resource import Resource

LARGEST_ANSWER = 65536


@dataclass(frozen=True, slots=True)
class NameReply:
    """A public name: the answer of the pod's resolver, and the result of a connection to the resolved address."""

    target: ProbeTarget
    resolved: DnsReply
    call: Reply | None


@dataclass(frozen=True, slots=True)
class RunMetadata:
    """A document of the instance metadata service: `status` 0 and `content` None when no answer came."""

    status: int = 0
    content: Any = None


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """All results of one pod. A field that is None was not readable there; an empty one was read, and is empty.

    `limit_seconds` is how long each step of an attempt waited.
    """

    limit_seconds: float = 0.0
    control_answered: bool = False
    replies: tuple[Reply, ...] = ()
    names: tuple[NameReply, ...] = ()
    dns: tuple[DnsReply, ...] = ()
    cluster_name: tuple[DnsReply, ...] = ()
    metadata: Mapping[str, RunMetadata] = field(default_factory=dict)
    v6_defaults: tuple[str, ...] | None = None
    v6_addresses: tuple[str, ...] | None = None
    nameservers: tuple[str, ...] | None = None

    def called(self, role: str) -> tuple[Reply, ...]:
        """Attempts at targets of this role: addresses, and public addresses of names.

        A name with a private address is that of a private endpoint: a connection to it is no egress path.
        """
        by_name = (name.call for name in self.names if name.call is not None and is_public(name.call.target.address))
        return tuple(attempt for attempt in (*self.replies, *by_name) if attempt.target.role == role)


class ProbeRun(Resource):
    """The run of a pod on `node` at `observed_at` (RFC 3339), as a sample of the machines of one pool in one subnet.

    `questions` and `answer` are the JSON input and output as text: a snapshot keeps both, and parsing them again gives
    the same. An answer that is cut, malformed, of another run, or of another shape is a problem: it passes nothing.
    """

    SOURCE: ClassVar[Source] = "probe"
    TYPE: ClassVar[str] = "hermetic.dev/proberuns"
    WRAPPED: ClassVar[bool] = False

    pool: str = ""
    subnet: str = ""
    node: str = ""
    host_network: bool = False
    observed_at: str = ""
    questions: str = ""
    answer: str = ""

    _report: ProbeReport = PrivateAttr(default=ProbeReport())
    _problem: Problem | None = PrivateAttr(default=None)

    @property
    def report(self) -> ProbeReport:
        """Its results; empty when they could not be read."""
        return self._report

    @property
    def problem(self) -> Problem | None:
        """Why its results could not be read; None when they were."""
        return self._problem

    @classmethod
    def read(cls, body: Body) -> Self:
        """Parse the run. Never raises."""
        run = super().read(body)
        try:
            run._report = _report(run)  # noqa: SLF001 - its own
        except _Unreadable as why:
            run._problem = Problem(UnreadReason.UNREADABLE, f"{run.id}: {why}")  # noqa: SLF001 - its own
        return run


class _Unreadable(Exception):
    """The line is not an answer to the questions; the message says why."""


def _report(run: ProbeRun) -> ProbeReport:
    if missing := ProbeRun.model_fields.keys() - {"name", MISSHAPEN} - run.model_fields_set:
        raise _Unreadable(f"{', '.join(sorted(missing))}: missing or of the wrong type")
    questions, answer = _object(run.questions), _object(run.answer)
    if answer.get("run") != questions.get("run"):
        raise _Unreadable("the answer belongs to another run of the probe")
    if "tooLong" in answer:
        raise _Unreadable(f"the answer had {answer['tooLong']} bytes and did not fit: ask for fewer targets")
    if answer.get("v") != 1:
        raise _Unreadable("the answer is of another version of the probe")
    try:
        own = _texts(answer, "nameservers")
        if missing := set(questions["resolvers"]) - set(answer["servers"]):
            raise _Unreadable(f"{', '.join(sorted(missing))} should have been asked, and was not")
        return ProbeReport(
            limit_seconds=float(questions["limit"]),
            control_answered=_control_answered(answer["controls"]),
            replies=tuple(
                reply(target, raw)
                for target, raw in _pairs([_target(row) for row in questions["targets"]], answer["targets"])
            ),
            names=tuple(_name(row, raw) for row, raw in _pairs(questions["names"], answer["names"])),
            dns=(
                *_resolvers(answer["servers"], answer["dns"], questions["canary"]),
                *_resolvers(answer["servers"], answer["known"], questions["knownName"]),
            ),
            cluster_name=_resolvers(own or (), answer["clusterName"], questions["clusterName"]),
            metadata={document_name: _metadata(row) for document_name, row in answer["metadata"].items()},
            v6_defaults=_texts(answer, "v6"),
            v6_addresses=_texts(answer, "v6Addresses"),
            nameservers=own,
        )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise _Unreadable(f"the answer does not fit the questions ({type(error).__name__})") from error


def _object(line: str) -> dict[str, Any]:
    if not line.strip():
        raise _Unreadable("the probe returned nothing")
    if len(line) > LARGEST_ANSWER:
        raise _Unreadable(f"{len(line)} characters, more than any probe writes")
    try:
        value = json.loads(_unpacked(line) if line.startswith("z") else line)
    except (ValueError, RecursionError, zlib.error):
        raise _Unreadable("no JSON: the text was cut, or something else wrote it") from None
    if not isinstance(value, dict):
        raise _Unreadable("no JSON object")
    return value


def _unpacked(line: str) -> bytes:
    """Decompress at most LARGEST_ANSWER bytes; a longer text is cut, so that it is no valid JSON."""
    return zlib.decompressobj().decompress(base64.b64decode(line[1:], validate=True), LARGEST_ANSWER)


def _pairs(questions: list[Any], answered: list[Any]) -> Iterator[tuple[Any, Any]]:
    if not isinstance(questions, list) or not isinstance(answered, list):
        raise TypeError
    return zip(questions, answered, strict=True)


def _target(row: list[Any]) -> ProbeTarget:
    role, kind, address, port = row
    return ProbeTarget(str(role), str(kind), str(address), int(port))


def _name(row: list[Any], raw: Any) -> NameReply:
    role, name, port = row
    resolution, _, called = str(raw).partition("|")
    target = ProbeTarget(str(role), "tls", str(name), int(port))
    resolved = dns_reply("the pod's resolver", str(name), resolution)
    address = next((address for address in resolved.contents if is_address(address)), "")
    call = reply(ProbeTarget(target.role, "tls", address, target.port), called) if called else None
    return NameReply(target, resolved, call)


def _control_answered(rounds: list[list[Any]]) -> bool:
    """Whether a target that must answer did so before all other attempts, and again after them."""
    before, after = rounds
    return all(any(_answered(raw) for raw in answers) for answers in (before, after))


def _answered(raw: Any) -> bool:
    _, _, called = str(raw).rpartition("|")
    return reply(ProbeTarget("control", "tls", "", 0), called).reading in {Reading.OPEN, Reading.TLS_ANSWERED}


def _resolvers(servers: Any, answers: list[Any], domain: str) -> tuple[DnsReply, ...]:
    return tuple(dns_reply(str(server), str(domain), raw) for server, raw in _pairs(list(servers), answers))


def _metadata(row: list[Any]) -> RunMetadata:
    return RunMetadata(int(row[0]), row[1]) if row else RunMetadata()


def _texts(answer: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    texts = answer.get(name)
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return None
    return tuple(texts)


def resolved_within_the_cluster(report: ProbeReport) -> bool:
    """Whether a resolver of the pod resolved the name of a Service: it was reachable, and could have recursed."""
    positive = {DnsReading.PRIVATE_ADDRESS, DnsReading.PUBLIC_ADDRESS}
    return any(attempt.reading in positive for attempt in report.cluster_name)
