"""Kinds that were just made known to the API server."""

from __future__ import annotations

from testbed.api import Api
from testbed.errors import ApiError
from testbed.processes import wait_until

MAKING_ROOM = frozenset({404, 429})
"""What a list is answered while a kind is established and not yet served: it is not there, and then not yet ready."""


def wait_until_served(api: Api, collection: str) -> None:
    """Wait until this path of the API can be listed. Raises ComponentError after a minute."""
    wait_until(f"lists of {collection}", lambda: _is_listed(api, collection), ())


def _is_listed(api: Api, collection: str) -> bool:
    try:
        api.get(collection)
    except ApiError as error:
        if error.status not in MAKING_ROOM:
            raise
        return False
    return True
