"""Table F, registries: who may pull, push and fetch, and what a registry sends by itself."""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.registries import access, data_export, identities, previews

CHECKS = family(__package__ or "", access, data_export, identities, previews)
