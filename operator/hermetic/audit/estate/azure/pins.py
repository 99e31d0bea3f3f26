"""How the pinned api-versions age.

ARM answers with the fields of the version that is asked: a feature that came later is not in the answer, and its field
reads as absent. So the pins are compared with the published specifications at least every `MONTHS` months:

1. For each provider of `versions.py`, look up the newest stable version in github.com/Azure/azure-rest-api-specs.
2. Where it shows a field that can open a way, raise the pin, read the field in a check, and plant it in the test bed.
3. Where only a preview shows such a field, ask the preview beside the stable version, by a model of its own that holds
   nothing else: a cloud may refuse it, and then only that field is Unknown. Where a stable version has come to show the
   field, move it into the stable model and drop the preview.
4. Raise the lists of `cluster_unread.py` to the fields of the new version, and set `COMPARED` to the day of the look.
"""

from __future__ import annotations

from datetime import date
from typing import Final

COMPARED: Final = date(2026, 8, 21)
"""The day of the specifications that the pins were last compared with."""
MONTHS: Final = 12
"""How long a comparison counts."""


def note_on_age(today: date) -> str:
    """A sentence for the person who audits, once the comparison is older than it may be; "" before."""
    months = (today.year - COMPARED.year) * 12 + today.month - COMPARED.month - (today.day < COMPARED.day)
    if months < MONTHS:
        return ""
    return (
        f"this release reads Azure as its specifications were on {COMPARED}, {months} months ago: a feature that came "
        "later is not seen. Update Hermetic"
    )
