"""When the pinned api-versions must be compared with Azure's specifications again.

ARM answers with the fields of the requested version: a feature that came later is not in the answer, and its field
reads as absent. So the pins are compared with the published specifications at least every `MONTHS` months:

1. For each provider of `versions.py`, find the newest stable version in github.com/Azure/azure-rest-api-specs.
2. Where a field of it can open an egress path, raise the pin, read the field in a check, plant it in the test bed.
3. Where only a preview has such a field, query the preview beside the stable version, by a model that reads only
   this: a cloud may refuse it, and then only that field is Unknown. Where a stable version has the field by now, move
   it into the stable model and drop the preview.
4. Raise the lists of `cluster_unread.py` to the fields of the new version, and set `COMPARED` to that day.
"""

from __future__ import annotations

from datetime import date
from typing import Final

COMPARED: Final = date(2026, 8, 21)
"""The day of the specifications that the pins were last compared with."""
MONTHS: Final = 12
"""How many months a comparison is valid."""


def note_on_age(today: date) -> str:
    """A sentence for the auditor, once the comparison is older than `MONTHS`; "" before."""
    months = (today.year - COMPARED.year) * 12 + today.month - COMPARED.month - (today.day < COMPARED.day)
    if months < MONTHS:
        return ""
    return (
        f"this release reads Azure as its specifications were on {COMPARED}, {months} months ago: a feature that came "
        "later is not seen. Update Hermetic"
    )
