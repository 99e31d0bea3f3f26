"""Tables J and K, and what of D and G only a pod can see: judged from what the probe's pods said.

The probe refutes, it never proves: each of these ids speaks for itself alone, and its silence counts only where a
positive control answered before and after.
"""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.probe import calls, host_plugin, machine, metadata, resolvers

CHECKS = family(__package__ or "", calls, host_plugin, machine, metadata, resolvers)
