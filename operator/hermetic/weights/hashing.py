"""SHA-256 of a file or of a range of one, with a check that the file did not change meanwhile."""

from __future__ import annotations

import hashlib
import os

from hermetic.api.weights_reasons import WeightsReason
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.tree import Item, Tree, WeightsStopped, finding_of, identity_of
from hermetic.weights.workers import Progress


def hash_range(tree: Tree, item: Item, span: tuple[int, int], buffer: memoryview, progress: Progress) -> bytes:
    """The digest of the bytes from start to end.

    Raises WeightsStopped with ChangedWhileReading where the file is not the one of `item` before and after reading, and
    with ReadFailed where the share returns an error.
    """
    path = item.path
    descriptor = tree.open(path)
    try:
        must_be(item, identity_of(os.fstat(descriptor)))
        digest = hashlib.sha256()
        offset, end = span
        while offset < end:
            count = tree.read_into(descriptor, buffer[: min(len(buffer), end - offset)], offset)
            if count == 0:
                raise WeightsStopped(
                    WeightsFinding(WeightsReason.CHANGED_WHILE_READING, path, f"{end} bytes", f"{offset} bytes")
                )
            digest.update(buffer[:count])
            offset += count
            progress.read(count)
        must_be(item, identity_of(os.fstat(descriptor)))
    except OSError as error:
        raise WeightsStopped(finding_of(error, path)) from None
    finally:
        os.close(descriptor)
    now = tree.lstat(path)
    must_be(item, None if now is None else now.identity, kind="" if now is None else now.kind.value)
    return digest.digest()


def must_be(item: Item, identity: tuple[int, int, int, int, int] | None, kind: str = "file") -> None:
    """Raises WeightsStopped if this is not the file that was listed, unchanged since."""
    if identity == item.identity:
        return
    if identity is None:
        observed = "nothing"
    elif identity[:2] != item.identity[:2]:
        observed = f"another {kind}"
    else:
        observed = f"{identity[2]} bytes, changed since"
    raise WeightsStopped(
        WeightsFinding(WeightsReason.CHANGED_WHILE_READING, item.path, f"{item.size} bytes, unchanged", observed)
    )
