"""The wire server as seen from a machine's own network, with a plug-in that fetches and stores what it is asked to.

Every machine's agent needs it, so its answer there is Azure's design and not a defect of the cluster. The severity
depends on which pods have the machine's network. With platform pods alone it is medium: one more admitted pod has a
egress path that no security rule and no route sees. With another pod it is high.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hermetic.audit.checks.family import check
from hermetic.audit.checks.kube_workloads import rights
from hermetic.audit.checks.probe.calls import on_the_hosts_channel, unclear_on_the_hosts_channel
from hermetic.audit.checks.probe.vantages import HOST, Doubt, OpenPath, ProbePlace, each_place, start_of, weigh
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.probe.runs import ProbeRun
from hermetic.audit.evaluation.results import CheckResult
from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.model.hops import INTERNET, path_of
from hermetic.audit.policy.declarations import Policy

SHOWN = 3


@check("host-plugin")
def host_plugin(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Answers of 168.63.129.16 on ports 80 and 32526 to a pod in the machine's own network."""
    other_workloads = _others_on_the_host(estate, policy)

    def open_paths(run: ProbeRun) -> Iterator[OpenPath]:
        for target, outcome in on_the_hosts_channel(run, policy):
            yield OpenPath(
                f"{target} {outcome} in the network of {run.node}", path_of(*start_of(run), "host plug-in", INTERNET)
            )

    def doubts(run: ProbeRun) -> Iterator[Doubt]:
        yield from unclear_on_the_hosts_channel(run, policy)
        called = run.report.called("wireserver")
        if not called or any(reply.target.kind != "http" for reply in called):
            message = "168.63.129.16 was not asked over HTTP: this is the answer of an older release of the probe"
            yield Doubt("NotAsked", message, "Let the probe of this release run.")

    def evaluate(probe_place: ProbePlace) -> Iterator[CheckResult]:
        silence = "the host's channel answered nothing"
        result = weigh(
            probe_place,
            (HOST,),
            reason="HostPluginReachable",
            find_open_paths=open_paths,
            doubts=doubts,
            silence=silence,
        )
        if result.verdict is not Verdict.FAIL:
            yield result
        elif other_workloads:
            workloads = f"{', '.join(other_workloads[:SHOWN])}{' and more' if len(other_workloads) > SHOWN else ''}"
            message = f"{result.message}; pods of {workloads} have that network and are not part of the platform"
            yield replace(result, message=message, severity=Severity.HIGH)
        else:
            yield replace(result, message=f"{result.message}; {_only_the_platform(estate)}")

    yield from each_place(estate, evaluate)


def _others_on_the_host(estate: Estate, policy: Policy) -> tuple[str, ...]:
    """Workloads with their node's network that are not part of the platform, as k8s-hostnetwork finds them."""
    if "kube" not in estate.sources:
        return ()
    results = rights.k8s_hostnetwork.evaluate(estate, policy)
    return tuple(sorted(result.resource for result in results if result.verdict is Verdict.FAIL))


def _only_the_platform(estate: Estate) -> str:
    if "kube" not in estate.sources:
        return "the audit did not ask which pods have that network (--kube)"
    return "only parts of the platform are known to have that network, and the next pod that gets it reaches it"
