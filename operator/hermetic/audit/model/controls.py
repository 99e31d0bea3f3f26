"""Controls of public frameworks that a check gives evidence for. A mapping names what a check is about; it does not
state that a control is met.

- `mcsb`: Microsoft cloud security benchmark, version 1
- `nist`: NIST SP 800-53, revision 5
- `cis_aks`: CIS Azure Kubernetes Service (AKS) Benchmark, numbers of version 1.8

Where no control applies, or it is not certain that one does, a check has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

NAMES: Mapping[str, str] = {"mcsb": "MCSB v1", "nist": "NIST SP 800-53 r5", "cis_aks": "CIS AKS 1.8"}

_LAST_OF_DOMAIN = {"NS": 10, "IM": 9, "PA": 8, "DP": 8, "AM": 5, "LT": 7, "IR": 7, "PV": 7, "ES": 3, "BR": 4, "DS": 7}
# the controls that an audit of egress can give evidence for
_NIST = """
AC-3 AC-4 AC-6 AC-14 AC-17 AC-20 AU-12 CA-3 CA-9 CM-2 CM-6 CM-7 IA-2 IA-5 IA-5(7) SA-9 SC-4 SC-7 SC-7(3) SC-7(4)
SC-7(5) SC-7(7) SC-7(8) SC-7(10) SC-7(11) SC-7(21) SC-8 SC-8(1) SC-20 SC-21 SC-22 SI-2 SI-4 SI-4(4) SI-7 SR-3 SR-4
"""
_CIS_AKS = """
4.1.1 4.1.2 4.1.3 4.1.4 4.1.5 4.1.6 4.1.7 4.1.8 4.1.9 4.1.10 4.1.11 4.1.12 4.2.1 4.2.2 4.2.3 4.2.4 4.2.5 4.4.1 4.4.2
4.5.1 4.5.2 4.6.1 4.6.2 4.6.3 5.1.1 5.1.2 5.1.3 5.1.4 5.2.1 5.3.1 5.4.1 5.4.2 5.4.3 5.4.4 5.4.5 5.5.1 5.5.2
"""
KNOWN: Mapping[str, frozenset[str]] = {
    "mcsb": frozenset(f"{domain}-{n}" for domain, last in _LAST_OF_DOMAIN.items() for n in range(1, last + 1)),
    "nist": frozenset(_NIST.split()),
    "cis_aks": frozenset(_CIS_AKS.split()),
}


@dataclass(frozen=True, slots=True)
class Controls:
    """Ids of controls by framework."""

    mcsb: tuple[str, ...] = ()
    nist: tuple[str, ...] = ()
    cis_aks: tuple[str, ...] = ()

    def by_framework(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Key and name of each framework that has an id here, with the ids."""
        for framework in fields(self):
            ids: tuple[str, ...] = getattr(self, framework.name)
            if ids:
                yield framework.name, NAMES[framework.name], ids


NONE = Controls()


def read_controls(data: Mapping[str, Any]) -> Controls:
    """The `controls` of a check's page. Raises ValueError for a framework or id that is not known or is named twice."""
    for framework, ids in data.items():
        if framework not in KNOWN:
            raise ValueError(f"no framework is called {framework!r}: {', '.join(KNOWN)}")
        if not isinstance(ids, list) or not ids:
            raise ValueError(f"{framework} must be a list of ids")
        if unknown_ids := [control_id for control_id in ids if control_id not in KNOWN[framework]]:
            raise ValueError(
                f"{framework} has no control {', '.join(map(str, unknown_ids))} in the lists of {__name__}"
            )
        if len(set(ids)) < len(ids):
            raise ValueError(f"{framework} names a control twice: {', '.join(ids)}")
    return Controls(**{framework: tuple(ids) for framework, ids in data.items()})
