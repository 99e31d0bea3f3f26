"""A log that its program still writes is read without its unfinished end."""

from __future__ import annotations

from pathlib import Path

from testbed.json_lines import json_lines


def test_a_line_that_is_not_written_yet_is_left_for_the_next_read(tmp_path: Path) -> None:
    log = tmp_path / "operator.log"
    log.write_text('{"event": "ready"}\nTraceback of a library\n{"event": "recon')
    assert json_lines(log) == [{"event": "ready"}]

    with log.open("a") as end:
        end.write('cile"}\n')
    assert json_lines(log, log.read_text().index('{"event": "recon')) == [{"event": "reconcile"}]
