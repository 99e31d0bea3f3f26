"""Table D: IPv6."""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.ipv6 import stack

CHECKS = family(__package__ or "", stack)
