"""Events of a megabyte each, as any tenant may write them, leave nothing behind but their first words."""

from __future__ import annotations

from typing import Any

from hermetic.api.configuration import Configuration
from hermetic.kube.pod_warnings import REMEMBERED_WARNINGS
from hermetic.kube.store import Store
from tests.traced_memory import traced_memory

EVENTS = 10_000
# The pod of the operator has 512 MiB; this is what the Events may take of it, other objects aside.
ROOM = 32 * 2**20


def an_event(number: int) -> dict[str, Any]:
    huge = f"{number:08}" * 2**17  # 1 MiB, and no two alike
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "type": "Warning",
        "metadata": {
            "name": f"e{number}",
            "namespace": "evil",
            "uid": f"e-{number}",
            "resourceVersion": str(number + 1),
        },
        "involvedObject": {"kind": "Pod", "namespace": "evil", "name": f"p{number}", "uid": f"u-{number}"},
        "reason": huge,
        "message": huge,
        "source": {"component": huge},
    }


def test_ten_thousand_events_of_a_megabyte_take_a_bounded_number_of_bytes() -> None:
    store = Store(Configuration())
    with traced_memory() as memory_use:
        for number in range(EVENTS):
            store.put(an_event(number))
        bytes_kept, highest = memory_use()
    assert EVENTS > REMEMBERED_WARNINGS
    assert bytes_kept < ROOM, f"{bytes_kept / 2**20:.1f} MiB are kept"
    assert highest < ROOM + 8 * 2**20, f"{highest / 2**20:.1f} MiB at the highest"


def test_an_event_about_something_of_an_endless_name_is_not_kept() -> None:
    store = Store(Configuration())
    event = an_event(1)
    event["involvedObject"] |= {"name": "p" * 2**20}
    with traced_memory() as memory_use:
        assert store.put(event) == frozenset()
        bytes_kept, _ = memory_use()
    assert bytes_kept < 2**16
