"""The newest committed table of SGLang, derived once more from that release's wheel (39 MB the first time)."""

from __future__ import annotations

import pytest

from testbed.package_index import IndexUnavailable, choose, configured_index, fetch
from testbed.sglang_tables.derive import TABLES
from tests.sampled_groups import LONG


@LONG
def test_the_committed_table_is_what_the_wheel_says():
    version = TABLES.committed()[-1]
    try:
        index = configured_index()
        release = choose(TABLES.offered(index), version)
        fetch(index, release)
    except IndexUnavailable as error:
        pytest.skip(f"no package index to derive the table of SGLang {version} from: {error}")
    assert (TABLES.folder / f"{version}.json").read_bytes() == TABLES.derive(index, release)
