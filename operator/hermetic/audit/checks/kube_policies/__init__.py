"""Table I, network policies: whether they close egress and are enforced, and what opens or bypasses them.

Resources are named as in `kube_services`.
"""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.kube_policies import alternative_paths, default_deny, engine, unread_kinds, wide

CHECKS = family(__package__ or "", alternative_paths, default_deny, engine, unread_kinds, wide)
