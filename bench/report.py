"""The results as the tables of docs/figures.md: ours beside the peer's, and the goal beside both."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bench import (
    audit_page,
    engine_page,
    mutants_page,
    operator_page,
    schedules_page,
    serving_page,
    weights_page,
)
from bench.workload import CHILDREN
from testbed.installation import REPOSITORY

PAGE = REPOSITORY / "docs" / "figures.md"

HEAD = f"""# Figures

`make bench` measures these and writes this page; the numbers as taken are in `bench/results/`.

One model is a vLLM deployment on an Azure Files share behind an internal load balancer: {len(CHILDREN)} children. The
API server, its controllers and the scheduler are real; nodes, kubelets and the load balancer's addresses are simulated
(kwok and a stand-in). The peer is an operator as kopf's documentation teaches to write one (`bench/peer/`), with kopf's
default settings, that makes the same children from the same builders. Both run as accounts of their own on the same
API server, one at a time, without Hermetic's admission policies, which would keep the peer from writing a status.
Requests are those of the API server's audit log for that account; Events and Leases are counted apart, watches not at
all.
"""

SECTIONS: tuple[Callable[[], Iterator[str]], ...] = (
    operator_page.writes_section,
    operator_page.burst_section,
    operator_page.steady_section,
    operator_page.restart_section,
    operator_page.large_restart_section,
    serving_page.rolling_update_section,
    serving_page.adapters_section,
    serving_page.autoscaling_section,
    serving_page.promotion_section,
    operator_page.groups_section,
    audit_page.closed_gate_section,
    audit_page.audit_section,
    audit_page.several_clusters_section,
    audit_page.evaluation_section,
    weights_page.section,
    engine_page.engine_section,
    engine_page.gpu_section,
    schedules_page.faults_section,
    schedules_page.closed_gate_section,
    schedules_page.groups_section,
    mutants_page.section,
)
"""In the order of the page. A section without results is left out."""


def write_page() -> str:
    """Write the page from the results there are, and return it."""
    page = "\n".join([HEAD, *(part for section in SECTIONS for part in section())])
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page)
    return page
