"""Tables J and K, and the rows of D and G that only a pod can observe: evaluated from the results of probe pods.

The probe refutes and never proves: each id covers only what it tests, and the absence of an answer counts only where
a positive control answered before and after.
"""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.probe import calls, host_plugin, metadata, resolvers

CHECKS = family(__package__ or "", calls, host_plugin, metadata, resolvers)
