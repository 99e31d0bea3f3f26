"""How staging writes: whole pages past the page cache where a disk allows it, and the same bytes where it does not."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermetic.weights.destination import write_durably

PAGE = mmap.PAGESIZE
SIZE = 5 * PAGE + 100
CONTENT = os.urandom(SIZE)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield descriptor
    os.close(descriptor)


class Disk:
    """A file system on a disk. `error`: what it answers to a write past its cache; `most`: bytes that it takes."""

    def __init__(self, error: int = 0, most: int = 2**30) -> None:
        self.direct: list[tuple[int, int]] = []
        self.cached: list[tuple[int, int]] = []
        self._error, self._most, self._write = error, most, os.pwrite

    def pwrite(self, descriptor: int, content: memoryview, at: int) -> int:
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        if not flags & os.O_DIRECT:
            self.cached.append((at, len(content)))
            return self._write(descriptor, content, at)
        if self._error:
            raise OSError(self._error, os.strerror(self._error))
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags & ~os.O_DIRECT)
        self.direct.append((at, min(self._most, len(content))))
        return self._write(descriptor, content[: self._most], at)


def on(monkeypatch: pytest.MonkeyPatch, disk: Disk, device: int = 8) -> Disk:
    monkeypatch.setattr(os, "major", lambda _device: device)
    monkeypatch.setattr(os, "pwrite", disk.pwrite)
    return disk


def pieces(size: int) -> Iterator[memoryview]:
    buffer = memoryview(mmap.mmap(-1, size))
    for at in range(0, SIZE, size):
        count = min(size, SIZE - at)
        buffer[:count] = CONTENT[at : at + count]
        yield buffer[:count]


def must_hold(descriptor: int, start: int) -> None:
    assert os.pread(descriptor, SIZE + 1, start) == CONTENT


def test_whole_pages_go_past_the_page_cache_and_the_rest_through_it(monkeypatch: pytest.MonkeyPatch, file: int) -> None:
    disk = on(monkeypatch, Disk())
    assert write_durably(file, PAGE, pieces(2 * PAGE)) == PAGE + SIZE
    must_hold(file, PAGE)
    assert disk.direct == [(PAGE, 2 * PAGE), (3 * PAGE, 2 * PAGE), (5 * PAGE, PAGE)]
    assert disk.cached == [(6 * PAGE, 100)]


@pytest.mark.parametrize("start", [0, 512, PAGE - 1])
@pytest.mark.parametrize("most", [PAGE, 2 * PAGE])
@pytest.mark.parametrize("size", [PAGE, 3 * PAGE, SIZE, 1000])
def test_no_page_is_written_both_ways(
    monkeypatch: pytest.MonkeyPatch, file: int, start: int, most: int, size: int
) -> None:
    disk = on(monkeypatch, Disk(most=most))
    write_durably(file, start, pieces(size))
    must_hold(file, start)
    direct, cached = (
        {page for at, count in extents for page in range(at // PAGE, -(-(at + count) // PAGE))}
        for extents in (disk.direct, disk.cached)
    )
    aligned_offsets = [at for at, _ in disk.direct if at % PAGE == 0]
    assert len(aligned_offsets) == len(disk.direct)
    assert not direct & cached


def test_a_disk_that_refuses_is_written_through_its_cache(monkeypatch: pytest.MonkeyPatch, file: int) -> None:
    disk = on(monkeypatch, Disk(error=errno.EINVAL))
    write_durably(file, 0, pieces(PAGE))
    must_hold(file, 0)
    assert disk.direct == []


def test_a_disk_that_fails_is_no_disk_that_refuses(monkeypatch: pytest.MonkeyPatch, file: int) -> None:
    on(monkeypatch, Disk(error=errno.EIO))
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        write_durably(file, 0, pieces(PAGE))


def test_network_file_systems_and_memory_are_written_through_the_cache(
    monkeypatch: pytest.MonkeyPatch, file: int
) -> None:
    disk = on(monkeypatch, Disk(), device=0)
    write_durably(file, 0, pieces(PAGE))
    must_hold(file, 0)
    assert disk.direct == []
