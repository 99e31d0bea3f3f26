"""Channels of Azure itself beside the network: logs, copies of packets, code on machines."""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.sinks import backups, deliveries, machines, receivers, settings

CHECKS = family(__package__ or "", settings, deliveries, receivers, backups, machines)
